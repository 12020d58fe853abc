"""The programs in the manner of courses do what they are for, in simulated networks of real switches."""

import re
from pathlib import Path

PROGRAMS = Path(__file__).parent / "programs"


def program(name):
    return PROGRAMS / f"{name}.py"


def entries(network, switch):
    """The entries of a switch, without counters and times."""
    lines = network.dump_flows(switch)
    return sorted(re.sub(r"(cookie|duration|n_packets|n_bytes|idle_age)=[^ ,]*,? ?", "", line) for line in lines)


def test_the_monitor_measures_rates_and_deletes_what_is_unused(net):
    single = net("single,3", app=program("monitor"))
    assert single.ping_all()
    assert len(entries(single, "s1")) > 6
    single.start_datagrams("h1", "h2", 300, size=958, interval=0.01)
    single.run_for(2.5)
    rate = single.apps["Monitor"].rates[1, 1]
    assert 90_000 < rate < 110_000, rate
    single.run_for(10)
    assert len(entries(single, "s1")) == 1
    assert single.apps["Monitor"].rates[1, 1] == 0


def test_the_firewall_drops_what_its_rules_deny(net):
    single = net("single,4", app=program("firewall"))
    # Addresses up to 10.0.0.3 do not reach 10.0.0.3.
    assert single.ping_all().failed == [("h1", "h3"), ("h2", "h3"), ("h3", "h1"), ("h3", "h2")]
    assert any("priority=997" in entry and "udp" in entry and "actions=drop" in entry for entry in entries(single, "s1"))
    datagrams = single.start_datagrams("h4", "h1", 5)
    single.run_for(5)
    assert single.report(datagrams).received == 0


def test_the_balancer_is_a_switch_for_other_addresses(net):
    assert net("single,4", app=program("balancer")).ping_all()


def test_the_spanning_tree_opens_a_ring_and_heals(net):
    ring = net("ring,3", app=program("spanning_tree"))
    ring.run_for(15)
    states = ring.apps["SpanningTree"].states
    assert sorted(states.values()).count("blocked") == 1
    assert ring.ping_all()
    blocked = next(end for end, state in states.items() if state == "blocked")
    ring.cut("s1", "s2")
    ring.run_for(30)
    assert states[blocked] == "forwarding"
    assert ring.ping_all()


def test_a_flood_is_dropped_for_half_a_minute(net):
    single = net("single,2", app=program("ddos"))
    assert single.ping_all()
    flood = single.start_datagrams("h1", "h2", 3000, interval=0.001)
    single.run_for(4)
    assert 500 < single.report(flood).received < 2500
    assert single.apps["Detector"].blocked == {(1, 1)}
    assert not single.ping("h1", "h2")
    single.run_for(35)
    assert single.apps["Detector"].blocked == set()
    assert single.ping("h1", "h2")


def test_meters_limit_pings(net):
    single = net("single,3", app=program("qos"))
    assert single.ping("h1", "h2", count=3)
    # All at once are too many.
    assert 0 < len(single.ping_all().failed) < 6
    found = entries(single, "s1")
    assert sum("meter:" in entry for entry in found) == 2
    assert sum("set_queue:" in entry for entry in found) == 3


def test_requests_install_and_delete_rules(net):
    line = net("linear,2", app=program("rest"))
    assert line.request("POST", "/acl/rules", {"src": "10.0.0.1", "dst": "10.0.0.2", "priority": 77}).json == {"rule": 1}
    assert line.request("POST", "/acl/rules", {"dst": "10.9.0.1"}).status_code == 201
    assert line.request("POST", "/acl/rules", {"from": "10.9.0.1"}).status_code == 400
    assert line.request("POST", "/acl/rules", "nonsense").status_code == 400
    rules = [
        "table=0, priority=0 actions=CONTROLLER:65535",
        "table=0, priority=100,ip,nw_dst=10.9.0.1 actions=drop",
        "table=0, priority=77,ip,nw_src=10.0.0.1,nw_dst=10.0.0.2 actions=drop",
    ]
    # os-ken has no wsgi; these are the entries that the program is to install.
    assert entries(line, "s1") == entries(line, "s2") == rules
    assert not line.ping("h1", "h2")
    line.stop_switch("s2")
    line.run_for(1)
    line.start_switch("s2")
    line.run_for(10)
    assert set(rules) <= set(entries(line, "s2"))
    assert line.request("DELETE", "/acl/rules/1").status_code == 204
    assert line.request("DELETE", "/acl/rules/1").status_code == 404
    assert line.request("GET", "/acl/rules").json == {"2": {"dst": "10.9.0.1"}}
    assert rules[2] not in entries(line, "s1")
    assert line.ping("h1", "h2")


def test_the_arp_proxy_answers_for_hosts(net):
    line = net("linear,3", app=program("arp_proxy"))
    assert line.ping_all()
    assert set(line.apps["ArpProxy"].hosts) == {"10.0.0.1", "10.0.0.2", "10.0.0.3"}


def test_paths_are_shortest_and_found_again(net):
    ring = net("ring,4", app=program("paths"), options={"observe_links": True})
    ring.run_for(5)
    assert ring.ping_all()
    ring.cut("s1", "s2")
    ring.run_for(60)
    assert ring.ping_all()
    assert ring.apps["Paths"].path(1, 2) == [1, 4, 3, 2]


def test_the_router_installs_a_route_for_each_of_its_subnets(net):
    # Hosts of simulated networks are in one subnet: test_programs has packets between several.
    found = entries(net("single,3", app=program("router")), "s1")
    assert sum("priority=100," in entry for entry in found) == 3
    assert sum("nw_dst=10.0.2.0/24" in entry for entry in found) == 1
