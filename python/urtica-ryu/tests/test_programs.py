"""Ten programs in the manner of courses install the same entries here as on os-ken, under the same fake switches.

os-ken is that of the interpreter in URTICA_OS_KEN, as in test_differential. It has no `wsgi`: the program with an HTTP interface
is compared with a list of entries, in test_courses. For ports that a spanning tree blocks os-ken adds entries that drop, and
forbids packet-ins; here they are kept from forwarding alone. Compared are the blocked ports, and the program's own entries.
"""

import os
import subprocess
from pathlib import Path

import pytest
from board import PYTHON, Board, Ours, Theirs
from frames import BROADCAST, ICMP, TCP, UDP, arp, ethernet, host, ip, ping, tcp, udp

PROGRAMS = Path(__file__).parent / "programs"
VIRTUAL_MAC = "02:00:00:00:01:00"


def address(number):
    return f"10.0.0.{number}"


def between(source, destination, protocol, payload):
    """A packet between two hosts of one subnet."""
    return ip(host(source), host(destination), (address(source), address(destination)), protocol, payload)


def plain(source, destination):
    """A frame of no protocol."""
    return ethernet(host(source), host(destination) if destination else BROADCAST, 0x9000, b"x" * 46)


def monitor(run):
    run.join()
    run.packet(1, 1, plain(1, 2))
    run.packet(1, 2, plain(2, 1))
    run.packet(1, 1, plain(1, 2))
    # Nothing uses the entries.
    run.run(4)
    run.packet(1, 1, plain(1, 2))
    run.run(4)


def firewall(run):
    run.join()
    run.packet(1, 1, arp(host(1), address(1), address(3)))
    run.packet(1, 3, arp(host(3), address(3), address(1), host(1)))
    run.packet(1, 1, between(1, 3, TCP, tcp(1000, 80)))
    run.packet(1, 3, between(3, 1, TCP, tcp(80, 1000)))
    run.packet(1, 2, between(2, 1, UDP, udp(53, 5353)))
    run.packet(1, 1, between(1, 2, ICMP, ping()))
    run.packet(1, 4, plain(4, 1))


def balancer(run):
    run.join()
    for client in (1, 2):
        run.packet(1, client, arp(host(client), address(client), address(100)))
    for port in (1000, 1001, 1002, 1000):
        packet = ip(host(1), VIRTUAL_MAC, (address(1), address(100)), TCP, tcp(port, 80))
        run.packet(1, 1, packet)
    run.packet(1, 2, ip(host(2), VIRTUAL_MAC, (address(2), address(100)), ICMP, ping()))
    run.packet(1, 2, arp(host(2), address(2), address(1)))
    run.packet(1, 1, arp(host(1), address(1), address(2), host(2)))


def spanning_tree(run):
    run.join()
    # A ring: of the switch with the highest priority value, the port to the other one that is no root.
    run.run(15, until=lambda board: board.blocked() == {(3, 1)})
    # The change is told for max_age and fwd_delay, and makes switches forget.
    run.run(12)
    run.packet(1, 3, plain(1, 0))
    run.packet(2, 3, plain(2, 1))
    run.packet(2, 1, plain(1, 2))
    run.packet(2, 3, plain(2, 1))
    run.packet(2, 1, plain(1, 2))
    # Through a port that is blocked, nothing comes.
    run.packet(3, 1, plain(1, 2))
    run.board.cut((1, 1))
    run.run(30, until=lambda board: board.blocked() == set())


def ddos(run):
    run.join()
    run.board.rates = {(1, 1): 10, (1, 2): 1000, (2, 1): 499}
    run.run(4)
    run.board.rates[1, 2] = 0
    run.packet(1, 1, plain(1, 3))
    run.remove_entries(1, 100)
    run.run(3)
    run.board.rates |= {(1, 2): 2000, (2, 1): 501}
    run.run(5)


