"""Messages of bridges (BPDUs): the spanning tree of IEEE 802.1D, and its rapid form."""

from __future__ import annotations

import struct
from typing import Any, ClassVar

from ryu.lib.packet.llc import SAP_BPDU, llc
from ryu.lib.packet.packet_base import PacketBase
from urtica_ryu.structs import Truncated, mac_bytes

BRIDGE_GROUP_ADDRESS = "01:80:c2:00:00:00"

PROTOCOL_IDENTIFIER = 0x0000

PROTOCOLVERSION_ID_BPDU = 0x00
PROTOCOLVERSION_ID_RSTBPDU = 0x02
TYPE_CONFIG_BPDU = 0x00
TYPE_TOPOLOGY_CHANGE_BPDU = 0x80
TYPE_RSTBPDU = 0x02

VERSION_1_LENGTH = 0x00

DEFAULT_BRIDGE_PRIORITY = 32768
DEFAULT_PORT_PRIORITY = 128
DEFAULT_MAX_AGE = 20
DEFAULT_HELLO_TIME = 2
DEFAULT_FORWARD_DELAY = 15

_HEAD = struct.Struct("!HBB")
_BODY = struct.Struct("!BQIQHHHHH")

#: Times are in units of 1/256 s.
_TIMER_STEP = 256


class bpdu(PacketBase):
    """A message of a bridge, of one of the kinds below."""

    VERSION_ID: ClassVar[int] = 0
    BPDU_TYPE: ClassVar[int] = 0
    _KINDS: ClassVar[dict[tuple[int, int], Any]] = {}
    _MIN_LEN = 4

    def __init__(self) -> None:
        self._protocol_id = PROTOCOL_IDENTIFIER
        self._version_id = self.VERSION_ID
        self._bpdu_type = self.BPDU_TYPE

    @classmethod
    def register_bpdu_type(cls, kind: Any) -> Any:
        """Adds a kind of messages."""
        cls._KINDS[kind.VERSION_ID, kind.BPDU_TYPE] = kind
        return kind

    @classmethod
    def parser(cls, buf: bytes, offset: int = 0) -> Any:
        if offset + _HEAD.size > len(buf):
            raise Truncated(f"a BPDU has {_HEAD.size} bytes or more")
        protocol_id, version_id, bpdu_type = _HEAD.unpack_from(buf, offset)
        kind = cls._KINDS.get((version_id, bpdu_type))
        if kind is None or protocol_id != PROTOCOL_IDENTIFIER:
            # It stays bytes.
            return None, None, bytes(buf[offset:])
        made, after = kind._read(buf, offset + _HEAD.size)
        return made, None, bytes(buf[after:])

    @classmethod
    def _read(cls, buf: bytes, offset: int) -> tuple[Any, int]:
        return cls(), offset

    def serialize(self, payload: Any = b"", prev: Any = None) -> bytearray:
        return bytearray(_HEAD.pack(PROTOCOL_IDENTIFIER, self.VERSION_ID, self.BPDU_TYPE))


