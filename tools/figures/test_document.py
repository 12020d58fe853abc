"""The table's lines for made-up runs: python3 -m unittest discover tools/figures"""

import unittest
from types import SimpleNamespace
from unittest import mock

from document import at_least, at_most, cells, figure_line, machine_facts, plain, ratio_line, summary


def run(side, value, **facts):
    """Returns a run with this value, in which nothing went wrong unless `facts` differ."""
    usual = {
        "faulty": False,
        "disturbed": False,
        "is_load_bound": False,
        "has_failed": False,
        "failure": None,
        "server_command": f"{side} server",
        "load_command": f"{side} load",
    }
    return SimpleNamespace(side=side, value=value, **{**usual, **facts})


def runs(side, *values):
    return [run(side, value) for value in values]


def ratio(ours, theirs, target=None):
    return ratio_line("1", "what", target, "value", "us", ours, theirs)


class Ratios(unittest.TestCase):
    def test_rounds_are_paired(self):
        # Measured rates of two loads, in millions; the ratio of their medians is 0.639.
        ours = runs("ours", 31.70, 16.78, 21.08, 18.58, 18.52)
        theirs = runs("theirs", 26.94, 28.56, 41.62, 32.39, 29.09)
        line = ratio(ours, theirs, at_least(0.6))
        self.assertAlmostEqual(line.figure, 0.587, places=2)
        self.assertEqual(line.reached, "inconclusive")
        self.assertEqual([round(end, 2) for end in line.interval], [0.51, 1.18])
        self.assertEqual(cells(line)[3:6], ["inconclusive", "0.5875", "0.5065 to 1.177"])

    def test_a_target_is_reached_or_missed_where_the_interval_is_on_one_side_of_it(self):
        line = ratio(runs("ours", 5, 6, 7, 8, 9), runs("theirs", *[10] * 5), at_least(0.45))
        self.assertEqual((line.figure, line.interval, line.reached), (0.7, (0.5, 0.9), "yes"))
        for target, reached in [(at_least(0.95), "no"), (at_most(0.95), "yes"), (at_most(0.7), "inconclusive")]:
            line.target = target
            self.assertEqual(line.reached, reached, target)

    def test_a_side_whose_time_reads_0_was_not_measured(self):
        line = ratio(runs("ours", 0, 6), runs("theirs", 4, 4), at_most(2))
        self.assertEqual(line.figure, 1.5)
        self.assertEqual(line.remarks, ["1 of 2 rounds not measured: a side reads 0"])
        nothing = ratio(runs("ours", 3), runs("theirs", 0), at_most(2))
        self.assertEqual(cells(nothing)[3:], ["not measured", "not measured", "", "not measured", "not measured"])

    def test_a_failure_of_ours_misses_the_target_and_one_of_a_rival_does_not(self):
        failed = {"has_failed": True, "failure": "it answered no packet-in", "load_command": ""}
        ours, theirs = runs("ours", 9, 9), [run("theirs", 0, **failed), *runs("theirs", 3)]
        line = ratio(ours, theirs, at_least(2))
        self.assertEqual((line.figure, line.reached), (3, "yes"))
        self.assertIn("1 of 2 runs of theirs failed: it answered no packet-in", line.remarks)
        self.assertEqual(line.commands[2:], ["theirs server", "theirs load"])
        self.assertEqual(ratio(theirs, ours, at_least(0.1)).reached, "no")

    def test_wrong_answers_miss_the_target(self):
        line = ratio([run("ours", 9, faulty=True)], runs("theirs", 3), at_least(2))
        self.assertEqual((line.figure, line.reached), (3, "no"))

    def test_a_server_that_the_load_could_not_fill_is_told(self):
        line = ratio(runs("l2", 9), [run("limit", 3, is_load_bound=True)])
        self.assertEqual(line.remarks, ["1 of 1 runs of limit in which the load had no time left"])


class Tables(unittest.TestCase):
    def test_the_worst_run_may_be_the_figure(self):
        line = figure_line("7", "fairness", at_least(0.99), "value", "", runs("l2", 0.999, 0.98, 0.999), min)
        self.assertEqual((line.figure, line.interval[0], line.reached), (0.98, 0.98, "inconclusive"))
        self.assertEqual(plain(line)["target"], "≥ 0.99")

    def test_what_is_reached_and_what_may_be_are_counted_apart(self):
        lines = [ratio(runs("ours", 1, 3), runs("theirs", 1, 1), at_least(least)) for least in (0.5, 2, 5)]
        self.assertEqual(summary(lines), "**1 of 3 targets reached, 1 inconclusive.**")


class Machine(unittest.TestCase):
    def test_git_need_not_be_there(self):
        with mock.patch.dict("os.environ", PATH="/nonexistent"):
            self.assertEqual(machine_facts()["commit"], "an unknown commit")


if __name__ == "__main__":
    unittest.main()
