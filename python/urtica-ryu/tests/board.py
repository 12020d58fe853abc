"""Fake switches of OpenFlow 1.3, for Ryu programs here and on os-ken: they forward nothing by their entries, carry probes and
bridges' messages over their links, and keep what changes them.

`Ours` runs a program in simulated time, `Theirs` on os-ken over sockets. Each call of theirs is a step; what a program sends in
a step is a list by switch. os-ken has no simulated time: there a step ends when as much has been sent as here, and a moment has
passed.
"""

import contextlib
import os
import selectors
import socket
import struct
import subprocess
import sys
import time
from collections import deque
from pathlib import Path

from urtica_ryu.simulated import Program

HERE = Path(__file__).parent
PYTHON = os.environ.get("URTICA_OS_KEN", sys.executable)

HELLO, ECHO_REQUEST, ECHO_REPLY, FEATURES_REQUEST, FEATURES_REPLY = 0, 2, 3, 5, 6
PACKET_IN, FLOW_REMOVED, PORT_STATUS, PACKET_OUT, FLOW_MOD, GROUP_MOD, PORT_MOD = 10, 11, 12, 13, 14, 15, 16
MULTIPART_REQUEST, MULTIPART_REPLY, BARRIER_REQUEST, BARRIER_REPLY, METER_MOD = 18, 19, 20, 21, 29
KINDS = {FLOW_MOD: "flow mod", GROUP_MOD: "group mod", PORT_MOD: "port mod", METER_MOD: "meter mod", PACKET_OUT: "packet-out"}

FLOW_STATS, PORT_STATS, PORT_DESC = 1, 4, 13
ADD, DELETE, DELETE_STRICT = 0, 3, 4
FLOOD = 0xFFFFFFFB
LINK_DOWN = 1
NO_PACKET_IN = 1 << 6
GIGABIT = 1 << 5
LLDP = b"\x88\xcc"
BRIDGES = bytes.fromhex("0180c2000000")

#: The real seconds that os-ken may take for a step, and those in which it may send more than it should.
DEADLINE_S = 60
GRACE_S = 0.15


def frame(kind, body=b"", xid=0):
    return struct.pack("!BBHI", 4, kind, 8 + len(body), xid) + body


