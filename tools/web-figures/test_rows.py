"""What is said of rows, from stand-ins for what is measured: python3 -m unittest discover tools/web-figures"""

import os
import subprocess
import sys
import unittest
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

TOOLS = Path(__file__).resolve().parent.parent
sys.path += [str(TOOLS / "figures"), str(TOOLS / "northbound-figures")]

import page_rows
from bench import MeasureError


def minutes(*mib):
    return [{"minute": minute, "events": 6000 * minute, "heapBytes": each * 2**20, "nodes": 5, "listeners": 7} for minute, each in enumerate(mib)]


class Memory(unittest.TestCase):
    def line(self, *mib, quick=False):
        bench = SimpleNamespace(settings=SimpleNamespace(quick=quick))
        network = mock.MagicMock()
        network.return_value.__enter__.return_value = (None, "urtica net")
        with mock.patch.multiple(page_rows, network=network, measured=mock.Mock(return_value=minutes(*mib))):
            return page_rows.tab_memory(bench)[0]

    def test_an_hour_is_compared_with_the_ten_minutes_from_the_tenth_on(self):
        line = self.line(*range(61))
        self.assertEqual((line.against, line.ours), ([14.5], [55.5]))
        self.assertEqual(line.reached, "no")

    def test_a_heap_that_has_grown_before_is_no_growth(self):
        line = self.line(*range(10), *[10] * 51)
        self.assertEqual((line.figure, line.reached), (1.0, "yes"))

    def test_a_tiny_run_compares_its_minutes(self):
        line = self.line(4, 5, quick=True)
        self.assertEqual((line.against, line.ours), ([5], [5]))


class Processes(unittest.TestCase):
    def test_descendants_are_found_at_any_depth(self):
        with subprocess.Popen(["sh", "-c", "sleep 60 & read line; kill $!"], stdin=subprocess.PIPE) as shell:
            while not page_rows.descendants(shell.pid):
                pass
            [sleep] = page_rows.descendants(shell.pid)
            self.assertIn(shell.pid, page_rows.descendants(os.getpid()))
            self.assertIn(sleep, page_rows.descendants(os.getpid()))

    def test_a_browser_that_fails_is_no_figure(self):
        done = SimpleNamespace(returncode=1, stdout="", stderr="Error: no page\n")
        with mock.patch.object(page_rows.subprocess, "run", return_value=done):
            with self.assertRaisesRegex(MeasureError, "first failed: Error: no page"):
                page_rows.measured("first")


if __name__ == "__main__":
    unittest.main()
