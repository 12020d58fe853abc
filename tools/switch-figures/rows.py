"""The rows of the table: what is compared with what, and the targets."""

import dataclasses
import statistics
from dataclasses import dataclass
from itertools import chain

from document import Line, Target, at_least, at_most
from points import (
    BARE_LOOP,
    LOADED_ENTRIES,
    OVS,
    TESTPMD,
    UPDATED_FLOWS,
    URTICA,
    Load,
    Rate,
    Updated,
)

# Open vSwitch's histogram of bursts ends here, and tells nothing beyond.
BURST_CYCLES_MOST = 24_000_000

# Updates count as applied when no more than one in a hundred is missing.
APPLIED = 0.99


@dataclass(frozen=True)
class Series:
    """A field that one side tells of a point, in the record that has the wanted members."""

    point: object
    side: str
    field: str = "mpps"
    wanted: dict = dataclasses.field(default_factory=dict)

    def values(self, sitting):
        """By round. What is beyond Open vSwitch's histogram is its end."""
        found = sitting.values(self.point, self.side, self.field, **self.wanted)
        return {number: BURST_CYCLES_MOST if value is None else value for number, value in found.items()}

    def remarks(self, sitting):
        def told(field):
            return list(sitting.values(self.point, self.side, field, **self.wanted).values())

        if None in told(self.field):
            yield f"Open vSwitch's histogram ends at {BURST_CYCLES_MOST:,}, and it was beyond"
        restless = told("settled").count(False)
        if restless and not self.is_updated:
            yield f"Open vSwitch did not settle in {restless} of {len(told('settled'))} runs"
        if self.is_updated:
            yield f"{statistics.median(told('updates_per_s')):,.0f} updates/s applied"

    @property
    def is_updated(self):
        return bool(self.wanted.get("updates_per_s_asked"))

    def applies_less_than_asked(self, sitting):
        if not self.is_updated:
            return False
        applied = sitting.values(self.point, self.side, "updates_per_s", **self.wanted).values()
        return statistics.median(applied) < APPLIED * self.wanted["updates_per_s_asked"]


@dataclass(frozen=True)
class Comparison:
    """What becomes a line: ours over another's, or the other way round where ours is to be the smaller."""

    what: str
    target: Target | None
    unit: str
    ours: Series
    against: Series | None = None
    is_inverse: bool = False

    @property
    def series(self):
        return [self.ours] if self.against is None else [self.ours, self.against]

    def line(self, row, sitting):
        """None where a side has no runs."""
        values = [series.values(sitting) for series in self.series]
        if not all(values):
            return None
        ours, *against = values
        line = Line(row, self.what, self.unit, list(ours.values()), self.target)
        if against:
            self.compare(line, ours, against[0])
        line.remarks = list(chain(*(series.remarks(sitting) for series in self.series)))
        rounds = min(map(len, values))
        if rounds < sitting.settings.rounds:
            line.remarks.append(f"{rounds} of {sitting.settings.rounds} rounds")
        line.commands = [self.command(sitting, series) for series in self.series]
        line.faulty = self.ours.applies_less_than_asked(sitting)
        return line

    def compare(self, line, ours, against):
        def ratio(mine, its):
            return its / mine if self.is_inverse else mine / its

        line.against = list(against.values())
        line.ratios = [ratio(ours[number], against[number]) for number in ours if number in against]

    @staticmethod
    def command(sitting, series):
        return " ".join(series.point.commands(sitting.settings)[series.side])


def ours(point, field="mpps", form="compiled", **wanted):
    return Series(point, URTICA, field, {"form": form, **wanted})


def over_ovs(pipeline, flows, times):
    point = Rate(pipeline, flows)
    target = times and at_least(times)
    return Comparison(f"packet rate, {point}, over Open vSwitch", target, "Mpps", ours(point), Series(point, OVS))


def few_flows(settings):
    times = {1: 1.3, 1_000: 2}
    return [over_ovs(pipeline, flows, times[flows]) for flows in times for pipeline in settings.pipelines]


def many_flows(settings):
    return of_many(settings, 100_000, gateway_times=5)


def most_flows(settings):
    return of_many(settings, 1_000_000, gateway_times=50)


def of_many(settings, flows, gateway_times):
    """`port` does not look at flows; from the network to users there are few megaflows, and so no target."""
    times = {"l2-1k": 3, "l2-100k": 3, "l3": 3, "lb": 3, "gateway": gateway_times, "gateway-down": None}
    if flows not in settings.flows:
        return []
    return [over_ovs(pipeline, flows, times[pipeline]) for pipeline in settings.pipelines if pipeline in times]


def most_over_one(settings):
    if 1_000_000 not in settings.flows:
        return []
    return [
        Comparison(
            f"packet rate, {pipeline}, 1,000,000 flows over 1",
            at_least(0.5),
            "Mpps",
            ours(Rate(pipeline, 1_000_000)),
            ours(Rate(pipeline, 1)),
        )
        for pipeline in settings.pipelines
    ]


def over_bare_loop(settings):
    point, one = Rate(*BARE_LOOP), Rate("l2-1k", 1)
    macswap = Series(point, TESTPMD, wanted={"mode": "macswap"})
    what = "packet rate, {}, over {}"
    return [
        Comparison(what.format(point, "our bare loop"), at_least(0.5), "Mpps", ours(point), ours(point, form="limit")),
        Comparison(what.format(one, "our bare loop"), at_least(0.5), "Mpps", ours(one), ours(one, form="limit")),
        Comparison(what.format(point, "testpmd's"), at_least(0.5), "Mpps", ours(point), macswap),
    ]


