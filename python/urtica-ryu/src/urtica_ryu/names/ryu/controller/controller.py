"""Switches, as applications see them."""

from __future__ import annotations

import logging
import random
from typing import Any

from ryu.base import app_manager
from ryu.controller import ofp_event
from ryu.controller.handler import CONFIG_DISPATCHER, DEAD_DISPATCHER, HANDSHAKE_DISPATCHER, MAIN_DISPATCHER
from ryu.ofproto import ofproto_parser, ofproto_protocol, ofproto_v1_3
from urtica_ryu import hub

LOG = logging.getLogger("ryu.controller.controller")

_HELLO, _FEATURES_REPLY = 0, 6
#: Seconds between two attempts to send to a switch whose queue is full.
_RETRY_INTERVAL = 0.002


class Datapath(ofproto_protocol.ProtocolDesc):
    """A connected switch. `wire` sends frames to it: `wire.send(datapath id, bytes)`."""

    def __init__(self, wire: Any, address: Any, version: int):
        super().__init__(version)
        self.address = address
        self.is_active = True
        self.id: int | None = None
        self.ports: dict[int, Any] | None = None
        self.xid = random.randint(0, ofproto_v1_3.MAX_XID)
        self.state: str | None = None
        self.ofp_brick = app_manager.lookup_service_brick(ofp_event.NAME)
        self._wire = wire
        self.set_state(HANDSHAKE_DISPATCHER)

    def set_state(self, state: str) -> None:
        """Sets the state, and tells observers."""
        if self.state == state:
            return
        self.state = state
        event = ofp_event.EventOFPStateChange(self)
        event.state = state
        self._tell(event, state)

    def _tell(self, event: Any, state: str | None) -> None:
        if self.ofp_brick is not None:
            self.ofp_brick.send_event_to_observers(event, state)

    def close(self) -> None:
        """Ends the connection: the switch is dead, and nothing is sent any more."""
        self.is_active = False
        self.set_state(DEAD_DISPATCHER)

    def receive(self, frame: bytes) -> None:
        """Handles a frame of the switch."""
        version, msg_type, msg_len, xid = ofproto_parser.header(frame)
        if msg_type == _HELLO and version not in (1, 4):
            # Versions above 1.3, of which this is the first message alone.
            version = ofproto_v1_3.OFP_VERSION
        msg = ofproto_parser.msg(self, version, msg_type, msg_len, xid, frame)
        if msg is None:
            return
        if msg_type == _FEATURES_REPLY:
            self.id = msg.datapath_id
        event = ofp_event.ofp_msg_to_ev(msg)
        state = self.state
        self._tell(event, state)
        self._follow(msg, state)

    def _follow(self, msg: Any, state: str | None) -> None:
        """Changes the state that a message changes. Observers have had it by the state before."""
        name = type(msg).__name__
        if name == "OFPHello" and state == HANDSHAKE_DISPATCHER:
            self.set_state(CONFIG_DISPATCHER)
        elif name == "OFPSwitchFeatures" and state == CONFIG_DISPATCHER:
            self._follow_features(msg)
        elif name == "OFPPortDescStatsReply" and state == CONFIG_DISPATCHER and self.ports is not None:
            self.ports.update({port.port_no: port for port in msg.body})
            if not msg.flags & ofproto_v1_3.OFPMPF_REPLY_MORE:
                self.set_state(MAIN_DISPATCHER)
        elif name == "OFPPortStatus" and state == MAIN_DISPATCHER:
            self._follow_port(msg)

    def _follow_features(self, msg: Any) -> None:
        if self.ofproto.OFP_VERSION < ofproto_v1_3.OFP_VERSION:
            self.ports = msg.ports
            self.set_state(MAIN_DISPATCHER)
        else:
            self.ports = {}
            self.send_msg(self.ofproto_parser.OFPPortDescStatsRequest(self, 0))

    def _follow_port(self, msg: Any) -> None:
        if self.ports is None:
            return
        if msg.reason == self.ofproto.OFPPR_DELETE:
            self.ports.pop(msg.desc.port_no, None)
        else:
            self.ports[msg.desc.port_no] = msg.desc
        self._tell(ofp_event.EventOFPPortStateChange(self, msg.reason, msg.desc.port_no), self.state)

    def set_xid(self, msg: Any) -> int:
        """Gives a message the next xid."""
        self.xid = self.xid + 1 & ofproto_v1_3.MAX_XID
        msg.set_xid(self.xid)
        return self.xid

    def send_msg(self, msg: Any, close_socket: bool = False) -> bool:
        """Sends a message; returns whether it was queued. Serialized at once, so that it may be changed afterwards."""
        if msg.xid is None:
            self.set_xid(msg)
        msg.serialize()
        return self.send(msg.buf, close_socket)

    def send(self, buf: Any, close_socket: bool = False) -> bool:
        """Sends a frame; waits while the switch's queue is full."""
        if not self.is_active or self.id is None:
            LOG.debug("the switch at %s has left; its message is not sent", self.address)
            return False
        while self.is_active:
            try:
                is_queued: bool = self._wire.send(self.id, bytes(buf))
            except BlockingIOError:
                hub.sleep(_RETRY_INTERVAL)
                continue
            if close_socket:
                self.close()
            return is_queued
        return False

    def send_barrier(self) -> bool:
        """Sends a barrier request."""
        return self.send_msg(self.ofproto_parser.OFPBarrierRequest(self))

    def send_packet_out(
        self, buffer_id: int = 0xFFFFFFFF, in_port: int | None = None, actions: Any = None, data: Any = None
    ) -> bool:
        """Sends a packet out of the switch (OpenFlow 1.0)."""
        port = self.ofproto.OFPP_NONE if in_port is None else in_port
        return self.send_msg(self.ofproto_parser.OFPPacketOut(self, buffer_id, port, actions, data))

    def is_reserved_port(self, port_no: int) -> bool:
        """Returns whether a port's number has a meaning of its own."""
        return bool(port_no > self.ofproto.OFPP_MAX)
