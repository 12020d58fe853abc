"""A sitting: the runs made so far, each stored as a line of JSON as soon as it ends."""

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
    """The reason why a sitting cannot be used, as a sentence."""


@dataclass(frozen=True)
class Run:
    """The result of one side at one point in one round."""

    point: str
    side: str
    round: int
    command: str
    commit: str
    time: str
    # The share of the machine's time that the hypervisor gave to others during the run.
    stolen: float
    records: list
    # The machine of the run.
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
        """Creates an empty sitting, replacing the file's contents."""
        path.parent.mkdir(parents=True, exist_ok=True)
        sitting = cls(path, settings, machine_facts(), [])
        sitting.write()
        return sitting

    @classmethod
    def read(cls, path):
        """Reads a stored sitting. Ignores an incomplete last line."""
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
        """Returns the missing runs: round, point, side. The order of sides is random, but equal when a sitting continues."""
        found = []
        for number, point in product(range(1, self.settings.rounds + 1), points):
            sides = list(point.commands(self.settings))
            for side in random.Random(f"{number} {point}").sample(sides, len(sides)):
                if (str(point), side, number) not in self.runs:
                    found.append((number, point, side))
        return found

    def measure(self, points, tools):
        """Makes the missing runs. A failing run is reported, and does not affect the others."""
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
        """Makes up to a few attempts: at times, Open vSwitch accepts no packets for a whole second."""
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
        """Returns the machines on which the runs of these points were made."""
        names = {str(point) for point in points}
        return list(dict.fromkeys(run.machine for run in self.runs.values() if run.point in names))

    def values(self, point, side, field, **wanted):
        """Returns a field of the record with these members, by round."""
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
    # On a busy machine, no update may take effect within a short reading.
    timed = [record for record in records if record.get("form") and record.get("updates_per_s_asked")]
    if any("time_to_effect_us_p50" not in record for record in timed):
        raise SittingError("no update took effect while it was measured")
    return records


def output_of(command, environment):
    """Returns the standard output of a command. Stops it in an orderly way if we are interrupted."""
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
    """Returns a run's first figures, for the progress output."""
    rates = [f"{record['mpps']:.2f}" for record in run.records if "mpps" in record]
    seconds = [f"{record['openflow_s']:.3f} s" for record in run.records if "openflow_s" in record]
    return ", ".join([" / ".join(rates) + " Mpps"] * bool(rates) + seconds)


def progress(text):
    print(f"switch-figures: {text}", file=sys.stderr, flush=True)
