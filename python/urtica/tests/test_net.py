"""Networks in the process."""

import sys

import pytest
import urtica
from learning import Learning


@pytest.mark.parametrize("openflow", ["1.0", "1.3"])
def test_a_learning_switch_connects_all_hosts(net, openflow):
    tree = net("tree,2,2", app=Learning, openflow=openflow)
    assert len(tree.hosts) == 4 and len(tree.switches) == 3 and len(tree.links) == 6
    report = tree.ping_all()
    assert report, report
    assert (report.sent, report.received, report.failed) == (12, 12, [])
    assert "0% dropped" in str(report)


def test_entries_are_installed_by_the_first_packets(net):
    line = net("linear,2", app=Learning)
    assert line.ping("h1", "h2")
    flows = line.dump_flows("s1", "ip")
    assert flows and all("actions=output:" in flow for flow in flows)
    line.run_for(10)
    assert line.dump_flows("s1", "ip") == [], "after five seconds without packets"


def test_a_cut_link_separates_hosts_until_it_is_repaired(net):
    line = net("linear,2", app=Learning)
    line.cut("s1", "s2")
    lost = line.ping("h1", "h2", count=2)
    assert not lost and (lost.sent, lost.received) == (2, 0)
    assert ("h1", "h2") in line.ping_all().failed
    line.repair("s1", "s2")
    line.run_for(10)
    assert line.ping("h1", "h2")


def test_flows_arrive(net):
    line = net("linear,2", app=Learning)
    stream = line.start_stream("h1", "h2", 100_000)
    datagrams = line.start_datagrams("h2", "h1", 10, size=64)
    line.run_for(10)
    stream, datagrams = line.report(stream), line.report(datagrams)
    assert stream.is_done and stream.received_bytes == 100_000 and stream.took > 0
    assert (datagrams.sent, datagrams.received, datagrams.lost) == (10, 10, 0)


def test_a_lossy_link_is_the_same_with_the_same_seed(net):
    def received(seed):
        line = net("linear,2", app=Learning, seed=seed)
        assert line.seed == seed
        line.ping("h1", "h2")
        line.set_loss("s1", "s2", 0.5)
        flow = line.start_datagrams("h1", "h2", 200)
        line.run_for(10)
        return line.report(flow).received, line.now

    first = received(7)
    assert 50 < first[0] < 150
    assert received(7) == first
    assert len({received(seed)[0] for seed in range(8)}) > 1


def test_switches_stop_and_hosts_move(net):
    line = net("linear,2", app=Learning)
    line.stop_switch("s2")
    assert not line.ping("h1", "h2")
    line.start_switch("s2")
    line.run_for(10)
    assert line.ping("h1", "h2")
    assert line.move_host("h2", "s1") > 0
    line.run_for(10)
    line.announce_host("h2")
    line.run_for(1)
    assert line.ping("h1", "h2")


def test_the_controller_sends_from_outside_of_handlers(net):
    line = net("linear,2", app=urtica.App)
    network = line.network
    assert network.switches == [1, 2] == [line.dpid(name) for name in line.switches]
    assert not line.ping_all()
    for dpid in network.switches:
        network.install(dpid, "", "flood", priority=7)
    assert line.ping_all()
    assert any("priority=7" in flow for flow in line.dump_flows("s2"))
    network.delete("0x1")
    line.run_for(1)
    assert not line.ping("h1", "h2")


def test_addresses_are_those_of_mininet(net):
    assert net("single,2", app=Learning).addresses("h2") == ("00:00:00:00:00:02", "10.0.0.2")


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: urtica.Net("tree,x", app=Learning), "tree"),
        (lambda: urtica.Net("nothing", app=Learning), "nothing"),
        (lambda: urtica.Net("single,2", app=Learning, openflow="1.2"), "expected '1.0' or '1.3'"),
        (lambda: urtica.Net("single,2", app=Learning).ping("h1", "h9"), "h9"),
        (lambda: urtica.Net("single,2", app=Learning).cut("s1", "s9"), "s9"),
        (lambda: urtica.Net("single,2", app=Learning).run_for(-1), "expected seconds"),
        (lambda: urtica.Net("single,2", app=Learning).dump_flows("s1", "in_prt=1"), "in_port"),
    ],
)
def test_errors_name_what_is_wrong(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()


def test_a_tree_of_seven_switches_connects_all_hosts(net):
    """A tree of 7 switches, all pairs pinged."""
    assert net("tree,3,2", app=Learning).ping_all().sent == 56


def test_ryu_programs_need_their_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "urtica_ryu", None)
    with pytest.raises(ModuleNotFoundError, match="Ryu programs need the package urtica-ryu"):
        urtica.Net("single,1", app="my_app.py")
