"""Ryu programs in urtica.Net."""

import logging
import os
import random
import re
import sys
import threading
import time
import types
from pathlib import Path

import net_apps
import pytest
import urtica
from learning_10 import LearningSwitch as LearningSwitch10
from learning_13 import LearningSwitch

import urtica_ryu
from urtica_ryu import hub, patched, simulated
from urtica_ryu.baton import Blocked

pytest_plugins = ["pytester"]

HERE = Path(__file__).parent
OBSERVE_LINKS = {"observe-links": True}


@pytest.mark.parametrize(
    ("app", "openflow"),
    [
        (HERE / "learning_13.py", None),
        (str(HERE / "learning_10.py"), None),
        ("ryu.app.simple_switch_13", "1.3"),
        ("ryu.app.simple_switch", "1.0"),
        (LearningSwitch, None),
        ([LearningSwitch10], "1.0"),
    ],
)
def test_learning_switches_connect_all_hosts(net, app, openflow):
    tree = net("tree,2,2", app=app, openflow=openflow)
    assert tree.ping_all().sent == 12
    flows = tree.dump_flows("s1")
    assert sum("actions=output:" in flow and "dl_dst=" in flow for flow in flows) > 2, flows
    tree.cut("s1", "s2")
    assert not tree.ping("h1", "h3")


def test_several_applications_run_and_can_be_looked_at(net):
    line = net("linear,2", app=[LearningSwitch, net_apps.Clocks])
    assert line.ping("h1", "h2")
    assert set(line.apps) == {"LearningSwitch", "Clocks", "ofp_event"}
    assert line.apps["LearningSwitch"].tables[1] == {line.addresses("h1")[0]: 1, line.addresses("h2")[0]: 2}


def test_sleeping_takes_simulated_time_alone(net):
    began = time.monotonic()
    single = net("single,1", app=net_apps.Clocks, options={"clock_interval": 60})
    single.run_for(3600)
    log = single.apps["Clocks"].log
    assert log[:2] == [("empty", 6.0), ("timeout", 13.0)]
    assert log[2:] == [("slept", 60.0 * (1 + minute)) for minute in range(len(log) - 2)]
    assert len(log) == 62
    assert time.monotonic() - began < 60


def test_the_same_seed_gives_the_same_run(net):
    def run(seed):
        line = net("linear,3", app=net_apps.Drawing, seed=seed)
        reports = [line.ping("h1", "h3", count=3), line.ping("h2", "h1")]
        line.stop_switch("s2")
        line.run_for(5)
        line.start_switch("s2")
        line.run_for(5)
        return [report.rtt_max for report in reports], line.apps["Drawing"].log

    first = run(3)
    assert len(first[1]) > 20 and {"main", "dead"} <= {entry[1] for entry in first[1]}
    assert run(3) == first
    assert run(4) != first


def test_networks_at_the_same_time_do_not_mix(net):
    lines = [net("linear,2", app=LearningSwitch), net("linear,2", app=net_apps.Drawing), net("linear,3", app=LearningSwitch)]
    for line in lines:
        assert line.ping("h1", "h2")
    first, _, third = [line.apps for line in lines]
    assert set(first["LearningSwitch"].tables) == {1, 2}
    assert set(third["LearningSwitch"].tables) == {1, 2, 3}
    lines[0].stop()
    assert lines[1].ping("h2", "h1") and lines[2].ping("h3", "h1")


def test_the_process_around_it_stays_as_it_was(net):
    names = [threading.Lock, threading.Thread, time.sleep, time.time, hub.baton()]
    random.seed(5)
    expected = [random.random(), random.random()]
    random.seed(5)
    drawn = [random.random()]
    line = net("linear,2", app=net_apps.Drawing)
    line.ping("h1", "h2")
    assert [threading.Lock, threading.Thread, time.sleep, time.time, hub.baton()] == names
    assert drawn + [random.random()] == expected


