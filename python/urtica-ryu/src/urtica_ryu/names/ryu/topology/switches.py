"""Finds the network: switches as they join, links by probes (LLDP) that are sent from each port, hosts by their packets.

Links, and hosts, are looked for with `--observe-links`. A link is gone when one of its ports is down, or when no probe has
passed it for `LINK_TIMEOUT_S`.
"""

from __future__ import annotations

import struct
from typing import Any, ClassVar

from ryu import cfg
from ryu.base import app_manager
from ryu.controller import ofp_event
from ryu.controller.handler import DEAD_DISPATCHER, MAIN_DISPATCHER, set_ev_cls, set_ev_handler
from ryu.lib.dpid import dpid_to_str, str_to_dpid
from ryu.lib.packet import arp, ether_types, ethernet, ipv4, ipv6, lldp, packet
from ryu.lib.port_no import port_no_to_str
from ryu.ofproto import ofproto_v1_0, ofproto_v1_3
from ryu.topology import event
from urtica_ryu import hub

CONF = cfg.CONF
CONF.register_cli_opts(
    [
        cfg.BoolOpt("observe-links", default=False, help="look for links and hosts"),
        cfg.BoolOpt("install-lldp-flow", default=True, help="add an entry that sends probes to the controller"),
        cfg.BoolOpt("explicit-drop", default=True, help="drop the buffers of probes"),
    ]
)

#: Seconds between two probes of a port.
PROBE_PERIOD_S = 0.9

#: The probes that are sent at once; then others get their turn.
PROBE_BURST = 20
PROBE_PAUSE_S = 0.05

#: Seconds without a probe after which a link is gone, and between two looks at that.
LINK_TIMEOUT_S = 10
LINK_CHECK_PERIOD_S = 5

_PROBE_TTL_S = 120
_PROBE_PRIORITY = 0xFFFF

#: The hosts and the addresses of each that are kept: others are not.
MAX_HOSTS = 65536
MAX_ADDRESSES = 64


class Port:
    """A port of a switch."""

    def __init__(self, dpid: int, ofproto: Any, ofpport: Any):
        self.dpid = dpid
        self._ofproto = ofproto
        self._config = ofpport.config
        self._state = ofpport.state
        self.port_no: int = ofpport.port_no
        self.hw_addr: str = ofpport.hw_addr
        self.name: bytes = ofpport.name

    def is_reserved(self) -> bool:
        """Returns whether its number has a meaning of its own."""
        return bool(self.port_no > self._ofproto.OFPP_MAX)

    def is_down(self) -> bool:
        """Returns whether it has no link, or was taken down."""
        return bool(self._state & self._ofproto.OFPPS_LINK_DOWN or self._config & self._ofproto.OFPPC_PORT_DOWN)

    def is_live(self) -> bool:
        """Returns whether it is live, by the switch's word from OpenFlow 1.3 on."""
        live = getattr(self._ofproto, "OFPPS_LIVE", None)
        return not self.is_down() if live is None else bool(self._state & live)

    def to_dict(self) -> dict[str, Any]:
        """Returns it for JSON."""
        return {
            "dpid": dpid_to_str(self.dpid),
            "port_no": port_no_to_str(self.port_no),
            "hw_addr": self.hw_addr,
            "name": self.name.decode("utf-8", "replace").rstrip("\0"),
        }

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Port) and (self.dpid, self.port_no) == (other.dpid, other.port_no)

    def __hash__(self) -> int:
        return hash((self.dpid, self.port_no))

    def __str__(self) -> str:
        return f"Port<dpid={self.dpid}, port_no={self.port_no}, {'LIVE' if self.is_live() else 'DOWN'}>"

    __repr__ = __str__


class Switch:
    """A switch with its ports."""

    def __init__(self, dp: Any):
        self.dp = dp
        self.ports: list[Port] = []

    def add_port(self, ofpport: Any) -> None:
        """Adds a port, unless its number is reserved."""
        port = Port(self.dp.id, self.dp.ofproto, ofpport)
        if not port.is_reserved():
            self.ports.append(port)

    def del_port(self, ofpport: Any) -> None:
        """Removes a port."""
        self.ports = [port for port in self.ports if port.port_no != ofpport.port_no]

    def to_dict(self) -> dict[str, Any]:
        """Returns it for JSON."""
        return {"dpid": dpid_to_str(self.dp.id), "ports": [port.to_dict() for port in self.ports]}

    def __str__(self) -> str:
        return f"Switch<dpid={self.dp.id}, {' '.join(map(str, self.ports))}>"


