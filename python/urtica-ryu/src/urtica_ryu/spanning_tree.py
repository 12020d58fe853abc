"""A bridge of the spanning tree (IEEE 802.1D-1998, clause 8), without switches and without a clock of its own.

The caller tells of messages, of ports and of the time, and gets what is to be sent and what has changed. All times are in
seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

# The states of a port. Their numbers are those of Ryu.
DISABLE, BLOCK, LISTEN, LEARN, FORWARD = range(5)

#: How a bridge sees a port: towards the root, for the bridges behind it, or in neither way.
ROOT_PORT, DESIGNATED_PORT, NON_DESIGNATED_PORT = range(3)

_NEXT = {LISTEN: LEARN, LEARN: FORWARD}

#: What is added to a message's age at each bridge.
_AGE_STEP = 1


class Vector(NamedTuple):
    """A way to the root: of two, the lesser one is better."""

    root: int
    cost: int
    bridge: int
    port: int


@dataclass(frozen=True)
class Times:
    """The times that the root sets for all bridges."""

    max_age: float = 20
    hello_time: float = 2
    forward_delay: float = 15


@dataclass(frozen=True)
class Config:
    """A configuration message."""

    vector: Vector
    message_age: float
    times: Times
    is_change: bool = False
    is_acknowledged: bool = False


@dataclass
class Port:
    """A port of a bridge."""

    number: int
    #: The priority and the number, by which ports of one bridge are compared.
    identifier: int
    path_cost: int
    state: int = DISABLE
    role: int = NON_DESIGNATED_PORT
    #: The best message that was received, and when it expires.
    received: Config | None = None
    expires_at: float = 0
    #: When its state changes.
    moves_at: float | None = None
    #: Whether the next message acknowledges a notification.
    acknowledges: bool = False


@dataclass
class Bridge:
    """A bridge. `send` sends a message, or a notification (None), from a port; `changed` is told of a port's new state."""

    identifier: int
    own_times: Times
    send: Callable[[Port, Config | None], None]
    changed: Callable[[Port], None]
    #: Called when addresses that were learnt are no longer right.
    flush: Callable[[], None]
    ports: dict[int, Port] = field(default_factory=dict)
    root_port: Port | None = None
    _hello_at: float = 0
    # Until when the root tells of a change, and whether a notification is to be repeated.
    _change_until: float = 0
    _notifies: bool = False
    _was_change: bool = False

    @property
    def is_root(self) -> bool:
        """Whether it is the root."""
        return self.root_port is None

    @property
    def _received(self) -> Config | None:
        return self.root_port.received if self.root_port else None

    @property
    def root(self) -> int:
        """The root's identifier."""
        received = self._received
        return received.vector.root if received else self.identifier

    @property
    def root_path_cost(self) -> int:
        """The cost of the way to the root."""
        received = self._received
        return received.vector.cost + self.root_port.path_cost if received and self.root_port else 0

    @property
    def times(self) -> Times:
        """The times in force."""
        received = self._received
        return received.times if received else self.own_times

    # Ports

    def add_port(self, port: Port, now: float) -> None:
        """Adds a port, which has a link."""
        self.remove_port(port.number, now)
        self.ports[port.number] = port
        self._set(port, BLOCK)
        self._elect(now)
        self._send_configs([port], now)

    def remove_port(self, number: int, now: float) -> None:
        """Removes a port, which has no link."""
        port = self.ports.pop(number, None)
        if port is None:
            return
        was_active = port.state in (LEARN, FORWARD)
        self._set(port, DISABLE)
        if port is self.root_port:
            self.root_port = None
        self._elect(now)
        if was_active:
            self._note_change(now)

    def _set(self, port: Port, state: int) -> None:
        port.moves_at = None
        if port.state != state:
            port.state = state
            self.changed(port)

    # Messages

    def receive(self, number: int, config: Config, now: float) -> None:
        """Handles a configuration message."""
        port = self.ports.get(number)
        if port is None or config.message_age >= config.times.max_age:
            return
        if self._is_better(config, port):
            port.received = config
            port.expires_at = now + config.times.max_age - config.message_age
            self._elect(now)
            if port is self.root_port:
                self._follow_root(config, now)
        elif port.role == DESIGNATED_PORT:
            # The sender knows less.
            self._send_configs([port], now)

    @staticmethod
    def _is_better(config: Config, port: Port) -> bool:
        known = port.received
        if known is None or config.vector <= known.vector:
            return True
        # The same sender has changed its mind.
        return (config.vector.bridge, config.vector.port) == (known.vector.bridge, known.vector.port)

    def _follow_root(self, config: Config, now: float) -> None:
        """Passes on what the root port has received."""
        if config.is_acknowledged:
            self._notifies = False
        if config.is_change and not self._was_change:
            self.flush()
        self._was_change = config.is_change
        self._send_configs(self._designated(), now)

    def receive_notification(self, number: int, now: float) -> None:
        """Handles a notification of a change."""
        port = self.ports.get(number)
        if port is None or port.role != DESIGNATED_PORT:
            return
        port.acknowledges = True
        self._note_change(now)
        self._send_configs([port], now)

    def _note_change(self, now: float) -> None:
        """The tree has changed: the root tells all, others tell the root."""
        self.flush()
        if self.is_root:
            self._change_until = now + self.times.max_age + self.times.forward_delay
            return
        # Once; then with the hellos: bridges that take each other for the root's side must not answer each other.
        if not self._notifies:
            self._notifies = True
            self._notify()

    def _notify(self) -> None:
        if self.root_port is not None:
            self.send(self.root_port, None)

    def _designated(self) -> list[Port]:
        return [port for port in self.ports.values() if port.role == DESIGNATED_PORT]

    def _send_configs(self, ports: list[Port], now: float) -> None:
        received = self._received
        age = 0.0
        if received and self.root_port:
            # The time that has passed since it was received, too.
            age = received.times.max_age - (self.root_port.expires_at - now) + _AGE_STEP
        if age >= self.times.max_age:
            return
        for port in ports:
            if port.role != DESIGNATED_PORT:
                continue
            is_change = self._change_until > now if self.is_root else bool(received and received.is_change)
            self.send(port, Config(self._vector(port), age, self.times, is_change, port.acknowledges))
            port.acknowledges = False

    def _vector(self, port: Port) -> Vector:
        return Vector(self.root, self.root_path_cost, self.identifier, port.identifier)

    # Election

    def _elect(self, now: float) -> None:
        """Finds the root, the root port, and the roles of all ports."""
        was_root = self.is_root
        self.root_port = self._best_port()
        if self.is_root and not was_root:
            self._notifies = False
            self._hello_at = now
        for port in self.ports.values():
            self._set_role(port, self._role(port), now)

    def _best_port(self) -> Port | None:
        best, found = Vector(self.identifier, 0, self.identifier, 0), None
        own = 0
        for port in self.ports.values():
            if port.received is None or port.received.vector.root >= self.identifier:
                continue
            root, cost, bridge, sender = port.received.vector
            # Its own message, from another of its ports, leads nowhere.
            if bridge == self.identifier:
                continue
            way = Vector(root, cost + port.path_cost, bridge, sender)
            if (way, port.identifier) < (best, own) or found is None:
                best, own, found = way, port.identifier, port
        return found

    def _role(self, port: Port) -> int:
        if port is self.root_port:
            return ROOT_PORT
        if port.received is None or self._vector(port) < port.received.vector:
            return DESIGNATED_PORT
        return NON_DESIGNATED_PORT

    def _set_role(self, port: Port, role: int, now: float) -> None:
        port.role = role
        if role == NON_DESIGNATED_PORT:
            was_active = port.state in (LEARN, FORWARD)
            self._set(port, BLOCK)
            if was_active:
                self._note_change(now)
        elif port.state == BLOCK:
            self._set(port, LISTEN)
            port.moves_at = now + self.times.forward_delay

    # Time

    def tick(self, now: float) -> None:
        """Handles the passing of time; to be called each second or so."""
        expired = [port for port in self.ports.values() if port.received and port.expires_at <= now]
        for port in expired:
            port.received = None
        if expired:
            self._elect(now)
        for port in list(self.ports.values()):
            if port.moves_at is not None and port.moves_at <= now:
                self._move(port, now)
        if self._hello_at <= now:
            self._hello_at = now + self.times.hello_time
            if self.is_root:
                self._send_configs(self._designated(), now)
            elif self._notifies:
                self._notify()

    def _move(self, port: Port, now: float) -> None:
        self._set(port, _NEXT[port.state])
        if port.state in _NEXT:
            port.moves_at = now + self.times.forward_delay
        elif self._designated():
            # What was learnt on another way leads here now.
            self._note_change(now)
