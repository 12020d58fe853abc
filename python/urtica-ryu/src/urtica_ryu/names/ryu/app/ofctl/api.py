"""Messages to switches, and their replies, by calls that wait.

`api.send_msg(app, parser.OFPFlowStatsRequest(dp), reply_cls=parser.OFPFlowStatsReply, reply_multi=True)`
"""

from __future__ import annotations

from typing import Any

from ryu.app.ofctl import event
from ryu.base import app_manager


def get_datapath(app: Any, dpid: int | None = None) -> Any:
    """Returns a switch, `None` if it is not connected; or a list of all."""
    return app.send_request(event.GetDatapathRequest(dpid))()


def send_msg(app: Any, msg: Any, reply_cls: Any = None, reply_multi: bool = False) -> Any:
    """Sends a message and a barrier, and waits until the switch has done both. Returns the reply of a class, `None` without one;
    with `reply_multi` a list. Raises `InvalidDatapath`, `OFError` and `UnexpectedMultiReply` of `ryu.app.ofctl.exception`."""
    return app.send_request(event.SendMsgRequest(msg, reply_cls, reply_multi))()


app_manager.require_app("ryu.app.ofctl.service", api_style=True)