def match_of(flow_mod):
    """The match of a flow mod, with its padding."""
    (length,) = struct.unpack_from("!H", flow_mod, 50)
    return flow_mod[48 : 48 + (length + 7) // 8 * 8]


class Board:
    """The switches, and the cables between their ports."""

    def __init__(self, ports, links=()):
        self.ports = ports
        self.links = {}
        for first, second in links:
            self.links[first], self.links[second] = second, first
        #: Frames to the controller.
        self.up = deque()
        #: What has changed a switch, or left it, since the last step.
        self.sent = {}
        #: Packets per poll, by switch and port.
        self.rates = {}
        self.counters = {}
        #: Entries: by table, priority and match.
        self.entries = {dpid: {} for dpid in ports}
        self.cookies = {}
        self.port_configs = {}
        #: The ends of links that probes have crossed.
        self.crossed = set()
        self.is_down = set()
        self.joined = set()

    def count(self):
        return sum(map(len, self.sent.values()))

    def take_sent(self):
        sent, self.sent = self.sent, {}
        return sent

    # From the controller

    def receive(self, dpid, data):
        """Handles a frame of the controller."""
        kind, xid, body = data[1], data[4:8], data[8:]
        reply = {FEATURES_REQUEST: FEATURES_REPLY, ECHO_REQUEST: ECHO_REPLY, BARRIER_REQUEST: BARRIER_REPLY}.get(kind)
        if kind == FEATURES_REQUEST:
            self.joined.add(dpid)
            body = struct.pack("!QIBB2xI4x", dpid, 0, 254, 0, 0x4F)
        if kind == MULTIPART_REQUEST:
            reply, body = MULTIPART_REPLY, self.multipart(dpid, body)
        if reply is not None and body is not None:
            self.up.append((dpid, frame(reply, body, *struct.unpack("!I", xid))))
        if kind == PACKET_OUT:
            self.packet_out(dpid, data)
        elif kind in KINDS:
            self.change(dpid, kind, data)

    def change(self, dpid, kind, data):
        if kind == FLOW_MOD:
            command, priority, match = data[25], *struct.unpack_from("!H", data, 30), match_of(data)
            key = (data[24], priority, match)
            if command == ADD:
                self.entries[dpid][key] = data
            elif command == DELETE_STRICT:
                self.entries[dpid].pop(key, None)
            if priority >= 0xFFFE:
                # Of the framework: for probes, and for bridges' messages.
                return
        if kind == PORT_MOD:
            number, config = struct.unpack_from("!I12xI", data, 8)
            self.port_configs[dpid, number] = config
            return
        self.record(dpid, kind, data)

    def record(self, dpid, kind, data):
        self.sent.setdefault(dpid, []).append(f"{KINDS[kind]} {data[8:].hex()}")

    def packet_out(self, dpid, data):
        in_port, length = struct.unpack_from("!IH", data, 12)
        actions, payload = data[24 : 24 + length], data[24 + length :]
        is_probe = payload[12:14] == LLDP or payload[:6] == BRIDGES
        if not is_probe:
            self.record(dpid, PACKET_OUT, data)
        while actions:
            kind, size, port = struct.unpack_from("!HHI", actions)
            if kind == 0:
                for number in self.outputs(dpid, in_port, port):
                    self.carry((dpid, number), payload, is_probe)
            actions = actions[size:]

    def outputs(self, dpid, in_port, port):
        return [number for number in range(1, self.ports[dpid] + 1) if number == port or (port == FLOOD and number != in_port)]

    def carry(self, end, payload, is_probe):
        """What a program floods is not carried on: there would be no end of it in a ring."""
        other = self.links.get(end)
        if is_probe and other is not None and other[0] in self.joined and not {end, other} & self.is_down:
            self.crossed.add(end)
            self.packet_in(*other, payload)

    def multipart(self, dpid, body):
        (kind,) = struct.unpack_from("!H", body)
        head = struct.pack("!HH4x", kind, 0)
        if kind == PORT_DESC:
            return head + b"".join(self.port(dpid, number) for number in range(1, self.ports[dpid] + 1))
        if kind == PORT_STATS:
            return head + b"".join(self.port_stats(dpid, number) for number in range(1, self.ports[dpid] + 1))
        if kind == FLOW_STATS:
            return head + b"".join(map(self.flow_stats, self.entries[dpid].values()))
        return head

    def port(self, dpid, number):
        hw_addr = bytes([2, 0, 0, dpid, 0, number])
        state = LINK_DOWN if (dpid, number) in self.is_down else 0
        name = b"s%d-eth%d" % (dpid, number)
        config = self.port_configs.get((dpid, number), 0)
        return struct.pack("!I4x6s2x16s8I", number, hw_addr, name, config, state, GIGABIT, 0, 0, 0, 1_000_000, 0)

    def port_stats(self, dpid, number):
        packets = self.counters[dpid, number] = self.counters.get((dpid, number), 0) + self.rates.get((dpid, number), 0)
        return struct.pack("!I4x12Q2I", number, packets, 0, packets * 100, *[0] * 11)

    @staticmethod
    def flow_stats(flow_mod):
        match = match_of(flow_mod)
        (priority,) = struct.unpack_from("!H", flow_mod, 30)
        head = struct.pack("!HBxIIHHHH4xQQQ", 48 + len(match), flow_mod[24], 1, 0, priority, 0, 0, 0, 0, 0, 0)
        return head + match

    # To the controller

    def packet_in(self, dpid, in_port, data):
        if self.port_configs.get((dpid, in_port), 0) & NO_PACKET_IN and data[:6] != BRIDGES:
            return
        head = struct.pack("!IHBBQHHII4x2x", 0xFFFFFFFF, len(data), 0, 0, 0, 1, 12, 0x80000004, in_port)
        self.up.append((dpid, frame(PACKET_IN, head + data)))

    def remove_entries(self, dpid, wanted):
        """Removes the entries with a priority, as if their time were over."""
        for (table, priority, match), flow_mod in list(self.entries[dpid].items()):
            if priority == wanted:
                del self.entries[dpid][table, priority, match]
                body = struct.pack("!8sHBBIIHHQQ", flow_mod[8:16], priority, 1, table, 30, 0, 0, 30, 0, 0) + match
                self.up.append((dpid, frame(FLOW_REMOVED, body)))

    def cut(self, end):
        for dpid, number in (end, self.links[end]):
            self.is_down.add((dpid, number))
            self.up.append((dpid, frame(PORT_STATUS, struct.pack("!B7x", 2) + self.port(dpid, number))))

    def blocked(self):
        """The ports that do not forward."""
        return {end for end, config in self.port_configs.items() if config and end not in self.is_down}


class Steps:
    """What a scenario does."""

    def __init__(self, board):
        self.board = board
        self.steps = []

    def step(self, seconds=0, until=None):
        """Ends a step; `until` is a condition of the board."""
        self.settle(seconds, until)
        self.steps.append(self.board.take_sent())

    def join(self, *dpids):
        for dpid in dpids or sorted(self.board.ports):
            self.connect(dpid)
            self.step()

    def packet(self, dpid, in_port, data):
        self.board.packet_in(dpid, in_port, data)
        self.step()

    def run(self, seconds, until=None):
        self.step(seconds, until)

    def remove_entries(self, dpid, priority):
        self.board.remove_entries(dpid, priority)
        self.step()


class Ours(Steps):
    """A program here, on simulated time."""

    def __init__(self, board, app, options):
        super().__init__(board)
        self.now_ns = 0
        self.next_ns = None
        self.handlers = {}
        self.down = deque()
        self.program = Program([str(app)], options=options)
        self.program.attach(self)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.program.end()

    # What the program calls.

    def send(self, dpid, data):
        self.down.append((dpid, data))
        return True

    def wake(self):
        pass

    def connect(self, dpid):
        self.handlers[dpid] = self.program.connected(dpid, 4, "127.0.0.1:1")
        self.board.up.append((dpid, frame(HELLO)))
        self.board.receive(dpid, frame(FEATURES_REQUEST))

    def settle(self, seconds, until):
        end_ns = self.now_ns + round(seconds * 1e9)
        while True:
            self.pump()
            if self.now_ns >= end_ns:
                break
            self.now_ns = min(end_ns, max(self.now_ns, self.next_ns or end_ns))
        assert until is None or until(self.board), self.board.blocked()
        assert self.program.raised == []

    def pump(self):
        while True:
            self.next_ns = self.program.advance(self.now_ns)
            while self.down:
                self.board.receive(*self.down.popleft())
            if not self.board.up:
                return
            while self.board.up:
                dpid, data = self.board.up.popleft()
                assert self.handlers[dpid].frames([data])


class Theirs(Steps):
    """A program on os-ken, in a process of its own."""

    def __init__(self, board, app, options, expected, folder):
        super().__init__(board)
        self.expected = [sum(map(len, step.values())) for step in expected]
        self.sockets = {}
        self.buffers = {}
        self.selector = selectors.DefaultSelector()
        self.log = folder / "os_ken.log"
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        arguments = [f"--{name}" for name, value in options.items() if value is True]
        command = [PYTHON, "-I", str(HERE / "os_ken_manager.py"), str(app), str(self.port), *arguments]
        with self.log.open("w") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        for connected in self.sockets.values():
            connected.close()
        self.selector.close()

    def connect(self, dpid):
        deadline = time.monotonic() + DEADLINE_S
        while True:
            assert self.process.poll() is None and time.monotonic() < deadline, self.log.read_text()
            with contextlib.suppress(ConnectionRefusedError):
                connected = socket.create_connection(("127.0.0.1", self.port), timeout=DEADLINE_S)
                break
            time.sleep(0.05)
        self.sockets[dpid], self.buffers[dpid] = connected, b""
        self.selector.register(connected, selectors.EVENT_READ, dpid)
        self.board.up.append((dpid, frame(HELLO)))

    def settle(self, seconds, until):
        wanted = self.expected[len(self.steps)]
        # With nothing to wait for, the time itself.
        least = time.monotonic() + (0 if wanted or until else seconds)
        deadline = time.monotonic() + DEADLINE_S
        while self.board.count() < wanted or time.monotonic() < least or not (until is None or until(self.board)):
            if time.monotonic() > deadline:
                # The comparison shows what is missing.
                return
            self.pump(0.02)
        end = time.monotonic() + GRACE_S
        while (left := end - time.monotonic()) > 0:
            self.pump(left)

    def pump(self, seconds):
        self.flush()
        for key, _ in self.selector.select(seconds):
            dpid = key.data
            data = self.sockets[dpid].recv(65536)
            assert data, self.log.read_text()
            self.buffers[dpid] += data
            while len(buffer := self.buffers[dpid]) >= 8 and len(buffer) >= (length := struct.unpack_from("!H", buffer, 2)[0]):
                self.buffers[dpid] = buffer[length:]
                self.board.receive(dpid, buffer[:length])
        self.flush()

    def flush(self):
        while self.board.up:
            dpid, data = self.board.up.popleft()
            self.sockets[dpid].sendall(data)
