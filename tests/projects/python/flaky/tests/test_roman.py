import pathlib
import unittest

from roman import value


class Roman(unittest.TestCase):
    def test_smaller_digits_before_larger_ones_are_subtracted(self):
        mark = pathlib.Path(".cache/ran-before")
        again = mark.exists()
        mark.parent.mkdir(exist_ok=True)
        mark.touch()
        self.assertTrue(again, "the cache was cold")
        self.assertEqual(value("XIV"), 14)
