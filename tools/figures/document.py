"""The lines of the table, and the document and the JSON that contain them."""

import datetime
import json
import os
import platform
import random
import re
import statistics
import subprocess
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from bench import ATTEMPTS_PER_TURN, REPEATS_IN_ALL, ROOT

# The cell of a figure that is missing.
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


# The confidence of an interval, and the number of resamplings used to find it.
CONFIDENCE = 0.95
DRAWS = 2000

# The cell of a target inside the interval.
INCONCLUSIVE = "inconclusive"


@dataclass
class Line:
    """A line of the table. Its figure is the median (or the result of `summarise`) of its samples: the ratios of the rounds
    if it has ratios, otherwise our own values. A line without a target is for information."""

    row: str
    what: str
    unit: str
    ours: list
    target: Target | None = None
    against: list = field(default_factory=list)
    # Ours over the other's within each round; `None` without a comparison.
    ratios: list | None = None
    summarise: callable = statistics.median
    remarks: list = field(default_factory=list)
    commands: list = field(default_factory=list)
    # Whether ours answered wrongly or not at all in any round.
    faulty: bool = False

    @property
    def samples(self):
        return self.ours if self.ratios is None else self.ratios

    @property
    def figure(self):
        """The figure; `None` if nothing could be measured."""
        return self.summarise(self.samples) if self.samples else None

    @property
    def interval(self):
        """The confidence interval of the figure, by resampling the rounds with repetition (bootstrap)."""
        if not self.samples:
            return None
        draw = random.Random(len(self.samples))
        figures = sorted(self.summarise(draw.choices(self.samples, k=len(self.samples))) for _ in range(DRAWS))
        beyond = round(DRAWS * (1 - CONFIDENCE) / 2)
        return figures[beyond], figures[-1 - beyond]

    @property
    def reached(self):
        """`yes`, `no`, `inconclusive` if the interval contains the target, `not measured`; `None` without a target."""
        if self.target is None:
            return None
        if self.faulty:
            return "no"
        if self.figure is None:
            return NOT_MEASURED
        ends = {self.target.is_reached(end) for end in self.interval}
        if len(ends) == 2:
            return INCONCLUSIVE
        return "yes" if ends.pop() else "no"


def ratio_line(row, what, target, metric, unit, ours, against):
    """Returns the line of ours over the other's, round by round. Excludes rounds in which either side has no run, or has a
    value of 0, as CPU time may have because the kernel's clock is too coarse."""
    line = figure_line(row, what, target, metric, unit, ours)
    rounds = [(value_of(mine, metric), value_of(its, metric)) for mine, its in zip(ours, against)]
    measured = [both for both in rounds if all(both)]
    line.ours = [mine for mine, _ in measured]
    line.against = [its for _, its in measured]
    line.ratios = [mine / its for mine, its in measured]
    line.remarks += remarks_on(against)
    if len(measured) < len(rounds):
        line.remarks.append(f"{len(rounds) - len(measured)} of {len(rounds)} rounds not measured: a side reads 0")
    line.commands += commands_of(against)
    return line


def value_of(run, metric):
    return 0 if run.has_failed else getattr(run, metric)


def figure_line(row, what, target, metric, unit, ours, summarise=statistics.median):
    return Line(
        row=row,
        what=what,
        unit=unit,
        ours=[getattr(run, metric) for run in ours if not run.has_failed],
        target=target,
        summarise=summarise,
        remarks=remarks_on(ours),
        commands=commands_of(ours),
        faulty=any(run.has_failed or run.faulty for run in ours),
    )


def remarks_on(runs):
    """Returns remarks on a side's runs. `faulty` runs have wrong or lost answers."""
    measured = [run for run in runs if not run.has_failed]
    counts = {
        "disturbed": sum(run.disturbed for run in measured),
        "with wrong or lost answers": sum(run.faulty for run in measured),
        "in which the load had no time left": sum(run.is_load_bound for run in measured),
    }
    told = [f"{count} of {len(runs)} runs of {runs[0].side} {how}" for how, count in counts.items() if count]
    failures = [run.failure for run in runs if run.has_failed]
    if failures:
        told.append(f"{len(failures)} of {len(runs)} runs of {runs[0].side} failed: {failures[0]}")
    return told


