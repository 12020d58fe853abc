"""Structures on the wire, as Python objects: each class lists its fields once, in the order of the wire.

From the list come the constructor, `serialize` and decoding. Values are checked when they are serialized, not in the constructor:
some programs build what they never send.
"""

from __future__ import annotations

import base64
import builtins
import inspect
import ipaddress
import keyword
import struct
import sys
from collections import namedtuple
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from urtica_ryu.fast import CODEC

#: The default of a field that the constructor needs.
REQUIRED = inspect.Parameter.empty
#: The default of a list: each object has a new one.
NEW_LIST: Any = object()

_NAMES = frozenset(dir(builtins)) | frozenset(keyword.kwlist)


class Truncated(ValueError):
    """A structure ends before its fields do."""


class Kind:
    """What a field's bytes mean: `fmt` for struct if their number is fixed."""

    fmt: str | None = None
    expected = "another value"
    #: The name of the kind in the extension, and what it needs to know; None if the extension does not have it.
    native: tuple[str, Any] | None = None

    def to_wire(self, value: Any) -> Any:
        """Returns what struct packs."""
        return value

    def from_wire(self, value: Any) -> Any:
        """Returns the value of what struct unpacked."""
        return value

    def encode(self, value: Any, out: bytearray) -> None:
        """Appends a value without a fixed size."""
        raise NotImplementedError

    def decode(self, data: bytes, offset: int, end: int) -> tuple[Any, int]:
        """Returns a value without a fixed size, and the offset after it."""
        raise NotImplementedError


class Int(Kind):
    """An unsigned number."""

    def __init__(self, fmt: str):
        self.fmt = fmt
        self.native = ("int", struct.calcsize("!" + fmt))
        self.expected = f"a number from 0 to {(1 << 8 * struct.calcsize('!' + fmt)) - 1:#x}"


U8, U16, U32, U64 = Int("B"), Int("H"), Int("I"), Int("Q")


class MacKind(Kind):
    """An Ethernet address."""

    fmt = "6s"
    native: tuple[str, Any] | None = ("mac", None)
    expected = "an Ethernet address, such as '00:00:00:00:00:01'"

    def to_wire(self, value: Any) -> bytes:
        return mac_bytes(value)

    def from_wire(self, value: bytes) -> str:
        return value.hex(":")


class MacBytesKind(MacKind):
    """An Ethernet address that programs see as bytes."""

    native = None

    def from_wire(self, value: bytes) -> Any:
        return value


class IpKind(Kind):
    """An IPv4 or IPv6 address."""

    def __init__(self, size: int):
        self.fmt = f"{size}s"
        self.size = size
        self.native = ("ip", size)
        self.expected = "an IPv4 address, such as '10.0.0.1'" if size == 4 else "an IPv6 address, such as '::1'"

    def to_wire(self, value: Any) -> bytes:
        return ip_bytes(value, self.size)

    def from_wire(self, value: bytes) -> str:
        return str(ipaddress.ip_address(value))


class TextKind(Kind):
    """Text with zeros up to a fixed size."""

    def __init__(self, size: int):
        self.fmt = f"{size}s"
        self.size = size
        self.expected = f"a text of at most {size} bytes"

    def to_wire(self, value: Any) -> bytes:
        data = value.encode() if isinstance(value, str) else bytes(value)
        if len(data) > self.size:
            raise ValueError
        return data

    def from_wire(self, value: bytes) -> bytes:
        return value.rstrip(b"\0")


class BytesKind(Kind):
    """All bytes up to the end."""

    native = ("rest", None)
    expected = "bytes"

    def encode(self, value: Any, out: bytearray) -> None:
        if value is not None:
            out += value.encode() if isinstance(value, str) else value

    def decode(self, data: bytes, offset: int, end: int) -> tuple[bytes, int]:
        return bytes(data[offset:end]), end


class Sub(Kind):
    """A structure inside another."""

    def __init__(self, cls: Any):
        self.cls = cls
        self.expected = f"an object of {cls.__name__}"

    def encode(self, value: Any, out: bytearray) -> None:
        value.encode(out)

    def decode(self, data: bytes, offset: int, end: int) -> tuple[Any, int]:
        return self.cls.decode(data, offset, end)  # type: ignore[no-any-return]


