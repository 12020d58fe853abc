"""A controller that listens: switches are sockets and a few bytes."""

import os
import signal
import socket
import struct
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import urtica
from learning import Learning

EXAMPLES = Path(__file__).parents[1] / "examples"
HELLO, ECHO_REQUEST, ECHO_REPLY, FEATURES_REQUEST, FEATURES_REPLY = 0, 2, 3, 5, 6
PACKET_IN, PACKET_OUT, FLOW_MOD = 10, 13, 14
DEADLINE = 30


class FakeSwitch:
    """A switch of OpenFlow 1.0 without ports."""

    def __init__(self, address, dpid):
        host, port = address.split(":")[2], int(address.split(":")[1])
        self.socket = socket.create_connection((host, port), timeout=DEADLINE)
        self.send(HELLO, 1)
        assert self.receive()[0] == HELLO
        kind, xid, _ = self.receive()
        assert kind == FEATURES_REQUEST
        self.send(FEATURES_REPLY, xid, struct.pack("!QIB3xII", dpid, 0, 1, 0, 0))

    def send(self, kind, xid, body=b""):
        self.socket.sendall(struct.pack("!BBHI", 1, kind, 8 + len(body), xid) + body)

    def packet_in(self, data=bytes(60)):
        self.send(PACKET_IN, 0, struct.pack("!IHHBx", 0xFFFFFFFF, len(data), 1, 0) + data)

    def read(self, size):
        data = b""
        while len(data) < size:
            more = self.socket.recv(size - len(data))
            if not more:
                raise EOFError
            data += more
        return data

    def receive(self):
        _, kind, length, xid = struct.unpack("!BBHI", self.read(8))
        return kind, xid, self.read(length - 8)

    def receive_kind(self, wanted):
        while True:
            kind, xid, body = self.receive()
            if kind == wanted:
                return xid, body

    def assert_served(self):
        self.send(ECHO_REQUEST, 77, b"there?")
        assert self.receive_kind(ECHO_REPLY) == (77, b"there?")


def started(app, **options):
    return urtica.start(app, listen="ptcp:0:127.0.0.1", shards=1, **options)


def test_packets_are_answered_over_sockets():
    with started(Learning) as running:
        switch = FakeSwitch(running.addresses[0], 5)
        switch.packet_in()
        _, body = switch.receive_kind(PACKET_OUT)
        assert body.endswith(bytes(60))
        assert running.network.switches == [5]


def test_stopping_notifies_handlers_and_closes_connections():
    told = threading.Event()

    class App(urtica.App):
        def switch_down(self, info):
            told.set()

    running = started(App)
    switch = FakeSwitch(running.addresses[0], 5)
    switch.assert_served()
    running.stop()
    assert told.is_set()
    with pytest.raises(EOFError):
        switch.receive_kind(None)
    running.stop()


def test_an_exception_costs_its_switch_alone():
    class Faulty(urtica.App):
        def packet_in(self, switch, packet):
            raise ValueError("on purpose")

    with started(Faulty) as running:
        other = FakeSwitch(running.addresses[0], 6)
        switch = FakeSwitch(running.addresses[0], 5)
        switch.packet_in()
        with pytest.raises(EOFError):
            switch.receive_kind(None)
        other.assert_served()
        assert [str(error) for error in running.take_exceptions()] == ["on purpose"]


def test_threads_send_while_handlers_run():
    with started(Learning) as running:
        switch = FakeSwitch(running.addresses[0], 5)
        switch.assert_served()
        network = running.network

        def send():
            for port in range(50):
                network.install(5, f"in_port={port + 1}", "flood")

        threads = [threading.Thread(target=send) for _ in range(4)]
        for thread in threads:
            thread.start()
        for _ in range(200):
            switch.packet_in()
        for _ in range(200):
            switch.receive_kind(FLOW_MOD)
        for thread in threads:
            thread.join()


def test_a_switch_that_has_left_is_an_error():
    with started(Learning) as running:
        with pytest.raises(RuntimeError, match="no switch with datapath id 0000000000000009"):
            running.network.install(9, "ip", "flood")


def test_a_running_controller_that_is_dropped_stops():
    running = started(Learning)
    switch = FakeSwitch(running.addresses[0], 5)
    del running
    with pytest.raises(EOFError):
        switch.receive_kind(None)


def test_an_address_in_use_is_an_error():
    with started(Learning) as running:
        address = running.addresses[0]
        with pytest.raises(OSError, match="cannot listen"):
            urtica.start(Learning, listen=address)
    with pytest.raises(ValueError, match="nonsense"):
        urtica.start(Learning, listen="nonsense")


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_program_ends_by_a_signal(name, tmp_path):
    address = f"punix:{tmp_path}/controller"
    code = f"import learning, urtica; urtica.run(learning.Learning, listen={address!r})"
    environment = {**os.environ, "PYTHONPATH": str(EXAMPLES)}
    program = subprocess.Popen([sys.executable, "-c", code], env=environment)
    try:
        wait_for(lambda: (tmp_path / "controller").exists())
        program.send_signal(getattr(signal, name))
        assert program.wait(timeout=DEADLINE) == 0
    finally:
        program.kill()
        program.wait()


def wait_for(condition):
    done = threading.Event()
    for _ in range(DEADLINE * 50):
        if condition():
            return
        done.wait(0.02)
    raise AssertionError("it did not happen in time")
