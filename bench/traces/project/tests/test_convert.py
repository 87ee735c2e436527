import json
import unittest

from tools import convert


class Convert(unittest.TestCase):
    def test_rows(self):
        rows = json.loads(convert.convert("data/2024.csv"))
        self.assertEqual(len(rows), 72)
        self.assertEqual(rows[0]["date"], "2024-01-01")


if __name__ == "__main__":
    unittest.main()