class Link:
    """A link, in one direction."""

    def __init__(self, src: Port, dst: Port):
        self.src = src
        self.dst = dst

    def to_dict(self) -> dict[str, Any]:
        """Returns it for JSON."""
        return {"src": self.src.to_dict(), "dst": self.dst.to_dict()}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Link) and (self.src, self.dst) == (other.src, other.dst)

    def __hash__(self) -> int:
        return hash((self.src, self.dst))

    def __str__(self) -> str:
        return f"Link: {self.src} to {self.dst}"

    __repr__ = __str__


class Host:
    """A host, with the addresses that it was seen with."""

    def __init__(self, mac: str, port: Port):
        self.mac = mac
        self.port = port
        self.ipv4: list[str] = []
        self.ipv6: list[str] = []

    def to_dict(self) -> dict[str, Any]:
        """Returns it for JSON."""
        return {"mac": self.mac, "ipv4": self.ipv4, "ipv6": self.ipv6, "port": self.port.to_dict()}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Host) and (self.mac, self.port) == (other.mac, other.port)

    def __hash__(self) -> int:
        return hash((self.mac, self.port))

    def __str__(self) -> str:
        return f"Host<mac={self.mac}, port={self.port}, ipv4={','.join(self.ipv4)}, ipv6={','.join(self.ipv6)}>"

    __repr__ = __str__


class LLDPPacket:
    """The probes."""

    CHASSIS_ID_PREFIX = "dpid:"
    PORT_ID_FORMAT = "!I"

    class LLDPUnknownFormat(Exception):
        """A packet that is no probe."""

    @classmethod
    def lldp_packet(cls, dpid: int, port_no: int, dl_addr: str, ttl: int = _PROBE_TTL_S) -> bytes:
        """Returns the probe of a port."""
        probe = packet.Packet()
        probe.add_protocol(
            ethernet.ethernet(dst=lldp.LLDP_MAC_NEAREST_BRIDGE, src=dl_addr, ethertype=ether_types.ETH_TYPE_LLDP)
        )
        chassis_id = f"{cls.CHASSIS_ID_PREFIX}{dpid_to_str(dpid)}".encode()
        port_id = struct.pack(cls.PORT_ID_FORMAT, port_no)
        tlvs = [
            lldp.ChassisID(subtype=lldp.ChassisID.SUB_LOCALLY_ASSIGNED, chassis_id=chassis_id),
            lldp.PortID(subtype=lldp.PortID.SUB_PORT_COMPONENT, port_id=port_id),
            lldp.TTL(ttl=ttl),
            lldp.End(),
        ]
        probe.add_protocol(lldp.lldp(tlvs))
        probe.serialize()
        return bytes(probe.data)

    @classmethod
    def lldp_parse(cls, data: bytes) -> tuple[int, int]:
        """Returns the datapath id and the port that sent a probe."""
        found = packet.Packet(data).get_protocol(lldp.lldp)
        if found is None or len(found.tlvs) < 2:
            raise cls.LLDPUnknownFormat("not LLDP")
        chassis, port = found.tlvs[:2]
        if not isinstance(chassis, lldp.ChassisID) or chassis.subtype != lldp.ChassisID.SUB_LOCALLY_ASSIGNED:
            raise cls.LLDPUnknownFormat("the chassis is not a probe's")
        if not isinstance(port, lldp.PortID) or port.subtype != lldp.PortID.SUB_PORT_COMPONENT:
            raise cls.LLDPUnknownFormat("the port is not a probe's")
        try:
            prefix, dpid = chassis.chassis_id.decode().split(":")
            (port_no,) = struct.unpack(cls.PORT_ID_FORMAT, port.port_id)
            if f"{prefix}:" != cls.CHASSIS_ID_PREFIX:
                raise ValueError
            return str_to_dpid(dpid), port_no
        except (ValueError, struct.error):
            raise cls.LLDPUnknownFormat("the chassis or the port is not a probe's") from None


