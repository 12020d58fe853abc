"""The rows of the table: their comparisons and targets."""

import dataclasses
import statistics
from dataclasses import dataclass
from itertools import chain

from document import Line, Target, at_least, at_most
from points import (
    BARE_LOOP,
    EXTRAS,
    GATEWAYS,
    LOADED_ENTRIES,
    OVS,
    TESTPMD,
    TRACE_PACKETS,
    UPDATED_FLOWS,
    URTICA,
    Gateway,
    Limit,
    Load,
    Rate,
    Updated,
)

# The forms measured under updates, and their names.
FORMS = {"switch": "switch", "pipeline": "pipeline alone"}

# The upper end of Open vSwitch's histogram of bursts.
BURST_CYCLES_MOST = 24_000_000

# Updates count as applied if at most one in a hundred is missing.
APPLIED = 0.99


@dataclass(frozen=True)
class Series:
    """A field that one side reports about a point, in the record with the wanted members."""

    point: object
    side: str
    field: str = "mpps"
    wanted: dict = dataclasses.field(default_factory=dict)

    def values(self, sitting):
        """Returns the values by round. Values beyond Open vSwitch's histogram are replaced by its end."""
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
    def points(self):
        return [self.point]

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
    """The values of a line: ours over another's, or the inverse if ours should be smaller."""

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
        """Returns the line; None if a side has no runs."""
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


@dataclass(frozen=True)
class BeyondPorts:
    """The time of a packet beyond that of the ports alone, in ns, computed from a rate and its limit."""

    rate: Series
    limit: Series

    @property
    def point(self):
        return self.rate.point

    @property
    def side(self):
        return self.rate.side

    @property
    def points(self):
        return [self.rate.point, self.limit.point]

    def values(self, sitting):
        """Returns the times by round, without rounds in which noise made the ports alone slower."""
        rates, limits = self.rate.values(sitting), self.limit.values(sitting)
        times = {number: 1e3 / rates[number] - 1e3 / limits[number] for number in rates if number in limits}
        return {number: time for number, time in times.items() if time > 0}

    def remarks(self, sitting):
        return self.rate.remarks(sitting)

    def applies_less_than_asked(self, sitting):
        return False


@dataclass(frozen=True)
class Mean:
    """The geometric mean of comparisons, round by round."""

    what: str
    target: Target | None
    comparisons: tuple

    @property
    def series(self):
        return list(chain(*(comparison.series for comparison in self.comparisons)))

    def line(self, row, sitting):
        """Returns the line; None if a side lacks runs of any comparison."""
        ours, against = ([pair[side].values(sitting) for pair in self.pairs] for side in (0, 1))
        rounds = sorted(set.intersection(*(set(values) for values in (*ours, *against))))
        if not rounds:
            return None
        mine, its = ([statistics.geometric_mean(values[number] for values in side) for number in rounds] for side in (ours, against))
        line = Line(row, self.what, "Mpps", mine, self.target)
        line.against = its
        line.ratios = [one / other for one, other in zip(mine, its)]
        return line

    @property
    def pairs(self):
        return [(comparison.ours, comparison.against) for comparison in self.comparisons]


@dataclass(frozen=True)
class Worst:
    """The largest of several of our figures, round by round."""

    what: str
    target: Target
    unit: str
    all_series: tuple

    @property
    def series(self):
        return list(self.all_series)

    def line(self, row, sitting):
        """Returns the line; None if any figure has no run."""
        values = [series.values(sitting) for series in self.all_series]
        rounds = sorted(set.intersection(*map(set, values)))
        if not rounds:
            return None
        return Line(row, self.what, self.unit, [max(each[number] for each in values) for number in rounds], self.target)


def ours(point, field="mpps", form="switch", **wanted):
    return Series(point, URTICA, field, {"form": form, **wanted})


