"""LLDP."""

from __future__ import annotations

import struct
from typing import Any, ClassVar

from ryu.lib.packet.ethernet import ethernet
from ryu.lib.packet.packet_base import PacketBase
from urtica_ryu.structs import Stringify, Truncated

LLDP_MAC_NEAREST_BRIDGE = "01:80:c2:00:00:0e"
LLDP_MAC_NEAREST_NON_TPMR_BRIDGE = "01:80:c2:00:00:03"
LLDP_MAC_NEAREST_CUSTOMER_BRIDGE = "01:80:c2:00:00:00"

LLDP_TLV_END = 0
LLDP_TLV_CHASSIS_ID = 1
LLDP_TLV_PORT_ID = 2
LLDP_TLV_TTL = 3
LLDP_TLV_PORT_DESCRIPTION = 4
LLDP_TLV_SYSTEM_NAME = 5
LLDP_TLV_SYSTEM_DESCRIPTION = 6
LLDP_TLV_SYSTEM_CAPABILITIES = 7
LLDP_TLV_MANAGEMENT_ADDRESS = 8
LLDP_TLV_ORGANIZATIONALLY_SPECIFIC = 127


class LLDPBasicTLV(Stringify):
    """A TLV: from its bytes, or of values by name."""

    tlv_type: ClassVar[Any] = None
    #: The values' names; the last one is bytes if `FORMAT` does not have it.
    NAMES: ClassVar[tuple[str, ...]] = ()
    FORMAT: ClassVar[str] = "!"
    #: Another name of the only value.
    ALIAS: ClassVar[str] = ""
    KINDS: ClassVar[dict[int, type[LLDPBasicTLV]]] = {}

    len: int
    typelen: int

    def __init__(self, buf: bytes | None = None, *_ignored: Any, **values: Any):
        if buf is not None:
            self.tlv_info: Any = bytes(buf[2:])
            self._begin(len(self.tlv_info))
            self._read(self.tlv_info)
        else:
            for name in self.NAMES:
                setattr(self, name, values.get(name, values.get(self.ALIAS)))
            self._begin(len(self._body()))

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.tlv_type is not None:
            cls.KINDS[cls.tlv_type] = cls

    def _begin(self, size: int) -> None:
        if size > 511:
            raise ValueError(f"{type(self).__name__} has {size} bytes: expected at most 511")
        self.len = size
        self.typelen = self.tlv_type << 9 | size

    def _fixed(self) -> int:
        return len([letter for letter in self.FORMAT if letter.isalpha()])

    def _read(self, body: bytes) -> None:
        size = struct.calcsize(self.FORMAT)
        if len(body) < size:
            raise Truncated(f"{type(self).__name__} has {len(body)} bytes: expected {size} or more")
        values: list[Any] = [*struct.unpack_from(self.FORMAT, body), body[size:]]
        for name, value in zip(self.NAMES, values, strict=False):
            setattr(self, name, value)

    def _body(self) -> bytes:
        values = [getattr(self, name) for name in self.NAMES]
        fixed = self._fixed()
        try:
            return struct.pack(self.FORMAT, *values[:fixed]) + b"".join(bytes(value or b"") for value in values[fixed:])
        except (struct.error, TypeError):
            shown = ", ".join(f"{name}={value!r}" for name, value in zip(self.NAMES, values, strict=True))
            raise ValueError(f"{type(self).__name__} has {shown}: expected numbers and bytes") from None

    def serialize(self) -> bytes:
        """Returns the TLV's bytes."""
        body = self._body()
        self._begin(len(body))
        return struct.pack("!H", self.typelen) + body


class End(LLDPBasicTLV):
    """The end."""

    tlv_type = LLDP_TLV_END


class ChassisID(LLDPBasicTLV):
    """The chassis."""

    tlv_type = LLDP_TLV_CHASSIS_ID
    NAMES, FORMAT = ("subtype", "chassis_id"), "!B"
    subtype: int
    chassis_id: bytes
    SUB_CHASSIS_COMPONENT = 1
    SUB_INTERFACE_ALIAS = 2
    SUB_PORT_COMPONENT = 3
    SUB_MAC_ADDRESS = 4
    SUB_NETWORK_ADDRESS = 5
    SUB_INTERFACE_NAME = 6
    SUB_LOCALLY_ASSIGNED = 7


