"""The rows about the HTTP interface and about replaced programs."""

import re
import subprocess
import time
from contextlib import contextmanager
from dataclasses import replace

from bench import L2, OWN_HOST, ROOT, MeasureError, Server, Side, free_port, last_line, progress, shown
from command import Group
from document import Line, at_least, at_most, ratio_line
from watchers import WatchedBench, get, wait_until_answered

# The interface's address in all runs, of which only one is active at a time.
HTTP = (OWN_HOST, free_port())
NORTHBOUND = f"--northbound={HTTP[0]}:{HTTP[1]}"
WITH_HTTP = Server("l2 with HTTP", (*L2.command, NORTHBOUND))
HUB = Server("hub", ("urtica", "run", "discovery,hosts,hub", *L2.command[3:], NORTHBOUND))

ENTRIES = 100_000
REQUESTS = 10_000
FUZZ_TIMEOUT_S = 3600
CHANGE_TIMEOUT_S = 1800


def told(command):
    """Returns a command as a user would type it."""
    return shown(command).replace(f":{HTTP[1]}", ":8080")


def throughput(bench):
    watched = WatchedBench(bench, HTTP)
    ours, without = watched.take_turns("1", Side("with HTTP", WITH_HTTP), Side("without", L2))
    what = "max-rate throughput with the HTTP interface, its metrics, a scrape a second and a WebSocket client, over without"
    line = ratio_line("1", what, at_least(0.97), "rate", "/s", ours, without)
    cost = ratio_line("1", "the same, CPU time per packet-in", None, "server_cpu_ns", "ns", ours, without)
    return [line, cost]


def large_switch(bench):
    """Lists the entries of a switch by HTTP: the time, and the growth of the controller's memory."""
    count = 2_000 if bench.settings.quick else ENTRIES
    seconds, growth, commands = [], [], []
    with entries_file(bench, count) as file:
        for number in range(1, bench.settings.rounds + 1):
            took, grown, commands = one_listing(bench, file, count)
            seconds.append(took)
            growth.append(grown)
            progress(f"row 4, round {number}: {took:.3f} s, {grown:.1f} MiB more")
    what = f"GET /stats/flow of a switch with {count:,} entries, to the last byte"
    memory = "the same: what the controller's largest resident memory is above that before it"
    return [
        Line("4", what, "s", seconds, at_most(1), commands=commands),
        Line("4", memory, "MiB", growth, commands=commands),
    ]


@contextmanager
def entries_file(bench, count):
    file = bench.folder / "entries.txt"
    with open(file, "w") as text:
        for number in range(count):
            address = f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
            text.write(f"priority=10,ip,nw_dst={address},actions=output:1\n")
    yield file
    file.unlink()


def one_listing(bench, entries, count):
    with bench.server(WITH_HTTP) as server:
        address, control = f"tcp:{server.host}:{server.port}", f"unix:{bench.folder}/switch.sock"
        port = f"1=pcap:,{bench.folder}/out.pcap"
        switch = ("urtica", "switch", "--port", port, "--datapath-id", "1", "--controller", address, "--controller", f"p{control}")
        with background(bench, bench.load_pinned(switch), "switch.log"):
            wait_until(lambda: get(HTTP, "/stats/switches") == b"[1]", "the switch", server)
            add = ("urtica", "flows", "--timeout", "600", "add", control, "--file", str(entries))
            call(bench, add)
            before = peak_kib(server.pid)
            begin = time.monotonic()
            body = get(HTTP, "/stats/flow/1", timeout=600)
            took = time.monotonic() - begin
            found = body.count(b'"priority"')
            if found < count:
                raise MeasureError(f"{found} of {count} entries were listed")
            grown = (peak_kib(server.pid) - before) / 1024
            commands = [told(server.command), shown(switch), "curl http://localhost:8080/stats/flow/1"]
            return took, grown, [command.replace(str(bench.folder), "/tmp") for command in commands]


