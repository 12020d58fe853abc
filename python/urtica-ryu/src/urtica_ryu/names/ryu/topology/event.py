"""The events of a network: switches, ports, links and hosts; and the requests of `ryu.topology.api`."""

from __future__ import annotations

from typing import Any

from ryu.controller import event, handler

#: The name of the application that sends these events, and answers these requests.
NAME = "switches"


class EventSwitchBase(event.EventBase):
    """An event of a switch."""

    def __init__(self, switch: Any):
        super().__init__()
        self.switch = switch

    def __str__(self) -> str:
        ports = len(self.switch.ports)
        return f"{type(self).__name__}<dpid={self.switch.dp.id}, {ports} ports>"


class EventSwitchEnter(EventSwitchBase):
    """A switch joined."""


class EventSwitchLeave(EventSwitchBase):
    """A switch left."""


class EventSwitchReconnected(EventSwitchBase):
    """A switch connected again before its old connection closed."""


class EventPortBase(event.EventBase):
    """An event of a port."""

    def __init__(self, port: Any):
        super().__init__()
        self.port = port

    def __str__(self) -> str:
        return f"{type(self).__name__}<{self.port}>"


class EventPortAdd(EventPortBase):
    """A port was added."""


class EventPortDelete(EventPortBase):
    """A port was deleted."""


class EventPortModify(EventPortBase):
    """A port was changed."""


class EventLinkBase(event.EventBase):
    """An event of a link, in one direction."""

    def __init__(self, link: Any):
        super().__init__()
        self.link = link

    def __str__(self) -> str:
        return f"{type(self).__name__}<{self.link}>"


class EventLinkAdd(EventLinkBase):
    """A link was found."""


class EventLinkDelete(EventLinkBase):
    """A link is gone."""


class EventHostBase(event.EventBase):
    """An event of a host."""

    def __init__(self, host: Any):
        super().__init__()
        self.host = host

    def __str__(self) -> str:
        return f"{type(self).__name__}<{self.host}>"


class EventHostAdd(EventHostBase):
    """A host was found."""


class EventHostDelete(EventHostBase):
    """A host is gone: its port turned out to lead to a switch, or is down."""


class EventHostMove(event.EventBase):
    """A host was seen at another port."""

    def __init__(self, src: Any, dst: Any):
        super().__init__()
        self.src = src
        self.dst = dst

    def __str__(self) -> str:
        return f"{type(self).__name__}<src={self.src}, dst={self.dst}>"


class _Request(event.EventRequestBase):
    """A request for one switch's objects, or for all."""

    def __init__(self, dpid: int | None = None):
        super().__init__()
        self.dst = NAME
        self.dpid = dpid

    def __str__(self) -> str:
        return f"{type(self).__name__}<src={self.src}, dpid={self.dpid}>"


class EventSwitchRequest(_Request):
    """A request for switches."""


class EventSwitchReply(event.EventReplyBase):
    """The switches."""

    def __init__(self, dst: Any, switches: list[Any]):
        super().__init__(dst)
        self.switches = switches


class EventLinkRequest(_Request):
    """A request for links: those that leave a switch."""


class EventLinkReply(event.EventReplyBase):
    """The links."""

    def __init__(self, dst: Any, dpid: int | None, links: list[Any]):
        super().__init__(dst)
        self.dpid = dpid
        self.links = links


class EventHostRequest(_Request):
    """A request for hosts: those at a switch."""


class EventHostReply(event.EventReplyBase):
    """The hosts."""

    def __init__(self, dst: Any, dpid: int | None, hosts: list[Any]):
        super().__init__(dst)
        self.dpid = dpid
        self.hosts = hosts


handler.register_service("ryu.topology.switches")