class PortID(LLDPBasicTLV):
    """The port."""

    tlv_type = LLDP_TLV_PORT_ID
    NAMES, FORMAT = ("subtype", "port_id"), "!B"
    subtype: int
    port_id: bytes
    SUB_INTERFACE_ALIAS = 1
    SUB_PORT_COMPONENT = 2
    SUB_MAC_ADDRESS = 3
    SUB_NETWORK_ADDRESS = 4
    SUB_INTERFACE_NAME = 5
    SUB_AGENT_CIRCUIT_ID = 6
    SUB_LOCALLY_ASSIGNED = 7


class TTL(LLDPBasicTLV):
    """The seconds for which this is valid."""

    tlv_type = LLDP_TLV_TTL
    NAMES, FORMAT = ("ttl",), "!H"


class PortDescription(LLDPBasicTLV):
    """The port's description."""

    tlv_type = LLDP_TLV_PORT_DESCRIPTION
    NAMES, ALIAS = ("tlv_info",), "port_description"

    @property
    def port_description(self) -> Any:
        """The text."""
        return self.tlv_info


class SystemName(LLDPBasicTLV):
    """The system's name."""

    tlv_type = LLDP_TLV_SYSTEM_NAME
    NAMES, ALIAS = ("tlv_info",), "system_name"

    @property
    def system_name(self) -> Any:
        """The text."""
        return self.tlv_info


class SystemDescription(LLDPBasicTLV):
    """The system's description."""

    tlv_type = LLDP_TLV_SYSTEM_DESCRIPTION
    NAMES, ALIAS = ("tlv_info",), "system_description"

    @property
    def system_description(self) -> Any:
        """The text."""
        return self.tlv_info


class SystemCapabilities(LLDPBasicTLV):
    """What the system is."""

    tlv_type = LLDP_TLV_SYSTEM_CAPABILITIES
    NAMES, FORMAT = ("system_cap", "enabled_cap"), "!HH"
    CAP_REPEATER = 1 << 1
    CAP_MAC_BRIDGE = 1 << 2
    CAP_WLAN_ACCESS_POINT = 1 << 3
    CAP_ROUTER = 1 << 4
    CAP_TELEPHONE = 1 << 5
    CAP_DOCSIS = 1 << 6
    CAP_STATION_ONLY = 1 << 7
    CAP_CVLAN = 1 << 8
    CAP_SVLAN = 1 << 9
    CAP_TPMR = 1 << 10


class OrganizationallySpecific(LLDPBasicTLV):
    """An organisation's TLV."""

    tlv_type = LLDP_TLV_ORGANIZATIONALLY_SPECIFIC
    NAMES, FORMAT = ("oui", "subtype", "info"), "!3sB"


class lldp(PacketBase):
    """The LLDP message: a list of TLVs."""

    def __init__(self, tlvs: list[Any]):
        self.tlvs = tlvs

    @classmethod
    def parser(cls, buf: bytes, offset: int = 0) -> Any:
        tlvs: list[Any] = []
        while offset + 2 <= len(buf):
            (typelen,) = struct.unpack_from("!H", buf, offset)
            end = offset + 2 + (typelen & 511)
            if end > len(buf):
                raise Truncated("an LLDP TLV is longer than the packet")
            kind = LLDPBasicTLV.KINDS.get(typelen >> 9)
            if kind is not None:
                tlvs.append(kind(buf[offset:end]))
            offset = end
            if typelen >> 9 == LLDP_TLV_END:
                return cls(tlvs), None, bytes(buf[offset:])
        raise Truncated("an LLDP message has no end")

    def serialize(self, payload: Any = b"", prev: Any = None) -> bytearray:
        return bytearray(b"".join(tlv.serialize() for tlv in self.tlvs))


ethernet.register_packet_type(lldp, 0x88CC)