class Switches(app_manager.RyuApp):
    """Knows the network, tells of its changes, and answers the requests of `ryu.topology.api`."""

    OFP_VERSIONS: ClassVar[Any] = [ofproto_v1_0.OFP_VERSION, ofproto_v1_3.OFP_VERSION]
    _EVENTS: ClassVar[list[Any]] = [
        event.EventSwitchEnter,
        event.EventSwitchLeave,
        event.EventSwitchReconnected,
        event.EventPortAdd,
        event.EventPortDelete,
        event.EventPortModify,
        event.EventLinkAdd,
        event.EventLinkDelete,
        event.EventHostAdd,
        event.EventHostMove,
        event.EventHostDelete,
    ]

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.name = event.NAME
        #: Switches by datapath id.
        self.switches: dict[int, Switch] = {}
        #: When each link was last seen.
        self.links: dict[Link, float] = {}
        #: Hosts by address.
        self.hosts: dict[str, Host] = {}
        self.link_discovery = self.CONF.observe_links
        # When the next probe of each port is due.
        self._due: dict[Port, float] = {}
        self._is_due = hub.Event()
        if self.link_discovery:
            self.threads.append(hub.spawn(self._probe_loop))
            self.threads.append(hub.spawn(self._link_loop))

    def close(self) -> None:
        """Ends the loops."""
        self.is_active = False
        self._is_due.set()

    def stop(self) -> None:
        """Stops the application: the loops first, which may sleep."""
        for thread in self.threads[:2] if self.link_discovery else []:
            hub.kill(thread)
        super().stop()

    # Switches and ports

    @set_ev_cls(ofp_event.EventOFPStateChange, [MAIN_DISPATCHER, DEAD_DISPATCHER])
    def state_change_handler(self, ev: Any) -> None:
        """Adds or removes a switch."""
        if ev.state == MAIN_DISPATCHER:
            self._add(ev.datapath)
        elif self._has(ev.datapath):
            self._remove(self.switches[ev.datapath.id])

    def _has(self, dp: Any) -> bool:
        """Returns whether it is the switch's newest connection."""
        switch = self.switches.get(dp.id)
        return switch is not None and switch.dp is dp

    def _add(self, dp: Any) -> None:
        is_known = dp.id in self.switches
        switch = Switch(dp)
        for ofpport in dp.ports.values():
            switch.add_port(ofpport)
        self.switches[dp.id] = switch
        kind = event.EventSwitchReconnected if is_known else event.EventSwitchEnter
        self.send_event_to_observers(kind(switch))
        if self.link_discovery:
            if self.CONF.install_lldp_flow:
                self._add_entry(dp)
            for port in switch.ports:
                self._probe_soon(port)

    def _remove(self, switch: Switch) -> None:
        del self.switches[switch.dp.id]
        for port in switch.ports:
            self._port_down(port)
        self.send_event_to_observers(event.EventSwitchLeave(switch))

    @set_ev_cls(ofp_event.EventOFPPortStatus, MAIN_DISPATCHER)
    def port_status_handler(self, ev: Any) -> None:
        """Follows a port."""
        msg = ev.msg
        dp, ofproto = msg.datapath, msg.datapath.ofproto
        port = Port(dp.id, ofproto, msg.desc)
        if not self._has(dp) or port.is_reserved():
            return
        switch = self.switches[dp.id]
        is_known = port in switch.ports
        switch.del_port(msg.desc)
        if msg.reason == ofproto.OFPPR_DELETE:
            self.send_event_to_observers(event.EventPortDelete(port))
            self._port_down(port)
            return
        switch.add_port(msg.desc)
        kind = event.EventPortModify if is_known else event.EventPortAdd
        self.send_event_to_observers(kind(port))
        if port.is_down():
            self._port_down(port)
        elif self.link_discovery:
            self._probe_soon(port)

    def _port_down(self, port: Port) -> None:
        """Removes what was behind a port."""
        self._due.pop(port, None)
        for link in [link for link in self.links if port in (link.src, link.dst)]:
            self._delete_link(link)
        self._delete_hosts(lambda host: host.port == port)

    def _port(self, dpid: int, port_no: int) -> Port | None:
        ports = self.switches[dpid].ports if dpid in self.switches else []
        return next((port for port in ports if port.port_no == port_no), None)

    # Links

    def _add_entry(self, dp: Any) -> None:
        """Has a switch send probes to the controller, whole."""
        ofproto, parser = dp.ofproto, dp.ofproto_parser
        if ofproto.OFP_VERSION == ofproto_v1_0.OFP_VERSION:
            match = parser.OFPMatch(dl_type=ether_types.ETH_TYPE_LLDP, dl_dst=lldp.LLDP_MAC_NEAREST_BRIDGE)
            actions = [parser.OFPActionOutput(ofproto.OFPP_CONTROLLER, 0xFFFF)]
            entry = parser.OFPFlowMod(
                datapath=dp,
                match=match,
                cookie=0,
                command=ofproto.OFPFC_ADD,
                idle_timeout=0,
                hard_timeout=0,
                actions=actions,
                priority=_PROBE_PRIORITY,
            )
        else:
            match = parser.OFPMatch(eth_type=ether_types.ETH_TYPE_LLDP, eth_dst=lldp.LLDP_MAC_NEAREST_BRIDGE)
            actions = [parser.OFPActionOutput(ofproto.OFPP_CONTROLLER, ofproto.OFPCML_NO_BUFFER)]
            instructions = [parser.OFPInstructionActions(ofproto.OFPIT_APPLY_ACTIONS, actions)]
            entry = parser.OFPFlowMod(datapath=dp, match=match, instructions=instructions, priority=_PROBE_PRIORITY)
        dp.send_msg(entry)

    def _probe_soon(self, port: Port) -> None:
        self._due[port] = 0.0
        self._is_due.set()

    def _probe_loop(self) -> None:
        while self.is_active:
            self._is_due.clear()
            now = hub.baton().now()
            due = [port for port, at in self._due.items() if at <= now]
            for port in due[:PROBE_BURST]:
                if port in self._due:
                    self._due[port] = now + PROBE_PERIOD_S
                    self._send_probe(port)
            if len(due) > PROBE_BURST:
                hub.sleep(PROBE_PAUSE_S)
                continue
            next_at = min(self._due.values(), default=None)
            self._is_due.wait(None if next_at is None else max(0.0, next_at - hub.baton().now()))

    def _send_probe(self, port: Port) -> None:
        dp = self.switches[port.dpid].dp
        ofproto, parser = dp.ofproto, dp.ofproto_parser
        data = LLDPPacket.lldp_packet(port.dpid, port.port_no, port.hw_addr)
        in_port = ofproto.OFPP_NONE if ofproto.OFP_VERSION == ofproto_v1_0.OFP_VERSION else ofproto.OFPP_CONTROLLER
        actions = [parser.OFPActionOutput(port.port_no)]
        dp.send_msg(
            parser.OFPPacketOut(datapath=dp, buffer_id=ofproto_v1_3.OFP_NO_BUFFER, in_port=in_port, actions=actions, data=data)
        )

    def _link_loop(self) -> None:
        while self.is_active:
            hub.sleep(LINK_CHECK_PERIOD_S)
            oldest = hub.baton().now() - LINK_TIMEOUT_S
            for link in [link for link, seen_at in self.links.items() if seen_at < oldest]:
                self._delete_link(link)

    def _delete_link(self, link: Link) -> None:
        del self.links[link]
        self.send_event_to_observers(event.EventLinkDelete(link))

    @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
    def lldp_packet_in_handler(self, ev: Any) -> None:
        """Finds the link that a probe has passed."""
        if not self.link_discovery:
            return
        msg = ev.msg
        try:
            src = self._port(*LLDPPacket.lldp_parse(msg.data))
        except LLDPPacket.LLDPUnknownFormat:
            return
        dst = self._port(msg.datapath.id, _in_port(msg))
        if src is not None and dst is not None and src != dst:
            self._see_link(Link(src, dst))
        if self.CONF.explicit_drop and msg.buffer_id != ofproto_v1_3.OFP_NO_BUFFER:
            self._drop(msg)

    def _see_link(self, link: Link) -> None:
        is_known = link in self.links
        self.links[link] = hub.baton().now()
        if is_known:
            return
        self.send_event_to_observers(event.EventLinkAdd(link))
        self._delete_hosts(lambda host: host.port in (link.src, link.dst))
        if Link(link.dst, link.src) not in self.links:
            self._probe_soon(link.dst)

    @staticmethod
    def _drop(msg: Any) -> None:
        """Frees a switch's buffer."""
        dp = msg.datapath
        dp.send_msg(
            dp.ofproto_parser.OFPPacketOut(datapath=dp, buffer_id=msg.buffer_id, in_port=_in_port(msg), actions=[], data=None)
        )

    # Hosts

    @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
    def host_discovery_packet_in_handler(self, ev: Any) -> None:
        """Finds the host that has sent a packet, and its addresses."""
        msg = ev.msg
        found = packet.Packet(msg.data)
        eth = found.get_protocol(ethernet.ethernet)
        if eth is None or eth.ethertype in (ether_types.ETH_TYPE_LLDP, ether_types.ETH_TYPE_CFM):
            return
        port = self._port(msg.datapath.id, _in_port(msg))
        if port is None or self._leads_to_switch(port):
            return
        host = self._see_host(eth.src, port)
        if host is None:
            return
        for protocol, field, addresses in (
            (arp.arp, "src_ip", host.ipv4),
            (ipv4.ipv4, "src", host.ipv4),
            (ipv6.ipv6, "src", host.ipv6),
        ):
            header = found.get_protocol(protocol)
            if header is not None:
                _note(getattr(header, field), addresses)

    def _leads_to_switch(self, port: Port) -> bool:
        return any(port in (link.src, link.dst) for link in self.links)

    def _see_host(self, mac: str, port: Port) -> Host | None:
        """Returns a host; None if there is no space for it."""
        known = self.hosts.get(mac)
        if known is not None and known.port == port:
            return known
        if known is None and len(self.hosts) >= MAX_HOSTS:
            return None
        host = Host(mac, port)
        self.hosts[mac] = host
        made: Any = event.EventHostAdd(host) if known is None else event.EventHostMove(known, host)
        self.send_event_to_observers(made)
        return host

    def _delete_hosts(self, is_meant: Any) -> None:
        for host in [host for host in self.hosts.values() if is_meant(host)]:
            del self.hosts[host.mac]
            self.send_event_to_observers(event.EventHostDelete(host))

    # Requests

    @set_ev_handler(event.EventSwitchRequest)
    def switch_request_handler(self, req: Any) -> None:
        """Answers with switches."""
        switches = [switch for dpid, switch in self.switches.items() if req.dpid in (None, dpid)]
        self.reply_to_request(req, event.EventSwitchReply(req.src, switches))

    @set_ev_handler(event.EventLinkRequest)
    def link_request_handler(self, req: Any) -> None:
        """Answers with links."""
        links = [link for link in self.links if req.dpid in (None, link.src.dpid)]
        self.reply_to_request(req, event.EventLinkReply(req.src, req.dpid, links))

    @set_ev_handler(event.EventHostRequest)
    def host_request_handler(self, req: Any) -> None:
        """Answers with hosts."""
        hosts = [host for host in self.hosts.values() if req.dpid in (None, host.port.dpid)]
        self.reply_to_request(req, event.EventHostReply(req.src, req.dpid, hosts))


def _in_port(msg: Any) -> int:
    if msg.datapath.ofproto.OFP_VERSION == ofproto_v1_0.OFP_VERSION:
        return int(msg.in_port)
    return int(msg.match["in_port"])


def _note(address: str, addresses: list[str]) -> None:
    """Puts an address at the end: the newest ones stay."""
    if address in ("0.0.0.0", "::"):
        return
    if address in addresses:
        addresses.remove(address)
    addresses.append(address)
    del addresses[:-MAX_ADDRESSES]