def over_ovs(point, times=None, form="switch"):
    target = times and at_least(times)
    what = f"packet rate, {FORMS[form]}, {point}, over Open vSwitch"
    return Comparison(what, target, "Mpps", ours(point, form=form), Series(point, OVS))


def rates(settings, *flows):
    """Returns the pipelines' points. `port` does not depend on flows, and Open vSwitch is not measured with many of them."""
    return [
        Rate(pipeline, count)
        for count in flows
        if count in settings.flows
        for pipeline in settings.pipelines
        if pipeline != "port" or count <= 1_000
    ]


def few_flows(settings):
    return [over_ovs(point, 2) for point in rates(settings, 1, 1_000)]


def many_flows(settings):
    return [over_ovs(point, 4) for point in rates(settings, 100_000)]


def most_flows(settings):
    points = rates(settings, 1_000_000)
    return [over_ovs(point, 50 if point.pipeline == "gateway" else None) for point in points]


def without_ports(settings):
    return [
        Comparison(
            f"time of a packet beyond the ports' own, {point}, Open vSwitch's over ours",
            None,
            "ns",
            BeyondPorts(ours(point), ours(point, form="limit")),
            BeyondPorts(Series(point, OVS), Series(Limit(point.flows), TESTPMD, wanted={"mode": "io"})),
            is_inverse=True,
        )
        for point in rates(settings, *settings.flows)
    ]


def rule_sets(settings):
    return list(chain(*(sets_and_mean(settings, size, "uniform", at_least(10)) for size in settings.sizes)))


def rule_sets_by_zipf(settings):
    return list(chain(*(sets_and_mean(settings, size, "zipf", None) for size in settings.sizes)))


def sets_and_mean(settings, size, trace, target):
    comparisons = tuple(over_ovs(point) for point in settings.rule_sets(size, trace))
    kinds = ", ".join(settings.kinds)
    what = f"packet rate, switch, {kinds} with {size} rules, {trace}, over Open vSwitch: geometric mean"
    return [Mean(what, target, comparisons), *comparisons]


def worst_rule_set(settings):
    points = settings.all_rule_sets
    cycles, plain = (tuple(ours(point, field) for point in points) for field in ("cycles_per_packet", "plain_share"))
    return [
        Worst("cycles per packet, the worst rule set and trace", at_most(1_000), "cycles", cycles),
        Worst("share of packets that take the plain form, the worst rule set and trace", at_most(0), "", plain),
    ]


def most_over_one(settings):
    if 1_000_000 not in settings.flows:
        return []
    return [
        Comparison(
            f"packet rate, switch, {pipeline}, 1,000,000 flows over 1",
            at_least(0.5),
            "Mpps",
            ours(Rate(pipeline, 1_000_000)),
            ours(Rate(pipeline, 1)),
        )
        for pipeline in settings.pipelines
    ]


def pipeline_alone(settings):
    return [over_ovs(point, form="pipeline") for point in rates(settings, *settings.flows)]


def over_bare_loop(settings):
    point, one = Rate(*BARE_LOOP), Rate("l2-1k", 1)
    macswap = Series(Limit(point.flows), TESTPMD, wanted={"mode": "macswap"})
    what = "packet rate, pipeline alone, {}, over {}"
    alone = {"form": "pipeline"}
    return [
        Comparison(
            what.format(each, "our bare loop"), at_least(0.5), "Mpps", ours(each, **alone), ours(each, form="bare")
        )
        for each in (point, one)
    ] + [Comparison(what.format(point, "testpmd's"), at_least(0.5), "Mpps", ours(point, **alone), macswap)]


def over_interpreter(settings):
    return [
        Comparison(
            f"packet rate, pipeline alone, {point}, compiled over interpreted",
            at_least(1.5),
            "Mpps",
            ours(point, form="pipeline"),
            ours(point, form="interpreted"),
        )
        for point in (Rate("gateway", flows) for flows in settings.flows)
    ]


