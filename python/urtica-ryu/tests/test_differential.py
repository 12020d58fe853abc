"""What the constructor calls of calls.py make, here and with os-ken: equal bytes, texts, attributes and JSON. And what the
modules in traces.py send.

os-ken is that of the interpreter in URTICA_OS_KEN, by default of the one that runs the tests; without it the test is skipped,
and fails where CI=true.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import calls
import pytest
import traces

from urtica_ryu import hub

PYTHON = os.environ.get("URTICA_OS_KEN", sys.executable)


def of_os_ken(program):
    """Returns what a program prints with os-ken."""
    # Isolated, so that it finds the real os_ken alone.
    if subprocess.run([PYTHON, "-I", "-c", "import os_ken"], capture_output=True).returncode:
        missing = f"os-ken is not installed for {PYTHON}: set URTICA_OS_KEN to an interpreter that has it"
        assert os.environ.get("CI") != "true", missing
        pytest.skip(missing)
    command = [PYTHON, "-I", str(Path(program.__file__)), "os_ken"]
    return json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)


def test_messages_and_packets_equal_those_of_os_ken():
    theirs = of_os_ken(calls)
    ours = json.loads(json.dumps(calls.results("ryu"), default=repr))
    assert len(theirs) > 550
    for call, result in theirs.items():
        if result.get("restored", "") is None:
            # os-ken's constructor refuses what its to_jsondict gives.
            del result["restored"], ours[call]["restored"]
        if "NXActionBundle" in call:
            # os-ken shows another length before it has serialized the action.
            del result["before"], ours[call]["before"]
        assert ours[call] == result, call


class Clock:
    """Simulated time for a task."""

    advance = staticmethod(hub.sleep)


def test_aggregates_and_groups_equal_those_of_os_ken(baton):
    theirs = of_os_ken(traces)
    ours = {}
    hub.spawn(lambda: ours.update(traces.traces("ryu", Clock())))
    baton.advance(10 * traces.LONG * len(traces.SCENARIOS))
    assert list(ours) == list(theirs)
    for name, lines in theirs.items():
        assert ours[name] == lines, name
