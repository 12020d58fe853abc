"""The rows of the page's table: each opens the page in Chromium, by web/tools/measure.mjs."""

import contextlib
import http.client
import json
import os
import re
import signal
import socket
import statistics
import subprocess
import threading
import time
import urllib.request

from bench import L2, ROOT, Bench, MeasureError, Side, last_line, progress, shown
from command import Group
from document import Line, at_least, at_most, ratio_line
from http_rows import HTTP, NORTHBOUND, WITH_HTTP
from watchers import get, on_core, wait_until_answered

URL = f"http://{HTTP[0]}:{HTTP[1]}/"
MEASURE = "web/tools/measure.mjs"
NEEDS = ("node", "npm", "chromium")

HOUR_S = 3600
TABS = 64
# As in web/src/model.
PAGE_INTERVAL_S = 2
# The duration of events while tabs are suspended.
SUSPENDED_S = 60
# Measurements other than the page's own responses take a minute or so.
TIMEOUT_S = 600

# The programs of a controller that knows its network.
APPS = "discovery,hosts,routing"


def net(topology):
    return ("urtica", "net", topology, "--apps", APPS, NORTHBOUND)


@contextlib.contextmanager
def network(bench, topology):
    """Runs a network with its controller and the interface; yields its process, and the command."""
    command = net(topology)
    with open(bench.folder / "net.log", "w") as output:
        process = subprocess.Popen(bench.real(command), cwd=ROOT, stdin=subprocess.PIPE, stdout=output, stderr=output)
        try:
            wait_until_answered(HTTP, "/stats/switches")
            yield process, told(command)
        finally:
            process.terminate()
            process.wait()


def told(command):
    """Returns a command as a user would type it."""
    return shown(command).replace(f":{HTTP[1]}", ":8080").replace(f"={HTTP[0]}", "=127.0.0.1")


def node(*arguments):
    """Returns the command of a browser, which may use every core, as for a user."""
    return ["node", MEASURE, *arguments]


