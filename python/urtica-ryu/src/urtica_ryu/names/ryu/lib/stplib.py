"""A spanning tree for switches that have none: `_CONTEXTS = {"stplib": stplib.Stp}`.

Applications handle `stplib.EventPacketIn` instead of `ofp_event.EventOFPPacketIn`, which has packets from ports that learn or
forward, and forget what they have learnt on `EventTopologyChange`.
"""

from __future__ import annotations

from typing import Any, ClassVar

from ryu.base import app_manager
from ryu.controller import event, ofp_event
from ryu.controller.handler import DEAD_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from ryu.lib.dpid import dpid_to_str
from ryu.lib.packet import bpdu, ethernet, llc, packet
from ryu.ofproto import ofproto_v1_0, ofproto_v1_3
from urtica_ryu import hub, spanning_tree
from urtica_ryu.both_versions import in_port
from urtica_ryu.spanning_tree import Bridge, Config, Port, Times, Vector

# The states of a port.
PORT_STATE_DISABLE = spanning_tree.DISABLE
PORT_STATE_BLOCK = spanning_tree.BLOCK
PORT_STATE_LISTEN = spanning_tree.LISTEN
PORT_STATE_LEARN = spanning_tree.LEARN
PORT_STATE_FORWARD = spanning_tree.FORWARD

# The roles of a port.
ROOT_PORT = spanning_tree.ROOT_PORT
DESIGNATED_PORT = spanning_tree.DESIGNATED_PORT
NON_DESIGNATED_PORT = spanning_tree.NON_DESIGNATED_PORT

#: Seconds between two looks at the time.
TICK_S = 1

_STATES = ["DISABLE", "BLOCK", "LISTEN", "LEARN", "FORWARD"]
_ENTRY_PRIORITY = 0xFFFF
_FLAG_CHANGE, _FLAG_ACKNOWLEDGED = 0x01, 0x80

#: What a switch's configuration may have: the least, the most, the step and the default.
_BRIDGE_SETTINGS: dict[str, tuple[int, int, int, int]] = {
    "priority": (0, 61440, 4096, 0x8000),
    "sys_ext_id": (0, 4095, 1, 0),
    "max_age": (6, 40, 1, 20),
    "hello_time": (1, 10, 1, 2),
    "fwd_delay": (4, 30, 1, 15),
}
_PORT_SETTINGS: dict[str, tuple[int, int, int, int]] = {
    "priority": (0, 240, 16, 0x80),
    "path_cost": (1, 0xFFFFFFFF, 1, 0),
}

#: The costs of ports by speed in Mbit/s (IEEE 802.1D-1998, table 8-5), and of those without one.
_PATH_COSTS = [(10_000, 2), (1_000, 4), (100, 19), (10, 100)]
_DEFAULT_PATH_COST = 19


class EventTopologyChange(event.EventBase):
    """The tree has changed: what was learnt about the switch `dp` is no longer right."""

    def __init__(self, dp: Any):
        super().__init__()
        self.dp = dp


class EventPortStateChange(event.EventBase):
    """A port has another state: `port_no`, `port_state`."""

    def __init__(self, dp: Any, port: StpPort):
        super().__init__()
        self.dp = dp
        self.port_no = port.port_no
        self.port_state = port.state


class EventPacketIn(event.EventBase):
    """A packet from a port that learns or forwards."""

    def __init__(self, msg: Any):
        super().__init__()
        self.msg = msg


class StpPort:
    """A port, as applications see it."""

    def __init__(self, ofport: Any, state: int):
        self.ofport = ofport
        self.port_no: int = ofport.port_no
        self.state = state


