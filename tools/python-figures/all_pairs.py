"""Tests as users write them: each host of a tree of 7 switches pings each other host."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "python/urtica/examples"))

from learning import Learning


def test_learning(net):
    assert net("tree,3,2", app=Learning).ping_all()


def test_simple_switch_13(net):
    assert net("tree,3,2", app="ryu.app.simple_switch_13").ping_all()


def test_nothing():
    """For comparison: the time of Python and pytest."""