def change_of_a_program(bench):
    """Runs `cargo bench -p urtica-net --bench changes`, in simulated time, so that every run has equal results. A quick run
    uses an unoptimised build."""
    profile = ("--profile", "dev") if bench.settings.quick else ()
    command = ("cargo", "bench", "--locked", *profile, "-p", "urtica-net", "--bench", "changes")
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=CHANGE_TIMEOUT_S)
    found = changes_in(done.stdout)
    if not found:
        raise MeasureError(f"{shown(command)} told nothing: {last_line(done.stderr)}")
    what = "a program replaced among four, three times, 200 switches with 100 entries each: {}"
    same, lost = (sum(column) for column in zip(*found))
    return [
        count_line("5", what.format("flow mods that did not differ"), same, [shown(command)]),
        count_line("5", what.format("packets lost"), lost, [shown(command)]),
    ]


def count_line(row, what, count, commands):
    """Returns the line of a single count, which should be 0."""
    return Line(row, what, "", [count], at_most(0), commands=commands)


def changes_in(text):
    """Returns the redundant flow mods and the lost packets of each change."""
    found = re.findall(r"(\d+) that did not differ, (\d+) packets lost", text)
    return [(int(same), int(lost)) for same, lost in found]


def fuzzed(bench):
    examples = "1" if bench.settings.quick else "400"
    with bench.server(HUB) as server:
        switches = ("urtica", "net", "linear,2", "--controller", f"tcp:{server.host}:{server.port}", "--seconds", str(FUZZ_TIMEOUT_S))
        with background(bench, bench.load_pinned(switches), "net.log"):
            wait_until(lambda: get(HTTP, "/stats/switches") == b"[1,2]", "two switches", server)
            command = (str(ROOT / "tools/api-fuzz"), "--url", f"http://{HTTP[0]}:{HTTP[1]}", "--examples", examples)
            done = subprocess.run(command, capture_output=True, text=True, timeout=FUZZ_TIMEOUT_S)
            found = findings_in(done.stdout)
            if found is None:
                raise MeasureError(f"api-fuzz told nothing: {last_line(done.stdout + done.stderr)}")
            requests, server_errors, hangs = found
            if not bench.settings.quick and requests < REQUESTS:
                raise MeasureError(f"api-fuzz sent {requests} requests; expected {REQUESTS} or more")
            wait_until_answered(HTTP, "/stats/switches")
            commands = [told(server.command), told(switches), told(("tools/api-fuzz", *command[1:]))]
    what = f"Schemathesis with the interface's own description, {requests:,} requests: {{}}"
    lines = [
        count_line("6", what.format("server errors"), server_errors, commands),
        count_line("6", what.format("requests without an answer within 20 s"), hangs, commands),
    ]
    if done.returncode != 0 and server_errors + hangs == 0:
        lines[0].remarks.append("it found other faults")
    return lines


def findings_in(text):
    """Returns the requests, server errors and unanswered requests in Schemathesis's summary; `None` without one."""
    requests = re.search(r"^\s*(\d+) generated\b", text, re.MULTILINE)
    if not requests:
        return None

    def count(pattern):
        return sum(int(number) for number in re.findall(rf"(?:{pattern}): (\d+)\s*$", text, re.MULTILINE | re.IGNORECASE))

    return int(requests[1]), count("Server error"), count("Network error|Response timeout|Timeout|Connection error")


@contextmanager
def background(bench, command, log):
    """Runs a process of ours, and ends it by its id."""
    with open(bench.folder / log, "w") as output:
        process = subprocess.Popen(bench.real(command), cwd=ROOT, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


def call(bench, command):
    done = subprocess.run(bench.real(command), cwd=ROOT, capture_output=True, text=True, timeout=900)
    if done.returncode != 0:
        raise MeasureError(f"'{shown(command)}' failed: {last_line(done.stdout + done.stderr)}")


def wait_until(is_so, what, server):
    deadline = time.monotonic() + 60
    while not is_so():
        if server.process.poll() is not None or time.monotonic() > deadline:
            raise MeasureError(f"{what}: not there within 60 s; the controller said: {last_line(server.log.read_text())}")
        time.sleep(0.05)


def peak_kib(pid):
    """Returns the maximum resident memory of a process so far."""
    with open(f"/proc/{pid}/status") as status:
        return int(re.search(r"^VmHWM:\s+(\d+) kB", status.read(), re.MULTILINE)[1])


GROUPS = (
    Group(("1",), throughput),
    Group(("4",), large_switch),
    Group(("5",), change_of_a_program, ("cargo",)),
    Group(("6",), fuzzed),
)