class Many(Kind):
    """Structures up to the end. `decode_one` returns one and the offset after it. `classes` are theirs by type, if a type comes
    first."""

    def __init__(
        self,
        decode_one: Callable[[bytes, int, int], tuple[Any, int]],
        expected: str,
        classes: dict[int, Any] | None = None,
    ):
        self.decode_one = decode_one
        self.native = None if classes is None else ("list", classes)
        self.expected = f"a list of {expected}"

    def encode(self, value: Any, out: bytearray) -> None:
        for one in value or ():
            one.encode(out)

    def decode(self, data: bytes, offset: int, end: int) -> tuple[list[Any], int]:
        values = []
        while offset < end:
            value, after = self.decode_one(data, offset, end)
            if after <= offset:
                raise ValueError("a structure has length 0")
            values.append(value)
            offset = after
        return values, offset


MAC, MAC_BYTES, REST = MacKind(), MacBytesKind(), BytesKind()
IPV4, IPV6 = IpKind(4), IpKind(16)


class Field(NamedTuple):
    """A field. Without a name it is padding of `pad` bytes."""

    name: str
    kind: Kind
    default: Any = REQUIRED
    pad: int = 0


def pad(size: int) -> Field:
    """Returns padding."""
    return Field("", Kind(), pad=size)


def mac_bytes(value: Any) -> bytes:
    """Returns the bytes of an Ethernet address: a text, bytes, or a number."""
    if isinstance(value, str):
        data = bytes.fromhex(value.replace(":", " ").replace("-", " ")) if len(value) == 17 else b""
        if not data and value.count(":") == 5:
            data = bytes(int(part, 16) for part in value.split(":"))
    elif isinstance(value, int):
        data = value.to_bytes(6, "big")
    else:
        data = bytes(value)
    if len(data) != 6:
        raise ValueError
    return data


def ip_bytes(value: Any, size: int) -> bytes:
    """Returns the bytes of an IPv4 (4) or IPv6 address (16): a text, bytes, or a number."""
    if isinstance(value, str):
        address = ipaddress.IPv4Address(value) if size == 4 else ipaddress.IPv6Address(value)
        return address.packed
    data = value.to_bytes(size, "big") if isinstance(value, int) else bytes(value)
    if len(data) != size:
        raise ValueError
    return data


class _Run:
    """Consecutive fields of fixed sizes: one call of struct."""

    def __init__(self, fields: list[Field]):
        self.fields = [field for field in fields if field.name]
        self.struct = struct.Struct("!" + "".join(field.kind.fmt or f"{field.pad}x" for field in fields))
        self._is_plain = all(type(field.kind) is Int for field in self.fields)
        self._names = [field.name for field in self.fields]

    def encode(self, values: Any, out: bytearray) -> None:
        try:
            if self._is_plain:
                out += self.struct.pack(*[getattr(values, name) for name in self._names])
            else:
                out += self.struct.pack(*[field.kind.to_wire(getattr(values, field.name)) for field in self.fields])
        except Exception as error:
            self._explain(values, error)

    def _explain(self, values: Any, error: Exception) -> None:
        """Raises the error with the name of the field that has the value."""
        for field in self.fields:
            value = getattr(values, field.name)
            try:
                struct.pack("!" + (field.kind.fmt or ""), field.kind.to_wire(value))
            except Exception:
                raise ValueError(wrong(values, field, value)) from None
        raise error

    def decode(self, data: bytes, offset: int, end: int, into: dict[str, Any]) -> int:
        if offset + self.struct.size > end:
            raise Truncated(f"{end - offset} bytes are left of {self.struct.size}")
        values = self.struct.unpack_from(data, offset)
        if self._is_plain:
            into.update(zip(self._names, values, strict=True))
        else:
            for field, value in zip(self.fields, values, strict=True):
                into[field.name] = field.kind.from_wire(value)
        return offset + self.struct.size


class _Variable:
    """A field without a fixed size."""

    def __init__(self, field: Field):
        self.field = field

    def encode(self, values: Any, out: bytearray) -> None:
        value = getattr(values, self.field.name)
        try:
            self.field.kind.encode(value, out)
        except (AttributeError, TypeError):
            raise ValueError(wrong(values, self.field, value)) from None

    def decode(self, data: bytes, offset: int, end: int, into: dict[str, Any]) -> int:
        into[self.field.name], offset = self.field.kind.decode(data, offset, end)
        return offset