def measured(*arguments, timeout=TIMEOUT_S):
    """Returns the browser's results: an object for each printed line."""
    done = subprocess.run(node(*arguments), cwd=ROOT, capture_output=True, text=True, timeout=timeout)
    if done.returncode != 0:
        raise MeasureError(f"{MEASURE} {arguments[0]} failed: {last_line(done.stderr)}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def rounds(bench):
    return range(1, bench.settings.rounds + 1)


def first_picture(bench):
    seconds, commands = [], []
    for number in rounds(bench):
        with network(bench, "ring,20") as (_, command):
            seconds.append(measured("first", URL, "20")[0]["ms"] / 1000)
            commands = [command]
        progress(f"row 1, round {number}: {seconds[-1]:.3f} s")
    what = "from opening the page to the first picture, 20 switches"
    return [Line("1", what, "s", seconds, at_most(1), commands=commands)]


def cut_link(bench):
    seconds, commands = [], []
    for number in rounds(bench):
        with network(bench, "torus,3,3") as (_, command):
            seconds.append(measured("cut", URL)[0]["ms"] / 1000)
            commands = [command]
        progress(f"row 2, round {number}: {seconds[-1]:.3f} s")
    what = "from the request that cuts an emulated link to its being shown as down"
    return [Line("2", what, "s", seconds, at_most(0.3), commands=commands)]


def large(bench):
    found = []
    for number in rounds(bench):
        found += measured("large")
        progress(f"row 3, round {number}: {found[-1]}")
    one = found[0]
    network = f"{one['switches']:,} switches, {one['links']:,} links, {one['hosts']:,} hosts"
    command = f"node {MEASURE} large"
    changing = "pictures a second while a tenth of the links change load each second"

    def line(what, unit, name, target, scale=1):
        samples = [each[name] * scale for each in found]
        return Line("3", f"{network}: {what}", unit, samples, target, commands=[command])

    return [
        line("first picture", "s", "firstMs", at_most(3), 0.001),
        line(f"{changing}, in clusters", "/s", "clustered", at_least(20)),
        line("every switch drawn, after clusters were turned off", "s", "wholeMs", at_most(3), 0.001),
        line(f"{changing}, every switch drawn", "/s", "whole", at_least(20)),
    ]


class PageBench(Bench):
    """A bench whose servers with an HTTP interface receive the page's requests at the page's intervals. A browser on the
    load's core would use the load's time."""

    def __init__(self, bench):
        super().__init__(bench.settings, bench.folder)
        self.runs, self.random, self.place = bench.runs, bench.random, bench.place
        self.repeats_left = bench.repeats_left

    @contextlib.contextmanager
    def server(self, server, wrapper=()):
        with super().server(server, wrapper) as started:
            if not any(part.startswith("--northbound") for part in server.command):
                yield started
                return
            wait_until_answered(HTTP, "/stats/switches")
            with asked_as_by_a_page(self.settings.load_core):
                yield started


@contextlib.contextmanager
def asked_as_by_a_page(core):
    """Follows events, and reads counters every two seconds, during the block. Raises an error if this client was not served."""
    stop, problems = threading.Event(), []
    for path in ("programs", "ports", "switches", "links", "hosts", "emulation"):
        get(HTTP, f"/api/v1/{path}")
    events = urllib.request.urlopen(f"{URL}api/v1/events", timeout=TIMEOUT_S)
    clients = [
        threading.Thread(target=on_core, args=(core, problems, read_counters, stop)),
        threading.Thread(target=on_core, args=(core, problems, follow, events, stop)),
    ]
    for client in clients:
        client.start()
    try:
        yield
    finally:
        stop.set()
        events.fp.raw._sock.shutdown(socket.SHUT_RDWR)
        for client in clients:
            client.join()
        events.close()
    if problems:
        raise MeasureError(f"what the page asks for was not answered: {problems[0]}")


def read_counters(stop):
    while not stop.wait(PAGE_INTERVAL_S):
        get(HTTP, "/api/v1/ports")
        get(HTTP, "/metrics")


def follow(events, stop):
    """Reads until the stream is shut down."""
    with contextlib.suppress(http.client.IncompleteRead):
        while events.read1(65536):
            pass
    if not stop.is_set():
        raise MeasureError("the stream of events was closed")


@contextlib.contextmanager
def open_tabs(bench, tabs):
    """Opens tabs of Chromium with the page; yields the id of the process that started it."""
    log, pipe = bench.folder / "tabs.log", subprocess.PIPE
    with open(log, "w") as errors:
        process = subprocess.Popen(node("hold", URL, str(tabs)), cwd=ROOT, stdin=pipe, stdout=pipe, stderr=errors, text=True)
    try:
        if not process.stdout.readline():
            raise MeasureError(f"the page did not open: {last_line(log.read_text())}")
        yield process.pid
    finally:
        process.stdin.close()
        process.wait()


def rate_with_page(bench):
    ours, without = PageBench(bench).take_turns("4", Side("with a page", WITH_HTTP), Side("without", L2))
    what = "max-rate throughput of `l2`, 16 switches, with the requests of an open page, over without the interface"
    return [
        ratio_line("4", what, at_least(0.97), "rate", "/s", ours, without),
        ratio_line("4", "the same, CPU time per packet-in", None, "server_cpu_ns", "ns", ours, without),
    ]


def suspended_tabs(bench):
    """Measures the growth of a controller's memory while stopped browsers do not read, beyond the growth without browsers."""
    tabs = 2 if bench.settings.quick else TABS
    growth, commands = [], []
    for number in rounds(bench):
        (with_tabs, commands), (without, _) = (grown_mib(bench, count) for count in (tabs, 0))
        growth.append(with_tabs - without)
        progress(f"row 5, round {number}: {with_tabs:.1f} MiB with {tabs} tabs, {without:.1f} MiB without")
    what = f"{tabs} suspended tabs, 25 links cut or repaired a second: what the controller's memory grows by beyond what it does without"
    return [Line("5", what, "MiB", growth, at_most(32), commands=commands)]


def grown_mib(bench, tabs):
    """Returns the maximum growth of a controller's resident memory while links are cut and repaired, and the command."""
    seconds = 5 if bench.settings.quick else SUSPENDED_S
    with network(bench, "torus,4,4") as (process, command), contextlib.ExitStack() as stack:
        before = resident_kib(process.pid)
        if tabs > 0:
            pid = stack.enter_context(open_tabs(bench, tabs))
            stack.enter_context(suspended(pid))
        changes = subprocess.Popen(node("flap", URL, str(seconds)), cwd=ROOT, stdout=subprocess.DEVNULL)
        most = before
        while changes.poll() is None:
            most = max(most, resident_kib(process.pid))
            time.sleep(0.1)
        if changes.returncode != 0:
            raise MeasureError("links could not be cut and repaired")
        return (most - before) / 1024, [command]


@contextlib.contextmanager
def suspended(pid):
    """Stops the descendants of this process, which are Chromium's, during the block."""
    pids = descendants(pid)
    for each in pids:
        os.kill(each, signal.SIGSTOP)
    try:
        yield
    finally:
        for each in pids:
            os.kill(each, signal.SIGCONT)


def descendants(pid):
    """Returns all descendants of a process."""
    with open(f"/proc/{pid}/task/{pid}/children") as children:
        started = [int(child) for child in children.read().split()]
    return [each for child in started for each in (child, *descendants(child))]


def resident_kib(pid):
    with open(f"/proc/{pid}/status") as status:
        return int(re.search(r"^VmRSS:\s+(\d+) kB", status.read(), re.MULTILINE)[1])


def accessibility(bench):
    with network(bench, "torus,3,3") as (_, command):
        found = measured("axe", URL)[0]
    what = f"axe, {found['views']} times: each view, dark and light: {{}}"
    return [
        Line("6", what.format("serious and critical findings"), "", [found["serious"]], at_most(0), commands=[command]),
        Line("6", what.format("other findings"), "", [found["others"]], commands=[command]),
    ]


def size(bench):
    """Returns the size as sent, with each file compressed."""
    files = list((ROOT / "web/dist").rglob("*.gz"))
    if not files:
        raise MeasureError("there is no page in web/dist; type 'make web', and measure again")
    total = sum(file.stat().st_size for file in files) / 1024
    return [Line("7", "the whole page, libraries and licences too, compressed", "KiB", [total], at_most(400), commands=["make web"])]


def tab_memory(bench):
    """Measures a tab's memory, minute by minute. Only once, since it takes an hour."""
    seconds = 60 if bench.settings.quick else HOUR_S
    with network(bench, "torus,4,4") as (_, command):
        minutes = measured("memory", URL, str(seconds), timeout=seconds + TIMEOUT_S)
    rate = minutes[-1]["events"] / seconds
    what = f"a tab's JavaScript heap after a collection, {rate:.0f} events a second: {{}}"
    tenth, last = (heap_mib(minutes, *ends) for ends in ends_of(minutes))
    progress(f"row 8: {tenth:.2f} MiB, then {last:.2f} MiB")
    growth = what.format(f"the last ten minutes' median of {seconds // 60} over that of the ten from the tenth on")
    nodes = f"the same: DOM nodes at the end, {minutes[-1]['listeners']} listeners"
    return [
        Line("8", growth, "MiB", [last], at_most(1.05), against=[tenth], ratios=[last / tenth], commands=[command]),
        Line("8", nodes, "", [minutes[-1]["nodes"]], commands=[command]),
    ]


def ends_of(minutes):
    """Returns the intervals from the tenth minute on, and up to the end: ten minutes each, or one if there are fewer."""
    length = 10 if len(minutes) > 20 else 1
    return (min(10, len(minutes) - 1), length), (len(minutes) - length, length)


def heap_mib(minutes, start, length):
    return statistics.median(minute["heapBytes"] for minute in minutes[start : start + length]) / 2**20


GROUPS = (
    Group(("1",), first_picture, NEEDS),
    Group(("2",), cut_link, NEEDS),
    Group(("3",), large, NEEDS),
    Group(("4",), rate_with_page, NEEDS),
    Group(("5",), suspended_tabs, NEEDS),
    Group(("6",), accessibility, NEEDS),
    Group(("7",), size),
    # Last, since it does not need a quiet machine, and takes an hour.
    Group(("8",), tab_memory, NEEDS),
)
