"""Applications on simulated time, under switches that are frames."""

import struct

from ryu.base.app_manager import AppManager, RyuApp

from urtica_ryu import hub
from urtica_ryu.link import Connection

HELLO, ERROR, FEATURES_REPLY, PACKET_IN, PORT_STATUS, MULTIPART_REPLY = 0, 1, 6, 10, 12, 19


class Events(RyuApp):
    """Stands for the application that listens."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.name = "ofp_event"


class Wire:
    """Keeps what is sent."""

    def __init__(self):
        self.sent = []
        self.is_full = False

    def send(self, dpid, data):
        if self.is_full:
            raise BlockingIOError
        self.sent.append((dpid, data))
        return True


class Switch:
    """A switch, of OpenFlow 1.3 or 1.0."""

    def __init__(self, wire, dpid=5, version=4):
        self.version, self.dpid = version, dpid
        self.connection = Connection(wire, dpid, version, "127.0.0.1:1")

    def frame(self, kind, body=b"", xid=0):
        return struct.pack("!BBHI", self.version, kind, 8 + len(body), xid) + body

    def send(self, kind, body=b""):
        return self.connection.frames([self.frame(kind, body)])

    def join(self, *ports):
        self.send(HELLO)
        if self.version == 1:
            features = struct.pack("!QIB3xII", self.dpid, 0, 1, 0, 0)
            self.send(FEATURES_REPLY, features + b"".join(map(port_of_1_0, ports)))
            return
        self.send(FEATURES_REPLY, struct.pack("!QIBB2xI4x", self.dpid, 0, 1, 0, 0))
        self.send(MULTIPART_REPLY, struct.pack("!HH4x", 13, 0) + b"".join(map(port, ports)))

    def packet_in(self, number=0):
        return self.send(PACKET_IN, struct.pack("!IHBBQHH4x2x", 0xFFFFFFFF, 60, 0, 0, number, 1, 4) + bytes(60))


def port(number):
    return struct.pack("!I4x6s2x16s32x", number, bytes([2, 0, 0, 0, 0, number]), b"eth%d" % number)


def port_of_1_0(number):
    return struct.pack("!H6s16s24x", number, bytes([2, 0, 0, 0, 0, number]), b"eth%d" % number)


class Manager:
    """Applications of classes, which run."""

    def __init__(self, baton):
        self.baton = baton
        self.wire = Wire()
        self.manager = AppManager.get_instance()

    def start(self, *classes):
        def main():
            made = [self.manager.instantiate(cls) for cls in (Events, *classes)]
            for app in made:
                app.start()
            apps.extend(made[1:])

        apps = []
        hub.spawn(main)
        self.settle()
        assert len(apps) == len(classes)
        return apps

    def settle(self):
        self.baton.advance(0)

    def switch(self, **options):
        return Switch(self.wire, **options)