def test_a_files_module_is_new_in_each_network(net, tmp_path):
    (tmp_path / "counted.py").write_text("COUNT = []\n")
    program = tmp_path / "counting.py"
    program.write_text(
        "from ryu.base import app_manager\nimport counted\n\nclass App(app_manager.RyuApp):\n    def __init__(self, *a, **k):\n"
        "        super().__init__(*a, **k)\n        counted.COUNT.append(1)\n        self.count = len(counted.COUNT)\n"
    )
    assert [net("single,1", app=program).apps["App"].count for _ in range(3)] == [1, 1, 1]


def test_a_slow_start_is_over_before_switches_connect(net):
    started = net("single,1", app=[net_apps.Slow, net_apps.Drawing])
    assert started.apps["Slow"].is_open and started.now < 30
    assert [entry[1] for entry in started.apps["Drawing"].log] == ["main"]


def test_exceptions_are_logged_and_the_next_handler_runs(net, caplog):
    pair = net("single,2", app=net_apps.Faulty)
    with caplog.at_level(logging.ERROR):
        assert pair.ping("h1", "h2")
    assert "Faulty: handler a_first_handler raised an exception on EventOFPPacketIn" in caplog.text
    assert "task divide raised an exception" in caplog.text
    raised = pair.take_exceptions()
    assert {type(error) for error in raised} == {KeyError, ZeroDivisionError}
    assert pair.take_exceptions() == []


def test_an_exception_fails_the_test_that_uses_the_fixture(pytester):
    pytester.makeconftest(f"import sys, urtica_ryu\nurtica_ryu.use_names()\nsys.path.insert(0, {str(HERE)!r})\n")
    pytester.makepyfile(
        "import net_apps\n\ndef test_faulty(net):\n    net('single,2', app=net_apps.Faulty).ping('h1', 'h2')\n"
        f"\ndef test_file(net):\n    assert net('single,2', app={str(HERE / 'learning_13.py')!r}).ping_all()\n"
    )
    result = pytester.runpytest_subprocess()
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(["*KeyError: 'on purpose'"])


def test_functions_are_called_in_the_program(net):
    ring = net("ring,3", app="ryu.topology.switches", options=OBSERVE_LINKS)
    ring.run_for(10)
    from ryu.topology import api

    links = ring.call(api.get_all_link, ring.apps["switches"])
    assert sorted((link.src.dpid, link.dst.dpid) for link in links) == [(1, 2), (1, 3), (2, 1), (2, 3), (3, 1), (3, 2)]
    before = ring.now
    assert ring.call(lambda: [hub.sleep(2), time.time()][1]) > patched.SIMULATED_EPOCH_S
    assert 2 <= ring.now - before < 2.1
    with pytest.raises(ZeroDivisionError):
        ring.call(lambda: 1 / 0)
    with pytest.raises(TimeoutError, match="not ended within 60 simulated seconds"):
        ring.call(hub.sleep, 100)


def test_requests_reach_the_programs_http_interface(net):
    line = net("linear,2", app=HERE / "rest_13.py")
    assert line.ping("h1", "h2")
    table = line.request("GET", "/simpleswitch/mactable/0000000000000001")
    assert table.status_code == 200
    assert table.json == {line.addresses("h1")[0]: 1, line.addresses("h2")[0]: 2}
    assert line.request("PUT", "/simpleswitch/mactable/0000000000000001", {"mac": "x", "port": 7}).status_code == 201
    assert line.request("GET", "/simpleswitch/mactable/0000000000000001").json["x"] == 7
    assert line.request("GET", "/simpleswitch/mactable/0000000000000009").status_code == 404


def threads():
    """The number of the system's threads."""
    return len(os.listdir("/proc/self/task"))


def test_tasks_end_with_the_network():
    count = threads()
    for is_stopped in (True, False):
        line = urtica.Net("linear,2", app=[net_apps.Clocks, LearningSwitch])
        assert threads() > count
        if is_stopped:
            line.stop()
            line.stop()
            with pytest.raises(RuntimeError, match="the program has stopped"):
                line.call(lambda: None)
        del line
        deadline = time.monotonic() + 30
        while threads() > count and time.monotonic() < deadline:
            time.sleep(0.01)
        assert threads() <= count


