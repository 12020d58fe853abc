"""The measured points, and the commands by which each side measures one.

A point is measured in one run of each side: `urtica bench switch`, ovs-bench's `run`, and, for the limit of its ports alone, its
`limit`. Rule sets and gateways with groups and meters are not part of ovs-bench: `ovs_files.py` makes it read their files. Each
run takes one reading, and prints its records as JSON lines.
"""

import os
import sys
from dataclasses import dataclass
from itertools import product
from pathlib import Path

PIPELINES = ("port", "l2-1k", "l2-100k", "l3", "lb", "gateway", "gateway-down")
FLOWS = (1, 1_000, 100_000, 1_000_000)

# Gateways, and their extras.
GATEWAYS = ("gateway", "mobile")
EXTRAS = ("", "-groups", "-groups-meters")
GATEWAY_FLOWS = 1_000

UPDATES = (1_000, 10_000, 100_000)
UPDATED_FLOWS = 1_000
LOADED_ENTRIES = 100_000

# Kinds of rule sets, their sizes, and the number of replayed packets of a trace.
KINDS = ("acl1", "fw1", "ipc1")
SIZES = ("1k", "10k")
LARGE = "100k"
TRACES = ("uniform", "zipf")
TRACE_PACKETS = 100_000

# The point of our bare loop, and the pipeline whose packets testpmd receives.
BARE_LOOP = ("l2-1k", 1_000)
LIMIT_PIPELINE = "l2-1k"

URTICA, OVS, TESTPMD = "urtica", "Open vSwitch", "testpmd"


@dataclass(frozen=True)
class Settings:
    """The settings of a sitting."""

    rounds: int
    quick: bool
    core: int
    # Whether rule sets of 100,000 are measured, too.
    large: bool = False

    @property
    def pipelines(self):
        return ("l2-1k", "gateway") if self.quick else PIPELINES

    @property
    def flows(self):
        return FLOWS[:3] if self.quick else FLOWS

    @property
    def updates(self):
        return UPDATES[:1] if self.quick else UPDATES

    @property
    def sizes(self):
        """The sizes of rule sets."""
        if self.quick:
            return SIZES[:1]
        return (*SIZES, LARGE) if self.large else SIZES

    @property
    def kinds(self):
        return KINDS[::2] if self.quick else KINDS

    def rule_sets(self, size, trace):
        return [Rules(f"{kind}-{size}", trace) for kind in self.kinds]

    @property
    def all_rule_sets(self):
        return [point for size, trace in product(self.sizes, TRACES) for point in self.rule_sets(size, trace)]

    @property
    def seconds(self):
        """The duration of our readings; Open vSwitch's take a second."""
        return 0.1 if self.quick else 0.5


@dataclass(frozen=True)
class Rate:
    """A pipeline's packet rate with this number of active flows; for `gateway` also the latency of bursts."""

    pipeline: str
    flows: int

    def __str__(self):
        return f"{self.pipeline}, {self.flows:,} flow{'s' * (self.flows != 1)}"

    def commands(self, settings):
        point = ("--pipeline", self.pipeline, "--flows", str(self.flows))
        latency = ("--latency",) * (self.pipeline == "gateway")
        forms = ("--form", ",".join(self.forms))
        commands = {URTICA: urtica(settings, *point, *forms, *latency)}
        # Flows do not affect a pipeline that reads only the input port: Open vSwitch has a shortcut for it.
        if self.pipeline != "port" or self.flows <= 1_000:
            commands[OVS] = ovs_bench("run", settings, *point, *latency)
        return commands

    @property
    def forms(self):
        more = {"l2-1k": ("bare",), "gateway": ("interpreted",)}
        return ("switch", "limit", "pipeline", *more.get(self.pipeline, ()))


@dataclass(frozen=True)
class Limit:
    """The limit of Open vSwitch's ports alone: testpmd on them."""

    flows: int

    def __str__(self):
        return f"ports alone, {self.flows:,} flow{'s' * (self.flows != 1)}"

    def commands(self, settings):
        return {TESTPMD: ovs_bench("limit", settings, "--pipeline", LIMIT_PIPELINE, "--flows", str(self.flows))}


@dataclass(frozen=True)
class Rules:
    """A rule set's packet rate, with its entries added one by one, and a trace of packets."""

    name: str
    trace: str

    def __str__(self):
        return f"{self.name}, {self.trace}"

    def commands(self, settings):
        point = ("--pipeline", self.name, "--flows", str(self.flows(settings)), "--trace", self.trace)
        files = ("python3", "$SWITCH_FIGURES/ovs_files.py", *point, *one_reading(settings), "--json", "-")
        return {URTICA: urtica(settings, *point, "--form", "switch,limit"), OVS: files}

    @staticmethod
    def flows(settings):
        return 1_000 if settings.quick else TRACE_PACKETS


@dataclass(frozen=True)
class Gateway:
    """The packet rate of a gateway, with or without groups and meters."""

    name: str

    def __str__(self):
        return f"{self.name}, {GATEWAY_FLOWS:,} flows"

    def commands(self, settings):
        point = ("--pipeline", self.name, "--flows", str(GATEWAY_FLOWS))
        files = ("python3", "$SWITCH_FIGURES/ovs_files.py", *point, *one_reading(settings), "--json", "-")
        return {URTICA: urtica(settings, *point, "--form", "switch,pipeline"), OVS: files}


@dataclass(frozen=True)
class Updated:
    """The rate of `gateway` under this number of route updates a second, and their times to effect."""

    per_second: int

    def __str__(self):
        return f"gateway, {UPDATED_FLOWS:,} flows, {self.per_second:,} updates/s"

    def commands(self, settings):
        point = ("--pipeline", "gateway", "--flows", str(UPDATED_FLOWS), "--updates", str(self.per_second))
        # On a busy machine, it takes a while until an update is observed.
        length = 10 if settings.quick else 2
        commands = {URTICA: urtica(settings, *point, "--form", "switch,pipeline", length=length)}
        # Open vSwitch applies at most about 13,000.
        if self.per_second != 10_000:
            commands[OVS] = ovs_bench("run", settings, *point)
        return commands


@dataclass(frozen=True)
class Load:
    """The time to load this number of flow entries over OpenFlow."""

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
    """The programs in the commands."""

    program: Path
    ovs_bench: Path

    def real(self, command):
        """Returns the command with the names of programs replaced by their files."""
        places = {"$OVS_BENCH": str(self.ovs_bench), "$SWITCH_FIGURES": str(Path(__file__).resolve().parent)}
        words = [str(self.program) if word == "urtica" else word for word in command[:1]] + list(command[1:])
        for name, place in places.items():
            words = [word.replace(name, place) for word in words]
        return [sys.executable if word == "python3" else word for word in words]

    @property
    def environment(self):
        """The environment variables that `ovs_files.py` needs."""
        return {**os.environ, "OVS_BENCH": str(self.ovs_bench), "URTICA": str(self.program)}