def qos(run):
    run.join()
    run.packet(1, 1, between(1, 2, UDP, udp(5060, 5060)))
    run.packet(1, 2, between(2, 1, UDP, udp(5060, 5060)))
    run.packet(1, 1, between(1, 2, TCP, tcp(5000, 554)))


def arp_proxy(run):
    run.join()
    run.packet(1, 1, arp(host(1), address(1), address(2)))
    # Too early for another flood.
    run.packet(1, 1, arp(host(1), address(1), address(2)))
    run.packet(1, 2, arp(host(2), address(2), address(1), host(1)))
    run.packet(1, 3, arp(host(3), address(3), address(1)))
    run.packet(1, 1, between(1, 2, ICMP, ping()))
    run.packet(1, 2, between(2, 1, ICMP, ping()))


def paths(run):
    run.join()
    run.run(5, until=lambda board: board.crossed == set(board.links))
    run.run(2)
    run.packet(1, 3, arp(host(1), address(1), address(2)))
    run.packet(3, 3, arp(host(2), address(2), address(1), host(1)))
    run.packet(1, 3, between(1, 2, ICMP, ping()))
    run.packet(1, 2, between(1, 2, ICMP, ping()))


def router(run):
    run.join()
    gateway = [None, "02:00:00:00:00:01", "02:00:00:00:00:02"]
    first, second = "10.0.1.1", "10.0.2.1"
    run.packet(1, 1, arp(host(1), first, "10.0.1.254"))
    run.packet(1, 1, ip(host(1), gateway[1], (first, "10.0.1.254"), ICMP, ping()))
    # It waits for the address of its receiver.
    run.packet(1, 1, ip(host(1), gateway[1], (first, second), ICMP, ping(1)))
    run.packet(1, 1, ip(host(1), gateway[1], (first, second), ICMP, ping(2)))
    run.packet(1, 2, arp(host(2), second, "10.0.2.254", gateway[2]))
    run.packet(1, 2, ip(host(2), gateway[2], (second, first), UDP, udp(1, 2)))
    run.packet(1, 1, ip(host(1), gateway[1], (first, "192.168.0.1"), UDP, udp(1, 2)))
    run.packet(1, 1, arp(host(9), first, "10.0.1.254"))


RING = [((1, 1), (2, 1)), ((2, 2), (3, 1)), ((1, 2), (3, 2))]

SCENARIOS = {
    monitor: ({1: 3}, [], {}),
    firewall: ({1: 4, 2: 2}, [], {}),
    balancer: ({1: 4}, [], {}),
    spanning_tree: ({1: 3, 2: 3, 3: 3}, RING, {}),
    ddos: ({1: 3, 2: 2}, [], {}),
    qos: ({1: 3}, [], {}),
    arp_proxy: ({1: 4}, [], {}),
    paths: ({1: 3, 2: 3, 3: 3}, RING, {"observe-links": True}),
    router: ({1: 3}, [], {}),
}


def has_os_ken():
    return not subprocess.run([PYTHON, "-I", "-c", "import os_ken"], capture_output=True).returncode


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_a_program_installs_the_same_as_on_os_ken(scenario, tmp_path):
    ports, links, options = SCENARIOS[scenario]
    app = PROGRAMS / f"{scenario.__name__}.py"
    ours = Ours(Board(ports, links), app, options)
    with ours:
        scenario(ours)
    assert sum(map(len, ours.steps)) > 1, "the program installs something"
    if not has_os_ken():
        missing = f"os-ken is not installed for {PYTHON}: set URTICA_OS_KEN to an interpreter that has it"
        assert os.environ.get("CI") != "true", missing
        pytest.skip(missing)
    theirs = Theirs(Board(ports, links), app, options, ours.steps, tmp_path)
    with theirs:
        scenario(theirs)
        for number, (here, there) in enumerate(zip(ours.steps, theirs.steps, strict=True)):
            assert here == there, f"step {number}: {theirs.log.read_text()}"
