"""The events of switches: for each class of messages, such as OFPPacketIn, one such as EventOFPPacketIn."""

from __future__ import annotations

import functools
import time
from typing import Any

from ryu.controller import handler
from ryu.controller.event import EventBase
from ryu.ofproto import ofproto_v1_0_parser, ofproto_v1_3_parser

NAME = "ofp_event"


class EventOFPMsgBase(EventBase):
    """A message of a switch: `ev.msg`, `ev.msg.datapath`."""

    def __init__(self, msg: Any):
        self.timestamp = time.time()
        super().__init__()
        self.msg = msg


_EVENTS: dict[str, type[EventOFPMsgBase]] = {}


def _make_events(parser: Any) -> None:
    for name, cls in vars(parser).items():
        if getattr(cls, "cls_msg_type", None) is not None and f"Event{name}" not in _EVENTS:
            made = type(f"Event{name}", (EventOFPMsgBase,), {"__module__": __name__})
            _EVENTS[made.__name__] = globals()[made.__name__] = made


for _parser in (ofproto_v1_0_parser, ofproto_v1_3_parser):
    _make_events(_parser)


@functools.cache
def ofp_msg_to_ev_cls(msg_cls: Any) -> type[EventOFPMsgBase]:
    """Returns the class of events of a class of messages."""
    return _EVENTS[f"Event{msg_cls.__name__}"]


def ofp_msg_to_ev(msg: Any) -> EventOFPMsgBase:
    """Returns the event of a message."""
    msg_cls: Any = type(msg)
    return ofp_msg_to_ev_cls(msg_cls)(msg)


def __getattr__(name: str) -> Any:
    raise AttributeError(f"there is no event {name}: its message is not supported yet, or has another name")


class EventOFPStateChange(EventBase):
    """A switch has another state: `ev.datapath`, `ev.state`."""

    def __init__(self, dp: Any):
        super().__init__()
        self.datapath = dp
        self.state: str | None = None


class EventOFPPortStateChange(EventBase):
    """A port was added, changed or deleted, and `datapath.ports` is up to date."""

    def __init__(self, dp: Any, reason: int, port_no: int):
        super().__init__()
        self.datapath = dp
        self.reason = reason
        self.port_no = port_no


handler.register_service("ryu.controller.ofp_handler")
