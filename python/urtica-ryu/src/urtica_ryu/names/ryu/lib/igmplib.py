"""IGMP snooping, and a querier for networks without one: `_CONTEXTS = {"igmplib": igmplib.IgmpLib}`.

Applications handle `igmplib.EventPacketIn` instead of `ofp_event.EventOFPPacketIn`. Packets to a group then go to its members
alone, by entries that this module adds.
"""

from __future__ import annotations

from typing import Any, ClassVar

from ryu.base import app_manager
from ryu.controller import event, ofp_event
from ryu.controller.handler import DEAD_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from ryu.lib.packet import ether_types, ethernet, igmp, in_proto, ipv4, packet
from ryu.ofproto import ofproto_v1_0, ofproto_v1_3
from urtica_ryu import hub
from urtica_ryu.both_versions import delete_entries, in_port, is_1_0, outputs, send_packet, set_entry, to_controller

MG_GROUP_ADDED = 1
MG_MEMBER_CHANGED = 2
MG_GROUP_REMOVED = 3

#: Seconds between two queries of a querier.
QUERY_INTERVAL = 60.0

_ENTRY_PRIORITY = 0xFFFF
_REPORTS = (igmp.IGMP_TYPE_REPORT_V1, igmp.IGMP_TYPE_REPORT_V2)


class EventPacketIn(event.EventBase):
    """A packet that is not of IGMP."""

    def __init__(self, msg: Any):
        super().__init__()
        self.msg = msg


class EventMulticastGroupStateChanged(event.EventBase):
    """A group was added or removed, or its members have changed: `src` is the querier's port, `dsts` are the members'."""

    def __init__(self, reason: int, address: str, src: int | None, dsts: list[int]):
        super().__init__()
        self.reason = reason
        self.address = address
        self.src = src
        self.dsts = dsts


class IgmpLib(app_manager.RyuApp):
    """Follows the groups of each switch."""

    OFP_VERSIONS: ClassVar[Any] = [ofproto_v1_0.OFP_VERSION, ofproto_v1_3.OFP_VERSION]
    _EVENTS: ClassVar[list[Any]] = [EventPacketIn, EventMulticastGroupStateChanged]

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.name = "igmplib"
        #: The ports of servers, by the datapath ids of queriers.
        self._servers: dict[int, int] = {}
        self._switches: dict[int, _Snooper | _Querier] = {}

    def close(self) -> None:
        """Ends the queriers."""
        for switch in self._switches.values():
            switch.stop()

    def set_querier_mode(self, dpid: int, server_port: int) -> None:
        """Makes a switch a querier, from its next connection on. Packets to groups come from `server_port`."""
        self._servers[dpid] = server_port

    @set_ev_cls(ofp_event.EventOFPStateChange, [MAIN_DISPATCHER, DEAD_DISPATCHER])
    def state_change_handler(self, ev: Any) -> None:
        """Starts the querier of a switch, and forgets a switch that has left."""
        dp = ev.datapath
        known = self._switches.get(dp.id)
        if ev.state == MAIN_DISPATCHER:
            self._begin(dp)
        elif known is not None and known.dp is dp:
            known.stop()
            del self._switches[dp.id]

    def _begin(self, dp: Any) -> _Snooper | _Querier:
        known = self._switches.get(dp.id)
        if known is not None:
            known.stop()
        server = self._servers.get(dp.id)
        made = _Snooper(self, dp) if server is None else _Querier(self, dp, server)
        self._switches[dp.id] = made
        return made

    @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
    def packet_in_handler(self, ev: Any) -> None:
        """Handles messages of IGMP, and passes other packets on."""
        msg = ev.msg
        data = packet.Packet(msg.data)
        found: Any = data.get_protocol(igmp.igmp)
        if found is None:
            self.send_event_to_observers(EventPacketIn(msg))
            return
        switch = self._switches.get(msg.datapath.id)
        if switch is None or switch.dp is not msg.datapath:
            switch = self._begin(msg.datapath)
        self.logger.debug("SW=%016x PORT=%d IGMP received. %s", msg.datapath.id, in_port(msg), found)
        switch.receive(data, found, in_port(msg), bytes(msg.data))


class _Entries:
    """The entries of groups in a switch."""

    def __init__(self, dp: Any):
        self.dp = dp

    def _fields(self, port: int, group: str) -> dict[str, Any]:
        return {"in_port": port, "eth_type": ether_types.ETH_TYPE_IP, "ipv4_dst": group}

    def _set(self, port: int, group: str, actions: list[Any]) -> None:
        # As under Ryu, with the default priority in 1.0.
        settings = {} if is_1_0(self.dp) else {"priority": _ENTRY_PRIORITY}
        set_entry(self.dp, self._fields(port, group), actions, **settings)

    def report(self, port: int, group: str) -> None:
        """Sends packets from a member to the controller."""
        self._set(port, group, [to_controller(self.dp)])

    def forward(self, port: int, group: str, members: list[int]) -> None:
        """Sends packets from a port to members."""
        self._set(port, group, outputs(self.dp, members))

    def delete(self, port: int, group: str) -> None:
        """Deletes the entry of a port."""
        delete_entries(self.dp, self._fields(port, group))


