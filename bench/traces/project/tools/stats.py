"""Numbers about a statement."""

import csv
import sys
from collections import defaultdict


def read(path):
    with open(path, newline="") as file:
        return [(row["category"], float(row["amount"])) for row in csv.DictReader(file)]


def median(values):
    ordered = sorted(values)
    return ordered[len(ordered) // 2]


def by_category(entries):
    groups = defaultdict(list)
    for category, amount in entries:
        groups[category].append(amount)
    return dict(groups)


def main(paths):
    for path in paths:
        for category, amounts in sorted(by_category(read(path)).items()):
            print(f"{category:12} {len(amounts):4} {median(amounts):10.2f}")


if __name__ == "__main__":
    main(sys.argv[1:])
