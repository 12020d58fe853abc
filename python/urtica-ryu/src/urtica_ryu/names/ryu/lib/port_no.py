"""Numbers of ports as texts of eight hexadecimal digits."""

from __future__ import annotations

import re


def port_no_to_str(port_no: int) -> str:
    """Returns the text of a number."""
    return f"{port_no:08x}"


def str_to_port_no(port_no_str: str) -> int:
    """Returns the number of a text."""
    if not re.fullmatch("[0-9a-fA-F]{8}", port_no_str):
        raise ValueError(f"{port_no_str!r} is no number of a port: expected eight hexadecimal digits")
    return int(port_no_str, 16)