def _query(source: str, address: str, group: str, max_response: float) -> bytes:
    """Returns a query: for all groups if the group is 0.0.0.0."""
    data = packet.Packet()
    data.add_protocol(ethernet.ethernet(igmp.MULTICAST_MAC_ALL_HOST, source, ether_types.ETH_TYPE_IP))
    data.add_protocol(
        ipv4.ipv4(ttl=1, proto=in_proto.IPPROTO_IGMP, src=address, dst=igmp.MULTICAST_IP_ALL_HOST),
    )
    data.add_protocol(igmp.igmp(igmp.IGMP_TYPE_QUERY, int(max_response * 10), 0, group))
    data.serialize()
    return bytes(data.data)


def _response_time(code: int) -> float:
    """Returns the seconds of a query's response code (RFC 3376, 4.1.1); queries of version 1 have 0."""
    if code >= 0x80:
        code = (code & 0xF | 0x10) << (code >> 4 & 7) + 3
    return code / 10 or igmp.QUERY_RESPONSE_INTERVAL


class _Group:
    """A group of a switch."""

    def __init__(self) -> None:
        #: Whether packets to the group are forwarded to a member, by its port.
        self.members: dict[int, bool] = {}
        #: Whether a member has answered the last query. Others need not, and their reports are not passed on.
        self.is_answered = False

    @property
    def ports(self) -> list[int]:
        """The ports to which packets are forwarded."""
        return [port for port, is_forwarded in self.members.items() if is_forwarded]


class _Snooper:
    """Follows the groups of a switch by the messages that pass it."""

    def __init__(self, app: IgmpLib, dp: Any):
        self.app = app
        self.dp = dp
        self.entries = _Entries(dp)
        self.groups: dict[str, _Group] = {}
        #: The port of the querier, and its addresses.
        self.querier: int | None = None
        self.addresses = ("", "")
        self.is_stopped = False

    def stop(self) -> None:
        """Ends what it waits for."""
        self.is_stopped = True

    def receive(self, data: Any, message: Any, port: int, frame: bytes) -> None:
        """Handles a message."""
        if message.msgtype == igmp.IGMP_TYPE_QUERY:
            self._receive_query(data, message, port, frame)
        elif message.msgtype in _REPORTS:
            self._receive_report(message.address, port, frame)
        elif message.msgtype == igmp.IGMP_TYPE_LEAVE:
            self._receive_leave(message.address, port, frame)
        else:
            # Of version 3, or unknown.
            self._flood(port, frame)

    def _flood(self, port: int, frame: bytes) -> None:
        send_packet(self.dp, frame, [self.dp.ofproto.OFPP_FLOOD], port)

    def _notify(self, reason: int, address: str, ports: list[int]) -> None:
        self.app.send_event_to_observers(EventMulticastGroupStateChanged(reason, address, self.querier, ports))

    # Queries

    def _receive_query(self, data: Any, message: Any, port: int, frame: bytes) -> None:
        eth, ip = data.get_protocol(ethernet.ethernet), data.get_protocol(ipv4.ipv4)
        self.addresses = (eth.src, ip.src)
        before, self.querier = self.querier, port
        if before not in (None, port):
            self._move(before, port)
        asked = self.groups if message.address == "0.0.0.0" else [message.address]
        waiting = {address: self.groups[address] for address in asked if address in self.groups}
        for group in waiting.values():
            group.is_answered = False
        self._flood(port, frame)
        hub.spawn_after(_response_time(message.maxresp), self._end_query, waiting)

    def _move(self, before: int | None, port: int) -> None:
        """Follows the querier to another port."""
        for address, group in self.groups.items():
            if group.ports and before is not None:
                self.entries.delete(before, address)
                # Members on that port keep theirs.
                if before in group.members:
                    self.entries.report(before, address)
                self.entries.forward(port, address, group.ports)
                self._notify(MG_MEMBER_CHANGED, address, group.ports)

    def _end_query(self, waiting: dict[str, _Group]) -> None:
        """Removes the groups that no member has reported."""
        for address, group in waiting.items():
            if self.is_stopped or group.is_answered or self.groups.get(address) is not group:
                continue
            del self.groups[address]
            self._notify(MG_GROUP_REMOVED, address, [])
            if self.querier is not None:
                self.entries.delete(self.querier, address)
            for port in group.members:
                self.entries.delete(port, address)

    # Members

    def _receive_report(self, address: str, port: int, frame: bytes) -> None:
        if address not in self.groups:
            self.groups[address] = _Group()
            self._notify(MG_GROUP_ADDED, address, [])
        group = self.groups[address]
        if port not in group.members:
            group.members[port] = False
            self.entries.report(port, address)
        if self.querier is None:
            return
        if not group.members[port]:
            group.members[port] = True
            self._notify(MG_MEMBER_CHANGED, address, group.ports)
            self.entries.forward(self.querier, address, group.ports)
        if not group.is_answered:
            group.is_answered = True
            send_packet(self.dp, frame, [self.querier], port)

    def _receive_leave(self, address: str, port: int, frame: bytes) -> None:
        """Asks the port for other members of the group."""
        if self.querier is None:
            return
        group = self.groups.setdefault(address, _Group())
        group.members[port] = False
        query = _query(*self.addresses, address, igmp.LAST_MEMBER_QUERY_INTERVAL)
        send_packet(self.dp, query, [self.dp.ofproto.OFPP_IN_PORT], port)
        hub.spawn_after(igmp.LAST_MEMBER_QUERY_INTERVAL, self._end_leave, address, group, port, frame)

    def _end_leave(self, address: str, group: _Group, port: int, frame: bytes) -> None:
        """Removes a port that no member has reported."""
        if self.is_stopped or self.groups.get(address) is not group or group.members.get(port, True):
            return
        del group.members[port]
        self.entries.delete(port, address)
        if group.ports:
            self._notify(MG_MEMBER_CHANGED, address, group.ports)
            if self.querier is not None:
                self.entries.forward(self.querier, address, group.ports)
            return
        del self.groups[address]
        self._notify(MG_GROUP_REMOVED, address, [])
        if self.querier is not None:
            self.entries.delete(self.querier, address)
            send_packet(self.dp, frame, [self.querier], port)


