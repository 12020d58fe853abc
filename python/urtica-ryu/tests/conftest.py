"""Ryu's names, the table of calls, and applications on simulated time."""

import sys
from pathlib import Path

import pytest

import urtica_ryu
from urtica_ryu import hub
from urtica_ryu.baton import Baton, SimulatedClock

sys.path.insert(0, str(Path(urtica_ryu.__file__).parent / "names"))
sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def baton():
    """A baton on a simulated clock, which hub uses."""
    before, made = hub.baton(), Baton(SimulatedClock())
    hub.use(made)
    yield made
    hub.use(before)


@pytest.fixture
def manager(baton, monkeypatch):
    """Applications that run on simulated time."""
    from ryu.base import app_manager
    from ryu.ofproto import ofproto_protocol
    from simulated import Manager

    monkeypatch.setattr(app_manager.AppManager, "_instance", None)
    monkeypatch.setattr(app_manager, "SERVICE_BRICKS", {})
    monkeypatch.setattr(ofproto_protocol, "_supported_versions", {1, 4})
    return Manager(baton)
