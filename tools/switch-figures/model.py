"""An analytic model of a packet's cost in the pipeline alone: a sum over the templates that it passes, and their memory accesses.

Eleven points of the sitting calibrate it; the others are predicted. A packet costs

    cycles = frame + sum of the parts below + sum over cache lines of the cost of the level that they come from

with these parts, each the difference of calibrating points with one flow:

    frame     received, processed by a table of one entry, sent: `port`
    hash      a hash table, its entry in the first-level cache: `l2-1k` over `port`
    pauses    a hash table whose memory is fetched ahead: `l2-100k` over `l2-1k`
    address   headers up to TCP found, an IPv4 address rewritten with its checksums: `lb` over `l2-1k`
    route     headers found, a trie, its pauses, Ethernet addresses and TTL rewritten: `l3` over `port`
    pop       a VLAN tag popped, and the savings of consecutive tables: `gateway` over its other parts
    push      a VLAN tag pushed, likewise: `gateway-down` over its other parts

A table adds cache lines: a hash table's slot and entry, a trie's root, node and entry. The number of entries that the flows
reach determines the level that they come from; `l2-1k` with 1,000 flows calibrates the second level, `l3` with a million the
third, `l2-100k` with a million memory, and `port` with a million the cost of streaming the packets themselves.
"""

import math
from dataclasses import dataclass

from points import FLOWS, Rate
from rows import ours

LINE = 64
# The share of each cache for tables: the rest has buffers, packets and code, and in the last cache other programs' data.
CACHES = (20 << 10, 768 << 10, 6 << 20)
# Packets that need more than this stream from memory: 64 bytes each.
STREAM = 24 << 20

WITHIN = 0.25


@dataclass(frozen=True)
class Path:
    """The path of a packet of a pipeline: how often it passes each part, and for each table its number of entries and the
    number of cache lines that a search reads."""

    parts: dict
    tables: tuple = ()


# The 4,096 lines of a root, and the lines of nodes and entries.
ROUTES = ((4_096, 1), (10_000, 2))

PATHS = {
    "port": Path({}),
    "l2-1k": Path({"hash": 1}, ((1_000, 2),)),
    "l2-100k": Path({"hash": 1, "pauses": 1}, ((100_000, 2),)),
    "l3": Path({"route": 1}, ROUTES),
    "lb": Path({"hash": 1, "address": 1}, ((200, 3),)),
    "gateway": Path({"pop": 1, "hash": 2, "address": 1, "route": 1}, ((10, 2), (200, 2), *ROUTES)),
    "gateway-down": Path({"hash": 3, "address": 1, "push": 1}, ((11, 2), (200, 2))),
}

CALIBRATING = {
    *(Rate(pipeline, 1) for pipeline in PATHS),
    Rate("port", 1_000_000),
    Rate("l2-1k", 1_000),
    Rate("l3", 1_000_000),
    Rate("l2-100k", 1_000_000),
}


def section(sitting):
    """Returns the model's section of the document; empty if calibrating points are missing."""
    measured = {point: cycles(sitting, point) for point in points()}
    if any(measured.get(point) is None for point in CALIBRATING):
        return ""
    model = Model(measured)
    rows = [row(model, point, value) for point, value in measured.items() if value is not None]
    predicted = [error for point, error, _ in rows if point not in CALIBRATING]
    good = sum(abs(error) <= WITHIN for error in predicted)
    return "\n".join(
        [
            "## Predicted by a model\n",
            f"{good} of {len(predicted)} predictions are within {WITHIN:.0%}. `tools/switch-figures/model.py` says how a",
            "packet's cycles are made up: " + ", ".join(f"{name} {cost:.0f}" for name, cost in model.costs().items()) + ".",
            "Points marked * calibrate the model.\n",
            "| point | predicted (cycles) | measured (cycles) | off by |",
            "| --- | --- | --- | --- |",
            *(text for _, _, text in rows),
            "",
        ]
    )


def points():
    return [Rate(pipeline, flows) for pipeline in PATHS for flows in FLOWS]


def cycles(sitting, point):
    values = list(ours(point, "cycles_per_packet", "pipeline").values(sitting).values())
    return sorted(values)[len(values) // 2] if values else None


def row(model, point, measured):
    predicted = model.predict(point)
    error = predicted / measured - 1
    mark = " *" if point in CALIBRATING else ""
    return point, error, f"| {point}{mark} | {predicted:.0f} | {measured:.0f} | {error:+.0%} |"


class Model:
    """The costs derived from the calibrating points."""

    def __init__(self, measured):
        def one(pipeline, flows=1):
            return measured[Rate(pipeline, flows)]

        self.frame = one("port")
        self.streaming = max(0, one("port", 1_000_000) - self.frame)
        self.parts = {"hash": one("l2-1k") - self.frame, "route": one("l3") - self.frame}
        self.parts["pauses"] = one("l2-100k") - one("l2-1k")
        self.parts["address"] = one("lb") - one("l2-1k")
        self.parts["pop"] = one("gateway") - self.known("gateway")
        self.parts["push"] = one("gateway-down") - self.known("gateway-down")
        self.levels = [0]
        for point in (Rate("l2-1k", 1_000), Rate("l3", 1_000_000), Rate("l2-100k", 1_000_000)):
            self.levels.append(self.per_line(measured, point))

    def costs(self):
        lines = dict(zip(("a line of the second level", "of the third", "of memory"), self.levels[1:]))
        return {"frame": self.frame, **self.parts, **lines}

    def known(self, pipeline):
        """Returns the cost of the parts known so far."""
        parts = PATHS[pipeline].parts.items()
        return self.frame + sum(self.parts[name] * count for name, count in parts if name in self.parts)

    def predict(self, point):
        lines = sum(share * cost for share, cost in zip(self.shares(point), self.levels))
        return self.known(point.pipeline) + lines + self.stream(point.flows)

    def per_line(self, measured, point):
        """Returns the cost of a line of the next level, the only unknown of this point."""
        return max(0, measured[point] - self.predict(point)) / self.shares(point)[len(self.levels)]

    def stream(self, flows):
        return self.streaming if flows * LINE > STREAM else 0

    @staticmethod
    def shares(point):
        """Returns how many of the cache lines that a packet reads come from each level."""
        tables = PATHS[point.pipeline].tables
        reached = [(entries * -math.expm1(-point.flows / entries), lines) for entries, lines in tables]
        size = sum(entries * lines * LINE for entries, lines in reached)
        lines = sum(lines for _, lines in reached)
        held = [0, *(min(1, cache / size) if size else 1 for cache in CACHES), 1]
        return [lines * (more - less) for less, more in zip(held, held[1:])]
