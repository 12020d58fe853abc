"""`python -m urtica_ryu`, in a process of its own, with switches that are sockets and a few bytes."""

import contextlib
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
from pathlib import Path

import pytest

DEADLINE = 60
HELLO, ECHO_REQUEST, ECHO_REPLY, FEATURES_REQUEST, FEATURES_REPLY = 0, 2, 3, 5, 6
PACKET_IN, PACKET_OUT, FLOW_MOD, MULTIPART_REQUEST, MULTIPART_REPLY = 10, 13, 14, 18, 19

LEARNING = Path(__file__).parent / "learning_13.py"
LEARNING_10 = Path(__file__).parent / "learning_10.py"


class Program:
    """A running ryu-manager."""

    def __init__(self, *arguments):
        command = [sys.executable, "-m", "urtica_ryu", *map(str, arguments)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.lines = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def wait_for(self, pattern):
        """Reads lines up to one that has a pattern."""
        timer = threading.Timer(DEADLINE, self.process.kill)
        timer.start()
        try:
            for line in self.process.stdout:
                self.lines.append(line)
                if match := re.search(pattern, line):
                    return match
        finally:
            timer.cancel()
        raise AssertionError(f"no line has {pattern}: {''.join(self.lines)}")

    def port(self):
        return int(self.wait_for(r"listening at ptcp:(\d+)")[1])

    def end(self):
        """Waits for the end; returns status and all lines."""
        rest, _ = self.process.communicate(timeout=DEADLINE)
        return self.process.returncode, "".join(self.lines) + rest


class Switch:
    """A switch that has joined."""

    def __init__(self, port, version=4, dpid=5):
        self.version = version
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=DEADLINE)
        self.send(HELLO)
        xid, _ = self.receive(FEATURES_REQUEST)
        self.send(FEATURES_REPLY, struct.pack("!QIB3xII", dpid, 0, 1, 0, 0), xid)
        if version == 4:
            xid, body = self.receive(MULTIPART_REQUEST)
            assert body == struct.pack("!HH4x", 13, 0)
            self.send(MULTIPART_REPLY, struct.pack("!HH4x", 13, 0), xid)

    def send(self, kind, body=b"", xid=1):
        self.socket.sendall(struct.pack("!BBHI", self.version, kind, 8 + len(body), xid) + body)

    def read(self, size):
        data = b""
        while len(data) < size:
            more = self.socket.recv(size - len(data))
            if not more:
                raise EOFError
            data += more
        return data

    def receive(self, wanted):
        while True:
            _, kind, length, xid = struct.unpack("!BBHI", self.read(8))
            body = self.read(length - 8)
            if kind == wanted:
                return xid, body

    def packet_in(self, source, destination, in_port):
        data = bytes([2, 0, 0, 0, 0, destination, 2, 0, 0, 0, 0, source]) + b"\x90\0" + b"x" * 50
        if self.version == 4:
            head = struct.pack("!IHBBQHHII4x2x", 0xFFFFFFFF, len(data), 0, 0, 0, 1, 12, 0x80000004, in_port)
        else:
            head = struct.pack("!IHHBx", 0xFFFFFFFF, len(data), in_port, 0)
        self.send(PACKET_IN, head + data)

    def assert_served(self):
        self.send(ECHO_REQUEST, b"there?", 77)
        assert self.receive(ECHO_REPLY) == (77, b"there?")


def write(folder, text, name="my_app.py"):
    (folder / name).write_text(text)
    return folder / name


HANDLER = """
from ryu.base import app_manager
from ryu.controller import ofp_event
from ryu.controller.handler import MAIN_DISPATCHER, set_ev_cls
"""


def test_a_learning_switch_of_1_3_learns():
    with Program("--ofp-tcp-listen-port=0", "--ofp-listen-host", "127.0.0.1", LEARNING) as program:
        switch = Switch(program.port())
        _, table_miss = switch.receive(FLOW_MOD)
        assert table_miss[22:24] == b"\0\0"
        switch.packet_in(1, 2, 3)
        _, out = switch.receive(PACKET_OUT)
        assert out[4:8] == struct.pack("!I", 3) and struct.pack("!I", 0xFFFFFFFB) in out
        switch.packet_in(2, 1, 4)
        _, entry = switch.receive(FLOW_MOD)
        assert bytes([2, 0, 0, 0, 0, 1]) in entry and struct.pack("!HHI", 0, 16, 3) in entry
        switch.assert_served()


