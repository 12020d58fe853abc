"""The applications of `ryu.app` that programs run, or derive from."""

import logging
import struct

from ryu.app.example_switch_13 import ExampleSwitch13
from ryu.app.simple_monitor_13 import INTERVAL_S, SimpleMonitor13
from ryu.app.simple_switch import SimpleSwitch
from simulated import MULTIPART_REPLY, PACKET_IN, PORT_STATUS, port_of_1_0

FLOW_MOD, PACKET_OUT, MULTIPART_REQUEST = 14, 13, 18
FLOOD = 0xFFFB


def sent(manager, wanted):
    """The bodies of what was sent, of these kinds."""
    frames = [data for _, data in manager.wire.sent]
    manager.wire.sent.clear()
    return [(frame[1], frame[8:]) for frame in frames if frame[1] in wanted]


def packet_in_10(switch, source, destination, in_port):
    data = bytes([2, 0, 0, 0, 0, destination, 2, 0, 0, 0, 0, source]) + b"\x90\0" + bytes(46)
    switch.send(PACKET_IN, struct.pack("!IHHBx", 0xFFFFFFFF, len(data), in_port, 0) + data)


def test_the_learning_switch_of_1_0_floods_then_learns(manager, caplog):
    caplog.set_level(logging.INFO)
    manager.start(SimpleSwitch)
    switch = manager.switch(version=1)
    switch.join(3, 4)
    packet_in_10(switch, 1, 2, 3)
    manager.settle()
    [(kind, body)] = sent(manager, [FLOW_MOD, PACKET_OUT])
    assert kind == PACKET_OUT and struct.pack("!HHHH", 0, 8, FLOOD, 0xFFE5) in body
    packet_in_10(switch, 2, 1, 4)
    manager.settle()
    [(kind, entry), (last, out)] = sent(manager, [FLOW_MOD, PACKET_OUT])
    assert (kind, last) == (FLOW_MOD, PACKET_OUT)
    assert entry.endswith(struct.pack("!HHHH", 0, 8, 3, 0xFFE5)) and entry[4:6] == struct.pack("!H", 4)
    assert struct.pack("!HHHH", 0, 8, 3, 0xFFE5) in out
    for reason in (0, 1, 2, 3):
        switch.send(PORT_STATUS, struct.pack("!B7x", reason) + port_of_1_0(4))
    manager.settle()
    lines = [line for line in caplog.messages if line.startswith("port ")]
    assert lines == ["port added 4", "port deleted 4", "port modified 4", "port 4 has changed for the unknown reason 3"]


def test_the_monitor_asks_every_ten_seconds_and_logs_what_comes(manager, caplog):
    caplog.set_level(logging.INFO)
    [app] = manager.start(SimpleMonitor13)
    switch = manager.switch()
    switch.join(1)
    manager.settle()
    sent(manager, [])
    manager.baton.advance(INTERVAL_S)
    asked = [struct.unpack_from("!H", body)[0] for _, body in sent(manager, [MULTIPART_REQUEST])]
    assert asked == [1, 4]
    counters = struct.pack("!I4x12Q2I", 3, 1, 2, 300, *[0] * 11)
    switch.send(MULTIPART_REPLY, struct.pack("!HH4x", 4, 0) + counters)
    match = bytes.fromhex("00010016 80000004 00000001 80000606 020000000002") + bytes(2)
    actions = struct.pack("!HH4xHHIH6x", 4, 24, 0, 16, 7, 0xFFE5)
    entry = struct.pack("!BxIIHHHH4xQQQ", 0, 1, 2, 1, 0, 0, 0, 0, 5, 640) + match + actions
    switch.send(MULTIPART_REPLY, struct.pack("!HH4x", 1, 0) + struct.pack("!H", len(entry) + 2) + entry)
    manager.settle()
    assert "0000000000000005        3        1      300        0        2        0        0" in caplog.text
    assert "0000000000000005        1 02:00:00:00:00:02        7        5      640" in caplog.text
    switch.connection.switch_down()
    manager.settle()
    assert app.datapaths == {}


def test_the_example_of_the_book_is_a_learning_switch(manager):
    manager.start(ExampleSwitch13)
    switch = manager.switch()
    switch.join(1)
    manager.settle()
    assert [kind for kind, _ in sent(manager, [FLOW_MOD])] == [FLOW_MOD]
