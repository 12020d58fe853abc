"""The learning switch of Ryu's book, for OpenFlow 1.3."""

from __future__ import annotations

from ryu.app.simple_switch_13 import SimpleSwitch13


class ExampleSwitch13(SimpleSwitch13):
    """A learning switch to derive from."""
