"""The guide's programs."""

import inspect
import re
from pathlib import Path

import urtica
from learning import Learning

GUIDE = Path(__file__).parents[3] / "docs/python.md"


def blocks():
    return re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(), re.MULTILINE | re.DOTALL)


def test_the_learning_switch_is_the_example():
    assert inspect.getsource(Learning) in blocks()[0]


def test_the_networks_commands_do_what_the_guide_says():
    [commands] = [block for block in blocks() if "urtica.Net(" in block]
    exec(compile(commands, str(GUIDE), "exec"), {"urtica": urtica, "Learning": Learning})


def test_all_programs_are_valid():
    for block in blocks():
        compile(block, str(GUIDE), "exec")
