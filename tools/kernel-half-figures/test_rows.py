"""What is said of rows, from stand-ins for what is measured: python3 -m unittest discover tools/kernel-half-figures"""

import random
import struct
import sys
import unittest
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

TOOLS = Path(__file__).resolve().parent.parent
sys.path += [str(TOOLS / "figures"), str(TOOLS / "network-figures")]

import drawing
import issue_rows
import paper_rows
import silent_switch
import survival
from bench import MeasureError, Refused, refusal_in
from document import Line
from mininet import Discovery


def bench(rounds=2):
    settings = SimpleNamespace(rounds=rounds, rivals=True, quick=True)
    return SimpleNamespace(settings=settings, random=random.Random(1))


class Refusals(unittest.TestCase):
    def test_the_first_sentence_is_the_reason(self):
        said = "error: invalid value 'driven' for '--offload <MODE>'\n  [possible values: auto]\n\nFor more information, try '--help'.\n"
        self.assertEqual(str(refusal_in(said)), "refused: invalid value 'driven' for '--offload <MODE>'")
        said = "urtica: --hold does not work with --offload kernel or ring yet; expected one of them\n"
        self.assertIn("expected one of them", str(refusal_in(said)))
        self.assertIsNone(refusal_in("2026-11-23T19:25:49Z  INFO stopping\nthread panicked\n"))

    def test_a_mode_that_is_refused_has_lines_that_say_so_and_is_asked_once(self):
        asked = []

        def run(_, mode, event, is_held):
            asked.append(mode)
            if mode == "kernel":
                raise Refused("refused: not yet")
            return survival.Found(0, 0, 7.0, False, ("urtica run",))

        with mock.patch.object(survival, "run", run), mock.patch.object(survival, "progress"):
            lines = survival.lines(bench())
        self.assertEqual((asked.count("kernel"), asked.count("none")), (3, 6))
        refused = [line for line in lines if "`kernel`" in line.what]
        self.assertTrue(all(line.remarks == ["refused: not yet"] and line.figure is None for line in refused))
        self.assertEqual({line.reached for line in refused}, {"not measured"})
        gaps = [line for line in lines if "`none`" in line.what and "gap" in line.what]
        self.assertEqual([(line.figure, line.target) for line in gaps], [(7.0, None)] * 3)


class Survival(unittest.TestCase):
    def test_what_was_never_answered_is_lost(self):
        report = {
            "tally": {"lost": 1}, "unanswered": 2, "closed": [{}], "latency": {"max_us": 4000}
        }
        found = survival.found_in(report, 1, ())
        self.assertEqual((found.lost, found.closed, found.longest_gap_ms, found.is_faulty), (3, 1, 4.0, True))


class Discovered(unittest.TestCase):
    def test_a_rival_that_fails_is_told_and_one_of_ours_ends_it(self):
        def measure(name):
            if name == "theirs":
                raise MeasureError("not all links")
            return Discovery(2, 4, "ours")

        with mock.patch.object(paper_rows, "progress"):
            found = paper_rows.rounds(bench(), {"none": "ours", "os-ken": "theirs"}, "a tree", measure)
            with self.assertRaises(MeasureError):
                paper_rows.rounds(bench(), {"none": "theirs"}, "a tree", measure)
        lines = paper_rows.discovery_lines("a tree", ("none", "driven", "os-ken"), found, {"driven": "refused: no"}, {"none": "24 ms"})
        ours, _, driven, _, theirs, _ = lines
        self.assertEqual((ours.figure, ours.remarks), (2, ["the paper's: 24 ms"]))
        self.assertEqual((driven.figure, driven.remarks), (None, ["refused: no"]))
        self.assertEqual(theirs.remarks, ["2 of 2 runs failed: not all links"])


class Kernel(unittest.TestCase):
    def test_what_neither_process_used_is_the_kernels(self):
        report = {"load": {"threads": [{"ran": 0.9}]}, "controller": {"cores": 0.25}}
        run = SimpleNamespace(report=report, machine_cpu_ns_per_answer=1000, rate=1.5e6)
        self.assertAlmostEqual(issue_rows.cores_of_kernel(run), 0.35)

    def test_the_memory_of_a_socket_is_what_is_used_and_not_what_is_allowed(self):
        said = "0 0 127.0.0.1:6653 127.0.0.1:4711\n\t skmem:(r1000,rb4194304,t5,tb2097152,f4294967196,w300,o0,bl20,d7)"
        self.assertEqual(silent_switch.bytes_in(said), 1000 - 100 + 300 + 20)
        self.assertEqual(silent_switch.bytes_in(""), 0)

    def test_packet_ins_are_whole_messages(self):
        packets = silent_switch.packet_ins(3)
        self.assertEqual(len(packets), 3 * 82)
        self.assertEqual(struct.unpack("!BBHI", packets[82:90]), (1, 10, 82, 1))

    def test_figure_4_has_a_curve_for_each_mode(self):
        lines = [
            Line("figure-4", f"Figure 4: `{name}`, {threads} thread(s), 32 switches", "/s", [1e6 * threads, 2e6])
            for name in ("none", "kernel") for threads in (1, 2)
        ]
        lines.append(Line("figure-4", "Figure 4: `driven`, 1 thread(s), 32 switches", "/s", []))
        self.assertEqual(drawing.drawn_from(lines)["threads"].count("<polyline points="), 2)
        self.assertEqual(drawing.drawn_from(lines[-1:]), {})


if __name__ == "__main__":
    unittest.main()
