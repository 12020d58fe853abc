"""The base class of protocols."""

from __future__ import annotations

from typing import Any, ClassVar

from urtica_ryu.structs import Struct


class PacketBase(Struct):
    """A protocol's header in a packet."""

    #: The classes of what follows, by number.
    _TYPES: ClassVar[dict[int, Any]] = {}
    #: The bytes that a header has at least.
    _MIN_LEN: ClassVar[int] = 0
    TEXTS = frozenset({"dst", "src", "src_mac", "dst_mac", "src_ip", "dst_ip"})

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "FIELDS" in vars(cls):
            cls._MIN_LEN = sum(part.struct.size for part in cls.LAYOUT.parts if hasattr(part, "struct"))

    @classmethod
    def get_packet_type(cls, number: int) -> Any:
        """Returns the class of what follows."""
        return cls._TYPES.get(number)

    @classmethod
    def register_packet_type(cls, what: Any, number: int) -> None:
        """Sets the class of what follows."""
        if "_TYPES" not in vars(cls):
            cls._TYPES = {}
        cls._TYPES[number] = what

    @property
    def protocol_name(self) -> str:
        """The class's name."""
        return type(self).__name__

    @classmethod
    def parser(cls, buf: bytes, offset: int = 0) -> Any:
        """Returns the header, the class of what follows, and the rest."""
        made, after = cls.decode(buf, offset, len(buf))
        return made, made.next_type(), bytes(buf[after:])

    def next_type(self) -> Any:
        """Returns the class of what follows."""
        return None

    def serialize(self, payload: Any = b"", prev: Any = None) -> bytearray:
        """Returns the header's bytes before `payload`, and after the header `prev`."""
        out = bytearray()
        self.encode(out)
        return out

    def __len__(self) -> int:
        return self._MIN_LEN

    def __bool__(self) -> bool:
        return True

    def __truediv__(self, other: Any) -> Any:
        from ryu.lib.packet.packet import Packet

        return Packet(protocols=[self]) / other
