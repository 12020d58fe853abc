"""Datapath ids as texts of 16 hexadecimal digits."""

from __future__ import annotations

import re

DPID_PATTERN = "[0-9a-f]{16}"


def dpid_to_str(dpid: int) -> str:
    """Returns the text of a number."""
    return f"{dpid:016x}"


def str_to_dpid(dpid_str: str) -> int:
    """Returns the number of a text."""
    if not re.fullmatch("[0-9a-fA-F]{16}", dpid_str):
        raise ValueError(f"{dpid_str!r} is no datapath id: expected 16 hexadecimal digits")
    return int(dpid_str, 16)
