"""A sitting: the runs that were made, each kept as a line of JSON as soon as it is over."""

import json
import random
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from itertools import product

from bench import CpuTime, last_line
from document import machine_facts
from points import Settings

RUN_TIMEOUT_S = 300
STOP_TIMEOUT_S = 30
ATTEMPTS = 3


class SittingError(Exception):
    """A sentence that says why a sitting cannot be used."""


@dataclass(frozen=True)
class Run:
    """What one side told of one point in one round."""

    point: str
    side: str
    round: int
    command: str
    commit: str
    time: str
    # The share of the machine's time that the hypervisor gave to others meanwhile.
    stolen: float
    records: list
    # What it ran on.
    machine: str = "a machine that was not noted"

    @property
    def key(self):
        return (self.point, self.side, self.round)


class Sitting:
    """Runs by point, side and round, in memory and in a file."""

    def __init__(self, path, settings, machine, runs):
        self.path = path
        self.settings = settings
        self.machine = machine
        self.runs = {run.key: run for run in runs}

    @classmethod
    def begin(cls, path, settings):
        """An empty one, in place of what the file had."""
        path.parent.mkdir(parents=True, exist_ok=True)
        sitting = cls(path, settings, machine_facts(), [])
        sitting.write()
        return sitting

    @classmethod
    def read(cls, path):
        """One that was kept. Of a line that was cut short, nothing is taken."""
        head, *rest = path.read_text().split("\n")[:-1] or [""]
        try:
            head = json.loads(head)
            runs = [Run(**json.loads(line)) for line in rest]
            return cls(path, Settings(**head["settings"]), head["machine"], runs)
        except (ValueError, KeyError, TypeError) as error:
            raise SittingError(f"{path} has no sitting that can be read ({error}); remove it, and begin one") from error

    def write(self):
        head = {"settings": asdict(self.settings), "machine": self.machine}
        lines = [head, *(asdict(run) for run in self.runs.values())]
        fresh = self.path.with_suffix(".new")
        fresh.write_text("".join(json.dumps(line) + "\n" for line in lines))
        fresh.replace(self.path)

    def forget(self, points):
        """Drops the runs of these points."""
        names = {str(point) for point in points}
        self.runs = {key: run for key, run in self.runs.items() if run.point not in names}
        self.write()

    def missing(self, points):
        """The runs that are still to be made: round, point, side. Who goes first is drawn, the same when a sitting goes on."""
        found = []
        for number, point in product(range(1, self.settings.rounds + 1), points):
            sides = list(point.commands(self.settings))
            for side in random.Random(f"{number} {point}").sample(sides, len(sides)):
                if (str(point), side, number) not in self.runs:
                    found.append((number, point, side))
        return found

    def measure(self, points, tools):
        """Makes the runs that are missing. One that fails is told, and does not keep the others from being made."""
        missing, facts = self.missing(points), machine_facts()
        self.write()  # without a line that was cut short
        with open(self.path, "a") as file:
            for index, (number, point, side) in enumerate(missing, start=1):
                start, what = time.monotonic(), f"{index} of {len(missing)}: round {number}, {point}, {side}"
                run = self.run_that_succeeds(what, number, point, side, tools, facts)
                if run:
                    self.runs[run.key] = run
                    print(json.dumps(asdict(run)), file=file, flush=True)
                    progress(f"{what}: {brief(run)} ({time.monotonic() - start:.0f} s)")

    def run_that_succeeds(self, what, *run):
        """The first of a few attempts: at times, Open vSwitch takes no packets for a whole second."""
        for _ in range(ATTEMPTS):
            try:
                return self.run(*run)
            except (SittingError, OSError) as error:
                progress(f"{what} failed: {error}")
        return None

    def run(self, number, point, side, tools, facts):
        command = point.commands(self.settings)[side]
        before = CpuTime.now()
        output = output_of(tools.real(command), tools.environment)
        return Run(
            point=str(point),
            side=side,
            round=number,
            command=" ".join(command),
            commit=facts["commit"],
            time=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            stolen=round(before.stolen_until(CpuTime.now()), 4),
            records=records_of(output),
            machine=machine_of(facts),
        )

    def machines(self, points):
        """What the runs of these points were made on."""
        names = {str(point) for point in points}
        return list(dict.fromkeys(run.machine for run in self.runs.values() if run.point in names))

    def values(self, point, side, field, **wanted):
        """A field of the record that has these members, by round."""
        found = {}
        for run in self.runs.values():
            if (run.point, run.side) == (str(point), side):
                for record in run.records:
                    if field in record and all(record.get(name) == value for name, value in wanted.items()):
                        found[run.round] = record[field]
        return dict(sorted(found.items()))


def machine_of(facts):
    return "{cpu}, {cores} cores, {memory_gib:.0f} GiB, Linux {kernel}".format(**facts)


def records_of(output):
    try:
        records = [json.loads(line) for line in output.splitlines()]
    except ValueError as error:
        raise SittingError(f"it told something that is no JSON: {error}") from error
    # On a busy machine, none of our updates may come through in a short reading.
    timed = [record for record in records if record.get("form") and record.get("updates_per_s_asked")]
    if any("time_to_effect_us_p50" not in record for record in timed):
        raise SittingError("no update took effect while it was measured")
    return records


def output_of(command, environment):
    """What a command writes to standard output. It is stopped in order when we are interrupted."""
    process = subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        output, complaint = process.communicate(timeout=RUN_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        raise SittingError(f"it took more than {RUN_TIMEOUT_S} s") from None
    finally:
        stop(process)
    if process.returncode != 0:
        raise SittingError(last_line(complaint))
    return output


def stop(process):
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def brief(run):
    """A run's first figures, for whoever watches."""
    rates = [f"{record['mpps']:.2f}" for record in run.records if "mpps" in record]
    seconds = [f"{record['openflow_s']:.3f} s" for record in run.records if "openflow_s" in record]
    return ", ".join([" / ".join(rates) + " Mpps"] * bool(rates) + seconds)


def progress(text):
    print(f"switch-figures: {text}", file=sys.stderr, flush=True)
