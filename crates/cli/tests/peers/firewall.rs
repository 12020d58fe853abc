//! Tests the firewall on a real Open vSwitch, which hides the ports of fragments unless configured otherwise.

use std::fs;
use std::time::Duration;

use crate::controller::{Controller, TARGET};
use crate::namespace::{Host, Namespace};
use crate::openvswitch::{self, OpenVswitch};
use crate::process::{Daemon, eventually, run};
use crate::require;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/peers/fragments.py");
const RULES: &str = "deny tcp,tp_dst=22\ndeny tcp6,tp_dst=22\ndeny udp,tp_dst=53\ndeny udp6,tp_dst=53\ndefault allow\n";
const SERVING_WITHIN: Duration = Duration::from_secs(10);

/// The allowed packets, in sending order.
const ALLOWED: &str = "ipv4 udp to 54, ipv4 rest of udp, ipv4 tcp to 23, ipv4 ping, ipv6 udp to 54, ipv6 rest of udp, \
                       ipv6 tcp to 23, ipv6 ping";

#[test]
fn ovs_firewall_is_not_passed_by_fragmenting_of13() {
    is_not_passed_by_fragmenting("OpenFlow13");
}

/// In 1.0, the controller receives each packet.
#[test]
fn ovs_firewall_is_not_passed_by_fragmenting_of10() {
    is_not_passed_by_fragmenting("OpenFlow10");
}

fn is_not_passed_by_fragmenting(protocol: &str) {
    if !require::root_and(&[openvswitch::TOOLS, &["ss", "python3"]].concat()) {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let rules = folder.path().join("rules");
    fs::write(&rules, RULES).expect("the rules can be written");
    let room = Namespace::new();
    let hosts = [1, 2].map(|number| Host::new(&room, number));
    let options = ["--firewall-rules", rules.to_str().expect("a path in UTF-8")];
    let _controller = Controller::urtica_with(&room, "l2,firewall", &options);
    let switch = OpenVswitch::start(&room);
    let ports = hosts.each_ref().map(|host| host.switch_port.as_str());
    switch.add_bridge("s1", protocol, TARGET, &ports);
    switch.wait_connected();

    let [from, to] = &hosts;
    let mut serve = to.command("python3");
    serve.args([SCRIPT, "serve", &to.address]);
    let mut server = Daemon::start(&mut serve, &folder.path().join("server.out"));
    eventually("the server serves", SERVING_WITHIN, || {
        assert!(server.is_running(), "{}", server.log());
        server.log().contains("serving")
    });
    let mut attempt = from.command("python3");
    let told = run(attempt.args([SCRIPT, "try", &to.address, ALLOWED]));
    assert_eq!(
        told,
        format!("arrived: {ALLOWED}\n54: echo 3000\n53: nothing\n"),
        "{}",
        switch.dump_flows("s1", protocol)
    );
    assert!(server.is_running(), "{}", server.log());
}
