#!/usr/bin/env python3
"""Makes the golden messages of crates/wire/tests/vectors with os-ken, and shows that they cover the protocol.

    .venv/bin/python tools/vectors/osken_vectors.py            writes of10.jsonl and of13.jsonl
    .venv/bin/python tools/vectors/osken_vectors.py --check    writes nothing; fails if the files differ

Each line is {"name", "type": os-ken's class, "made_by", "hex"}. `made_by` is "os-ken" where os-ken serialised the
message, "hand" where it only parses such a message: then the bytes were packed from the specification, os-ken read
them, and "json" holds what it read.
"""

import sys
import tempfile
from pathlib import Path

import of10
import of13
from vectors import parts_of

DIRECTORY = Path(__file__).resolve().parents[2] / "crates/wire/tests/vectors"


def main():
    check = sys.argv[1:] == ["--check"]
    if sys.argv[1:] and not check:
        sys.exit(__doc__)
    missing = stale = 0
    for file_name, maker, coverage in (("of10.jsonl", of10, coverage_10), ("of13.jsonl", of13, coverage_13)):
        vectors = maker.build()
        print(f"{file_name}: {len(vectors.records)} messages")
        missing += report(coverage(vectors))
        stale += differs(vectors, DIRECTORY / file_name) if check else 0
        if not check:
            DIRECTORY.mkdir(parents=True, exist_ok=True)
            vectors.write(DIRECTORY / file_name)
    sys.exit(1 if missing or stale else 0)


def differs(vectors, path):
    with tempfile.NamedTemporaryFile() as fresh:
        vectors.write(fresh.name)
        same = Path(fresh.name).read_bytes() == path.read_bytes()
    if not same:
        print(f"{path.name} is not what this script makes; run it without --check", file=sys.stderr)
    return not same


def report(rows):
    """Prints `covered/all` for each kind of element; returns the number of missing ones."""
    total = 0
    for kind, wanted, seen in rows:
        absent = sorted(name for name, value in wanted.items() if value not in seen)
        note = f"  missing: {', '.join(absent)}" if absent else ""
        print(f"  {kind:24} {len(wanted) - len(absent):3}/{len(wanted)}{note}")
        total += len(absent)
    return total


def constants(ofproto, prefix, but=()):
    return {name: value for name, value in vars(ofproto).items() if name.startswith(prefix) and name not in but}


def coverage_10(vectors):
    ofp = vectors.ofproto
    seen = Seen(vectors)
    stats = constants(ofp, "OFPST_")
    return [
        ("OFPT_*", constants(ofp, "OFPT_"), seen.message_types),
        ("OFPST_* requests", stats, seen.multipart(ofp.OFPT_STATS_REQUEST)),
        ("OFPST_* replies", stats, seen.multipart(ofp.OFPT_STATS_REPLY)),
        ("OFPAT_*", constants(ofp, "OFPAT_"), seen.types_of("OFPAction")),
        ("OFPQT_*", constants(ofp, "OFPQT_"), seen.types_of("OFPQueueProp", "property")),
        ("error types and codes", {n: (t, c) for n, t, c in of10.error_codes()}, seen.errors),
    ]


def coverage_13(vectors):
    ofp = vectors.ofproto
    seen = Seen(vectors)
    multipart = constants(ofp, "OFPMP_")
    errors = {n: (t, c) for n, t, c in of13.error_codes()}
    errors["experimenter"] = (ofp.OFPET_EXPERIMENTER, 0x0102)
    # The experimenter instruction is packed by hand; os-ken cannot read it, so it is not among os-ken's objects.
    instructions = constants(ofp, "OFPIT_", but=("OFPIT_EXPERIMENTER",))
    fields = {field.name: field.name for field in ofp.oxm_types}
    masked = {name: name for name, (_, _, mask) in of13.OXM_BASIC.items() if mask is not None}
    settable = {name: name for name in of13.OXM_BASIC if name not in of13.NOT_SETTABLE}
    return [
        ("OFPT_*", constants(ofp, "OFPT_"), seen.message_types),
        ("OFPMP_* requests", multipart, seen.multipart(ofp.OFPT_MULTIPART_REQUEST)),
        ("OFPMP_* replies", multipart, seen.multipart(ofp.OFPT_MULTIPART_REPLY)),
        ("OFPAT_*", constants(ofp, "OFPAT_"), seen.types_of("OFPAction")),
        ("OFPIT_*", instructions, seen.types_of("OFPInstruction")),
        ("OFPMBT_*", constants(ofp, "OFPMBT_"), seen.types_of("OFPMeterBand")),
        ("OFPGT_*", constants(ofp, "OFPGT_"), seen.types_of("OFPGroupMod") | seen.types_of("OFPGroupDescStats")),
        ("OFPQT_*", constants(ofp, "OFPQT_"), seen.types_of("OFPQueueProp", "property")),
        ("OFPTFPT_*", constants(ofp, "OFPTFPT_"), seen.types_of("OFPTableFeatureProp")),
        ("OFPHET_*", constants(ofp, "OFPHET_"), seen.types_of("OFPHelloElem")),
        ("OXM fields", fields, {name for name, _ in seen.fields}),
        ("OXM fields with a mask", masked, {name for name, mask in seen.fields if mask}),
        ("OXM fields set", settable, seen.set_fields),
        ("error types and codes", errors, seen.errors),
    ]


class Seen:
    """The elements that occur in the vectors, read from their bytes and from os-ken's objects."""

    def __init__(self, vectors):
        self.frames = [frame for frame, _ in vectors.messages]
        self.parts = [part for _, message in vectors.messages for part in parts_of(message)]
        self.message_types = {frame[1] for frame in self.frames}
        self.errors = {(word(frame, 8), word(frame, 10)) for frame in self.frames if frame[1] == 1}

    def multipart(self, message_type):
        return {word(frame, 8) for frame in self.frames if frame[1] == message_type}

    def types_of(self, class_prefix, attribute="type"):
        """Returns the type numbers in all parts whose class has this prefix."""
        return {getattr(part, attribute) for part in self.parts
                if type(part).__name__.startswith(class_prefix) and hasattr(part, attribute)}

    @property
    def fields(self):
        """Returns (field, whether it is masked) of all matches."""
        return {(name, isinstance(value, tuple)) for part in self.parts
                if type(part).__name__ == "OFPMatch" for name, value in part.items()}

    @property
    def set_fields(self):
        return {part.key for part in self.parts if type(part).__name__ == "OFPActionSetField"}


def word(frame, offset):
    return int.from_bytes(frame[offset:offset + 2], "big")


if __name__ == "__main__":
    main()
