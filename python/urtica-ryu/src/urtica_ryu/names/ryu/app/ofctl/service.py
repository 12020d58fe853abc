"""The application behind `ryu.app.ofctl.api`: it sends messages, and gathers their replies until a barrier's."""

from __future__ import annotations

from typing import Any

from ryu.app.ofctl import event, exception
from ryu.base.app_manager import RyuApp
from ryu.controller import ofp_event
from ryu.controller.handler import CONFIG_DISPATCHER, DEAD_DISPATCHER, MAIN_DISPATCHER, set_ev_cls


class _Pending:
    """A request, what has come for its message, and the error, if there was one."""

    def __init__(self, request: event.SendMsgRequest):
        self.request = request
        self.replies: list[Any] = []
        self.error: Any = None

    def reply(self) -> event.Reply:
        """Returns what the caller gets."""
        if self.error is not None:
            return event.Reply(exception=exception.OFError(result=self.error))
        if self.request.reply_multi:
            return event.Reply(result=self.replies)
        if len(self.replies) > 1:
            return event.Reply(exception=exception.UnexpectedMultiReply(result=self.replies))
        return event.Reply(result=self.replies[0] if self.replies else None)


class _Switch:
    def __init__(self, datapath: Any):
        self.datapath = datapath
        #: By the xid of the message, and by that of its barrier.
        self.pending: dict[int, _Pending] = {}
        self.barriers: dict[int, int] = {}


class OfctlService(RyuApp):
    """Sends messages for others."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.name = "ofctl_service"
        self._switches: dict[int, _Switch] = {}
        self._observed: set[Any] = set()

    @set_ev_cls(ofp_event.EventOFPSwitchFeatures, CONFIG_DISPATCHER)
    def _switch_features_handler(self, ev: Any) -> None:
        datapath = ev.msg.datapath
        self._leave(datapath.id)
        self._switches[datapath.id] = _Switch(datapath)

    @set_ev_cls(ofp_event.EventOFPStateChange, DEAD_DISPATCHER)
    def _handle_dead(self, ev: Any) -> None:
        known = self._switches.get(ev.datapath.id)
        if known is not None and known.datapath is ev.datapath:
            self._leave(ev.datapath.id)

    def _leave(self, dpid: Any) -> None:
        """Answers those that wait for a switch that has left."""
        switch = self._switches.pop(dpid, None)
        for pending in switch.pending.values() if switch else ():
            gone = exception.InvalidDatapath(result=dpid)
            self.reply_to_request(pending.request, event.Reply(exception=gone))

    @set_ev_cls(event.GetDatapathRequest, MAIN_DISPATCHER)
    def _handle_get_datapath(self, req: event.GetDatapathRequest) -> None:
        if req.dpid is None:
            result: Any = [switch.datapath for switch in self._switches.values()]
        else:
            found = self._switches.get(req.dpid)
            result = found.datapath if found else None
        self.reply_to_request(req, event.Reply(result=result))

    @set_ev_cls(event.SendMsgRequest, MAIN_DISPATCHER)
    def _handle_send_msg(self, req: event.SendMsgRequest) -> None:
        datapath = req.msg.datapath
        switch = self._switches.get(datapath.id)
        if switch is None or switch.datapath is not datapath:
            unknown = exception.InvalidDatapath(result=datapath.id)
            return self.reply_to_request(req, event.Reply(exception=unknown))
        if req.reply_cls is not None:
            self._observe(ofp_event.ofp_msg_to_ev_cls(req.reply_cls))
        try:
            self._send(switch, req)
        except ValueError as error:
            self.reply_to_request(req, event.Reply(exception=error))

    def _send(self, switch: _Switch, req: event.SendMsgRequest) -> None:
        datapath = switch.datapath
        if req.msg.xid is None:
            datapath.set_xid(req.msg)
        barrier = datapath.ofproto_parser.OFPBarrierRequest(datapath)
        datapath.set_xid(barrier)
        # A message that cannot be sent raises before anybody waits for it.
        datapath.send_msg(req.msg)
        switch.pending[req.msg.xid] = _Pending(req)
        switch.barriers[barrier.xid] = req.msg.xid
        datapath.send_msg(barrier)

    def _observe(self, ev_cls: Any) -> None:
        """Gets the replies of a class from now on."""
        if ev_cls not in self._observed:
            self._observed.add(ev_cls)
            self.register_handler(ev_cls, self._handle_reply)
            self.observe_event(ev_cls)

    def _handle_reply(self, ev: Any) -> None:
        switch = self._switches.get(ev.msg.datapath.id)
        pending = switch.pending.get(ev.msg.xid) if switch else None
        if pending is not None:
            pending.replies.append(ev.msg)

    @set_ev_cls(ofp_event.EventOFPErrorMsg, MAIN_DISPATCHER)
    def _handle_error(self, ev: Any) -> None:
        switch = self._switches.get(ev.msg.datapath.id)
        pending = switch.pending.get(ev.msg.xid) if switch else None
        if pending is not None:
            pending.error = ev.msg

    @set_ev_cls(ofp_event.EventOFPBarrierReply, MAIN_DISPATCHER)
    def _handle_barrier(self, ev: Any) -> None:
        switch = self._switches.get(ev.msg.datapath.id)
        xid = switch.barriers.pop(ev.msg.xid, None) if switch else None
        if switch is None or xid is None:
            return
        pending = switch.pending.pop(xid)
        self.reply_to_request(pending.request, pending.reply())
