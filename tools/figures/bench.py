"""Runs: a server on its core, a load on another, and the output of both; and interleaved runs of several sides.

Servers are stopped by their process ids. A run disturbed by other processes of the machine is repeated a few times; one that
failed, or had wrong answers, is not.
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
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VENV_PYTHON = ROOT / ".venv/bin/python"
OS_KEN_SCRIPT = "crates/bench/src/os_ken_learning_switch.py"

START_TIMEOUT_S = 60
STOP_TIMEOUT_S = 60
LOAD_TIMEOUT_S = 120

# The share of the time spent waiting for a core, or stolen by the hypervisor, from which a run counts as disturbed.
# `urtica bench` uses the same limit in its verdict.
DISTURBED = 0.1
ATTEMPTS_PER_TURN = 3
REPEATS_IN_ALL = 25

MAX_RATE = ("-t",)
PING_PONG = ()


class MeasureError(Exception):
    """The reason why a row could not be measured, as a sentence."""


class Refused(MeasureError):
    """A program's message that it does not support what it was started for."""


@dataclass(frozen=True)
class Server:
    """A program under test. `{port}` and `{host}` in its command are replaced; it runs in the project's folder."""

    name: str
    command: tuple
    expect: tuple = ()
    # Whether it is another project's, whose failures are reported but are not ours.
    is_rival: bool = False
    # Whether it may refuse because it does not support this here or yet; the refusal is then reported.
    may_refuse: bool = False


# The program alone: a build with a kernel half would otherwise answer in the kernel.
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
    # The hosts, and the order and the frames in which they send.
    macs: tuple = ("-M", "100000")
    openflow: str = "1.0"
    verify: bool = True
    # The factor by which this is measured longer than others.
    length: int = 1

    def load_flags(self):
        checks = ("--verify", *self.server.expect) if self.verify else ()
        return (*self.mode, "-s", str(self.switches), *self.macs, "--openflow", self.openflow, *checks)


@dataclass(frozen=True)
class Place:
    """The places of a server and its load, and the address that connects them."""

    host: str
    # The prefix of their commands.
    in_server_room: tuple = ()
    in_load_room: tuple = ()


@dataclass
class Run:
    """The result of a side's turn: the bench's report without its long lists, and the machine's activity during it."""

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
    # The controller's counters at its stop: received, received_bytes, sent_bytes and others.
    counters: dict
    # CPU time of the whole machine during the load, in ticks of the clock: both sides, and the kernel's work for them.
    machine_cpu_ns: float = 0
    # Cycles of the whole machine during the load, if they were counted.
    machine_cycles: int | None = None
    # Whether it is the attempt of its turn that the table uses.
    counts: bool = False
    # The reason if there is nothing to measure.
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
    def least_us(self):
        return self.report["latency"]["min_us"] if self.report["latency"] else 0

    @property
    def machine_cpu_ns_per_answer(self):
        return self.machine_cpu_ns / self.report["tally"]["answered"]

    @property
    def machine_cycles_per_answer(self):
        return (self.machine_cycles or 0) / self.report["tally"]["answered"]

    @property
    def jain(self):
        return self.report["jain"]

    @property
    def bytes_per_s(self):
        """The controller's own count of bytes per message received, times the rate that the load measured."""
        moved = self.counters["received_bytes"] + self.counters["sent_bytes"]
        return self.rate * moved / self.counters["received"]