class _Querier:
    """Asks the hosts of a switch for their groups."""

    def __init__(self, app: IgmpLib, dp: Any, server_port: int):
        self.app = app
        self.dp = dp
        self.server_port = server_port
        self.entries = _Entries(dp)
        #: Whether a member has answered the last query, by its port, by group.
        self.groups: dict[str, dict[int, bool]] = {}
        self._task = hub.spawn(self._run)

    def stop(self) -> None:
        """Ends the queries."""
        hub.kill(self._task)

    def _run(self) -> None:
        while True:
            for members in self.groups.values():
                members.update(dict.fromkeys(members, False))
            self._send()
            hub.sleep(igmp.QUERY_RESPONSE_INTERVAL)
            self._remove_silent()
            hub.sleep(QUERY_INTERVAL - igmp.QUERY_RESPONSE_INTERVAL)

    def _send(self) -> None:
        ofproto, ports = self.dp.ofproto, self.dp.ports
        local = ports.get(ofproto.OFPP_LOCAL) or next(iter(ports.values()), None)
        if local is None:
            return
        query = _query(local.hw_addr, "0.0.0.0", "0.0.0.0", igmp.QUERY_RESPONSE_INTERVAL)
        source = ofproto.OFPP_NONE if is_1_0(self.dp) else ofproto.OFPP_ANY
        send_packet(self.dp, query, [ofproto.OFPP_FLOOD], source)

    def _remove_silent(self) -> None:
        """Removes the members that have not answered."""
        for address, members in list(self.groups.items()):
            silent = [port for port, is_answered in members.items() if not is_answered]
            for port in silent:
                del members[port]
            if silent:
                self._update(address)
            for port in silent:
                self.entries.delete(port, address)

    def _update(self, address: str) -> None:
        """Has packets from the server sent to the members."""
        if self.groups[address]:
            self.entries.forward(self.server_port, address, list(self.groups[address]))
        else:
            del self.groups[address]
            self.entries.delete(self.server_port, address)

    def receive(self, data: Any, message: Any, port: int, frame: bytes) -> None:
        """Handles a message."""
        address = message.address if message.msgtype in (*_REPORTS, igmp.IGMP_TYPE_LEAVE) else None
        # The server's entry stays as it is.
        if address is None or port == self.server_port:
            return
        if message.msgtype == igmp.IGMP_TYPE_LEAVE:
            if self.groups.get(address, {}).pop(port, None) is not None:
                self.entries.delete(port, address)
                self._update(address)
            return
        members = self.groups.setdefault(address, {})
        is_new = port not in members
        members[port] = True
        if is_new:
            self.entries.forward(self.server_port, address, list(members))
            self.entries.report(port, address)
