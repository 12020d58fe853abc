"""The rows about TLS."""

import re
import subprocess
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import rows as controller_rows
from bench import L2, ROOT, Bench, MeasureError, Server, Side, last_line, progress, shown
from command import Group
from document import Line, at_least, at_most, ratio_line

STORM = "tools/northbound-figures/storm.py"
SWITCHES = 1000
DEADLINE_S = 120
# The number of functions of a profile that are named.
NAMED = 5


@dataclass(frozen=True)
class Keys:
    """The keys and certificates made by `ovs-pki` for a controller and its switches."""

    folder: Path

    @classmethod
    def made_in(cls, folder):
        keys = cls(folder / "pki")
        if not keys.folder.exists():
            pki = ("ovs-pki", f"--dir={keys.folder}", f"--log={folder}/pki.log")
            for command in (("init",), ("req+sign", "ctl", "controller"), ("req+sign", "s1", "switch")):
                done = subprocess.run([*pki, *command], cwd=folder if command == ("init",) else keys.folder, capture_output=True, text=True)
                if done.returncode != 0:
                    raise MeasureError(f"ovs-pki failed: {last_line(done.stdout + done.stderr)}")
        return keys

    def files(self, name, peers):
        """Returns the private key, the certificate, and the CA of the peers' certificates."""
        return [str(self.folder / file) for file in (f"{name}-privkey.pem", f"{name}-cert.pem", f"{peers}ca/cacert.pem")]

    def options(self, name, peers):
        flags = ("--private-key", "--certificate", "--ca-cert")
        return tuple(part for pair in zip(flags, self.files(name, peers)) for part in pair)

    def told(self, command):
        """Returns a command as a user would type it, in the folder of the keys."""
        command = re.sub(r"(storm\.py 127\.0\.0\.1) \d+", r"\1 6653", command)
        return re.sub(r"\b(p?ssl):(?:\d+:127\.0\.0\.1|127\.0\.0\.1:\d+)", r"\1:6653", command).replace(f"{self.folder}/", "")


class TlsBench(Bench):
    """A bench whose load uses TLS if the server does."""

    def __init__(self, bench, keys):
        super().__init__(bench.settings, bench.folder)
        self.runs, self.random, self.place = bench.runs, bench.random, bench.place
        self.repeats_left, self.keys = bench.repeats_left, keys

    def load_command(self, server, flags):
        command = super().load_command(server, flags)
        if "--private-key" not in server.command:
            return command
        plain = ("-c", self.place.host, "-p", str(server.port))
        at = command.index("-p") - 2
        if command[at : at + len(plain)] != plain:
            raise MeasureError("the load's command has another form than expected")
        secure = ("-c", f"ssl:{self.place.host}:{server.port}", *self.keys.options("s1", "controller"))
        return (*command[:at], *secure, *command[at + len(plain) :])


def tls_server(keys):
    listen = tuple("pssl:{port}:{host}" if part == "ptcp:{port}:{host}" else part for part in L2.command)
    return Server("l2 over TLS", (*listen, *keys.options("ctl", "switch")))


def throughput(bench):
    keys = Keys.made_in(bench.folder)
    tls = TlsBench(bench, keys)
    secure = Side("l2 over TLS", tls_server(keys))
    ours, plain = tls.take_turns("3", secure, Side("l2", L2))
    line = ratio_line("3", "max-rate throughput over TLS, over plain", at_least(0.25), "rate", "/s", ours, plain)
    line.commands = [keys.told(command) for command in line.commands]
    try:
        return [line, instructions(tls, secure, keys)]
    except MeasureError as error:
        line.remarks.append(f"instructions were not counted: {error}")
        return [line]


def instructions(bench, side, keys):
    """Returns the instructions per packet-in over TLS, with the functions that have most of them."""
    output = bench.folder / "callgrind.out"
    wrapper = ("valgrind", "--tool=callgrind", f"--callgrind-out-file={output}")
    mode = ("--window", "64") if bench.settings.quick else side.mode
    what = "user-space instructions per packet-in answered over TLS, callgrind, 1,000 MACs"
    side = Side(side.name, side.server, mode, macs=("-M", "1000"))
    line = controller_rows.slope(bench, side, what, None, wrapper, lambda: controller_rows.total_of_callgrind(output))
    line.row = "3"
    line.remarks.append("most of it in " + ", ".join(profile(output)))
    line.commands = [keys.told(command) for command in line.commands]
    return line


def profile(output):
    """Returns the functions with the largest shares of a run, and these shares."""
    done = subprocess.run(["callgrind_annotate", "--auto=no", str(output)], capture_output=True, text=True)
    return functions_in(done.stdout)[:NAMED]


def functions_in(text):
    """Parses `callgrind_annotate`'s lines: instructions, their share in parentheses, file and function, and the object."""
    found = []
    for line in text.splitlines():
        count, _, rest = line.strip().partition(" (")
        share, closed, where = rest.partition("%)")
        if not closed or not count.replace(",", "").isdecimal() or "PROGRAM TOTALS" in where:
            continue
        function = where.strip().partition(":")[2].partition(" [")[0] or where.strip()
        found.append(f"`{function}` {share.strip()} %")
    return found


def storm(bench):
    """Connects all switches at once, and measures the time until the last has joined."""
    keys, count = Keys.made_in(bench.folder), bench.settings.few(SWITCHES)
    values, commands = [], []
    for number in range(1, bench.settings.rounds + 1):
        value, commands = one_storm(bench, keys, count)
        values.append(value)
        progress(f"row 2, round {number}: {count} switches up within {value:.2f} s")
    what = f"{count:,} switches that connect by TLS at once, the controller on one core: all up after"
    return [Line("2", what, "s", values, at_most(10), commands=[keys.told(command) for command in commands])]


def one_storm(bench, keys, count):
    with bench.server(tls_server(keys)) as server:
        files = keys.files("s1", "controller")
        command = bench.load_pinned(("python", STORM, server.host, str(server.port), str(count), *files))
        switches = subprocess.Popen(bench.real(command), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            begin = float(switches.stdout.readline() or 0)
            wait_for(server, switches, count)
        finally:
            switches.terminate()
            switches.communicate()
        return last_joined(server) - begin, [server.shown, shown(command)]


def wait_for(server, switches, count):
    deadline = time.monotonic() + DEADLINE_S
    while server.joined() < count:
        if switches.poll() is not None or time.monotonic() > deadline:
            raise MeasureError(f"only {server.joined()} of {count} switches joined over TLS")
        time.sleep(0.05)


def last_joined(server):
    """Returns the time, in seconds since 1970, by the controller's log."""
    lines = server.log.read_text(errors="replace").splitlines()
    at = max(line.split()[0] for line in lines if " switch joined " in line)
    return datetime.fromisoformat(at.replace("Z", "+00:00")).timestamp()


GROUPS = (Group(("2",), storm, ("ovs-pki",)), Group(("3",), throughput, ("ovs-pki", "valgrind")))
