"""What the constructor calls of calls.py make, here and with os-ken: equal bytes, texts, attributes and JSON.

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

PYTHON = os.environ.get("URTICA_OS_KEN", sys.executable)


def test_messages_and_packets_equal_those_of_os_ken():
    # Isolated, so that it finds the real os_ken alone.
    if subprocess.run([PYTHON, "-I", "-c", "import os_ken"], capture_output=True).returncode:
        missing = f"os-ken is not installed for {PYTHON}: set URTICA_OS_KEN to an interpreter that has it"
        assert os.environ.get("CI") != "true", missing
        pytest.skip(missing)
    program = [PYTHON, "-I", str(Path(calls.__file__)), "os_ken"]
    theirs = json.loads(subprocess.run(program, capture_output=True, check=True, text=True).stdout)
    ours = json.loads(json.dumps(calls.results("ryu"), default=repr))
    assert len(theirs) > 350
    for call, result in theirs.items():
        if result.get("restored", "") is None:
            # os-ken's constructor refuses what its to_jsondict gives.
            del result["restored"], ours[call]["restored"]
        if "NXActionBundle" in call:
            # os-ken shows another length before it has serialized the action.
            del result["before"], ours[call]["before"]
        assert ours[call] == result, call