@pytest.mark.parametrize("app", [net_apps.Blocking, net_apps.Yielding])
def test_a_program_that_blocks_is_an_error_with_its_line(monkeypatch, app):
    monkeypatch.setattr(simulated, "PATIENCE_S", 0.5)
    try:
        expected = r"not waited for 0\.5 s: .* is in .*net_apps\.py:\d+ \((packet_in|spin)\); expected calls that wait"
        with pytest.raises(Blocked, match=expected):
            line = urtica.Net("single,2", app=app)
            line.ping("h1", "h2")
        if app is net_apps.Blocking:
            with pytest.raises(Blocked):
                line.run_for(1)
            line.stop()
    finally:
        app.is_released = True




@pytest.mark.parametrize(
    ("app", "options", "error", "sentence"),
    [
        (net_apps.Raising, {}, LookupError, "no configuration"),
        (net_apps.Waiting, {}, ValueError, "the applications wait for ever in their start"),
        ([net_apps.Clocks, net_apps.Waiting], {}, ValueError, "the applications wait for ever in their start"),
        ("nonsense.py", {}, ValueError, "there is no file nonsense.py: expected a Python file"),
        ("nonsense", {}, ValueError, "there is no file and no module nonsense"),
        (net_apps.Drawing, {"openflow": "1.0"}, ValueError, "OFP_VERSIONS have no version in common"),
        (net_apps.Drawing, {"openflow": "1.2"}, ValueError, "'1.2' is not a version: expected '1.0' or '1.3'"),
        (net_apps.Drawing, {"options": {"nonsense": 1}}, ValueError, "no application has the option nonsense"),
        (net_apps.Clocks, {"options": {"clock-interval": "x"}}, ValueError, "--clock-interval is 'x': expected a whole number"),
        ([LearningSwitch, 7], {}, ValueError, "7 is no Ryu program: expected a file, a module's name, or a class"),
        ([LearningSwitch, LearningSwitch10], {}, ValueError, "OFP_VERSIONS have no version in common"),
        ([], {}, ValueError, "no application"),
        (type("OSKenApp", (), {}), {}, ValueError, r"call urtica_ryu\.use_names\(\) before it is imported"),
        (urtica.App, {"options": {}}, ValueError, "options are those of Ryu programs"),
    ],
)
def test_what_cannot_run_is_a_sentence(app, options, error, sentence):
    with pytest.raises(error, match=sentence):
        net = urtica.Net("single,1", app=app, **options)
        net.run_for(100)
        raise net.take_exceptions()[0]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("x = 1\n", r"no application in .*my_app\.py: expected a class derived from app_manager\.RyuApp"),
        ("print 'python 2'\n", r"my_app\.py:1: .* is not Python 3"),
        ("import nonsense_module\n", r"there is no module nonsense_module, which .*my_app\.py imports"),
    ],
)
def test_files_without_programs_are_named(tmp_path, text, sentence):
    (tmp_path / "my_app.py").write_text(text)
    with pytest.raises(ValueError) as raised:
        urtica.Net("single,1", app=tmp_path / "my_app.py")
    assert re.search(sentence, str(raised.value))


def test_another_ryu_that_is_imported_is_named(monkeypatch):
    other = types.ModuleType("ryu")
    other.__path__ = ["/elsewhere/ryu"]
    monkeypatch.setitem(sys.modules, "ryu", other)
    with pytest.raises(ImportError, match="ryu of /elsewhere/ryu has been imported: call"):
        urtica_ryu.use_names()


def test_networks_without_ryu_programs_have_no_applications():
    single = urtica.Net("single,1", app=urtica.App)
    for use in (lambda: single.apps, lambda: single.call(print), lambda: single.request("GET", "/")):
        with pytest.raises(RuntimeError, match="this network has no Ryu program"):
            use()
    with pytest.raises(ValueError, match="no application has an HTTP interface"):
        urtica.Net("single,1", app=LearningSwitch).request("GET", "/")


GUIDE = HERE.parents[2] / "docs/ryu.md"


def test_the_guides_example_passes(pytester):
    [example] = re.findall(r"^```python\n(# test_my_app.py\n.*?)^```", GUIDE.read_text(), re.MULTILINE | re.DOTALL)
    pytester.makepyfile(test_my_app=example, my_app=(HERE / "learning_13.py").read_text())
    pytester.runpytest_subprocess().assert_outcomes(passed=1)
