"""Logical link control (IEEE 802.2)."""

from __future__ import annotations

import struct
from typing import Any

from ryu.lib.packet.ethernet import ethernet
from ryu.lib.packet.packet_base import PacketBase
from urtica_ryu.structs import Stringify, Truncated

SAP_BPDU = 66


class ControlFormatI(Stringify):
    """The control field of numbered information."""

    def __init__(self, send_sequence_number: int = 0, pf_bit: int = 0, receive_sequence_number: int = 0):
        self.send_sequence_number = send_sequence_number
        self.pf_bit = pf_bit
        self.receive_sequence_number = receive_sequence_number

    @classmethod
    def parser(cls, control: int) -> ControlFormatI:
        """Returns the field of a number."""
        return cls(control >> 9 & 0x7F, control & 1, control >> 1 & 0x7F)

    def serialize(self) -> bytes:
        """Returns the field's bytes."""
        return struct.pack("!H", self.send_sequence_number << 9 | self.receive_sequence_number << 1 | self.pf_bit)


class ControlFormatS(Stringify):
    """The control field of supervision."""

    def __init__(self, supervisory_function: int = 0, pf_bit: int = 0, receive_sequence_number: int = 0):
        self.supervisory_function = supervisory_function
        self.pf_bit = pf_bit
        self.receive_sequence_number = receive_sequence_number

    @classmethod
    def parser(cls, control: int) -> ControlFormatS:
        """Returns the field of a number."""
        return cls(control >> 10 & 3, control & 1, control >> 1 & 0x7F)

    def serialize(self) -> bytes:
        """Returns the field's bytes."""
        return struct.pack("!H", self.supervisory_function << 10 | 1 << 8 | self.receive_sequence_number << 1 | self.pf_bit)


class ControlFormatU(Stringify):
    """The control field without numbers."""

    def __init__(self, modifier_function1: int = 0, pf_bit: int = 0, modifier_function2: int = 0):
        self.modifier_function1 = modifier_function1
        self.pf_bit = pf_bit
        self.modifier_function2 = modifier_function2

    @classmethod
    def parser(cls, control: int) -> ControlFormatU:
        """Returns the field of a number."""
        return cls(control >> 2 & 3, control >> 4 & 1, control >> 5 & 7)

    def serialize(self) -> bytes:
        """Returns the field's byte."""
        return struct.pack("!B", self.modifier_function2 << 5 | self.pf_bit << 4 | self.modifier_function1 << 2 | 3)


class llc(PacketBase):
    """The header of logical link control."""

    _MIN_LEN = 3

    def __init__(self, dsap_addr: int, ssap_addr: int, control: Any):
        self.dsap_addr = dsap_addr
        self.ssap_addr = ssap_addr
        self.control = control

    @classmethod
    def parser(cls, buf: bytes, offset: int = 0) -> Any:
        if offset + 3 > len(buf):
            raise Truncated("the header of LLC has 3 bytes or more")
        dsap, ssap, first = struct.unpack_from("!BBB", buf, offset)
        if first & 3 == 3:
            control: Any = ControlFormatU.parser(first)
            after = offset + 3
        elif offset + 4 > len(buf):
            raise Truncated("this header of LLC has 4 bytes")
        else:
            kind = ControlFormatS if first & 3 == 1 else ControlFormatI
            # The low bits of the first byte tell the format.
            (number,) = struct.unpack_from("!H", buf, offset + 2)
            control, after = kind.parser(number), offset + 4
        return cls(dsap, ssap, control), cls.get_packet_type(dsap), bytes(buf[after:])

    def serialize(self, payload: Any = b"", prev: Any = None) -> bytearray:
        return bytearray(struct.pack("!BB", self.dsap_addr, self.ssap_addr) + self.control.serialize())


ethernet.register_packet_type(llc, 0x05DC)
