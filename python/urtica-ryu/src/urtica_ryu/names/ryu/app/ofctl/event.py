"""The requests of `ryu.app.ofctl.api` to its service, and the reply."""

from __future__ import annotations

from typing import Any

from ryu.controller.event import EventReplyBase, EventRequestBase


class _RequestBase(EventRequestBase):
    def __init__(self) -> None:
        super().__init__()
        self.dst = "ofctl_service"


class GetDatapathRequest(_RequestBase):
    """Asks for a switch, or for all."""

    def __init__(self, dpid: int | None = None):
        super().__init__()
        self.dpid = dpid


class SendMsgRequest(_RequestBase):
    """Sends a message; `reply_cls` is the class of its replies, `reply_multi` whether there may be several."""

    def __init__(self, msg: Any, reply_cls: Any = None, reply_multi: bool = False):
        super().__init__()
        self.msg = msg
        self.reply_cls = reply_cls
        self.reply_multi = reply_multi


class Reply(EventReplyBase):
    """A result, or the exception that the caller gets."""

    def __init__(self, result: Any = None, exception: Exception | None = None, dst: str | None = None):
        super().__init__(dst)
        self.result = result
        self.exception = exception

    def __call__(self) -> Any:
        if self.exception is not None:
            raise self.exception
        return self.result
