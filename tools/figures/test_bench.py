"""The order of runs, and the runs that count: python3 -m unittest discover tools/figures"""

import socket
import unittest
from types import SimpleNamespace
from unittest import mock

import bench
import rows
from bench import OS_KEN, L2, Bench, MeasureError, Run, Settings, Side, free_port, is_listening, shown


def run(side, **facts):
    report = {"responses_per_s": {"mean": 5}, "latency": None, "bottleneck": "load", "unanswered": 0}
    usual = {"waited": 0, "faulty": False, "failure": None}
    return Run(
        row="1", side=side, round=1, attempt=1, server_command="", load_command="", report=report, stolen=0,
        counters={}, **{**usual, **facts}
    )


class Turns(unittest.TestCase):
    def bench(self, runs, rounds=1, seed=1):
        """Returns a bench with these results, in order: runs, or failures."""
        settings = Settings(
            program=None, rounds=rounds, ms=1, quick=False, rivals=True, server_core=0, load_core=1, seed=seed
        )
        made = Bench(settings, folder=None)
        runs = iter(runs)

        def next_run(row, side, number, attempt):
            found = next(runs)
            if isinstance(found, Exception):
                raise found
            return found

        made.run = next_run
        return made

    def setUp(self):
        silence = mock.patch.object(bench, "progress")
        silence.start()
        self.addCleanup(silence.stop)

    def test_a_disturbed_run_is_repeated_and_the_least_disturbed_counts(self):
        runs = [run("l2", waited=waited) for waited in (0.5, 0.2, 0.3)]
        turn = self.bench(runs).turn("1", Side("l2", L2), 1)
        self.assertIs(turn, runs[1])
        self.assertEqual([each.counts for each in runs], [False, True, False])

    def test_wrong_answers_are_not_replaced_by_another_run(self):
        wrong = run("l2", waited=0.5, faulty=True)
        self.assertIs(self.bench([wrong, run("l2")]).turn("1", Side("l2", L2), 1), wrong)
        # Not even by a better earlier run.
        self.assertIs(self.bench([run("l2", waited=0.3), wrong]).turn("1", Side("l2", L2), 1), wrong)

    def test_no_answers_are_not_replaced_by_another_run(self):
        silent = run("l2", failure="it answered no packet-in")
        self.assertIs(self.bench([silent, run("l2")]).turn("1", Side("l2", L2), 1), silent)

    def test_a_rival_that_does_not_start_has_a_run_that_says_so(self):
        turn = self.bench([MeasureError("it ended at once")]).turn("3", Side("os-ken", OS_KEN), 1)
        self.assertEqual((turn.has_failed, turn.failure), (True, "it ended at once"))
        with self.assertRaises(MeasureError):
            self.bench([MeasureError("it ended at once")]).turn("3", Side("l2", L2), 1)

    def test_who_goes_first_is_drawn(self):
        made = self.bench([run("any") for _ in range(40)], rounds=20)
        order = []
        made.turn = lambda row, side, number: order.append(side.name)
        made.take_turns("1", Side("ours", L2), Side("theirs", L2))
        self.assertEqual({"ours", "theirs"}, set(order[::2]))
        self.assertTrue(all({*both} == {"ours", "theirs"} for both in zip(order[::2], order[1::2])))


class Rows(unittest.TestCase):
    def test_the_best_window_is_that_of_the_highest_median_rate(self):
        def with_rates(*rates):
            return [SimpleNamespace(rate=rate) for rate in rates]

        sides = [with_rates(1, 9, 2), with_rates(4, 5, 4), with_rates(3, 3, 3)]
        window, best = rows.best_of((64, 128, 256), sides)
        self.assertEqual((window, best), (128, sides[1]))

    def test_only_the_number_of_shards_differs(self):
        self.assertEqual(shown(rows.with_shards(2)), shown(L2.command).replace("--shards 1", "--shards 2"))


class Ports(unittest.TestCase):
    def test_only_a_listener_at_our_own_address_counts(self):
        port = free_port()
        self.assertFalse(is_listening(port))
        with socket.create_server(("127.0.0.1", port)):
            self.assertFalse(is_listening(port))
        with socket.create_server((bench.OWN_HOST, port)):
            self.assertTrue(is_listening(port))

    def test_commands_are_shown_as_one_would_type_them(self):
        command = ("urtica", "run", "l2", "--listen", f"ptcp:45678:{bench.OWN_HOST}")
        self.assertEqual(shown(command), "urtica run l2 --listen ptcp:6653:127.0.0.1")


if __name__ == "__main__":
    unittest.main()