def wrong(owner: Any, field: Field, value: Any) -> str:
    """Returns the message about a value that cannot be sent."""
    name = f"{field.name}_" if field.name in _NAMES else field.name
    return f"{name} of {type(owner).__name__} is {value!r}: expected {field.kind.expected}"


class Layout:
    """The fields of a structure, in the order of the wire."""

    def __init__(self, fields: tuple[Field, ...]):
        self.parts: list[_Run | _Variable] = []
        run: list[Field] = []
        for field in fields:
            if field.kind.fmt or field.pad:
                run.append(field)
                continue
            self._end_run(run)
            self.parts.append(_Variable(field))
        self._end_run(run)

    def _end_run(self, run: list[Field]) -> None:
        if run:
            self.parts.append(_Run(run[:]))
            run.clear()

    def encode(self, values: Any, out: bytearray) -> None:
        """Appends the fields."""
        for part in self.parts:
            part.encode(values, out)

    def decode(self, data: bytes, offset: int, end: int) -> tuple[dict[str, Any], int]:
        """Returns the fields' values, and the offset after them."""
        values: dict[str, Any] = {}
        for part in self.parts:
            offset = part.decode(data, offset, end, values)
        return values, offset


def argument(name: str) -> str:
    """Returns the constructor's name of an attribute: `type_` for `type`."""
    return f"{name}_" if name in _NAMES else name


def _constructor(cls: type, fields: list[Field], before: str, extra: tuple[str, ...]) -> Callable[..., None]:
    """Makes `__init__`: what a class statement would have, so that calls are as fast."""
    defaults = {f"_{field.name}": field.default for field in fields if field.default is not REQUIRED}
    defaults |= {f"_{field.name}": None for field in fields if field.default is NEW_LIST}
    parameters = [
        argument(field.name) + ("" if field.default is REQUIRED else f"=_{field.name}") for field in fields
    ]
    parameters += [f"{name}=None" for name in extra]
    first = [before] if before else []
    lines = [f"def __init__({', '.join(['self', *first, *parameters])}):"]
    lines += [f"    self._begin({before})"]
    for field in fields:
        lines.append(f"    self.{field.name} = {argument(field.name)}")
        if field.default is NEW_LIST:
            lines[-1] = f"    self.{field.name} = [] if {argument(field.name)} is None else {argument(field.name)}"
    made: dict[str, Any] = {}
    exec("\n".join(lines), defaults, made)
    constructor: Callable[..., None] = made["__init__"]
    constructor.__qualname__ = f"{cls.__qualname__}.__init__"
    return constructor


