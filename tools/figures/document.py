"""The lines of the table, and the document and the JSON that they stand in."""

import datetime
import json
import os
import platform
import re
import statistics
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from bench import ATTEMPTS_PER_TURN, REPEATS_IN_ALL, ROOT

# What stands in a cell in place of a figure.
NOT_MEASURED = "not measured"


@dataclass(frozen=True)
class Target:
    sign: str
    value: float

    def is_reached(self, figure):
        return figure >= self.value if self.sign == "≥" else figure <= self.value

    def __str__(self):
        return f"{self.sign} {number(self.value)}"


def at_least(value):
    return Target("≥", value)


def at_most(value):
    return Target("≤", value)


@dataclass
class Line:
    """A line of the table. The figure is what the target is about, `None` where nothing could be measured; without a target
    it is for information."""

    row: str
    what: str
    unit: str
    figure: float | None
    ours: list
    target: Target | None = None
    against: list = field(default_factory=list)
    ratios: list = field(default_factory=list)
    remarks: list = field(default_factory=list)
    commands: list = field(default_factory=list)
    faulty: bool = False

    @property
    def reached(self):
        if self.target is None:
            return None
        return self.figure is not None and self.target.is_reached(self.figure) and not self.faulty


def ratio_line(row, what, target, metric, unit, ours, against):
    """Our median over the other's; the ratios are those of the rounds. A round in which either side reads 0, as CPU time
    does where the kernel's clock is too coarse for it, was not measured."""
    line = figure_line(row, what, target, metric, unit, ours)
    rounds = [(mine, getattr(run, metric)) for mine, run in zip(line.ours, against)]
    measured = [both for both in rounds if all(both)]
    line.ours = [mine for mine, _ in measured]
    line.against = [its for _, its in measured]
    line.ratios = [mine / its for mine, its in measured]
    line.figure = statistics.median(line.ours) / statistics.median(line.against) if measured else None
    line.remarks += remarks_on(against)
    if len(measured) < len(rounds):
        line.remarks.append(f"{len(rounds) - len(measured)} of {len(rounds)} rounds not measured: a side reads 0")
    line.commands += commands_of(against)
    return line


def figure_line(row, what, target, metric, unit, ours, summarise=statistics.median):
    values = [getattr(run, metric) for run in ours]
    return Line(
        row=row,
        what=what,
        unit=unit,
        figure=summarise(values),
        ours=values,
        target=target,
        remarks=remarks_on(ours),
        commands=commands_of(ours),
        faulty=any(run.faulty for run in ours),
    )


def remarks_on(runs):
    counts = {
        "disturbed": sum(run.disturbed for run in runs),
        "with wrong or lost answers": sum(run.faulty for run in runs),
        "ended before the last answers came": sum(run.report["unanswered"] > 0 for run in runs),
    }
    return [f"{count} of {len(runs)} runs of {runs[0].side} {how}" for how, count in counts.items() if count]


def commands_of(runs):
    return [runs[0].server_command, runs[0].load_command]


def document(title, explanation, lines, failures, machine, settings, runs, rest=""):
    """The whole text. `explanation` says how it was measured, with the names of facts in braces; `rest` stands after the
    table."""
    targets = [line for line in lines if line.target]
    reached = sum(line.reached for line in targets)
    waits, thefts = ([getattr(run, name) for run in runs if run.counts] or [0] for name in ("waited", "stolen"))
    parts = [
        f"# {title}\n",
        f"**{reached} of {len(targets)} targets reached.**"
        + (f" Not measured: row {', '.join(failures)}." if failures else "")
        + (" THIS WAS A QUICK RUN: ITS FIGURES MEAN NOTHING." if settings.quick else "")
        + "\n",
        explanation.format(
            **machine,
            rounds=settings.rounds,
            ms=settings.ms,
            server_core=settings.server_core,
            load_core=settings.load_core,
            repeats=ATTEMPTS_PER_TURN - 1,
            all_repeats=REPEATS_IN_ALL,
            waited=statistics.median(waits),
            waited_most=max(waits),
            stolen=statistics.median(thefts),
            stolen_most=max(thefts),
        ),
        table(lines),
        *(f"Row {row} could not be measured: {why}.\n" for row, why in failures.items()),
        *([rest] if rest else []),
        commands(lines),
    ]
    return "\n".join(parts)


def table(lines):
    head = ["row", "what", "target", "reached", "ratio or figure", "rounds", "ours: median (min to max)", "the other's"]
    rows = [head, ["---"] * len(head), *(cells(line) for line in lines)]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def cells(line):
    reached = {True: "yes", False: "**NO**", None: ""}[line.reached]
    return [
        line.row,
        "; ".join([line.what, *line.remarks]),
        str(line.target) if line.target else "(information)",
        reached,
        number(line.figure),
        f"{number(min(line.ratios))} to {number(max(line.ratios))}" if line.ratios else "",
        spread(line.ours, line.unit),
        spread(line.against, line.unit) if line.against or line.figure is None else "",
    ]


def spread(values, unit):
    if not values:
        return NOT_MEASURED
    median, least, most = (number(value) for value in (statistics.median(values), min(values), max(values)))
    return f"{median} ({least} to {most}) {unit}".strip()


def number(value):
    """With a letter for thousands and millions from 10,000 on, and enough digits to tell 0.9999 from 1."""
    if value is None:
        return NOT_MEASURED
    return f"{value:.4g}" if abs(value) < 10_000 else si(value)


def si(value):
    for factor, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= factor:
            return f"{value / factor:.4g} {letter}"
    return f"{value:.4g}"


def commands(lines):
    """How each line was run: the servers, and the loads on them."""
    text = "## The commands\n\nThe ports differed from run to run.\n"
    for line in lines:
        text += f"\nRow {line.row}, {line.what}:\n\n```sh\n" + "\n".join(dict.fromkeys(line.commands)) + "\n```\n"
    return text


def raw(lines, failures, machine, settings, runs):
    """Everything that was measured, as JSON; each line of the table and each run has a line of its own."""
    facts = {
        "quick": settings.quick,
        "machine": machine,
        "rounds": settings.rounds,
        "ms": settings.ms,
        "not_measured": failures,
    }
    members = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in facts.items()]
    members.append(array("lines", [plain(line) for line in lines]))
    members.append(array("runs", [vars(run) for run in runs]))
    return "{\n" + ",\n".join(members) + "\n}\n"


def array(name, values):
    return f'"{name}": [\n' + ",\n".join(json.dumps(value) for value in values) + "\n]"


def plain(line):
    return {**vars(line), "target": str(line.target) if line.target else None, "reached": line.reached}


def machine_facts():
    cpu = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    memory = re.search(r"^MemTotal:\s+(\d+) kB", Path("/proc/meminfo").read_text(), re.MULTILINE)
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--exclude", "*"], cwd=ROOT, capture_output=True, text=True
    )
    return {
        "date": datetime.date.today().isoformat(),
        "commit": commit.stdout.strip() or "an unknown commit",
        "cpu": cpu[1] if cpu else platform.machine(),
        "cores": os.cpu_count(),
        "memory_gib": int(memory[1]) / 2**20,
        "kernel": platform.release(),
        "load_average": "{:.2f} {:.2f} {:.2f} at the start".format(*os.getloadavg()),
    }
