"""One run: a server on its core, a load on another, and what both said; and runs in turn.

Servers are stopped by their process ids. A run that something else on the machine disturbed is repeated a few times; one that
failed, or whose answers were wrong, stays.
"""

import contextlib
import dataclasses
import json
import os
import random
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VENV_PYTHON = ROOT / ".venv/bin/python"
OS_KEN_SCRIPT = "crates/bench/src/os_ken_learning_switch.py"

START_TIMEOUT_S = 60
STOP_TIMEOUT_S = 60
LOAD_TIMEOUT_S = 120

# A share of the time spent waiting for a core, or stolen by the hypervisor, from which a run counts as disturbed;
# `urtica bench` draws the same line in its verdict.
DISTURBED = 0.1
ATTEMPTS_PER_TURN = 3
REPEATS_IN_ALL = 25

MAX_RATE = ("-t",)
PING_PONG = ()


class MeasureError(Exception):
    """A sentence that says why a row could not be measured."""


@dataclass(frozen=True)
class Server:
    """A program under test. `{port}` and `{host}` in its command are replaced, and it runs in the project's folder."""

    name: str
    command: tuple
    expect: tuple = ()
    # Whether it is another project's. That it fails is told, and is no failure of ours.
    is_rival: bool = False


# The program itself: a build with a kernel half would answer in the kernel.
L2 = Server(
    "l2", ("urtica", "run", "l2", "--offload", "none", "--shards", "1", "--listen", "ptcp:{port}:{host}")
)
LIMIT = Server("limit", ("urtica", "bench", "limit", "--listen", "ptcp:{port}:{host}"), ("--expect", "any"))
OVS = Server(
    "ovs-testcontroller", ("ovs-testcontroller", "--verbose=off", "--unixctl=none", "ptcp:{port}:{host}"), is_rival=True
)
OS_KEN = Server("os-ken", ("python", OS_KEN_SCRIPT, "{port}", "{host}"), is_rival=True)


@dataclass(frozen=True)
class Side:
    """One side of a comparison: a server, and the load on it."""

    name: str
    server: Server
    mode: tuple = MAX_RATE
    switches: int = 16
    # Which hosts there are, and in which order and frames they send.
    macs: tuple = ("-M", "100000")
    openflow: str = "1.0"
    verify: bool = True
    # How many times longer than others this is measured.
    length: int = 1

    def load_flags(self):
        checks = ("--verify", *self.server.expect) if self.verify else ()
        return (*self.mode, "-s", str(self.switches), *self.macs, "--openflow", self.openflow, *checks)


@dataclass
class Run:
    """What one turn of a side found: the bench's report without its long lists, and what the machine did meanwhile."""

    row: str
    side: str
    round: int
    attempt: int
    server_command: str
    load_command: str
    report: dict
    faulty: bool
    waited: float
    stolen: float
    # What the controller counted until it was stopped: received, received_bytes, sent_bytes and others.
    counters: dict
    # Whether it is the one of its turn's attempts that the table is made from.
    counts: bool = False
    # Why there is nothing to measure, where that is so.
    failure: str | None = None

    @property
    def disturbance(self):
        return max(self.waited, self.stolen)

    @property
    def disturbed(self):
        return self.disturbance >= DISTURBED

    @property
    def has_failed(self):
        return self.failure is not None

    @property
    def is_load_bound(self):
        return self.report["bottleneck"] in ("load", "both")

    @property
    def rate(self):
        return self.report["responses_per_s"]["mean"]

    @property
    def server_cpu_ns(self):
        return self.report["controller_cpu_us"] * 1e3

    @property
    def load_cpu_ns(self):
        return self.report["load"]["cpu_us"] * 1e3

    @property
    def p50_us(self):
        return self.report["latency"]["p50_us"] if self.report["latency"] else 0

    @property
    def p99_us(self):
        return self.report["latency"]["p99_us"] if self.report["latency"] else 0

    @property
    def jain(self):
        return self.report["jain"]

    @property
    def bytes_per_s(self):
        """The controller's own count of bytes per message received, times the rate that the load saw."""
        moved = self.counters["received_bytes"] + self.counters["sent_bytes"]
        return self.rate * moved / self.counters["received"]