class Stp(app_manager.RyuApp):
    """Has the connected switches form a spanning tree."""

    OFP_VERSIONS: ClassVar[Any] = [ofproto_v1_0.OFP_VERSION, ofproto_v1_3.OFP_VERSION]
    _EVENTS: ClassVar[list[Any]] = [EventTopologyChange, EventPortStateChange, EventPacketIn]

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.name = "stplib"
        #: The settings by datapath id.
        self.config: dict[int, dict[str, Any]] = {}
        #: The switches by datapath id.
        self.bridge_list: dict[int, _Switch] = {}
        self._timer = hub.spawn(self._tick)

    def close(self) -> None:
        """Ends the timer."""
        hub.kill(self._timer)

    def set_config(self, config: dict[int, dict[str, Any]]) -> None:
        """Sets settings by datapath id: `{1: {"bridge": {"priority": 0x8000}, "ports": {2: {"path_cost": 100}}}}`.

        They count from the switch's next connection on.
        """
        for dpid, settings in config.items():
            _check(settings, ("bridge", "ports"), f"the configuration of switch {dpid}")
            bridge = _settings(settings.get("bridge", {}), _BRIDGE_SETTINGS, f"bridge of switch {dpid}")
            least, most = 2 * (bridge["hello_time"] + 1), 2 * (bridge["fwd_delay"] - 1)
            if not least <= bridge["max_age"] <= most:
                expected = f"{least} to {most}, from hello_time and fwd_delay"
                raise ValueError(f"max_age of bridge of switch {dpid} is {bridge['max_age']}: expected {expected}")
            for number, port in settings.get("ports", {}).items():
                others = {name: value for name, value in port.items() if name != "enable"}
                _settings(others, _PORT_SETTINGS, f"port {number} of switch {dpid}")
        self.config = config

    def _tick(self) -> None:
        while True:
            hub.sleep(TICK_S)
            for switch in list(self.bridge_list.values()):
                switch.bridge.tick(hub.baton().now())

    @set_ev_cls(ofp_event.EventOFPStateChange, [MAIN_DISPATCHER, DEAD_DISPATCHER])
    def dispacher_change(self, ev: Any) -> None:
        """Adds or removes a switch."""
        dp = ev.datapath
        if ev.state == MAIN_DISPATCHER:
            switch = self.bridge_list[dp.id] = _Switch(self, dp, self.config.get(dp.id, {}))
            switch.start()
        elif dp.id in self.bridge_list and self.bridge_list[dp.id].dp is dp:
            del self.bridge_list[dp.id]

    @set_ev_cls(ofp_event.EventOFPPortStatus, MAIN_DISPATCHER)
    def port_status_handler(self, ev: Any) -> None:
        """Follows a port."""
        dp = ev.msg.datapath
        switch = self.bridge_list.get(dp.id)
        if switch is not None and switch.dp is dp:
            switch.follow(ev.msg.desc, ev.msg.reason == dp.ofproto.OFPPR_DELETE)

    @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
    def packet_in_handler(self, ev: Any) -> None:
        """Handles bridges' messages, and passes other packets on."""
        dp = ev.msg.datapath
        switch = self.bridge_list.get(dp.id)
        if switch is not None and switch.dp is dp:
            switch.receive(ev.msg)


def _check(settings: Any, known: Any, where: str) -> None:
    unknown = [name for name in settings if name not in known]
    if unknown:
        raise ValueError(f"{where} has {unknown[0]!r}: expected {', '.join(known)}")


def _settings(given: dict[str, Any], known: dict[str, tuple[int, int, int, int]], where: str) -> dict[str, int]:
    """Returns all settings, checked."""
    _check(given, known, where)
    found = {}
    for name, (least, most, step, default) in known.items():
        value = given.get(name, default)
        is_right = isinstance(value, int) and least <= value <= most and value % step == 0
        if name in given and not is_right:
            steps = f" in steps of {step}" if step > 1 else ""
            raise ValueError(f"{name} of {where} is {value!r}: expected {least} to {most}{steps}")
        found[name] = value
    return found


