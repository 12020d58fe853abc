#!/usr/bin/env python3
"""Writes Mininet's numbers of switches, hosts and ports: the golden text of crates/topology.

    tools/vectors/mininet_topologies.py > crates/topology/src/spec/mininet.txt

Needs Debian's package mininet, but neither root nor a network: only its descriptions of topologies are used.
"""

from mininet.topo import LinearTopo, SingleSwitchTopo
from mininet.topolib import TorusTopo, TreeTopo
from mininet.util import ipAdd, macColonHex

SHAPES = [
    ("single,3", SingleSwitchTopo, (3,)),
    ("linear,1", LinearTopo, (1,)),
    ("linear,12", LinearTopo, (12,)),
    ("linear,3,2", LinearTopo, (3, 2)),
    ("linear,2,0", LinearTopo, (2, 0)),
    ("tree,depth=1,fanout=2", TreeTopo, (1, 2)),
    ("tree,depth=3,fanout=3", TreeTopo, (3, 3)),
    ("tree,depth=4,fanout=2", TreeTopo, (4, 2)),
    ("torus,3,3", TorusTopo, (3, 3)),
    ("torus,3,11", TorusTopo, (3, 11)),
    ("torus,4,3,2", TorusTopo, (4, 3, 2)),
]


def main():
    for text, kind, sizes in SHAPES:
        print(text)
        describe(kind(*sizes))


def describe(topo):
    for name in topo.switches():
        print(f"  switch {name} {datapath_id(topo, name):016x}")
    ends = [sorted_ends(topo, info) for _, _, info in topo.links(withInfo=True)]
    attached = {host: port for (host, _), port in ends if host in topo.hosts()}
    for number, name in enumerate(topo.hosts(), 1):
        switch, port = attached[name]
        address = ipAdd(number, prefixLen=8, ipBaseNum=0x0A000000)
        print(f"  host {name} {macColonHex(number)} {address} {switch}:{port}")
    for line in sorted(f"  link {a[0]}:{a[1]} {b[0]}:{b[1]}" for a, b in ends if a[0] not in attached):
        print(line)


def datapath_id(topo, name):
    """Returns the id as in OVSSwitch: from the topology in hex, or from the first number in the name."""
    given = topo.nodeInfo(name).get("dpid")
    return int(given, 16) if given else int(name[1:])


def sorted_ends(topo, info):
    """Returns a cable's ends as (name, port): a host first, otherwise in the order of text."""
    ends = [(info["node1"], info["port1"]), (info["node2"], info["port2"])]
    return sorted(ends, key=lambda end: (topo.isSwitch(end[0]), end))


if __name__ == "__main__":
    main()