@dataclass
class Settings:
    """How long, how often, and with what."""

    program: Path
    rounds: int
    ms: int
    quick: bool
    # Whether other programs are measured beside ours.
    rivals: bool
    server_core: int
    load_core: int
    # What the order of the sides in each round follows from.
    seed: int

    def few(self, count):
        """A number of switches, or a few of them where it need not mean anything."""
        return max(2, count // 100) if self.quick else count


class Bench:
    """Runs turns and keeps every one of them."""

    def __init__(self, settings, folder):
        self.settings = settings
        self.folder = folder
        self.runs = []
        self.random = random.Random(settings.seed)
        self.repeats_left = 0 if settings.quick else REPEATS_IN_ALL

    def take_turns(self, row, *sides):
        """The runs of each side, in the order of the rounds. Who goes first in a round is drawn."""
        kept = {side.name: [] for side in sides}
        for number in range(1, self.settings.rounds + 1):
            for side in self.random.sample(sides, len(sides)):
                kept[side.name].append(self.turn(row, side, number))
        return [kept[side.name] for side in sides]

    def turn(self, row, side, number):
        """One run, repeated while it was disturbed and that may still help; the least disturbed one counts. What failed or was
        answered wrongly is not repeated: it counts."""
        attempts = []
        while True:
            run = self.run_or_failure(row, side, number, len(attempts) + 1)
            tell(run, self.settings.rounds)
            attempts.append(run)
            self.runs.append(run)
            if run.has_failed or run.faulty or not self.is_another_worth_it(attempts):
                break
        stays = attempts[-1].has_failed or attempts[-1].faulty
        best = attempts[-1] if stays else min(attempts, key=lambda run: run.disturbance)
        best.counts = True
        return best

    def is_another_worth_it(self, attempts):
        if len(attempts) == ATTEMPTS_PER_TURN or not attempts[-1].disturbed:
            return False
        self.repeats_left -= 1
        return self.repeats_left >= 0

    def on_both_cores(self):
        """The same for servers and loads that may use every core. Its runs are kept with the others; threads of both sides wait
        for each other all the time, which is no disturbance there, so that none is repeated."""
        cores = f"{self.settings.server_core},{self.settings.load_core}"
        both = Bench(dataclasses.replace(self.settings, server_core=cores, load_core=cores), self.folder)
        both.runs, both.random, both.repeats_left = self.runs, self.random, 0
        return both

    def run_or_failure(self, row, side, number, attempt):
        """A run. A rival that does not start, or breaks off, has a run that says so; where one of ours does, nothing goes on."""
        try:
            return self.run(row, side, number, attempt)
        except (MeasureError, subprocess.TimeoutExpired) as error:
            if not side.server.is_rival:
                raise
            return failed_run(row, side, number, attempt, str(error))

    def run(self, row, side, number, attempt):
        with self.server(side.server) as server:
            stolen_before = Stolen.now()
            load = self.load_command(server, self.flags(side))
            report, faulty = self.load(load)
            stolen = stolen_before.share_until(Stolen.now())
        return Run(
            row=row,
            side=side.name,
            round=number,
            attempt=attempt,
            server_command=server.shown,
            load_command=shown(load),
            report=report,
            faulty=faulty,
            waited=waited(report),
            stolen=stolen,
            counters=server.counters(),
            failure="it answered no packet-in" if report["responses_per_s"]["mean"] == 0 else None,
        )

    def flags(self, side):
        """One test to warm up and three that count."""
        ms_per_test = max(1, side.length * self.settings.ms // 3)
        return (*side.load_flags(), "-l", "4", "-w", "1", "-m", str(ms_per_test))

    def load_command(self, server, flags):
        target = ("-c", OWN_HOST, "-p", str(server.port), "--controller-pid", str(server.pid))
        return self.pinned(self.settings.load_core, ("urtica", "bench", *target, *flags))

    def load(self, command):
        """The report of a load, and whether it found answers wrong or missing."""
        file = self.folder / "report.json"
        file.unlink(missing_ok=True)
        load = subprocess.run(
            [*self.real(command), "--json", str(file)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            timeout=LOAD_TIMEOUT_S,
        )
        if not file.exists():
            raise MeasureError(f"the load failed: {last_line(load.stderr)}")
        return without_long_lists(json.loads(file.read_text())), load.returncode != 0

    @contextlib.contextmanager
    def server(self, server, wrapper=()):
        """A server that listens, alone on its core, and that is stopped in the end by its process id."""
        port = free_port()
        command = tuple(part.format(port=port, host=OWN_HOST) for part in server.command)
        command = self.pinned(self.settings.server_core, (*wrapper, *command))
        log = self.folder / "server.log"
        with open(log, "w") as output:
            process = subprocess.Popen(
                self.real(command), cwd=ROOT, stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )
        started = StartedServer(process, port, log, shown(command), is_wrapped="perf" in wrapper)
        try:
            started.wait_until_it_listens()
            yield started
        finally:
            started.stop()

    @staticmethod
    def pinned(core, command):
        return ("taskset", "-c", str(core), *command)

    def real(self, command):
        """The command with the names of programs replaced by their files."""
        files = {"urtica": str(self.settings.program), "python": os_ken_python()}
        return [files.get(part, part) for part in command]


@dataclass
class StartedServer:
    """A server at work."""

    process: subprocess.Popen
    port: int
    log: Path
    shown: str
    is_wrapped: bool

    @property
    def pid(self):
        """The server's own id, also where it is the child of a program that watches it."""
        if not self.is_wrapped:
            return self.process.pid
        pid = self.process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return int(children[0]) if children else pid

    def wait_until_it_listens(self):
        deadline = time.monotonic() + START_TIMEOUT_S
        while not is_listening(self.port):
            if self.process.poll() is not None:
                raise MeasureError(f"'{self.shown}' ended at once: {last_line(self.log.read_text())}")
            if time.monotonic() > deadline:
                raise MeasureError(f"'{self.shown}' did not listen within {START_TIMEOUT_S} s")
            time.sleep(0.02)

    def stop(self):
        if self.process.poll() is not None:
            return
        os.kill(self.pid, signal.SIGTERM)
        try:
            self.process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            os.kill(self.pid, signal.SIGKILL)
            self.process.wait()

    def counters(self):
        """What urtica's shards say when they stop, summed; empty for other servers, and before the end."""
        sums = {}
        for line in self.log.read_text(errors="replace").splitlines():
            if " stopped: " in line:
                for name, value in re.findall(r"(\w+)=(\d+)", line):
                    sums[name] = sums.get(name, 0) + int(value)
        return sums

    def joined(self):
        """How many switches have joined urtica so far."""
        return self.log.read_text(errors="replace").count(" switch joined ")

    def rss_bytes(self):
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(re.search(r"^VmRSS:\s+(\d+) kB", status, re.MULTILINE)[1]) * 1024


def waited(report):
    """The largest share of the time that a thread of load or server waited for a core. What the server's own other
    threads had is no disturbance: Python's wait for each other."""
    waits = [thread["waited"] for thread in report["load"]["threads"]]
    if controller := report["controller"]:
        own_share = controller["cores"] - controller["busiest_thread"]
        waits.append(controller["busiest_thread_waited"] - max(0, own_share))
    return max(0, *waits)


@dataclass
class Stolen:
    """The machine's CPU time so far, and what of it the hypervisor gave to others."""

    ticks: int
    stolen: int

    @classmethod
    def now(cls):
        ticks = [int(field) for field in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
        return cls(sum(ticks), ticks[7])

    def share_until(self, later):
        return (later.stolen - self.stolen) / max(1, later.ticks - self.ticks)


def without_long_lists(report):
    """A report without what grows with the number of switches, and the latency's distribution."""
    dropped = {"setup", "switch_responses_per_s", "tests"}
    short = {name: value for name, value in report.items() if name not in dropped}
    short["test_responses_per_s"] = [test["responses_per_s"] for test in report["tests"] if test["counted"]]
    if short["latency"]:
        short["latency"].pop("cdf")
    return short


def own_host():
    """A loopback address that follows from this process's id. On 127.0.0.1, any other process may take a port between the time
    it was found free and the time a server listens there."""
    high, middle, low = os.getpid().to_bytes(4, "big")[1:]
    return f"127.{64 | high & 0x3f}.{middle}.{low}"


OWN_HOST = own_host()


def free_port(host=OWN_HOST):
    with socket.socket() as probe:
        probe.bind((host, 0))
        return probe.getsockname()[1]


def is_listening(port, host=OWN_HOST):
    """Looks into the kernel's table: a connection to find out would be a switch to the server."""
    # As the kernel writes it: the address as a number in the machine's byte order.
    address = int.from_bytes(socket.inet_aton(host), sys.byteorder)
    wanted = f"{address:08X}:{port:04X}"
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, local, _, state = line.split()[:4]
        if local == wanted and state == "0A":
            return True
    return False


def os_ken_python():
    return str(VENV_PYTHON) if VENV_PYTHON.exists() else "python3"


def shown(command):
    """The command as one would type it, whatever the port and the process id were."""
    line = shlex.join(command)
    line = re.sub(r"--controller-pid \d+ ", "", line)
    line = line.replace(OWN_HOST, "127.0.0.1")
    line = re.sub(r"\bptcp:\d+:", "ptcp:6653:", line)
    line = re.sub(r"(-p |(?:switch|topology)\.py )\d+", r"\g<1>6653", line)
    return re.sub(r"/\S*/(callgrind\.out|perf\.csv)", r"\1", line)


def last_line(text):
    lines = text.strip().splitlines()
    return lines[-1].strip() if lines else "it said nothing"


def failed_run(row, side, number, attempt, why):
    return Run(
        row=row,
        side=side.name,
        round=number,
        attempt=attempt,
        server_command=shown(tuple(part.format(port=6653, host=OWN_HOST) for part in side.server.command)),
        load_command="",
        report={},
        faulty=False,
        waited=0,
        stolen=0,
        counters={},
        failure=why,
    )


def tell(run, rounds):
    told = f"row {run.row}, round {run.round} of {rounds}, {run.side}"
    if run.has_failed:
        progress(f"{told} FAILED: {run.failure}")
        return
    marks = (" DISTURBED" if run.disturbed else "") + (" FAULTY" if run.faulty else "")
    progress(
        f"{told}: {run.rate:,.0f}/s, p50 {run.p50_us:,.1f} us; "
        f"waited {run.waited:.0%}, stolen {run.stolen:.0%}{marks}"
    )


def progress(text):
    print(f"figures: {text}", file=sys.stderr, flush=True)