class Stringify:
    """`repr`, `to_jsondict` and `from_jsondict`."""

    #: Attributes that are not shown.
    HIDDEN: ClassVar[frozenset[str]] = frozenset()
    #: Attributes that are text in JSON.
    TEXTS: ClassVar[frozenset[str]] = frozenset()
    #: Those of them that are bytes in Python.
    BYTE_TEXTS: ClassVar[frozenset[str]] = frozenset()

    def shown(self) -> Iterator[tuple[str, Any]]:
        """The attributes of the object, by name."""
        for name in sorted(vars(self)):
            if not name.startswith("_") and name not in self.HIDDEN:
                yield name, getattr(self, name)

    def _text(self) -> str:
        return f"{type(self).__name__}({','.join(f'{name}={value!r}' for name, value in self.shown())})"

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        return self._text()

    def to_jsondict(self, encode_string: Callable[[bytes], bytes] = base64.b64encode) -> dict[str, Any]:
        """Returns the object as JSON: its class's name, and its attributes, whose names do not end with an underscore there."""
        shown = self.shown()
        attributes = {name.removesuffix("_"): self._to_json(name, value, encode_string) for name, value in shown}
        return {type(self).__name__: attributes}

    def _to_json(self, name: str, value: Any, encode_string: Callable[[bytes], bytes]) -> Any:
        if name in self.TEXTS:
            return value.decode() if isinstance(value, bytes) else value
        if isinstance(value, str):
            value = value.encode()
        if isinstance(value, (bytes, bytearray)):
            return encode_string(bytes(value)).decode("ascii")
        if isinstance(value, list):
            return [self._to_json("", one, encode_string) for one in value]
        if isinstance(value, dict):
            return {str(key): self._to_json("", one, encode_string) for key, one in value.items()}
        return value.to_jsondict() if hasattr(value, "to_jsondict") else value

    @classmethod
    def from_jsondict(
        cls, dict_: dict[str, Any], decode_string: Callable[[str], bytes] = base64.b64decode, **additional_args: Any
    ) -> Any:
        """Returns the object of its attributes in JSON: `OFPFlowMod.from_jsondict(json["OFPFlowMod"], datapath=datapath)`.

        Raises ValueError for JSON of another form, TypeError for unknown attributes.
        """
        if not isinstance(dict_, dict):
            raise ValueError(f"{cls.__name__} is {dict_!r}: expected its attributes by name")
        given = {argument(name): cls._from_json(name, value, decode_string) for name, value in dict_.items()}
        return cls(**given, **additional_args)

    @classmethod
    def _from_json(cls, name: str, value: Any, decode_string: Callable[[str], bytes]) -> Any:
        if isinstance(value, list):
            return [cls._from_json(name, one, decode_string) for one in value]
        if isinstance(value, dict):
            return cls._from_object(name, value, decode_string)
        if not isinstance(value, str) or name in cls.TEXTS:
            return value.encode() if isinstance(value, str) and name in cls.BYTE_TEXTS else value
        try:
            return decode_string(value)
        except ValueError:
            raise ValueError(f"{name} of {cls.__name__} is {value!r}: expected bytes in base64") from None

    @classmethod
    def _from_object(cls, name: str, value: dict[str, Any], decode_string: Callable[[str], bytes]) -> Any:
        if len(value) != 1:
            raise ValueError(f"{name} of {cls.__name__} has {len(value)} keys: expected one, the name of a class")
        [(kind, attributes)] = value.items()
        found = cls.class_named(kind)
        if found is None:
            raise ValueError(f"{name} of {cls.__name__} is of the unknown class {kind}")
        return found.from_jsondict(attributes, decode_string)

    @classmethod
    def class_named(cls, name: str) -> Any:
        """Returns a class for JSON, of the module of this one or of a base; None without one."""
        for base in cls.__mro__:
            found = getattr(sys.modules.get(base.__module__), name, None)
            if isinstance(found, type) and issubclass(found, Stringify):
                return found
        return None


class Struct(Stringify):
    """A structure with attributes."""

    FIELDS: ClassVar[tuple[Field, ...]] = ()
    #: The names in the order of the constructor, if it differs from that of the wire.
    ARGUMENTS: ClassVar[tuple[str, ...] | None] = None
    #: Arguments that the constructor ignores, since the values are computed.
    IGNORED: ClassVar[tuple[str, ...]] = ()
    #: An argument before the others.
    BEFORE: ClassVar[str] = ""
    LAYOUT: ClassVar[Layout]
    BYTE_TEXTS = frozenset({"name", "mfr_desc", "hw_desc", "sw_desc", "serial_num", "dp_desc"})
    TEXTS = BYTE_TEXTS | {"hw_addr"}

    if TYPE_CHECKING:
        # Made of the fields.
        def __init__(self, *args: Any, **kwargs: Any): ...

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "FIELDS" not in vars(cls):
            return
        cls.LAYOUT = Layout(cls.FIELDS)
        if "__init__" in vars(cls):
            return
        named = {field.name: field for field in cls.FIELDS if field.name}
        fields = [named[name] for name in cls.ARGUMENTS or named]
        cls.__init__ = _constructor(cls, fields, cls.BEFORE, cls.IGNORED)  # type: ignore[method-assign]

    def _begin(self) -> None:
        """Sets attributes that are not fields."""

    def encode(self, out: bytearray) -> None:
        """Appends the structure's bytes."""
        data = CODEC.encode(self)
        if data is None:
            self.LAYOUT.encode(self, out)
        else:
            out += data

    def serialize(self, buf: bytearray | None = None, offset: int | None = None) -> bytearray:
        """Appends the structure's bytes to a buffer."""
        out = bytearray() if buf is None else buf
        self.encode(out)
        return out

    @classmethod
    def made(cls, values: dict[str, Any]) -> Any:
        """Returns an object with these attributes."""
        made = cls.__new__(cls)
        made._begin()
        vars(made).update(values)
        return made

    @classmethod
    def decode(cls, data: bytes, offset: int, end: int) -> tuple[Any, int]:
        """Returns a structure, and the offset after it."""
        found = CODEC.decode(cls, data, offset, end)
        if found is not None:
            return found
        values, offset = cls.LAYOUT.decode(data, offset, end)
        return cls.made(values), offset

    @classmethod
    def parser(cls, buf: bytes, offset: int = 0) -> Any:
        """Returns the structure at an offset."""
        return cls.decode(buf, offset, len(buf))[0]


