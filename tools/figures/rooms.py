"""Rooms for measurements: processes, namespaces and Open vSwitches that are removed at the end of their block."""

import contextlib
import os
import socket
import subprocess
import time

from bench import ROOT, MeasureError, Place, last_line

SCHEMA = "/usr/share/openvswitch/vswitch.ovsschema"

START_TIMEOUT_S = 15
STOP_TIMEOUT_S = 10


def call(*command, timeout_s=60):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=timeout_s)
    if done.returncode != 0:
        shown = " ".join(map(str, command))
        raise MeasureError(f"'{shown}' failed: {last_line(done.stderr or done.stdout)}")
    return done.stdout


@contextlib.contextmanager
def process(log, *command, environment=None):
    """Runs a process in the project's folder, and stops it by its id."""
    with open(log, "w") as output:
        started = subprocess.Popen(
            [str(word) for word in command],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=environment,
            start_new_session=True,
        )
    try:
        yield started
    finally:
        if started.poll() is None:
            started.terminate()
            try:
                started.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                started.kill()
                started.wait()


@contextlib.contextmanager
def namespace(name):
    """Creates a network namespace without IPv6, whose neighbour discovery would be noise."""
    call("ip", "netns", "add", name)
    try:
        call("ip", "netns", "exec", name, "sh", "-c", "echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6")
        yield name
    finally:
        call("ip", "netns", "delete", name)


@contextlib.contextmanager
def steered_veth(server_core, load_core):
    """Joins two namespaces by a veth pair. Each handles received packets on its own core (receive packet steering);
    otherwise a segment would be handled on the core that sends it. Yields the place."""
    with namespace(f"urtica-figures-{os.getpid()}-c") as ours, namespace(f"urtica-figures-{os.getpid()}-s") as theirs:
        call("ip", "-n", ours, "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", theirs)
        for room, host, core in ((ours, 1, server_core), (theirs, 2, load_core)):
            call("ip", "-n", room, "address", "add", f"10.77.0.{host}/24", "dev", "eth0")
            for device in ("lo", "eth0"):
                call("ip", "-n", room, "link", "set", device, "up")
            steer = f"echo {1 << int(core):x} > /sys/class/net/eth0/queues/rx-0/rps_cpus"
            call("ip", "netns", "exec", room, "sh", "-c", steer)
        yield Place("10.77.0.1", ("ip", "netns", "exec", ours), ("ip", "netns", "exec", theirs))


def wait_until(is_true, what, started, log, seconds=START_TIMEOUT_S):
    deadline = time.monotonic() + seconds
    while not is_true():
        if started.poll() is not None:
            raise MeasureError(f"{what} ended at once: {last_line(log.read_text(errors='replace'))}")
        if time.monotonic() > deadline:
            raise MeasureError(f"{what} was not ready within {seconds} s")
        time.sleep(0.02)


def listens(path):
    """Whether a program listens at a Unix socket, which exists a moment before."""
    with socket.socket(socket.AF_UNIX) as client:
        return client.connect_ex(str(path)) == 0


@contextlib.contextmanager
def open_vswitch(folder, in_room):
    """Runs an Open vSwitch with the user-space datapath, whose database, sockets and logs are in `folder`; `in_room`
    converts a command to one that runs in the right namespace. Yields the environment with which its tools find it."""
    places = dict.fromkeys(("OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR", "OVS_SYSCONFDIR"), str(folder))
    environment = {**os.environ, **places}
    database = folder / "db.sock"
    call("ovsdb-tool", "create", folder / "conf.db", SCHEMA)
    with contextlib.ExitStack() as stack:

        def start(name, is_ready, *options):
            log = folder / f"{name}.log"
            command = in_room(name, *options, f"--unixctl={folder}/{name}.ctl", "--pidfile", "-vconsole:warn")
            started = stack.enter_context(process(log, *command, environment=environment))
            wait_until(is_ready, name, started, log)

        start("ovsdb-server", lambda: listens(database), folder / "conf.db", f"--remote=punix:{database}")
        call("ovs-vsctl", f"--db=unix:{database}", "--timeout=15", "--no-wait", "init")
        start("ovs-vswitchd", (folder / "ovs-vswitchd.ctl").exists, f"unix:{database}")
        yield environment