class _Switch:
    """A switch, and its bridge."""

    def __init__(self, app: Stp, dp: Any, config: dict[str, Any]):
        self.app = app
        self.dp = dp
        settings = _settings(config.get("bridge", {}), _BRIDGE_SETTINGS, f"bridge of switch {dp.id}")
        self.port_config = config.get("ports", {})
        identifier = (settings["priority"] + settings["sys_ext_id"]) << 48 | dp.id & 0xFFFF_FFFF_FFFF
        times = Times(settings["max_age"], settings["hello_time"], settings["fwd_delay"])
        self.bridge = Bridge(identifier, times, self._send, self._changed, self._flush)
        self.ofports: dict[int, Any] = {}

    def start(self) -> None:
        """Adds the switch's ports."""
        self._add_entry()
        for ofport in list(self.dp.ports.values()):
            self.follow(ofport, False)

    def follow(self, ofport: Any, is_deleted: bool) -> None:
        """Adds a port that has a link, and removes one that has not."""
        ofproto, number = self.dp.ofproto, ofport.port_no
        if number > ofproto.OFPP_MAX:
            return
        is_down = bool(ofport.state & ofproto.OFPPS_LINK_DOWN or ofport.config & ofproto.OFPPC_PORT_DOWN)
        config = self.port_config.get(number, {})
        now = hub.baton().now()
        if is_deleted or is_down or not config.get("enable", True):
            self.bridge.remove_port(number, now)
            self.ofports.pop(number, None)
        elif number not in self.bridge.ports:
            self.ofports[number] = ofport
            self.bridge.add_port(self._port(ofport, config), now)
        else:
            # The port's configuration has changed, by this module as well.
            self.ofports[number] = ofport

    @staticmethod
    def _port(ofport: Any, config: dict[str, Any]) -> Port:
        given = {name: value for name, value in config.items() if name != "enable"}
        settings = _settings(given, _PORT_SETTINGS, f"port {ofport.port_no}")
        # Twelve bits of the number, as 802.1t has it.
        identifier = settings["priority"] << 8 | ofport.port_no & 0xFFF
        return Port(ofport.port_no, identifier, settings["path_cost"] or _path_cost(ofport))

    # Messages

    def receive(self, msg: Any) -> None:
        """Handles a packet."""
        number = in_port(msg)
        data = packet.Packet(msg.data)
        found: Any = data.get_protocol(bpdu.bpdu)
        now = hub.baton().now()
        if isinstance(found, bpdu.ConfigurationBPDUs) and not isinstance(found, bpdu.RstBPDUs):
            self.bridge.receive(number, _config_of(found), now)
        elif isinstance(found, bpdu.TopologyChangeNotificationBPDUs):
            self.bridge.receive_notification(number, now)
        elif found is None and not _is_for_bridges(data):
            port = self.bridge.ports.get(number)
            if port is not None and port.state in (PORT_STATE_LEARN, PORT_STATE_FORWARD):
                self.app.send_event_to_observers(EventPacketIn(msg))

    def _send(self, port: Port, config: Config | None) -> None:
        """Sends a configuration message, or a notification of a change."""
        ofproto, parser = self.dp.ofproto, self.dp.ofproto_parser
        made: Any = bpdu.TopologyChangeNotificationBPDUs() if config is None else self._message(config)
        control = llc.llc(llc.SAP_BPDU, llc.SAP_BPDU, llc.ControlFormatU())
        length = len(control.serialize()) + len(made.serialize())
        sent = packet.Packet()
        sent.add_protocol(ethernet.ethernet(bpdu.BRIDGE_GROUP_ADDRESS, self.ofports[port.number].hw_addr, length))
        sent.add_protocol(control)
        sent.add_protocol(made)
        sent.serialize()
        source = ofproto.OFPP_NONE if ofproto.OFP_VERSION == ofproto_v1_0.OFP_VERSION else ofproto.OFPP_CONTROLLER
        self.dp.send_msg(
            parser.OFPPacketOut(
                datapath=self.dp,
                buffer_id=ofproto_v1_3.OFP_NO_BUFFER,
                in_port=source,
                actions=[parser.OFPActionOutput(port.number)],
                data=bytes(sent.data),
            )
        )

    @staticmethod
    def _message(config: Config) -> bpdu.ConfigurationBPDUs:
        root, cost, bridge, port = config.vector
        flags = _FLAG_CHANGE * config.is_change | _FLAG_ACKNOWLEDGED * config.is_acknowledged
        return bpdu.ConfigurationBPDUs(
            flags,
            *_bridge_of(root),
            cost,
            *_bridge_of(bridge),
            port >> 8 & 0xF0,
            port & 0xFFF,
            config.message_age,
            config.times.max_age,
            config.times.hello_time,
            config.times.forward_delay,
        )

    # Changes

    def _changed(self, port: Port) -> None:
        ofport = self.ofports.get(port.number)
        if ofport is None:
            return
        self.app.logger.info("[dpid=%s][port=%d] %s", dpid_to_str(self.dp.id), port.number, _STATES[port.state])
        self._configure(ofport, port.state)
        self.app.send_event_to_observers(EventPortStateChange(self.dp, StpPort(ofport, port.state)))

    def _flush(self) -> None:
        self.app.send_event_to_observers(EventTopologyChange(self.dp))

    def _configure(self, ofport: Any, state: int) -> None:
        """Has the switch forward nothing to a port that is blocked."""
        ofproto = self.dp.ofproto
        no_forward = ofproto.OFPPC_NO_FWD
        mask = ofproto.OFPPC_PORT_DOWN | ofproto.OFPPC_NO_RECV | no_forward
        config = no_forward if state in (PORT_STATE_DISABLE, PORT_STATE_BLOCK) else 0
        self.dp.send_msg(
            self.dp.ofproto_parser.OFPPortMod(
                self.dp, port_no=ofport.port_no, hw_addr=ofport.hw_addr, config=config, mask=mask, advertise=ofport.advertised
            )
        )

    def _add_entry(self) -> None:
        """Has the switch send bridges' messages to the controller."""
        dp, ofproto, parser = self.dp, self.dp.ofproto, self.dp.ofproto_parser
        if ofproto.OFP_VERSION == ofproto_v1_0.OFP_VERSION:
            match = parser.OFPMatch(dl_dst=bpdu.BRIDGE_GROUP_ADDRESS)
            actions = [parser.OFPActionOutput(ofproto.OFPP_CONTROLLER, 0xFFFF)]
            entry = parser.OFPFlowMod(
                datapath=dp,
                match=match,
                cookie=0,
                command=ofproto.OFPFC_ADD,
                idle_timeout=0,
                hard_timeout=0,
                priority=_ENTRY_PRIORITY,
                actions=actions,
            )
        else:
            match = parser.OFPMatch(eth_dst=bpdu.BRIDGE_GROUP_ADDRESS)
            actions = [parser.OFPActionOutput(ofproto.OFPP_CONTROLLER, ofproto.OFPCML_NO_BUFFER)]
            instructions = [parser.OFPInstructionActions(ofproto.OFPIT_APPLY_ACTIONS, actions)]
            entry = parser.OFPFlowMod(datapath=dp, priority=_ENTRY_PRIORITY, match=match, instructions=instructions)
        dp.send_msg(entry)


