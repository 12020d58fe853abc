"""What is measured: points, and the commands by which each side measures one.

A point is measured in one run of each side: `urtica bench switch`, ovs-bench's `run`, and, for the bare loop, its
`limit`. Each run takes one reading and tells its records as JSON lines.
"""

from dataclasses import dataclass
from pathlib import Path

PIPELINES = ("port", "l2-1k", "l2-100k", "l3", "lb", "gateway", "gateway-down")
FLOWS = (1, 1_000, 100_000, 1_000_000)
UPDATES = (1_000, 10_000, 100_000)
UPDATED_FLOWS = 1_000
LOADED_ENTRIES = 100_000

# Where testpmd's bare loop is measured.
BARE_LOOP = ("l2-1k", 1_000)

URTICA, OVS, TESTPMD = "urtica", "Open vSwitch", "testpmd"


@dataclass(frozen=True)
class Settings:
    """How a sitting is measured."""

    rounds: int
    quick: bool
    core: int

    @property
    def pipelines(self):
        return ("l2-1k", "gateway") if self.quick else PIPELINES

    @property
    def flows(self):
        return FLOWS[:3] if self.quick else FLOWS

    @property
    def updates(self):
        return UPDATES[-1:] if self.quick else UPDATES

    @property
    def seconds(self):
        """What a reading of ours takes; Open vSwitch's take a second."""
        return 0.1 if self.quick else 0.5


@dataclass(frozen=True)
class Rate:
    """A pipeline's packet rate with so many active flows; of `gateway` also how long bursts take."""

    pipeline: str
    flows: int

    def __str__(self):
        return f"{self.pipeline}, {self.flows:,} flow{'s' * (self.flows != 1)}"

    def commands(self, settings):
        point = ("--pipeline", self.pipeline, "--flows", str(self.flows))
        latency = ("--latency",) * (self.pipeline == "gateway")
        forms = ("--form", ",".join(self.forms))
        commands = {URTICA: urtica(settings, *point, *forms, *latency)}
        # A pipeline that looks at nothing but the input port does not feel flows: Open vSwitch has a short cut for it.
        if self.pipeline != "port" or self.flows <= 1_000:
            commands[OVS] = ovs_bench("run", settings, *point, *latency)
        if (self.pipeline, self.flows) == BARE_LOOP:
            commands[TESTPMD] = ovs_bench("limit", settings, *point)
        return commands

    @property
    def forms(self):
        more = {"l2-1k": ("limit",), "gateway": ("interpreted",)}
        return ("compiled", *more.get(self.pipeline, ()))


@dataclass(frozen=True)
class Updated:
    """The rate of `gateway` under so many route updates a second, and how soon they take effect."""

    per_second: int

    def __str__(self):
        return f"gateway, {UPDATED_FLOWS:,} flows, {self.per_second:,} updates/s"

    def commands(self, settings):
        point = ("--pipeline", "gateway", "--flows", str(UPDATED_FLOWS), "--updates", str(self.per_second))
        commands = {URTICA: urtica(settings, *point, "--form", "compiled", length=2)}
        # Open vSwitch applies some 13,000 at most.
        if self.per_second != 10_000:
            commands[OVS] = ovs_bench("run", settings, *point)
        return commands


@dataclass(frozen=True)
class Load:
    """How long so many flow entries take to load over OpenFlow."""

    entries: int

    def __str__(self):
        return f"load of {self.entries:,} entries"

    def commands(self, settings):
        load = ("--load", str(self.entries))
        return {URTICA: urtica(settings, *load), OVS: ovs_bench("run", settings, *load)}


def urtica(settings, *what, length=1):
    seconds = f"{length * settings.seconds:g}"
    return ("urtica", "bench", "switch", *what, *one_reading(settings), "--seconds", seconds, "--json", "-")


def ovs_bench(program, settings, *what):
    return (f"$OVS_BENCH/{program}", *what, *one_reading(settings), "--json", "-")


def one_reading(settings):
    return ("--readings", "1", "--core", str(settings.core))


@dataclass(frozen=True)
class Tools:
    """The programs behind the commands."""

    program: Path
    ovs_bench: Path

    def real(self, command):
        """The command with the names of programs replaced by their files."""
        name, *rest = command
        return [name.replace("$OVS_BENCH", str(self.ovs_bench)) if name != "urtica" else str(self.program), *rest]
