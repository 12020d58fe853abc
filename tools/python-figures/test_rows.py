"""What is said of rows, from stand-ins for what is measured: python3 -m unittest discover tools/python-figures"""

import random
import struct
import sys
import unittest
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

sys.path.append(str(Path(__file__).resolve().parent.parent / "figures"))

import flow_stats
import packet_in_rows
import program_rows
from bench import MeasureError, failed_run


class Bench:
    """A bench whose sides have these rates and latencies, by the names of their servers."""

    def __init__(self, rates, rivals=True):
        self.settings = SimpleNamespace(rounds=2, quick=False, rivals=rivals, server_core=0)
        self.rates, self.random = rates, random.Random(1)

    def take_turns(self, row, *sides):
        return [[self.turn(row, side, number) for number in (1, 2)] for side in sides]

    def turn(self, row, side, number):
        rate = self.rates[side.server.name]
        if isinstance(rate, str):
            return failed_run(row, side, number, 1, rate)
        facts = {"has_failed": False, "faulty": False, "disturbed": False, "is_load_bound": False}
        commands = {"server_command": side.server.name, "load_command": "urtica bench"}
        return SimpleNamespace(**facts, **commands, side=side.name, rate=rate, p50_us=16e6 / rate)

    @staticmethod
    def pinned(core, command):
        return ("taskset", "-c", str(core), *command)


RATES = {"simple_switch_13": 120_000, "os-ken, native hub": 2_000, "os-ken, eventlet hub": 3_000}


class OsKensHubs(unittest.TestCase):
    def test_the_faster_hub_counts_and_both_are_named(self):
        rate, ratio = packet_in_rows.quiet_rate(Bench(RATES))
        self.assertEqual((rate.figure, rate.reached), (120_000, "yes"))
        self.assertEqual((ratio.figure, ratio.reached), (40, "yes"))
        self.assertEqual(ratio.remarks, ["compared with the faster of os-ken, native hub 2,000/s, os-ken, eventlet hub 3,000/s"])

    def test_a_hub_that_fails_is_not_the_faster_one(self):
        _, ratio = packet_in_rows.quiet_rate(Bench(RATES | {"os-ken, eventlet hub": "it ended at once"}))
        self.assertEqual(ratio.figure, 60)

    def test_latencies_are_os_kens_over_ours(self):
        (line,) = packet_in_rows.ping_pong(Bench(RATES))
        self.assertAlmostEqual(line.figure, 40)
        self.assertEqual(line.reached, "yes")

    def test_without_rivals_os_ken_is_not_run(self):
        lines = packet_in_rows.logged_rate(Bench(RATES, rivals=False))
        self.assertEqual([line.figure for line in lines], [120_000])


class Programs(unittest.TestCase):
    def flow_stats(self, ours, theirs):
        """Returns the line of two rounds in which the programs print these texts."""

        def output_of(_, command):
            return theirs if "os_ken" in command else ours

        with mock.patch.multiple(program_rows, output_of=output_of, progress=mock.DEFAULT):
            (line,) = program_rows.flow_stats(Bench({}))
        return line

    def test_decoding_is_os_kens_time_over_ours(self):
        line = self.flow_stats("20.5 77", "820 77")
        self.assertEqual((line.figure, line.reached), (40, "yes"))

    def test_other_fields_are_a_fault(self):
        line = self.flow_stats("20.5 77", "820 78")
        self.assertEqual((line.remarks, line.reached), (["the sums of the fields differ"], "no"))

    def test_a_test_that_fails_is_reported(self):
        done = SimpleNamespace(returncode=1, stdout="1 failed in 0.20s\n", stderr="")
        bench = SimpleNamespace(real=list)
        with mock.patch.object(program_rows.subprocess, "run", return_value=done):
            with self.assertRaisesRegex(MeasureError, "'pytest' failed: 1 failed"):
                program_rows.output_of(bench, ("pytest",))


class FlowStats(unittest.TestCase):
    def test_all_entries_are_in_messages_of_the_length_that_they_state(self):
        frames = flow_stats.frames(1_500)
        lengths = [struct.unpack_from("!H", frame, 2)[0] for frame in frames]
        self.assertEqual(lengths, list(map(len, frames)))
        self.assertEqual(sum(length - 16 for length in lengths), 1_500 * len(flow_stats.entry(0)))
        more = [struct.unpack_from("!H", frame, 10)[0] for frame in frames]
        self.assertEqual(more, [1, 1, 0])


if __name__ == "__main__":
    unittest.main()
