"""Switches: frames from the native controller become events, and messages become frames.

The controller's thread is no task: it appends frames to a connection's inbox, and wakes the connection's task. It never waits for
the program, so that a program that blocks costs no switch its connection.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import Any

from ryu import cfg
from ryu.base import app_manager
from ryu.controller.controller import Datapath
from ryu.controller.handler import DEAD_DISPATCHER
from ryu.ofproto import ofproto_protocol

from urtica_ryu import hub
from urtica_ryu.baton import WaitList
from urtica_ryu.loading import LoadError

LOG = logging.getLogger("ryu.controller.controller")

#: The number of frames that wait for a connection's task. Then packet-ins are dropped; other frames never are.
MAX_FRAMES = 8192

_PACKET_IN = 10
_DEFAULT_PORTS = (6653, 6633)
#: The versions' names, by their numbers.
VERSIONS = {1: "1.0", 4: "1.3"}
#: Seconds between two looks at whether the controller still runs.
_CHECK_INTERVAL = 0.5

_CLI = [
    cfg.StrOpt("ofp-listen-host", default="", help="the address to listen at, by default all"),
    cfg.IntOpt("ofp-tcp-listen-port", default=None, help="the port to listen at, by default 6653 and 6633"),
]
cfg.CONF.register_cli_opts(_CLI)


class Connection:
    """A switch's connection: called by the controller's thread."""

    def __init__(self, wire: Any, dpid: int, version: int, peer: str):
        self._wire = wire
        self._version = version
        self._peer = peer
        self._baton = hub.baton()
        self._frames: deque[bytes] = deque()
        self._waits = WaitList()
        self._has_ended = False
        self._is_closed = False
        self._dropped = 0
        self._baton.spawn(self._serve, name=f"switch {dpid:016x}")

    def frames(self, frames: list[bytes]) -> bool:
        """Takes frames; returns False to close the connection."""
        for frame in frames:
            if len(self._frames) >= MAX_FRAMES and frame[1] == _PACKET_IN:
                self._dropped += 1
                continue
            self._frames.append(frame)
        self._baton.wake(self._waits)
        return not self._is_closed

    def switch_down(self) -> None:
        """The connection has closed."""
        self._has_ended = True
        self._baton.wake(self._waits)

    def _serve(self) -> None:
        """The connection's task."""
        app_manager.wait_for_space()
        datapath = Datapath(self._wire, self._peer, self._version)
        try:
            while datapath.state != DEAD_DISPATCHER and (frame := self._next()) is not None:
                datapath.receive(frame)
        finally:
            self._is_closed = True
            datapath.close()

    def _next(self) -> bytes | None:
        """Returns the next frame; None if the connection has closed."""
        while not self._frames:
            if self._has_ended:
                return None
            self._baton.wait(self._waits, unless=lambda: bool(self._frames) or self._has_ended)
        if self._dropped:
            LOG.warning("the switch at %s sends more than the program handles: %d packet-ins dropped", self._peer, self._dropped)
            self._dropped = 0
        return self._frames.popleft()


class Link:
    """The native controller."""

    def __init__(self) -> None:
        self._running: Any = None

    def start(self) -> hub.HubThread:
        """Listens; returns the task that looks after the controller."""
        from urtica._native import RawRunning

        versions = sorted(ofproto_protocol.ProtocolDesc().supported_ofp_version)
        try:
            self._running = RawRunning(self._connected, _addresses(), [VERSIONS[version] for version in versions])
        except (OSError, ValueError) as error:
            raise LoadError(str(error)) from error
        LOG.info("listening at %s", ", ".join(self._running.addresses))
        return hub.spawn(self._watch)

    def _connected(self, dpid: int, version: int, peer: str) -> Connection:
        return Connection(self, dpid, version, peer)

    def send(self, dpid: int, frame: bytes) -> bool:
        """Sends a frame; returns whether it was queued."""
        return bool(self._running is not None and self._running.send(dpid, frame))

    def _watch(self) -> None:
        while True:
            self._running.check()
            hub.sleep(_CHECK_INTERVAL)

    def stop(self) -> None:
        """Disconnects all switches."""
        running, self._running = self._running, None
        if running is not None:
            with hub.baton().outside():
                running.stop()


_make: Callable[[], Any] = Link


def make() -> Any:
    """Returns a Link, or what is used instead."""
    return _make()


def use(make: Callable[[], Any]) -> Callable[[], Any]:
    """Sets what `make` calls, and returns what it has called before."""
    global _make
    before, _make = _make, make
    return before


def _addresses() -> list[str]:
    port, host = cfg.CONF.ofp_tcp_listen_port, cfg.CONF.ofp_listen_host
    ports = _DEFAULT_PORTS if port is None else (port,)
    host = f"[{host}]" if ":" in host and not host.startswith("[") else host
    return [f"ptcp:{number}:{host}" if host else f"ptcp:{number}" for number in ports]