@bpdu.register_bpdu_type
class ConfigurationBPDUs(bpdu):
    """The root as a bridge knows it. The times are in seconds."""

    VERSION_ID = PROTOCOLVERSION_ID_BPDU
    BPDU_TYPE = TYPE_CONFIG_BPDU
    PACK_LEN: ClassVar[int] = _HEAD.size + _BODY.size
    TEXTS = frozenset({"root_mac_address", "bridge_mac_address"})

    def __init__(
        self,
        flags: int = 0,
        root_priority: int = DEFAULT_BRIDGE_PRIORITY,
        root_system_id_extension: int = 0,
        root_mac_address: str = "00:00:00:00:00:00",
        root_path_cost: int = 0,
        bridge_priority: int = DEFAULT_BRIDGE_PRIORITY,
        bridge_system_id_extension: int = 0,
        bridge_mac_address: str = "00:00:00:00:00:00",
        port_priority: int = DEFAULT_PORT_PRIORITY,
        port_number: int = 0,
        message_age: float = 0,
        max_age: float = DEFAULT_MAX_AGE,
        hello_time: float = DEFAULT_HELLO_TIME,
        forward_delay: float = DEFAULT_FORWARD_DELAY,
    ):
        super().__init__()
        self.flags = flags
        self.root_priority = root_priority
        self.root_system_id_extension = root_system_id_extension
        self.root_mac_address = root_mac_address
        self.root_path_cost = root_path_cost
        self.bridge_priority = bridge_priority
        self.bridge_system_id_extension = bridge_system_id_extension
        self.bridge_mac_address = bridge_mac_address
        self.port_priority = port_priority
        self.port_number = port_number
        self.message_age = message_age
        self.max_age = max_age
        self.hello_time = hello_time
        self.forward_delay = forward_delay

    @classmethod
    def _read(cls, buf: bytes, offset: int) -> tuple[Any, int]:
        if offset + _BODY.size > len(buf):
            raise Truncated(f"a configuration BPDU has {cls.PACK_LEN} bytes")
        flags, root, cost, bridge, port, *times = _BODY.unpack_from(buf, offset)
        made = cls(flags, *_bridge_of(root), cost, *_bridge_of(bridge), port >> 8 & 0xF0, port & 0xFFF)
        made.message_age, made.max_age, made.hello_time, made.forward_delay = (time / _TIMER_STEP for time in times)
        return made, offset + _BODY.size

    def serialize(self, payload: Any = b"", prev: Any = None) -> bytearray:
        times = (self.message_age, self.max_age, self.hello_time, self.forward_delay)
        try:
            body = _BODY.pack(
                self.flags,
                _bridge_id(self.root_priority, self.root_system_id_extension, self.root_mac_address),
                self.root_path_cost,
                _bridge_id(self.bridge_priority, self.bridge_system_id_extension, self.bridge_mac_address),
                self.port_priority << 8 | self.port_number,
                *(int(time * _TIMER_STEP) for time in times),
            )
        except (struct.error, ValueError) as error:
            raise ValueError(f"{type(self).__name__} cannot be sent: {error}") from None
        return super().serialize() + bytearray(body)


@bpdu.register_bpdu_type
class TopologyChangeNotificationBPDUs(bpdu):
    """A bridge's word to the root that the tree has changed."""

    VERSION_ID = PROTOCOLVERSION_ID_BPDU
    BPDU_TYPE = TYPE_TOPOLOGY_CHANGE_BPDU
    PACK_LEN: ClassVar[int] = _HEAD.size


@bpdu.register_bpdu_type
class RstBPDUs(ConfigurationBPDUs):
    """The root as a bridge knows it, of the rapid spanning tree."""

    VERSION_ID = PROTOCOLVERSION_ID_RSTBPDU
    BPDU_TYPE = TYPE_RSTBPDU
    PACK_LEN: ClassVar[int] = ConfigurationBPDUs.PACK_LEN + 1

    @classmethod
    def _read(cls, buf: bytes, offset: int) -> tuple[Any, int]:
        made, after = super()._read(buf, offset)
        return made, after + 1

    def serialize(self, payload: Any = b"", prev: Any = None) -> bytearray:
        return super().serialize() + bytearray([VERSION_1_LENGTH])


def _bridge_id(priority: int, system_id_extension: int, mac: str) -> int:
    return (priority + system_id_extension) << 48 | int.from_bytes(mac_bytes(mac), "big")


def _bridge_of(number: int) -> tuple[int, int, str]:
    """The priority, the extension and the address of a bridge's identifier."""
    return number >> 48 & 0xF000, number >> 48 & 0xFFF, (number & 0xFFFF_FFFF_FFFF).to_bytes(6, "big").hex(":")


llc.register_packet_type(bpdu, SAP_BPDU)