def under_updates(settings):
    comparisons = []
    for point in map(Updated, settings.updates):
        asked = {"updates_per_s_asked": point.per_second}
        for form, name in FORMS.items():
            target = at_least(0.9) if (form, point.per_second) == ("pipeline", 100_000) else None
            what = f"packet rate, {name}, {point}, over none"
            mine, quiet = ours(point, form=form, **asked), ours(point, form=form, updates_per_s_asked=None)
            comparisons.append(Comparison(what, target, "Mpps", mine, quiet))
        if OVS in point.commands(settings):
            quiet = Series(point, OVS, wanted={"updates_per_s_asked": None})
            what = f"Open vSwitch: packet rate, {point}, over none"
            comparisons.append(Comparison(what, None, "Mpps", Series(point, OVS, wanted=asked), quiet))
    return comparisons


def time_to_effect(settings):
    """Compares the time to effect under few updates, and, for information, under many."""
    return [
        Comparison(
            f"time from flow mod to effect, {percentile}, {name}, {point}",
            at_most(target) if (form, point.per_second) == ("pipeline", settings.updates[0]) else None,
            "us",
            ours(point, f"time_to_effect_us_{percentile}", form, updates_per_s_asked=point.per_second),
        )
        for point in map(Updated, settings.updates)
        for form, name in FORMS.items()
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
            f"cycles per burst of 32 packets, p99, switch, {point}, over Open vSwitch",
            targets[point.flows],
            "cycles",
            ours(point, field),
            Series(point, OVS, field),
        )
        for point in (Rate("gateway", flows) for flows in settings.flows if flows in targets)
    ]


def with_extras(settings):
    """Compares each gateway with all extras with Open vSwitch, then with itself without extras."""
    return list(chain(*(with_extras_of([Gateway(name + extras) for extras in EXTRAS]) for name in GATEWAYS)))


def with_extras_of(points):
    bare = points[0]
    alone = {"form": "pipeline"}
    what = "packet rate, pipeline alone, {}, over {}"
    over_bare = [
        Comparison(what.format(point, bare.name), at_least(0.5), "Mpps", ours(point, **alone), ours(bare, **alone))
        for point in points[1:]
    ]
    what = "share of packets that take the plain form, {}"
    plain = [Comparison(what.format(point), at_most(0), "", ours(point, "plain_share")) for point in points]
    return [*map(over_ovs, points), *over_bare, *plain]


@dataclass(frozen=True)
class Row:
    """A row of the table: its title, an explanation, and one or more lines."""

    name: str
    about: str
    comparisons: object