def over_interpreter(settings):
    return [
        Comparison(
            f"packet rate, {point}, compiled over interpreted",
            at_least(1.5),
            "Mpps",
            ours(point),
            ours(point, form="interpreted"),
        )
        for point in (Rate("gateway", flows) for flows in settings.flows)
    ]


def under_updates(settings):
    comparisons = []
    for point in map(Updated, settings.updates):
        target = at_least(0.9) if point.per_second == 100_000 else None
        what = f"packet rate, {point}, over none"
        asked = {"updates_per_s_asked": point.per_second}
        comparisons.append(
            Comparison(what, target, "Mpps", ours(point, **asked), ours(point, updates_per_s_asked=None))
        )
        if OVS in point.commands(settings):
            quiet = Series(point, OVS, wanted={"updates_per_s_asked": None})
            comparisons.append(
                Comparison(f"Open vSwitch: {what}", None, "Mpps", Series(point, OVS, wanted=asked), quiet)
            )
    return comparisons


def time_to_effect(settings):
    """With few updates beside the measured ones, and, for information, with many."""
    return [
        Comparison(
            f"time from flow mod to effect, {percentile}, {point}",
            at_most(target) if point.per_second == settings.updates[0] else None,
            "us",
            ours(point, f"time_to_effect_us_{percentile}", updates_per_s_asked=point.per_second),
        )
        for point in map(Updated, settings.updates)
        for percentile, target in (("p50", 20), ("p99", 1_000))
    ]


def loading(settings):
    point = Load(LOADED_ENTRIES)
    what = f"{point} sent at once over OpenFlow, Open vSwitch's time over ours"
    mine, its = (Series(point, side, "openflow_s") for side in (URTICA, OVS))
    return [Comparison(what, at_least(2), "s", mine, its, is_inverse=True)]


def bursts(settings):
    targets = {100_000: at_most(0.2), 1_000_000: at_most(0.01)}
    field = "burst_cycles_p99"
    return [
        Comparison(
            f"cycles per burst of 32 packets, p99, {point}, over Open vSwitch",
            targets[point.flows],
            "cycles",
            ours(point, field),
            Series(point, OVS, field),
        )
        for point in (Rate("gateway", flows) for flows in settings.flows if flows in targets)
    ]


@dataclass(frozen=True)
class Row:
    """A row of the table, which may have several lines, and what is to be said about it."""

    about: str
    comparisons: object


ROWS = {
    "1": Row(
        "The median packet rate with one and with a thousand active flows, ours over that of Open vSwitch with one PMD "
        "thread. Open vSwitch has all these flows in its exact-match cache (`port` in a short cut), which is its best "
        "case.",
        few_flows,
    ),
    "2": Row(
        "The same with flows that outgrow the exact-match cache (8,192), so that most packets go through the megaflow "
        "classifier. `gateway-down` has few megaflows and no target.",
        many_flows,
    ),
    "3": Row(
        "The same with as many flows as a core router sees. Open vSwitch has no room for the megaflows of `gateway`: "
        "it runs its OpenFlow tables for most packets, and is measured as it is after 30 s.",
        most_flows,
    ),
    "4": Row(
        "How much of its rate our switch keeps when every packet is of another flow than the million before it. It has "
        "no flow cache; what is left is the processor's. Where `l2-1k` misses, a profile has two fifths of the time in "
        "receiving: a million packets come from memory, a single one from the first-level cache, and the rest of the work "
        "takes 20 cycles. Another third is waiting for slots and entries, which that stream drives out of the caches.",
        most_over_one,
    ),
    "5": Row(
        "How near to the packets' own cost: a loop that takes the packets in, swaps their addresses and sends them, in "
        "our receiver (`--form limit`), and in DPDK's (testpmd, `macswap`), whose ports cost more. Our own loop takes 6 "
        "cycles for a packet; a look-up would have to do with 6 more, and a hash, a slot, an entry and five counters take "
        "14 at best (`--explain-code` shows them all).",
        over_bare_loop,
    ),
    "6": Row(
        "What machine code is worth: the same compiled templates, gone through by an optimised interpreter "
        "(`--form interpreted`).",
        over_interpreter,
    ),
    "7": Row(
        f"`gateway` with {UPDATED_FLOWS:,} flows while routes are withdrawn and announced again, over the rate just "
        "before, in the same run. A line whose updates were not all "
        "applied has missed its target.",
        under_updates,
    ),
    "8": Row(
        "From having a flow mod's bytes to the end of the first burst that obeys it, while packets are forwarded as "
        "fast as they go. Open vSwitch does not tell when its caches have followed.",
        time_to_effect,
    ),
    "9": Row(
        "Flow mods are encoded beforehand and sent at once over a unix socket into an empty switch; the time is from "
        "the first byte to the reply to a barrier behind the last.",
        loading,
    ),
    "10": Row(
        "How long every packet of a burst waits, from taking it in to having sent it: the 99th percentile, in cycles "
        "of the time-stamp counter. Open vSwitch's is the upper end of a bucket 1.4 wide.",
        bursts,
    ),
}
NUMBERS = tuple(ROWS)


def points_of(settings, numbers):
    """What is to be measured for these rows, each point once, in an order that does not favour a side."""
    comparisons = chain(*(ROWS[number].comparisons(settings) for number in numbers))
    return list(dict.fromkeys(series.point for comparison in comparisons for series in comparison.series))


def lines_of(sitting):
    """The lines, and which rows lack something."""
    lines, failures = [], {}
    for number, row in ROWS.items():
        comparisons = row.comparisons(sitting.settings)
        found = [comparison.line(number, sitting) for comparison in comparisons]
        lines += filter(None, found)
        lacking = [comparison.what for comparison, line in zip(comparisons, found) if line is None]
        if lacking:
            failures[number] = "; ".join(lacking)
    return lines, failures
