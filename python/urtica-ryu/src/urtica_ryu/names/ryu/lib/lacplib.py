"""The passive side of link aggregation (LACP): `_CONTEXTS = {"lacplib": lacplib.LacpLib}`.

Applications name the ports of an aggregate by `add`, handle `lacplib.EventPacketIn` instead of `ofp_event.EventOFPPacketIn`, and
forget addresses on `EventSlaveStateChanged`.
"""

from __future__ import annotations

from typing import Any, ClassVar

from ryu.base import app_manager
from ryu.controller import event, ofp_event
from ryu.controller.handler import MAIN_DISPATCHER, set_ev_cls
from ryu.lib.packet import ether_types, ethernet, packet, slow
from ryu.ofproto import ofproto_v1_0, ofproto_v1_3
from urtica_ryu.both_versions import field, in_port, send_packet, set_entry, to_controller

_ENTRY_PRIORITY = 0xFFFF
_SYSTEM_PRIORITY = 0xFFFF
_PORT_PRIORITY = 0xFF


class EventPacketIn(event.EventBase):
    """A packet that is not of LACP."""

    def __init__(self, msg: Any):
        super().__init__()
        self.msg = msg


class EventSlaveStateChanged(event.EventBase):
    """A port of an aggregate can be used (`enabled`), or no longer."""

    def __init__(self, datapath: Any, port: int, enabled: bool):
        super().__init__()
        self.datapath = datapath
        self.port = port
        self.enabled = enabled


class _Port:
    """A port of an aggregate."""

    def __init__(self) -> None:
        self.is_enabled = False
        #: The idle timeout of the entry that sends its data units to the controller.
        self.timeout = 0


class LacpLib(app_manager.RyuApp):
    """Answers the data units of LACP on the ports of aggregates."""

    OFP_VERSIONS: ClassVar[Any] = [ofproto_v1_0.OFP_VERSION, ofproto_v1_3.OFP_VERSION]
    _EVENTS: ClassVar[list[Any]] = [EventPacketIn, EventSlaveStateChanged]

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.name = "lacplib"
        #: The ports of all aggregates, by datapath id and number.
        self._ports: dict[tuple[int, int], _Port] = {}

    def add(self, dpid: int, ports: list[int]) -> None:
        """Makes ports of a switch an aggregate."""
        if not isinstance(ports, list) or len(ports) < 2:
            raise ValueError(f"ports of an aggregate of switch {dpid} are {ports!r}: expected a list of 2 or more")
        used = [number for number in ports if (dpid, number) in self._ports]
        if used:
            raise ValueError(f"port {used[0]} of switch {dpid} belongs to an aggregate already")
        self._ports.update({(dpid, number): _Port() for number in ports})

    @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
    def packet_in_handler(self, ev: Any) -> None:
        """Handles data units, and passes other packets on."""
        msg = ev.msg
        data = packet.Packet(msg.data)
        unit: Any = data.get_protocol(slow.lacp)
        if unit is None:
            self.send_event_to_observers(EventPacketIn(msg))
            return
        dp, number = msg.datapath, in_port(msg)
        port = self._ports.get((dp.id, number))
        if port is None or number not in dp.ports:
            self.logger.info("SW=%016x PORT=%d: ignoring LACP at a port that is in no aggregate", dp.id, number)
            return
        source: Any = data.get_protocol(ethernet.ethernet)
        self._receive(dp, number, port, unit, source.src)

    def _receive(self, dp: Any, number: int, port: _Port, unit: Any, source: str) -> None:
        if not port.is_enabled:
            self.logger.info("SW=%016x PORT=%d: the slave i/f has just been up.", dp.id, number)
            port.is_enabled = True
            self.send_event_to_observers(EventSlaveStateChanged(dp, number, True))
        is_short = unit.actor_state_timeout == unit.LACP_STATE_SHORT_TIMEOUT
        timeout = unit.SHORT_TIMEOUT_TIME if is_short else unit.LONG_TIMEOUT_TIME
        if port.timeout != timeout:
            port.timeout = timeout
            self.logger.info("SW=%016x PORT=%d: the timeout time has changed to %d s", dp.id, number, timeout)
            # The switch reports when there have been no data units for this time.
            set_entry(
                dp,
                {"in_port": number, "eth_src": source, "eth_type": ether_types.ETH_TYPE_SLOW},
                [to_controller(dp)],
                idle_timeout=timeout,
                priority=_ENTRY_PRIORITY,
                flags=dp.ofproto.OFPFF_SEND_FLOW_REM,
            )
        send_packet(dp, _answer(dp, number, unit), [dp.ofproto.OFPP_IN_PORT], number)

    @set_ev_cls(ofp_event.EventOFPFlowRemoved, MAIN_DISPATCHER)
    def flow_removed_handler(self, ev: Any) -> None:
        """Handles the timeout of a port."""
        msg = ev.msg
        dp = msg.datapath
        number, kind = (field(msg.match, dp, name) for name in ("in_port", "eth_type"))
        port = self._ports.get((dp.id, number))
        if port is None or kind != ether_types.ETH_TYPE_SLOW:
            return
        # An entry that was deleted reports no timeout: the next data unit adds it again.
        port.timeout = 0
        if not port.is_enabled:
            return
        self.logger.info("SW=%016x PORT=%d: LACP exchange timeout has occurred.", dp.id, number)
        port.is_enabled = False
        self.send_event_to_observers(EventSlaveStateChanged(dp, number, False))


def _answer(dp: Any, number: int, unit: Any) -> bytes:
    """Returns the data unit that answers another one."""
    own = dp.ports[number].hw_addr
    local = dp.ports.get(dp.ofproto.OFPP_LOCAL)
    bits = ("timeout", "aggregation", "synchronization", "collecting", "distributing")
    names = ("system_priority", "system", "key", "port_priority", "port")
    settings = {f"actor_state_{bit}": getattr(unit, f"actor_state_{bit}") for bit in bits}
    settings |= {f"partner_{name}": getattr(unit, f"actor_{name}") for name in names}
    settings |= {f"partner_state_{bit}": getattr(unit, f"actor_state_{bit}") for bit in slow.STATE_BITS}
    made = slow.lacp(
        actor_system_priority=_SYSTEM_PRIORITY,
        actor_system=own if local is None else local.hw_addr,
        actor_key=unit.actor_key,
        actor_port_priority=_PORT_PRIORITY,
        actor_port=number,
        actor_state_activity=unit.LACP_STATE_PASSIVE,
        **settings,
    )
    data = packet.Packet()
    data.add_protocol(ethernet.ethernet(slow.SLOW_PROTOCOL_MULTICAST, own, ether_types.ETH_TYPE_SLOW))
    data.add_protocol(made)
    data.serialize()
    return bytes(data.data)
