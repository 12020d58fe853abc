"""OpenFlow control programs, and whole networks in the process to test them with.

A program is a callable that makes a handler for each switch, usually a class derived from App.
"""

import signal
import threading

from urtica._native import (
    ALL,
    CONTROLLER,
    FLOOD,
    IN_PORT,
    ErrorMessage,
    Flow,
    FlowRemoved,
    FlowReport,
    Network,
    PacketIn,
    PingAllReport,
    PingReport,
    Port,
    PortStatus,
    Running,
    Switch,
    SwitchInfo,
)
from urtica._net import Net

__all__ = [
    "ALL",
    "CONTROLLER",
    "FLOOD",
    "IN_PORT",
    "App",
    "ErrorMessage",
    "Flow",
    "FlowRemoved",
    "FlowReport",
    "Net",
    "Network",
    "PacketIn",
    "PingAllReport",
    "PingReport",
    "Port",
    "PortStatus",
    "Running",
    "Switch",
    "SwitchInfo",
    "run",
    "start",
]

# IANA's port for OpenFlow, and the one that old switches and Mininet still try.
DEFAULT_ADDRESSES = ("ptcp:6653", "ptcp:6633")

# Seconds between two looks at whether the controller still runs.
_CHECK_INTERVAL = 0.5


class App:
    """The handler of one switch, with its own state: override the methods that you need.

    The methods of one switch are called one after the other, in the order of its messages. An exception in one is logged with
    its traceback, and the switch is disconnected; it connects again to a new handler.
    """

    #: Seconds between calls of tick; None for never.
    tick_interval = None

    def __init__(self, info):
        """Called when the switch has sent its features; info is its SwitchInfo."""
        self.info = info

    def switch_up(self, switch):
        """The ports are known: install permanent entries here."""

    def switch_down(self, info):
        """The connection has closed."""

    def packet_in(self, switch, packet):
        """A packet matched no entry, or an entry sent it to the controller."""

    def port_status(self, switch, status):
        """A port was added, deleted or modified."""

    def flow_removed(self, switch, removed):
        """An entry was removed that was installed with a notification."""

    def error(self, switch, error):
        """The switch refused a message."""

    def tick(self, switch):
        """Called every tick_interval seconds."""


def start(app, *, listen=DEFAULT_ADDRESSES, shards=None, openflow=None):
    """Starts a controller with this program, and returns it; stop it, or use it in a with statement.

    listen: addresses in Open vSwitch's form, such as "ptcp:6653:127.0.0.1". shards: the number of threads that serve
    switches, by default one for each core. openflow: "1.0" or "1.3", by default both.
    """
    return Running(app, [listen] if isinstance(listen, str) else list(listen), shards, openflow)


def run(app, *, listen=DEFAULT_ADDRESSES, shards=None, openflow=None):
    """Runs a controller with this program until Ctrl-C or SIGTERM."""
    stopped = threading.Event()
    is_main = threading.current_thread() is threading.main_thread()
    previous = signal.signal(signal.SIGTERM, lambda *_: stopped.set()) if is_main else None
    try:
        with start(app, listen=listen, shards=shards, openflow=openflow) as running:
            while not stopped.wait(_CHECK_INTERVAL):
                running.check()
    except KeyboardInterrupt:
        pass
    finally:
        if is_main:
            signal.signal(signal.SIGTERM, previous)
