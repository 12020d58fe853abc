"""An analytic model of what a packet costs: a sum over the templates that it meets, and where in memory they lie.

Ten points of the sitting calibrate it; the others are predicted. A packet costs

    cycles = frame + sum of the parts below + sum over cache lines of the cost of the level that they come from

with these parts, each the difference between two calibrating points:

    frame     received, processed by a table of one entry, sent: `port`
    hash      a hash table, its entry in the first-level cache: `l2-1k` over `port`
    pauses    a hash table whose memory is fetched ahead: `l2-100k` over `l2-1k`
    address   an IPv4 address rewritten with its checksums, and the headers up to TCP found: `lb` over `l2-1k`
    tag       a VLAN tag pushed or popped: `gateway-down` over `lb` and two more hash tables
    route     a trie, its pauses, both Ethernet addresses and the TTL rewritten: `l3` over `port`

all with one flow. A table adds cache lines: a hash table's slot and entry, a trie's root, node and entry. Which level
they come from follows from how many entries the flows reach; the second level's cost is calibrated by `l2-1k` with
1,000 flows, the third's by `l2-100k` with a million, and what it takes to stream the packets themselves by `port`.
"""

import math
from dataclasses import dataclass

from points import FLOWS, Rate
from rows import ours

LINE = 64
# What of a cache is left for tables: the rest has buffers, packets and code.
NEAR, MIDDLE = 20 << 10, 768 << 10
# Packets stream from the third level, or from memory.
STREAM_NEAR, STREAM_MIDDLE = 1 << 20, 24 << 20

# Cycles to find the headers up to TCP's, which `address` and `route` both contain and `gateway` does once: from a profile.
PARSE = 8

WITHIN = 0.25


@dataclass(frozen=True)
class Path:
    """What a packet of a pipeline meets: how often each part, and for each table how many entries it has and how many
    cache lines a search of it looks at."""

    parts: dict
    tables: tuple = ()


ROUTES = (10_000, 3)

PATHS = {
    "port": Path({}),
    "l2-1k": Path({"hash": 1}, ((1_000, 2),)),
    "l2-100k": Path({"hash": 1, "pauses": 1}, ((100_000, 2),)),
    "l3": Path({"route": 1}, (ROUTES,)),
    "lb": Path({"hash": 1, "address": 1}, ((200, 3),)),
    "gateway": Path({"hash": 2, "address": 1, "tag": 1, "route": 1, "parse": -1}, ((10, 2), (200, 2), ROUTES)),
    "gateway-down": Path({"hash": 3, "address": 1, "tag": 1}, ((11, 2), (200, 2))),
}

CALIBRATING = {
    *(Rate(pipeline, 1) for pipeline in PATHS if pipeline != "gateway"),
    Rate("port", 100_000),
    Rate("port", 1_000_000),
    Rate("l2-1k", 1_000),
    Rate("l2-100k", 1_000_000),
}


def section(sitting):
    """What the document says: empty where calibrating points are missing."""
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
    values = list(ours(point, "cycles_per_packet").values(sitting).values())
    return sorted(values)[len(values) // 2] if values else None


def row(model, point, measured):
    predicted = model.predict(point)
    error = predicted / measured - 1
    mark = " *" if point in CALIBRATING else ""
    return point, error, f"| {point}{mark} | {predicted:.0f} | {measured:.0f} | {error:+.0%} |"


class Model:
    """Costs, as the calibrating points tell them."""

    def __init__(self, measured):
        def one(pipeline, flows=1):
            return measured[Rate(pipeline, flows)]

        self.frame = one("port")
        self.streams = (0, max(0, one("port", 100_000) - self.frame), max(0, one("port", 1_000_000) - self.frame))
        self.parts = {"parse": PARSE, "hash": one("l2-1k") - self.frame}
        self.parts["pauses"] = one("l2-100k") - one("l2-1k")
        self.parts["address"] = one("lb") - one("l2-1k")
        self.parts["tag"] = one("gateway-down") - one("lb") - 2 * self.parts["hash"]
        self.parts["route"] = one("l3") - self.frame
        self.levels = (0, 0, 0)
        self.levels = (0, self.per_line(measured, Rate("l2-1k", 1_000)), 0)
        self.levels = (0, self.levels[1], self.per_line(measured, Rate("l2-100k", 1_000_000), level=2))

    def costs(self):
        names = {"frame": self.frame, **self.parts}
        return {**names, "a line of the second level": self.levels[1], "of the third": self.levels[2]}

    def predict(self, point):
        path = PATHS[point.pipeline]
        steps = sum(self.parts[name] * count for name, count in path.parts.items())
        shares = self.shares(point)
        lines = sum(share * cost for share, cost in zip(shares, self.levels))
        return self.frame + steps + lines + self.stream(point.flows)

    def per_line(self, measured, point, level=1):
        """What a line of a level costs, if the rest of a point is known."""
        return max(0, measured[point] - self.predict(point)) / self.shares(point)[level]

    def stream(self, flows):
        size = flows * LINE
        return self.streams[(size > STREAM_NEAR) + (size > STREAM_MIDDLE)]

    @staticmethod
    def shares(point):
        """How many of the cache lines that a packet looks at come from each level."""
        tables = PATHS[point.pipeline].tables
        reached = [(entries * -math.expm1(-point.flows / entries), lines) for entries, lines in tables]
        size = sum(entries * lines * LINE for entries, lines in reached)
        lines = sum(lines for _, lines in reached)
        if not size:
            return 0, 0, 0
        near = min(1, NEAR / size)
        middle = min(1, MIDDLE / size)
        return lines * near, lines * (middle - near), lines * (1 - middle)