def test_a_learning_switch_of_1_0_learns_by_os_kens_names():
    with Program("--ofp-tcp-listen-port", "0", LEARNING_10) as program:
        switch = Switch(program.port(), version=1)
        switch.packet_in(1, 2, 3)
        _, out = switch.receive(PACKET_OUT)
        assert struct.pack("!HHH", 0, 8, 0xFFFB) in out
        switch.packet_in(2, 1, 4)
        _, entry = switch.receive(FLOW_MOD)
        assert entry.endswith(struct.pack("!HHHH", 0, 8, 3, 0xFFE5))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_program_and_disconnects_switches(number):
    with Program("--ofp-tcp-listen-port", "0", LEARNING) as program:
        switch = Switch(program.port())
        switch.receive(FLOW_MOD)
        program.process.send_signal(number)
        status, text = program.end()
        assert status == 0, text
        with pytest.raises(EOFError):
            switch.receive(None)


def test_a_program_that_blocks_costs_no_switch_its_connection(tmp_path):
    app = write(tmp_path, HANDLER + """
class App(app_manager.RyuApp):
    @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
    def packet_in(self, ev):
        print("blocking", flush=True)
        while True:
            pass
""")
    with Program("--ofp-tcp-listen-port", "0", app) as program:
        switch = Switch(program.port())
        switch.packet_in(1, 2, 3)
        program.wait_for("blocking")
        switch.assert_served()
        # A signal cannot reach the program, a second one ends it. Two that are not handled yet count as one.
        while program.process.poll() is None:
            program.process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                program.process.wait(0.2)
        assert program.end()[0] == 1


def test_threads_of_a_program_send(tmp_path):
    app = write(tmp_path, HANDLER + """
import threading, time

class App(app_manager.RyuApp):
    @set_ev_cls(ofp_event.EventOFPStateChange, MAIN_DISPATCHER)
    def state_change(self, ev):
        threading.Thread(target=self.loop, args=(ev.datapath,), daemon=True).start()

    def loop(self, datapath):
        for _ in range(3):
            time.sleep(0.01)
            request = datapath.ofproto_parser.OFPDescStatsRequest(datapath, 0)
            datapath.send_msg(request)
""")
    with Program("--ofp-tcp-listen-port", "0", app) as program:
        switch = Switch(program.port())
        for _ in range(3):
            assert switch.receive(MULTIPART_REQUEST)[1] == bytes(8)


def test_files_import_their_neighbours_and_options_reach_programs(tmp_path):
    write(tmp_path, "NAME = 'neighbour'", "neighbour.py")
    app = write(tmp_path, """
import neighbour
from ryu import cfg
from ryu.base import app_manager

cfg.CONF.register_cli_opts([cfg.IntOpt("my-number", default=1), cfg.BoolOpt("my-flag", default=False)])

class App(app_manager.RyuApp):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        print("neighbour", neighbour.NAME, self.CONF.my_number, cfg.CONF["my_flag"], __name__, flush=True)
""")
    with Program("--my-number", "7", app) as program:
        assert program.wait_for("neighbour .*")[0] == "neighbour neighbour 7 False my_app"


def test_a_monitor_derived_from_the_learning_switch_reads_statistics(tmp_path):
    app = write(tmp_path, """
from operator import attrgetter
from ryu.app import simple_switch_13
from ryu.controller import ofp_event
from ryu.controller.handler import DEAD_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from ryu.lib import hub

class Monitor(simple_switch_13.SimpleSwitch13):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.datapaths = {}
        self.monitor_thread = hub.spawn(self.monitor)

    @set_ev_cls(ofp_event.EventOFPStateChange, [MAIN_DISPATCHER, DEAD_DISPATCHER])
    def state_change(self, ev):
        if ev.state == MAIN_DISPATCHER:
            self.datapaths[ev.datapath.id] = ev.datapath
        else:
            del self.datapaths[ev.datapath.id]

    def monitor(self):
        while True:
            for dp in self.datapaths.values():
                dp.send_msg(dp.ofproto_parser.OFPPortStatsRequest(dp, 0, dp.ofproto.OFPP_ANY))
            hub.sleep(0.05)

    @set_ev_cls(ofp_event.EventOFPPortStatsReply, MAIN_DISPATCHER)
    def port_stats(self, ev):
        for stat in sorted(ev.msg.body, key=attrgetter("port_no")):
            self.logger.info("port %d has %d bytes", stat.port_no, stat.rx_bytes)
""")
    with Program("--ofp-tcp-listen-port", "0", app) as program:
        switch = Switch(program.port())
        xid, body = switch.receive(MULTIPART_REQUEST)
        assert body[:2] == b"\0\4"
        entry = struct.pack("!I4x12Q2I", 3, 1, 2, 300, *[0] * 11)
        switch.send(MULTIPART_REPLY, struct.pack("!HH4x", 4, 0) + entry, xid)
        program.wait_for("port 3 has 300 bytes")


