"""A statement as JSON."""

import csv
import json
import os
import sys


def convert(path, indent=None):
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    return json.dumps(rows, indent=indent)


def main(paths):
    if not paths:
        print("usage: python3 -m tools.convert FILE...", file=sys.stderr)
        return 2
    indent = int(os.environ.get("LEDGER_INDENT", "0")) or None
    for path in paths:
        print(convert(path, indent))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
