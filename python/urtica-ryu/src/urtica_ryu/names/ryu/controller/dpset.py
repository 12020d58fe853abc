"""The connected switches, as an object that applications share: `_CONTEXTS = {"dpset": dpset.DPSet}`."""

from __future__ import annotations

from typing import Any

from ryu.base import app_manager
from ryu.controller import event, handler, ofp_event
from ryu.controller.handler import DEAD_DISPATCHER, MAIN_DISPATCHER, set_ev_cls

#: The state in which this module's events are handled.
DPSET_EV_DISPATCHER = "dpset"


class EventDPBase(event.EventBase):
    """An event of a switch."""

    def __init__(self, dp: Any):
        super().__init__()
        self.dp = dp


class EventDP(EventDPBase):
    """A switch joined (`enter`) or left; `ports` lists its ports."""

    def __init__(self, dp: Any, enter_leave: bool):
        super().__init__(dp)
        self.enter = enter_leave
        self.ports: list[Any] = []


class EventDPReconnected(EventDPBase):
    """A switch connected again before its old connection closed."""

    def __init__(self, dp: Any):
        super().__init__(dp)
        self.ports: list[Any] = []


class EventPortBase(EventDPBase):
    """An event of a port."""

    def __init__(self, dp: Any, port: Any):
        super().__init__(dp)
        self.port = port


class EventPortAdd(EventPortBase):
    """A port was added."""


class EventPortDelete(EventPortBase):
    """A port was deleted."""


class EventPortModify(EventPortBase):
    """A port was changed."""


class DPSet(app_manager.RyuApp):
    """The connected switches, and their ports."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.name = "dpset"
        #: Switches by datapath id.
        self.dps: dict[int, Any] = {}
        #: Ports by number, by datapath id.
        self.port_state: dict[int, dict[int, Any]] = {}

    def get(self, dp_id: int) -> Any:
        """Returns a switch; None if it is not connected."""
        return self.dps.get(dp_id)

    def get_all(self) -> list[tuple[int, Any]]:
        """Returns all switches with their ids."""
        return list(self.dps.items())

    def get_ports(self, dpid: int) -> list[Any]:
        """Returns a switch's ports."""
        return list(self.port_state[dpid].values())

    def get_port(self, dpid: int, port_no: int) -> Any:
        """Returns a port of a switch."""
        return self.port_state[dpid][port_no]

    @set_ev_cls(ofp_event.EventOFPStateChange, [MAIN_DISPATCHER, DEAD_DISPATCHER])
    def dispatcher_change(self, ev: Any) -> None:
        """Adds or removes a switch."""
        if ev.state == MAIN_DISPATCHER:
            self._add(ev.datapath)
        elif self._has(ev.datapath):
            self._remove(ev.datapath)

    def _has(self, dp: Any) -> bool:
        """Returns whether it is the switch's newest connection."""
        return self.dps.get(dp.id) is dp

    def _add(self, dp: Any) -> None:
        made: Any = EventDPReconnected(dp) if dp.id in self.dps else EventDP(dp, True)
        self.dps[dp.id] = dp
        self.port_state[dp.id] = dict(dp.ports)
        made.ports = self.get_ports(dp.id)
        self.send_event_to_observers(made)

    def _remove(self, dp: Any) -> None:
        made = EventDP(dp, False)
        made.ports = self.get_ports(dp.id)
        del self.dps[dp.id], self.port_state[dp.id]
        self.send_event_to_observers(made)

    @set_ev_cls(ofp_event.EventOFPPortStatus, MAIN_DISPATCHER)
    def port_status_handler(self, ev: Any) -> None:
        """Updates a port."""
        msg = ev.msg
        dp, port = msg.datapath, msg.desc
        if not self._has(dp):
            return
        ports = self.port_state[dp.id]
        if msg.reason == dp.ofproto.OFPPR_DELETE:
            ports.pop(port.port_no, None)
            self.send_event_to_observers(EventPortDelete(dp, port))
            return
        ports[port.port_no] = port
        kind = EventPortAdd if msg.reason == dp.ofproto.OFPPR_ADD else EventPortModify
        self.send_event_to_observers(kind(dp, port))


handler.register_service("ryu.controller.dpset")
