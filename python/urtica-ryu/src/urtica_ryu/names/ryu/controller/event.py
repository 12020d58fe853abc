"""The base classes of events."""

from __future__ import annotations

from typing import Any


class EventBase:
    """An event."""


class EventRequestBase(EventBase):
    """A request to another application: `RyuApp.send_request`."""

    def __init__(self) -> None:
        super().__init__()
        #: The name of the application that answers.
        self.dst: Any = None
        self.src: Any = None
        self.sync = False
        self.reply_q: Any = None


class EventReplyBase(EventBase):
    """The answer to a request."""

    def __init__(self, dst: Any) -> None:
        super().__init__()
        self.dst = dst