def test_required_applications_are_loaded(tmp_path):
    write(tmp_path, HANDLER + "class Base(app_manager.RyuApp):\n    pass\n", "base.py")
    app = write(tmp_path, HANDLER + "app_manager.require_app('base')\nclass App(app_manager.RyuApp):\n    pass\n")
    with Program(app) as program:
        program.wait_for("loading app base")
        program.wait_for("instantiating app base of Base")


@pytest.mark.parametrize(
    ("text", "status", "sentence"),
    [
        ("print 'python 2'", 1, r"my_app.py:1: Missing parentheses.*add --from-python2, for which .* pip install fissix"),
        ("import ryu.lib.ovs", 1, r"ryu.lib.ovs, which .*my_app.py imports is not supported yet: see"),
        ("from ryu.lib import ovs", 1, r"ryu.lib.ovs, which .*my_app.py imports is not supported yet: see"),
        ("import nonsense_module", 1, r"there is no module nonsense_module, which .* imports: install it for"),
        ("x = 1", 1, r"my_app.py has no application: expected a class derived from app_manager.RyuApp"),
        (HANDLER + "class A(app_manager.RyuApp):\n    def __init__(self, *a, **k):\n        1 / 0\n", 1, "ZeroDivisionError"),
    ],
)
def test_what_cannot_run_is_a_sentence(tmp_path, text, status, sentence):
    with Program("--ofp-tcp-listen-port", "0", write(tmp_path, text)) as program:
        ended, output = program.end()
        assert ended == status
        assert re.search(sentence, output), output


OLD_APP = """
import helper

class App(app_manager.RyuApp):
    def __init__(self, *args, **kwargs):
        super(App, self).__init__(*args, **kwargs)
        table = {'a': 1}
        if table.has_key('a'):
            print "has %s, %d" % (table.keys(), 7 / 2),
        for key, value in table.iteritems():
            self.logger.info('%s %s %s', key, value, helper.describe(xrange(3)))
        try:
            raise ValueError, 'old'
        except ValueError, error:
            self.logger.info('caught %s', error)

    @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
    def packet_in(self, ev):
        print "packet-in of %d bytes" % ev.msg.total_len
"""
OLD_HELPER = """
from collections import *
def describe(numbers):
    return u'numbers ' + ','.join(map(str, numbers))
"""


def test_a_program_of_python_2_is_translated_in_memory(tmp_path, tmp_path_factory, monkeypatch):
    pytest.importorskip("fissix")
    # The translator tells how it makes its grammar, the first time.
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    app = write(tmp_path, HANDLER + OLD_APP)
    write(tmp_path, OLD_HELPER, "helper.py")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with Program("--ofp-tcp-listen-port", "0", "--from-python2", app) as program:
        program.wait_for("a 1 numbers 0,1,2")
        program.wait_for("caught old")
        switch = Switch(program.port())
        switch.packet_in(1, 2, 3)
        program.wait_for("packet-in of 64 bytes")
        assert not [line for line in program.lines if "fixer" in line or "grammar" in line]
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_program_of_neither_python_is_a_sentence(tmp_path):
    pytest.importorskip("fissix")
    with Program("--from-python2", write(tmp_path, HANDLER + "class App(:\n")) as program:
        status, text = program.end()
    assert status == 1
    assert re.search(r"my_app.py:5: neither Python 3 nor Python 2: bad input", text), text


@pytest.mark.parametrize(
    ("arguments", "status", "sentence"),
    [
        ([], 2, "no application: expected a Python file"),
        (["--help"], 0, "usage: urtica ryu-manager"),
        (["nonsense.py"], 1, "there is no file nonsense.py"),
        (["nonsense"], 1, "there is no file and no module nonsense"),
        (["ryu.app.rest_firewall"], 1, "ryu.app.rest_firewall is not supported yet"),
        (["--ca-certs", "x", "app.py"], 2, "--ca-certs is not supported yet"),
        (["app.py", "--ofp-tcp-listen-port"], 2, "--ofp-tcp-listen-port has no value"),
        (["--ofp-tcp-listen-port", "x", LEARNING], 1, "--ofp-tcp-listen-port is 'x': expected a whole number"),
        (["--ofp-listen-host", "256.0.0.1", LEARNING], 1, "256.0.0.1"),
    ],
)
def test_wrong_command_lines_are_sentences(arguments, status, sentence):
    with Program(*arguments) as program:
        ended, output = program.end()
        assert ended == status, output
        assert sentence in output
        assert "Traceback" not in output