def speed_up(
    cls: type[Struct],
    frame: str = "",
    fields: list[tuple[str, str, Any]] | None = None,
    next: tuple[str, int, str | None, str | None] | None = None,
) -> None:
    """Has the extension encode and decode exact instances of a class, in a frame that `Codec.add` knows.

    `fields` is for classes whose FIELDS are not all that is on the wire. Decoding sets the fields, and type and length if the
    frame has them. `next` is for headers of packets: the attribute with the next one's number, the least number, an attribute
    that is 0 unless bytes follow, and one with the length of both.
    """
    CODEC.add(cls, frame, native_fields(cls.FIELDS) if fields is None else fields, next)


def native_fields(fields: tuple[Field, ...]) -> list[tuple[str, str, Any]]:
    """Returns the fields as the extension wants them."""
    described: list[tuple[str, str, Any]] = []
    for field in fields:
        native = ("pad", field.pad) if field.pad else field.kind.native
        if native is None:
            raise TypeError(f"the extension does not encode {field.name}: expected another kind of field")
        described.append((field.name, *native))
    return described


def tuple_struct(name: str, fields: tuple[Field, ...]) -> Any:
    """Makes a class for a structure that is a named tuple."""
    layout = Layout(fields)
    names = [field.name for field in fields if field.name]
    make: Any = namedtuple
    base: Any = make(name, names)

    class TupleStruct(Stringify, base):  # type: ignore[misc]
        """A structure on the wire."""

        TEXTS = Struct.TEXTS
        BYTE_TEXTS = Struct.BYTE_TEXTS

        def shown(self) -> Iterator[tuple[str, Any]]:
            return zip(self._fields, self, strict=True)

        def encode(self, out: bytearray) -> None:
            """Appends the structure's bytes."""
            layout.encode(self, out)

        def serialize(self, buf: bytearray, offset: int | None = None) -> None:
            """Appends the structure's bytes to a buffer."""
            self.encode(buf)

        @classmethod
        def decode(cls, data: bytes, offset: int, end: int) -> tuple[Any, int]:
            """Returns a structure, and the offset after it."""
            values, offset = layout.decode(data, offset, end)
            return cls(*[values[each] for each in names]), offset

        @classmethod
        def parser(cls, buf: bytes, offset: int = 0) -> Any:
            """Returns the structure at an offset."""
            return cls.decode(buf, offset, len(buf))[0]

    TupleStruct.__name__ = TupleStruct.__qualname__ = name
    return TupleStruct


def _check(size: int, after: int, end: int) -> None:
    if after + size > end:
        raise Truncated(f"{end - after} bytes are left of {size}")


def framed(data: bytes, offset: int, end: int, at: int = 2, least: int = 4) -> int:
    """Returns the end of a structure that has its length in 2 bytes at offset `at`."""
    _check(at + 2, offset, end)
    (length,) = struct.unpack_from("!H", data, offset + at)
    if length < least:
        raise Truncated(f"a structure has length {length}: expected {least} or more")
    _check(length, offset, end)
    return int(offset + length)


def set_length(out: bytearray, start: int, at: int = 2, align: int = 1) -> int:
    """Appends zeros up to a multiple of `align`, and writes the length of what starts at `start`; returns it."""
    out += bytes(-(len(out) - start) % align)
    length = len(out) - start
    struct.pack_into("!H", out, start + at, length)
    return length