@dataclass
class Settings:
    """The duration, the number of rounds, and the programs."""

    program: Path
    rounds: int
    ms: int
    quick: bool
    # Whether other programs are measured, too.
    rivals: bool
    server_core: int
    load_core: int
    # The seed of the order of the sides in each round.
    seed: int
    # The minimum warm-up of each run; a third of the counted time if that is longer.
    warm_up_ms: int = 0

    def few(self, count):
        """Returns a number of switches, or a small part of it in a quick run, whose figures have no meaning."""
        return max(2, count // 100) if self.quick else count


class Bench:
    """Runs turns, and keeps the results of all."""

    def __init__(self, settings, folder):
        self.settings = settings
        self.folder = folder
        self.runs = []
        self.random = random.Random(settings.seed)
        self.repeats_left = 0 if settings.quick else REPEATS_IN_ALL
        self.place = Place(OWN_HOST)
        self.counts_cycles = False

    def take_turns(self, row, *sides):
        """Returns the runs of each side, in the order of the rounds. The order within a round is random."""
        kept = {side.name: [] for side in sides}
        for number in range(1, self.settings.rounds + 1):
            for side in self.random.sample(sides, len(sides)):
                kept[side.name].append(self.turn(row, side, number))
        return [kept[side.name] for side in sides]

    def turn(self, row, side, number):
        """Makes a run, and repeats it while it was disturbed and a repetition may help; the least disturbed run counts. A
        failed run, or one with wrong answers, counts without being repeated."""
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
        """Returns a bench whose servers and loads may use every core. Threads of both sides wait for each other all the time."""
        cores = f"{self.settings.server_core},{self.settings.load_core}"
        return self.without_repeats(server_core=cores, load_core=cores)

    def without_repeats(self, **settings):
        """Returns a bench with other settings, in which waiting for a core is no disturbance. It shares the list of runs."""
        other = Bench(dataclasses.replace(self.settings, **settings), self.folder)
        other.runs, other.random, other.repeats_left, other.place = self.runs, self.random, 0, self.place
        return other

    @contextlib.contextmanager
    def at(self, place):
        """Places servers and loads at `place` during the block."""
        self.place, before = place, self.place
        try:
            yield
        finally:
            self.place = before

    @contextlib.contextmanager
    def counting_cycles(self):
        """Counts the machine's cycles during the block, if possible. Yields whether it is possible."""
        self.counts_cycles = can_count_cycles()
        try:
            yield self.counts_cycles
        finally:
            self.counts_cycles = False

    def run_or_failure(self, row, side, number, attempt):
        """Makes a run. If another project's server does not start, or breaks off, returns a run with the reason; for our own
        server, raises the error, unless the server may refuse and does."""
        try:
            return self.run(row, side, number, attempt)
        except (MeasureError, subprocess.TimeoutExpired) as error:
            may_fail = side.server.may_refuse if isinstance(error, Refused) else side.server.is_rival
            if not may_fail:
                raise
            return failed_run(row, side, number, attempt, str(error))

    def run(self, row, side, number, attempt):
        with self.server(side.server) as server:
            before = CpuTime.now()
            load = self.load_command(server, self.flags(side))
            report, faulty = self.load(load)
            after = CpuTime.now()
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
            stolen=before.stolen_until(after),
            machine_cpu_ns=before.busy_ns_until(after),
            machine_cycles=total_cycles(self.folder / CYCLES) if self.counts_cycles else None,
            counters=server.counters(),
            failure="it answered no packet-in" if report["responses_per_s"]["mean"] == 0 else None,
        )

    def flags(self, side):
        """Returns at least one test for the warm-up, and three that count."""
        ms_per_test = max(1, side.length * self.settings.ms // 3)
        warm_up = max(1, -(-self.settings.warm_up_ms // ms_per_test))
        return (*side.load_flags(), "-l", str(warm_up + 3), "-w", str(warm_up), "-m", str(ms_per_test))

    def load_command(self, server, flags):
        target = ("-c", self.place.host, "-p", str(server.port), "--controller-pid", str(server.pid))
        return self.load_pinned(("urtica", "bench", *target, *flags))

    def load_pinned(self, command):
        """Returns a command of the load, in its room and on its core."""
        return (*self.place.in_load_room, *self.pinned(self.settings.load_core, command))

    def load(self, command):
        """Returns the report of a load, and whether it found wrong or missing answers."""
        file = self.folder / "report.json"
        file.unlink(missing_ok=True)
        counter = cycle_counter(self.folder / CYCLES) if self.counts_cycles else ()
        load = subprocess.run(
            [*counter, *self.real(command), "--json", str(file)],
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
        """Yields a listening server, alone on its core, and stops it at the end by its process id."""
        port, host = free_port(), self.place.host
        command = tuple(part.format(port=port, host=host) for part in server.command)
        command = (*self.place.in_server_room, *self.pinned(self.settings.server_core, (*wrapper, *command)))
        log, real = self.folder / "server.log", self.real(command)
        with open(log, "w") as output:
            process = started_process(real, output)
        started = StartedServer(process, host, port, log, real, shown(command), is_wrapped="perf" in wrapper)
        try:
            started.wait_until_it_listens()
            started.see_that_it_does_not_refuse()
            yield started
        finally:
            started.stop()

    @staticmethod
    def pinned(core, command):
        return ("taskset", "-c", str(core), *command)

    def real(self, command):
        """Returns the command with the names of programs replaced by their files."""
        files = {"urtica": str(self.settings.program), "python": os_ken_python()}
        return [files.get(part, part) for part in command]


def started_process(command, output):
    return subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=output, stderr=output)


@dataclass
class StartedServer:
    """A running server."""

    process: subprocess.Popen
    host: str
    port: int
    log: Path
    # The command with the files of programs, and as a user would type it.
    command: list
    shown: str
    is_wrapped: bool

    @property
    def pid(self):
        """Returns the server's own id, even if it is the child of a program that observes it."""
        if not self.is_wrapped:
            return self.process.pid
        pid = self.process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return int(children[0]) if children else pid

    def wait_until_it_listens(self):
        deadline = time.monotonic() + START_TIMEOUT_S
        while not is_listening(self.port, self.host, self.process.pid):
            if self.process.poll() is not None:
                raise refusal_in(self.log.read_text()) or MeasureError(
                    f"'{self.shown}' ended at once: {last_line(self.log.read_text())}"
                )
            if time.monotonic() > deadline:
                raise MeasureError(f"'{self.shown}' did not listen within {START_TIMEOUT_S} s")
            time.sleep(0.02)

    def see_that_it_does_not_refuse(self):
        """Raises `Refused` if the kernel half is not active: the program then answers alone, and logs the reason."""
        if inactive := re.search(r"(?:the kernel half is|rings are) not active: .*", self.log.read_text(errors="replace")):
            raise Refused(f"refused: {inactive[0]}")

    def kill_and_start_again(self):
        """Kills the server, and starts it again at once."""
        self.process.kill()
        self.process.wait()
        with open(self.log, "a") as output:
            self.process = started_process(self.command, output)

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
        """Returns the sums of the counters that urtica's shards log at their stop; empty for other servers, and before the
        stop."""
        sums = {}
        for line in self.log.read_text(errors="replace").splitlines():
            if " stopped: " in line:
                for name, value in re.findall(r"(\w+)=(\d+)", line):
                    sums[name] = sums.get(name, 0) + int(value)
        return sums

    def joined(self):
        """Returns the number of switches that have joined urtica so far."""
        return self.log.read_text(errors="replace").count(" switch joined ")

    def connections(self):
        """Returns the number of connected switches. The log suppresses lines when thousands join at once."""
        port = f":{self.port:04X}"
        rows = Path(f"/proc/{self.pid}/net/tcp").read_text().splitlines()[1:]
        ends = ((local, state) for _, local, _, state, *_ in map(str.split, rows))
        return sum(local.endswith(port) and state == "01" for local, state in ends)

    def cpu_ticks(self):
        """Returns the CPU time used so far, in the system's ticks."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])

    def rss_bytes(self):
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(re.search(r"^VmRSS:\s+(\d+) kB", status, re.MULTILINE)[1]) * 1024


def waited(report):
    """Returns the largest share of the time that a thread of load or server waited for a core. Excludes waiting caused by
    the server's own other threads: Python's threads wait for each other."""
    waits = [thread["waited"] for thread in report["load"]["threads"]]
    if controller := report["controller"]:
        own_share = controller["cores"] - controller["busiest_thread"]
        waits.append(controller["busiest_thread_waited"] - max(0, own_share))
    return max(0, *waits)


@dataclass
class CpuTime:
    """The machine's CPU time so far in ticks, the used part of it, and the part that the hypervisor gave to others."""

    ticks: int
    busy: int
    stolen: int

    @classmethod
    def now(cls):
        ticks = [int(field) for field in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
        user, nice, system, idle, iowait, irq, softirq, stolen = ticks
        return cls(sum(ticks), user + nice + system + irq + softirq, stolen)

    def stolen_until(self, later):
        return (later.stolen - self.stolen) / max(1, later.ticks - self.ticks)

    def busy_ns_until(self, later):
        return (later.busy - self.busy) * 1e9 / os.sysconf("SC_CLK_TCK")


CYCLES = "cycles.csv"


def cycle_counter(file):
    """Returns a command prefix that counts all processors' cycles while the command runs."""
    return ("perf", "stat", "--all-cpus", "-x,", "-e", "cycles", "-o", str(file))


def total_cycles(file):
    found = re.search(r"^(\d+),,cycles", file.read_text(), re.MULTILINE)
    return int(found[1]) if found else None


def can_count_cycles():
    """Returns whether cycles can be counted, which is not the case in most virtual machines."""
    with tempfile.TemporaryDirectory(prefix="urtica-figures-") as folder:
        file = Path(folder) / CYCLES
        try:
            done = subprocess.run([*cycle_counter(file), "true"], capture_output=True)
        except FileNotFoundError:
            return False
        return done.returncode == 0 and total_cycles(file) is not None


def without_long_lists(report):
    """Returns a report without the parts that grow with the number of switches, and without the latency's distribution."""
    dropped = {"setup", "switch_responses_per_s", "tests"}
    short = {name: value for name, value in report.items() if name not in dropped}
    short["test_responses_per_s"] = [test["responses_per_s"] for test in report["tests"] if test["counted"]]
    if short["latency"]:
        short["latency"].pop("cdf")
    return short


def own_host():
    """Returns a loopback address derived from this process's id. On 127.0.0.1, another process may bind a port between the
    time when it was found free and the time when a server listens on it."""
    high, middle, low = os.getpid().to_bytes(4, "big")[1:]
    return f"127.{64 | high & 0x3f}.{middle}.{low}"


OWN_HOST = own_host()


def free_port(host=OWN_HOST):
    with socket.socket() as probe:
        probe.bind((host, 0))
        return probe.getsockname()[1]


def is_listening(port, host=OWN_HOST, process="self"):
    """Searches the kernel's table in the network namespace of a process: the server would take a trial connection for a
    switch."""
    # In the kernel's format: the address as a number in the machine's byte order.
    address = int.from_bytes(socket.inet_aton(host), sys.byteorder)
    wanted = f"{address:08X}:{port:04X}"
    # The table of a process that has ended does not exist.
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{process}/net/tcp").read_text().splitlines()[1:]:
            _, local, _, state = line.split()[:4]
            if local == wanted and state == "0A":
                return True
    return False


def os_ken_python():
    return str(VENV_PYTHON) if VENV_PYTHON.exists() else "python3"


def shown(command):
    """Returns the command as a user would type it, independent of the port and the process id."""
    line = shlex.join(command)
    line = re.sub(r"--controller-pid \d+ ", "", line)
    line = re.sub(r"\b(urtica-figures)-\d+", r"\1", line)
    line = line.replace(OWN_HOST, "127.0.0.1")
    line = re.sub(r"\S*/urtica(?= )", "urtica", line)
    line = re.sub(r"\bptcp:\d+:", "ptcp:6653:", line)
    line = re.sub(r"(-p |--ofp-tcp-listen-port |(?:switch|switch_13|topology)\.py )\d+", r"\g<1>6653", line)
    return re.sub(r"/\S*/(callgrind\.out|perf\.csv)", r"\1", line)


def refusal_in(text):
    """Returns a program's message that it does not accept its options; `None` for other messages."""
    said = re.search(r"^(?:error|urtica): (.*)", text, re.MULTILINE)
    return Refused(f"refused: {said[1]}") if said else None


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
