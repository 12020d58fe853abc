"""What is said of rows, from stand-ins for what is measured: python3 -m unittest discover tools/network-figures"""

import random
import sys
import unittest
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

sys.path.append(str(Path(__file__).resolve().parent.parent / "figures"))

import mininet
import rows
from bench import MeasureError


class DiscoveryBesideOsKen(unittest.TestCase):
    def lines(self, os_ken, rivals=True):
        """Returns the lines of two rounds in which ours needs 2 ms, and `os_ken` has the results of its runs."""
        theirs = iter(os_ken)

        def discovery(_, controller):
            found = mininet.Discovery(2, 4, "ours") if controller is mininet.ours else next(theirs)
            if isinstance(found, Exception):
                raise found
            return found

        bench = SimpleNamespace(settings=SimpleNamespace(rounds=2, rivals=rivals), random=random.Random(1))
        with mock.patch.object(mininet, "discovery", discovery), mock.patch.object(rows, "progress"):
            return rows.discovery_on_mininet(bench)

    def test_a_run_of_os_ken_that_fails_is_told_and_the_rest_is_compared(self):
        ours, ratio = self.lines([MeasureError("Mininet was not ready within 9 s"), mininet.Discovery(8, 16, "theirs")])
        self.assertEqual(ours.figure, 2)
        self.assertEqual(ratio.figure, 0.25)
        self.assertEqual(ratio.remarks, ["1 of 2 runs of os-ken failed: Mininet was not ready within 9 s"])

    def test_where_every_run_of_os_ken_fails_its_line_says_so_and_ours_stands(self):
        ours, ratio = self.lines([MeasureError("not all links"), MeasureError("ended")])
        self.assertEqual(ours.reached, "yes")
        self.assertIsNone(ratio.figure)
        self.assertEqual(ratio.remarks, ["2 of 2 runs of os-ken failed: not all links"])

    def test_without_rivals_os_ken_is_not_run(self):
        (ours,) = self.lines([], rivals=False)
        self.assertEqual(ours.figure, 2)


if __name__ == "__main__":
    unittest.main()
