import unittest

from tools import stats


class Median(unittest.TestCase):
    def test_odd(self):
        self.assertEqual(stats.median([3, 1, 2]), 2)


class Groups(unittest.TestCase):
    def test_by_category(self):
        self.assertEqual(stats.by_category([("a", 1), ("b", 2), ("a", 3)]), {"a": [1, 3], "b": [2]})


if __name__ == "__main__":
    unittest.main()
