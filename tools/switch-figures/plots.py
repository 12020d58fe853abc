"""The three plots, drawn from a sitting."""

import statistics

from points import OVS, URTICA, Rate, Updated
from rows import Series
from svg import Chart, Curve, Dot, Scale

OURS_COLOUR, PIPELINE_COLOUR, OVS_COLOUR = "#0072b2", "#56b4e9", "#d55e00"

# The position of "no updates" on a scale without a zero.
NO_UPDATES = 100


def rates(sitting):
    """Returns the packet rate by active flows, with a chart for each pipeline, all on equal scales."""
    settings = sitting.settings
    curves = {pipeline: rate_curves(sitting, pipeline) for pipeline in settings.pipelines}
    y = Scale.around([curve for both in curves.values() for curve in both], "million packets per second")
    charts = [Chart(pipeline, flows_scale(settings), y, both) for pipeline, both in curves.items()]
    return Chart.side_by_side(charts, columns=4)


def rate_curves(sitting, pipeline):
    return [
        Curve(name, colour, dots(sitting, side, "mpps", pipeline, wanted))
        for name, side, colour, wanted in (
            ("Urtica", URTICA, OURS_COLOUR, {"form": "switch"}),
            ("its pipeline alone", URTICA, PIPELINE_COLOUR, {"form": "pipeline"}),
            ("Open vSwitch", OVS, OVS_COLOUR, {}),
        )
    ]


def latency(sitting):
    """Returns the cycles per burst by active flows: the median and the 99th percentile of both switches."""
    curves = [
        Curve(
            f"{name}, {percentile}",
            colour,
            dots(sitting, side, f"burst_cycles_{percentile}", "gateway", wanted),
            dash,
        )
        for name, side, colour, wanted in (
            ("Open vSwitch", OVS, OVS_COLOUR, {}),
            ("Urtica", URTICA, OURS_COLOUR, {"form": "switch"}),
        )
        for percentile, dash in (("p99", ""), ("p50", "5 4"))
    ]
    y = Scale.around(curves, "cycles per burst of 32 packets")
    return Chart.side_by_side([Chart("gateway", flows_scale(sitting.settings), y, curves)], columns=1)


def updates(sitting):
    """Returns the packet rate by applied route updates; without updates at the left end."""
    curves = [
        Curve(name, colour, update_dots(sitting, side, wanted))
        for name, side, colour, wanted in (
            ("Urtica", URTICA, OURS_COLOUR, {"form": "switch"}),
            ("Open vSwitch", OVS, OVS_COLOUR, {}),
        )
    ]
    x = Scale(NO_UPDATES, 100_000, "route updates per second, applied", {NO_UPDATES: "none"})
    y = Scale.from_zero(curves, "million packets per second")
    return Chart.side_by_side([Chart("gateway, 1,000 flows", x, y, curves)], columns=1)


def dots(sitting, side, field, pipeline, wanted):
    found = []
    for flows in sitting.settings.flows:
        values = Series(Rate(pipeline, flows), side, field, wanted).values(sitting).values()
        if values:
            found.append(Dot(flows, statistics.median(values), min(values), max(values)))
    return found


def update_dots(sitting, side, wanted):
    found, quiet = [], []
    for point in map(Updated, sitting.settings.updates):
        quiet += sitting.values(point, side, "mpps", updates_per_s_asked=None, **wanted).values()
        asked = {**wanted, "updates_per_s_asked": point.per_second}
        values = sitting.values(point, side, "mpps", **asked).values()
        applied = sitting.values(point, side, "updates_per_s", **asked).values()
        if values:
            found.append(Dot(statistics.median(applied), statistics.median(values), min(values), max(values)))
    if quiet:
        found.insert(0, Dot(NO_UPDATES, statistics.median(quiet), min(quiet), max(quiet)))
    return found


def flows_scale(settings):
    return Scale(settings.flows[0], settings.flows[-1], "active flows")
