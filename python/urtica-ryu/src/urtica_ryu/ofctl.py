"""What `ryu.lib.ofctl_v1_0` and `ofctl_v1_3` share: numbers that have names, and requests that wait for their replies."""

from __future__ import annotations

import base64
import logging
from collections.abc import Callable, Iterable
from typing import Any

from urtica_ryu import hub

#: How long a reply, or the next part of one, is waited for, in seconds.
TIMEOUT = 1.0

LOG = logging.getLogger("ryu.lib.ofctl_utils")

#: The attributes of flow entries, and the counters of ports, that answers have of both versions.
ENTRY = (
    "priority",
    "cookie",
    "idle_timeout",
    "hard_timeout",
    "byte_count",
    "duration_sec",
    "duration_nsec",
    "packet_count",
)
PORT_COUNTERS = (
    "rx_packets",
    "tx_packets",
    "rx_bytes",
    "tx_bytes",
    "rx_dropped",
    "tx_dropped",
    "rx_errors",
    "tx_errors",
    "rx_frame_err",
    "rx_over_err",
    "rx_crc_err",
    "collisions",
)
DESCRIPTION = ("mfr_desc", "hw_desc", "sw_desc", "serial_num", "dp_desc")


def integer(value: Any) -> int:
    """Returns a number, or that of a text such as `"5"` or `"0x5"`; raises ValueError."""
    try:
        return int(str(value), 0)
    except ValueError:
        raise ValueError(f"{value!r} is not a number") from None


class Names:
    """Numbers of which some have names: `Names("OFPP_", LOCAL=0xfffffffe)` reads `"LOCAL"`, `"OFPP_LOCAL"`, `"2"` and 2."""

    def __init__(self, prefix: str, **names: int):
        self.prefix = prefix
        self.names = names
        self._by_number = {number: name for name, number in names.items()}

    def number(self, value: Any) -> int:
        """Returns the number of a name or a number; raises ValueError."""
        if isinstance(value, int):
            return value
        name = str(value).strip().upper().removeprefix(self.prefix)
        if name in self.names:
            return self.names[name]
        try:
            return integer(value)
        except ValueError:
            raise ValueError(f"{value!r} is unknown: expected a number or one of {', '.join(self.names)}") from None

    def shown(self, number: int, to_user: bool = True) -> Any:
        """Returns a number's name, if it has one and people read it."""
        return self._by_number.get(number, number) if to_user else number

    def set_in(self, bits: int) -> list[str]:
        """Returns the names of the bits that are set, where the numbers are places of bits."""
        return [name for name, place in self.names.items() if bits >> place & 1]


def by_switch(dp: Any, value: Any, to_user: bool = True) -> dict[Any, Any]:
    """Returns an answer under its switch's number, which is a text for people."""
    return {str(dp.id) if to_user else dp.id: value}


def send_msg(dp: Any, msg: Any, logger: Any = None) -> None:
    """Sends a message, after a line for debugging."""
    if msg.xid is None:
        dp.set_xid(msg)
    (logger or LOG).debug("Sending message with xid(%x): %s", msg.xid, msg)
    dp.send_msg(msg)


def send_stats_request(dp: Any, stats: Any, waiters: dict[Any, Any], msgs: list[Any], logger: Any = None) -> None:
    """Sends a request, and waits until the program has put the reply's parts into `msgs`: its handlers find an event, which they
    set behind the last part, and that list at `waiters[dp.id][xid]`. Gives up if no part comes for a second."""
    dp.set_xid(stats)
    of_switch = waiters.setdefault(dp.id, {})
    done = hub.Event()
    of_switch[stats.xid] = (done, msgs)
    send_msg(dp, stats, logger)
    known = -1
    while not done.is_set() and len(msgs) > known:
        known = len(msgs)
        done.wait(timeout=TIMEOUT)
    if not done.is_set():
        of_switch.pop(stats.xid, None)


def replies(dp: Any, request: Any, waiters: dict[Any, Any]) -> list[Any]:
    """Returns the messages that answer a request."""
    msgs: list[Any] = []
    send_stats_request(dp, request, waiters, msgs)
    return msgs


def rows(dp: Any, request: Any, waiters: dict[Any, Any]) -> list[Any]:
    """Returns the rows of all messages that answer a request; a body without rows is one."""
    found: list[Any] = []
    for msg in replies(dp, request, waiters):
        found += msg.body if isinstance(msg.body, list) else [msg.body]
    return found


def text(value: Any) -> Any:
    """Returns a name of a switch as text."""
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def attributes(row: Any, *names: str) -> dict[str, Any]:
    """Returns some of an object's attributes."""
    return {name: getattr(row, name) for name in names}


def chosen(options: dict[str, Any], key: str, default: Any, read: Callable[[Any], int] = integer) -> int:
    """Returns an option's number; raises ValueError."""
    return read(options[key]) if key in options else default


def data_of(options: dict[str, Any]) -> bytes:
    """Returns the bytes of an experimenter's data: text, or base64 with `"data_type": "base64"`; raises ValueError."""
    data, kind = options.get("data", ""), options.get("data_type", "ascii")
    if kind == "base64":
        return base64.b64decode(data)
    if kind == "ascii":
        return str(data).encode("ascii")
    raise ValueError(f"data_type is {kind!r}: expected 'ascii' or 'base64'")


def send_experimenter(dp: Any, exp: dict[str, Any], logger: Any = None) -> None:
    """Sends an experimenter's message: `{"experimenter": 8992, "exp_type": 3, "data": "abcd"}`."""
    experimenter = integer(exp.get("experimenter", 0))
    data = data_of(exp)
    parser = dp.ofproto_parser
    if hasattr(parser, "OFPExperimenter"):
        msg = parser.OFPExperimenter(dp, experimenter, integer(exp.get("exp_type", 0)), data)
    else:
        msg = parser.OFPVendor(dp)
        msg.vendor, msg.data = experimenter, data
    send_msg(dp, msg, logger)


def unknown(what: str, value: Any, known: Iterable[str]) -> ValueError:
    """The error for a value that is none of the known ones."""
    return ValueError(f"{what} is {value!r}: expected one of {', '.join(known)}")
