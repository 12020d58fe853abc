"""A program that is stopped, or killed and restarted, while switches wait for answers."""

import contextlib
import json
import signal
import subprocess
import time
from dataclasses import dataclass, replace

from bench import LOAD_TIMEOUT_S, MeasureError, Refused, last_line, progress, shown, without_long_lists
from document import Line, at_most
from modes import WARM_UP_MS, l2

SWITCHES = 16
STOPPED_S = 1
# The time for which the holder waits for a program if this tool ends before starting one.
HOLD_S = 10


@dataclass(frozen=True)
class Found:
    """The load's results while the program was disturbed."""

    lost: int
    closed: int
    longest_gap_ms: float
    is_faulty: bool
    commands: tuple


def lines(bench):
    cases = {
        "stopped for 1 s under `--hold`": (stop, True),
        "killed and started again under `--hold`": (kill, True),
        "stopped for 1 s": (stop, False),
    }
    table = []
    for what, (event, is_held) in cases.items():
        modes = ("none", "kernel")
        found, refusals = rounds(bench, what, modes, event, is_held)
        for mode in modes:
            table += told(what, mode, found[mode], refusals.get(mode))
    return table


def rounds(bench, what, modes, event, is_held):
    """Returns the results of each mode's rounds, and the messages of the modes that refuse."""
    found, refusals = {mode: [] for mode in modes}, {}
    for number in range(1, bench.settings.rounds + 1):
        for mode in bench.random.sample(modes, len(modes)):
            if mode in refusals:
                continue
            try:
                found[mode].append(run(bench, mode, event, is_held))
                latest = found[mode][-1]
                outcome = f"{latest.lost} lost, {latest.closed} closed, longest gap {latest.longest_gap_ms:.1f} ms"
            except Refused as refusal:
                refusals[mode] = outcome = str(refusal)
            progress(f"row 6, round {number}, {mode}, {what}: {outcome}")
    return found, refusals


def told(what, mode, found, refusal):
    remarks = [refusal] if refusal else []
    is_kernel = mode == "kernel"
    columns = {
        "replies lost": ("", at_most(0), [each.lost for each in found]),
        "connections lost": ("", at_most(0), [each.closed for each in found]),
        "longest gap between two answers": ("ms", at_most(5) if is_kernel else None, [each.longest_gap_ms for each in found]),
    }
    return [
        Line(
            "6",
            f"{what}, `{mode}`, {SWITCHES} switches, ping-pong: {column}",
            unit,
            values,
            target,
            remarks=remarks,
            commands=list(found[0].commands) if found else [],
            faulty=any(each.is_faulty for each in found),
        )
        for column, (unit, target, values) in columns.items()
    ]


def run(bench, mode, event, is_held):
    """Runs one load, in the middle of which `event` disturbs the program."""
    ms = max(500, bench.settings.ms // 2)
    with server(bench, mode, is_held) as started:
        warm_up = -(-WARM_UP_MS // ms)
        flags = ("-s", str(SWITCHES), "-M", "1000", "-l", str(warm_up + 4), "-w", str(warm_up), "-m", str(ms), "--verify")
        # No process id, since it changes.
        target = ("-c", bench.place.host, "-p", str(started.port))
        command = bench.load_pinned(("urtica", "bench", *target, *flags))
        report, status = reported(bench, command, lambda load: in_the_first_test_that_counts(started, load, ms, event))
    return found_in(report, status, (started.shown, shown(command)))


@contextlib.contextmanager
def server(bench, mode, is_held):
    plain = l2(mode)
    held = (f"--hold={bench.folder}/hold.sock", "--hold-seconds", str(HOLD_S)) if is_held else ()
    with bench.server(replace(plain, command=(*plain.command, *held))) as started:
        try:
            yield started
        finally:
            if is_held:
                # SIGINT also ends the holder; after SIGTERM it would wait.
                started.process.send_signal(signal.SIGINT)
                started.process.wait(HOLD_S)


def in_the_first_test_that_counts(started, load, ms, event):
    wait_for_switches(started, load)
    time.sleep((WARM_UP_MS + ms / 2) / 1000)
    event(started)


def reported(bench, command, meanwhile):
    """Returns the report of a load, and its status. Stops the load if it is interrupted."""
    file = bench.folder / "report.json"
    file.unlink(missing_ok=True)
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    load = subprocess.Popen([*bench.real(command), "--json", str(file)], text=True, **quiet)
    try:
        meanwhile(load)
        _, said = load.communicate(timeout=LOAD_TIMEOUT_S)
    finally:
        load.kill()
        load.wait()
    if not file.exists():
        raise MeasureError(f"the load failed: {last_line(said)}")
    return without_long_lists(json.loads(file.read_text())), load.returncode


def found_in(report, status, commands):
    """Returns the longest gap, which is the longest time to an answer, since each switch waits for one. Duplicate or wrong
    answers are faulty."""
    lost = report["tally"]["lost"] + report["unanswered"]
    longest_us = report["latency"]["max_us"] if report["latency"] else 0
    return Found(lost, len(report["closed"]), longest_us / 1000, status != 0, commands)


def wait_for_switches(started, load):
    deadline = time.monotonic() + 30
    while started.joined() < SWITCHES:
        if load.poll() is not None or time.monotonic() > deadline:
            raise MeasureError(f"only {started.joined()} of {SWITCHES} switches joined")
        time.sleep(0.02)


def stop(started):
    started.process.send_signal(signal.SIGSTOP)
    try:
        time.sleep(STOPPED_S)
    finally:
        started.process.send_signal(signal.SIGCONT)


def kill(started):
    started.kill_and_start_again()