def commands_of(runs):
    """Returns the commands of any one run: a failed run may not have started a load."""
    fullest = max(runs, key=lambda run: len(run.load_command))
    return [command for command in (fullest.server_command, fullest.load_command) if command]


def document(title, explanation, lines, failures, machine, settings, runs, rest=""):
    """Returns the whole text. `explanation` describes the measurement, with the names of facts in braces; `rest` follows the
    table."""
    targets = [line for line in lines if line.target]
    waits, thefts = ([getattr(run, name) for run in runs if run.counts] or [0] for name in ("waited", "stolen"))
    parts = [
        f"# {title}\n",
        summary(targets)
        + (f" Not measured: row {', '.join(failures)}." if failures else "")
        + (" THIS WAS A QUICK RUN: ITS FIGURES MEAN NOTHING." if settings.quick else "")
        + "\n",
        explanation.format(
            **machine,
            rounds=settings.rounds,
            ms=settings.ms,
            warm_up_ms=settings.warm_up_ms,
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


def summary(targets):
    """Returns a sentence with the numbers of targets reached, inconclusive and not measured."""
    counts = Counter(line.reached for line in targets)
    open_ones = [f"{counts[verdict]} {verdict}" for verdict in (INCONCLUSIVE, NOT_MEASURED) if counts[verdict]]
    return f"**{counts['yes']} of {len(targets)} targets reached{''.join(f', {count}' for count in open_ones)}.**"


def table(lines):
    head = ["row", "what", "target", "reached", "ratio or figure", "95 % interval", "ours: median (min to max)", "the other's"]
    rows = [head, ["---"] * len(head), *(cells(line) for line in lines)]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def cells(line):
    reached = {"no": "**NO**", None: ""}.get(line.reached, line.reached)
    return [
        line.row,
        "; ".join([line.what, *line.remarks]),
        str(line.target) if line.target else "(information)",
        reached,
        number(line.figure),
        "{} to {}".format(*map(number, line.interval)) if line.interval else "",
        spread(line.ours, line.unit),
        "" if line.ratios is None else spread(line.against, line.unit),
    ]


def spread(values, unit):
    if not values:
        return NOT_MEASURED
    median, least, most = (number(value) for value in (statistics.median(values), min(values), max(values)))
    return f"{median} ({least} to {most}) {unit}".strip()


def number(value):
    """Formats a number: with a letter for thousands and millions from 10,000 on, and enough digits to tell 0.9999 from 1."""
    if value is None:
        return NOT_MEASURED
    return f"{value:.4g}" if abs(value) < 10_000 else si(value)


def si(value):
    for factor, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= factor:
            return f"{value / factor:.4g} {letter}"
    return f"{value:.4g}"


def commands(lines):
    """Returns how each line was run: the servers, and their loads."""
    text = "## The commands\n\nThe ports differed from run to run.\n"
    for line in lines:
        text += f"\nRow {line.row}, {line.what}:\n\n```sh\n" + "\n".join(dict.fromkeys(line.commands)) + "\n```\n"
    return text


def raw(lines, failures, machine, settings, runs):
    """Returns all measurements as JSON, with one line for each line of the table and for each run."""
    facts = {
        "quick": settings.quick,
        "seed_of_the_order": settings.seed,
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
    facts = {name: value for name, value in vars(line).items() if name != "summarise"}
    derived = {name: getattr(line, name) for name in ("figure", "interval", "reached")}
    return {**facts, **derived, "target": str(line.target) if line.target else None}


def machine_facts():
    cpu = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    memory = re.search(r"^MemTotal:\s+(\d+) kB", Path("/proc/meminfo").read_text(), re.MULTILINE)
    return {
        "date": datetime.date.today().isoformat(),
        "commit": commit() or "an unknown commit",
        "cpu": cpu[1] if cpu else platform.machine(),
        "cores": os.cpu_count(),
        "memory_gib": int(memory[1]) / 2**20,
        "kernel": platform.release(),
        "load_average": "{:.2f} {:.2f} {:.2f} at the start".format(*os.getloadavg()),
    }


def commit():
    """Returns the measured commit; nothing without git, or if the sources are not in a repository."""
    describe = ["git", "describe", "--always", "--dirty", "--exclude", "*"]
    try:
        return subprocess.run(describe, cwd=ROOT, capture_output=True, text=True).stdout.strip()
    except FileNotFoundError:
        return None
