"""What the table says of runs, from made-up ones: python3 -m unittest discover tools/figures"""

import unittest
from types import SimpleNamespace

from document import at_most, cells, ratio_line


def runs(side, *values):
    """A run of each value, without faults."""
    return [
        SimpleNamespace(
            side=side,
            value=value,
            faulty=False,
            disturbed=False,
            report={"unanswered": 0},
            server_command=f"{side} server",
            load_command=f"{side} load",
        )
        for value in values
    ]


def ratio(ours, theirs, target=None):
    return ratio_line("1", "what", target, "value", "us", runs("ours", *ours), runs("theirs", *theirs))


class Ratios(unittest.TestCase):
    def test_a_side_whose_time_reads_0_was_not_measured(self):
        line = ratio([0, 6], [4, 4], at_most(2))
        self.assertEqual(line.figure, 1.5)
        self.assertEqual(line.remarks, ["1 of 2 rounds not measured: a side reads 0"])
        self.assertIn("not measured", cells(ratio([3], [0]))[4])


if __name__ == "__main__":
    unittest.main()