ROWS = {
    "1": Row(
        "The switch with few flows",
        "The median packet rate of the whole switch (`--form switch`: ports with rings that frames are copied into and out of) "
        "with one and with a thousand active flows, over that of Open vSwitch with one PMD thread. Open vSwitch has all these "
        "flows in its exact-match cache (`port` in a short cut), which is its best case.",
        few_flows,
    ),
    "2": Row(
        "The switch with 100,000 flows",
        "The same with flows that outgrow the exact-match cache (8,192), so that most packets go through the megaflow "
        "classifier.",
        many_flows,
    ),
    "3": Row(
        "The switch with a million flows",
        "The same with as many flows as a core router sees. Open vSwitch has no room for the megaflows of `gateway`: "
        "it runs its OpenFlow tables for most packets, and is measured as it is after 30 s.",
        most_flows,
    ),
    "4": Row(
        "Without the ports' share",
        "The same rates without what the ports take on each side: the time of a packet, less the time that one takes from port to "
        "port with no switch between (ours: `--form limit`; Open vSwitch's: testpmd, `io`, on the ports of ovs-bench). The "
        "ratio is of what is left.",
        without_ports,
    ),
    "5": Row(
        "Rule sets",
        f"ClassBench's sets, drawn from what was counted in published ones, their entries added one by one over OpenFlow. "
        f"{TRACE_PACKETS:,} packets, each in a rule that is drawn with equal chances; Open vSwitch has the same entries and "
        "packets. Before and after, what becomes of packets is held against a linear search over the rules.",
        rule_sets,
    ),
    "6": Row(
        "The worst rule set",
        "Of all sets and traces of rows 5 and 7: the most cycles per packet, ports included, and the largest share of packets that "
        "the compiled form leaves to the plain one.",
        worst_rule_set,
    ),
    "7": Row(
        "Rule sets by Zipf's law",
        "The same flows, of which the n-th comes an n-th as often as the first: kinder to caches of flows.",
        rule_sets_by_zipf,
    ),
    "8": Row(
        "A million flows over one",
        "How much of its rate our switch keeps when every packet is of another flow than the million before it. It has "
        "no flow cache; what is left is the processor's.",
        most_over_one,
    ),
    "9": Row(
        "The pipeline alone",
        "Our compiled pipeline alone (`--form pipeline`: verdicts are counted, nothing is sent) over the whole of Open vSwitch. "
        "It compares a part with a whole, so it has no target; it tells what ports and the rest of the switch take.",
        pipeline_alone,
    ),
    "10": Row(
        "The pipeline over a bare loop",
        "How near to the packets' own cost: a loop that takes the packets in, swaps their addresses and counts them, in "
        "our receiver (`--form bare`), and in DPDK's (testpmd, `macswap`), whose ports cost more.",
        over_bare_loop,
    ),
    "11": Row(
        "Machine code",
        "What machine code is worth: the same compiled templates, gone through by an optimised interpreter "
        "(`--form interpreted`).",
        over_interpreter,
    ),
    "12": Row(
        "Under route updates",
        f"`gateway` with {UPDATED_FLOWS:,} flows while routes are withdrawn and announced again, over the rate just "
        "before, in the same run. The pipeline alone is changed by another thread; the switch carries flow mods out between "
        "bursts. A line whose updates were not all applied has missed its target.",
        under_updates,
    ),
    "13": Row(
        "Time to effect",
        "From having a flow mod's bytes to the end of the first burst that obeys it, while packets are forwarded as "
        "fast as they go. Open vSwitch does not tell when its caches have followed.",
        time_to_effect,
    ),
    "14": Row(
        "Loading",
        "Flow mods are encoded beforehand and sent at once over a unix socket into an empty switch; the time is from "
        "the first byte to the reply to a barrier behind the last.",
        loading,
    ),
    "15": Row(
        "Bursts",
        "How long every packet of a burst waits, from taking it in to having sent it: the 99th percentile, in cycles "
        "of the time-stamp counter. Open vSwitch's is the upper end of a bucket 1.4 wide.",
        bursts,
    ),
    "16": Row(
        "Gateways with groups and meters",
        "A border gateway (`gateway`: a select group of two links for each of 16 next hops, a meter for each of 200 users) and a "
        "mobile one (`mobile`: a fast failover group for each of 20 base stations, a meter for each of 1,000 bearers), over "
        "Open vSwitch with the same meters, groups, entries and packets, and over the gateway without them. Meters drop nothing.",
        with_extras,
    ),
}
NUMBERS = tuple(ROWS)


def points_of(settings, numbers):
    """Returns the points of these rows, each once, in an order that favours neither side."""
    return list(dict.fromkeys(chain(*(row_points(settings, number) for number in numbers))))


def row_points(settings, number):
    series = chain(*(comparison.series for comparison in ROWS[number].comparisons(settings)))
    return list(chain(*(each.points for each in series)))


def lines_of(sitting):
    """Returns the lines, and the rows that are incomplete."""
    lines, failures = [], {}
    for number, row in ROWS.items():
        comparisons = row.comparisons(sitting.settings)
        found = [comparison.line(number, sitting) for comparison in comparisons]
        lines += filter(None, found)
        lacking = [comparison.what for comparison, line in zip(comparisons, found) if line is None]
        if lacking:
            failures[number] = "; ".join(lacking)
    return lines, failures
