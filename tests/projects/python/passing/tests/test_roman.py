import unittest

from roman import value


class Roman(unittest.TestCase):
    def test_smaller_digits_before_larger_ones_are_subtracted(self):
        self.assertEqual(value("XIV"), 14)