def _path_cost(ofport: Any) -> int:
    """The cost of a port by its speed, which 1.3 has in kbit/s and 1.0 as a flag."""
    speed = getattr(ofport, "curr_speed", 0) // 1000
    if not speed:
        flags = [(1 << 6, 10_000), (1 << 4 | 1 << 5, 1_000), (1 << 2 | 1 << 3, 100), (1 | 1 << 1, 10)]
        speed = next((mbps for bits, mbps in flags if ofport.curr & bits), 0)
    return next((cost for mbps, cost in _PATH_COSTS if speed >= mbps), _DEFAULT_PATH_COST)


def _is_for_bridges(data: packet.Packet) -> bool:
    eth = data.get_protocol(ethernet.ethernet)
    return eth is None or eth.dst == bpdu.BRIDGE_GROUP_ADDRESS


def _config_of(found: bpdu.ConfigurationBPDUs) -> Config:
    root = (found.root_priority + found.root_system_id_extension) << 48 | _number(found.root_mac_address)
    bridge = (found.bridge_priority + found.bridge_system_id_extension) << 48 | _number(found.bridge_mac_address)
    vector = Vector(root, found.root_path_cost, bridge, found.port_priority << 8 | found.port_number)
    times = Times(found.max_age, found.hello_time, found.forward_delay)
    is_change, is_acknowledged = (bool(found.flags & flag) for flag in (_FLAG_CHANGE, _FLAG_ACKNOWLEDGED))
    return Config(vector, found.message_age, times, is_change, is_acknowledged)


def _bridge_of(number: int) -> tuple[int, int, str]:
    return number >> 48 & 0xF000, number >> 48 & 0xFFF, (number & 0xFFFF_FFFF_FFFF).to_bytes(6, "big").hex(":")


def _number(mac: str) -> int:
    return int(mac.replace(":", ""), 16)
