"""Measurements within one process, by `urtica bench network`."""

import json
import subprocess

from bench import MeasureError, last_line, shown

TIMEOUT_S = 300


def figures(bench, name, cores):
    """Returns the records of one of its figures by their names, and the command."""
    command = ("urtica", "bench", "network", "--figure", name, "--rounds", str(bench.settings.rounds))
    command = bench.pinned(cores, (*command, *(("--quick",) if bench.settings.quick else ())))
    done = subprocess.run([*bench.real(command), "--json", "-"], capture_output=True, text=True, timeout=TIMEOUT_S)
    if done.returncode != 0:
        raise MeasureError(f"'{shown(command)}' failed: {last_line(done.stderr)}")
    return {record["figure"]: record for record in map(json.loads, done.stdout.splitlines())}, shown(command)
