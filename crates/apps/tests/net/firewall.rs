//! The firewall in front of other apps: it drops denied packets, and no others.

use crate::support::{APPS, frame, inject, ms, net_with, net_with_controller, options};
use std::cell::RefCell;
use std::fs;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;
use tempfile::TempDir;
use urtica_apps::{Firewall, Options};
use urtica_controller::{Controller, SessionConfig};
use urtica_net::watch::{Event, Violation, Watcher};
use urtica_net::{Datagrams, End, HostId, Net};
use urtica_wire::Version;
use urtica_wire::packet::{Ipv4, Ipv6, ether_type, ip_proto};

const GUARDED: &[&str] = &["discovery", "hosts", "routing", "firewall"];

/// Writes a file of rules, and returns it with options that name it.
fn rules(text: &str) -> (TempDir, PathBuf, Options) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rules");
    fs::write(&file, text).unwrap();
    let mut options = options();
    options.firewall.firewall_rules = Some(file.clone());
    (folder, file, options)
}

/// Returns `true` if `from` gets replies from `to`.
fn pings(net: &mut Net, from: &str, to: &str) -> bool {
    let (from, to) = (net.host(from).unwrap(), net.host(to).unwrap());
    net.ping(from, to).unwrap().received == 1
}

/// Returns the number of ten datagrams to UDP port 5001 that arrive.
fn datagrams(net: &mut Net, from: &str, to: &str) -> u64 {
    let (from, to) = (net.host(from).unwrap(), net.host(to).unwrap());
    let datagrams = Datagrams {
        count: 10,
        payload_bytes: 64,
        interval: ms(10),
    };
    let flow = net.start_datagrams(from, to, datagrams).unwrap();
    net.run_for(ms(500));
    net.flow_report(flow).unwrap().received
}

/// A fragment: its offset in bytes, whether others follow, and its payload.
type Fragment<'a> = (u16, bool, &'a [u8]);

/// Builds a fragment from host 1 to host 3.
fn ipv4_fragment(proto: u8, (offset, more_fragments, payload): Fragment) -> Vec<u8> {
    let header = Ipv4 {
        dont_fragment: false,
        more_fragments,
        fragment_offset: offset / 8,
        identification: 7,
        ..Ipv4::new(
            Ipv4Addr::new(10, 0, 0, 1),
            Ipv4Addr::new(10, 0, 0, 3),
            proto,
        )
    };
    let mut packet = Vec::new();
    header.write(&mut packet, payload).unwrap();
    frame(1, 3, ether_type::IPV4, &packet)
}

/// Like [`ipv4_fragment`], over IPv6.
fn ipv6_fragment(proto: u8, (offset, more_fragments, payload): Fragment) -> Vec<u8> {
    let address = |host| Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, host);
    let mut fragment = vec![proto, 0];
    fragment.extend((offset | u16::from(more_fragments)).to_be_bytes());
    fragment.extend(7_u32.to_be_bytes());
    fragment.extend(payload);
    let header = Ipv6::new(address(1), address(3), ip_proto::FRAGMENT);
    let mut packet = Vec::new();
    header.write(&mut packet, &fragment).unwrap();
    frame(1, 3, ether_type::IPV6, &packet)
}

/// Builds the first bytes of a header with ports, and padding.
fn to_port(dst_port: u16, len: usize) -> Vec<u8> {
    let mut bytes = 4_000_u16.to_be_bytes().to_vec();
    bytes.extend(dst_port.to_be_bytes());
    // The length of UDP, or a sequence number; and the length of TCP's header.
    bytes.extend([0, len as u8, 0, 0, 0, 0, 0, 0, 0x50]);
    bytes.resize(len, 0);
    bytes
}

/// Records the frames that a host receives.
struct Listener(HostId, Rc<RefCell<Vec<Vec<u8>>>>);

impl Watcher for Listener {
    fn see(&mut self, _: Duration, event: &Event) -> Result<(), Violation> {
        if let Event::Arrived(_, End::Host(host), frame) = event {
            if *host == self.0 {
                self.1.borrow_mut().push(frame.to_vec());
            }
        }
        Ok(())
    }
}

/// Returns for each of these frames whether it arrives from host 1 at host 3.
fn arriving(net: &mut Net, frames: &[Vec<u8>]) -> Vec<bool> {
    let heard: Rc<RefCell<Vec<_>>> = Rc::default();
    net.watch(Listener(net.host("h3").unwrap(), Rc::clone(&heard)));
    inject(net, "s1", 1, frames.iter().cloned());
    net.run_for(ms(500));
    let heard = heard.borrow();
    frames.iter().map(|frame| heard.contains(frame)).collect()
}

const NO_SSH_AND_DNS: &str = "deny tcp,tp_dst=22\ndeny tcp6,tp_dst=22\ndeny udp,tp_dst=53\ndeny udp6,tp_dst=53\ndefault allow";

/// Sends fragments of denied and of allowed packets, and checks which of them arrive.
fn checks_fragments(net: &mut Net) {
    assert!(pings(net, "h1", "h3"));
    for fragment in [ipv4_fragment, ipv6_fragment] {
        let udp = |port| fragment(ip_proto::UDP, (0, true, &to_port(port, 64)));
        let tcp = |port, len| fragment(ip_proto::TCP, (0, true, &to_port(port, len)));
        let frames = [
            // The first fragment of a long datagram, and one of TCP: denied and allowed.
            udp(53),
            udp(54),
            tcp(22, 64),
            tcp(23, 64),
            // Like those of `nmap -f`: eight bytes each.
            tcp(22, 8),
            fragment(ip_proto::TCP, (8, true, &[0; 8])),
            // The rest of a datagram, which is useless without its start.
            fragment(ip_proto::UDP, (64, false, &[0; 16])),
        ];
        let arrived = arriving(net, &frames);
        let expected = [false, true, false, true, false, false, true];
        assert_eq!(arrived, expected);
    }
    // Extension headers that continue in the next fragment, and hide the headers behind them.
    let hiding = ipv6_fragment(
        ip_proto::DESTINATION_OPTIONS,
        (0, true, &[ip_proto::TCP, 2, 1, 4, 0, 0, 0, 0]),
    );
    assert_eq!(arriving(net, &[hiding]), [false]);
}

#[test]
fn fragments_do_not_bypass_the_firewall() {
    for apps in [GUARDED, &["discovery", "l2", "firewall"]] {
        let (_folder, _, options) = rules(NO_SSH_AND_DNS);
        checks_fragments(&mut net_with("linear,3", apps, &options));
    }
}

#[test]
fn fragments_do_not_bypass_a_checking_controller() {
    let mut session = SessionConfig::default();
    session.versions = vec![Version::Of10];
    let controller = Controller::new()
        .session(session)
        .program(Firewall::new(NO_SSH_AND_DNS.parse().unwrap()));
    let controller = urtica_apps::add_all(controller, APPS, &options()).unwrap();
    checks_fragments(&mut net_with_controller("linear,3", controller));
}

#[test]
fn new_port_rules_apply_to_fragments() {
    let (_folder, file, options) = rules("default allow");
    let mut net = net_with("linear,3", GUARDED, &options);
    fs::write(&file, NO_SSH_AND_DNS).unwrap();
    net.run_for(ms(1_100));
    checks_fragments(&mut net);
}

#[test]
fn drops_exactly_the_denied_packets() {
    let text = "deny icmp,nw_src=10.0.0.1,nw_dst=10.0.0.3,icmp_type=8\n\
                allow udp,nw_src=10.0.0.2,tp_dst=5001\n\
                deny udp,tp_dst=5001\n\
                default allow";
    for apps in [
        GUARDED,
        &["discovery", "l2", "firewall"],
        &["global", "firewall"],
    ] {
        let (_folder, _, options) = rules(text);
        let mut net = net_with("linear,3", apps, &options);
        // Twice, since the first packets may arrive before the entries.
        for _ in 0..2 {
            assert!(!pings(&mut net, "h1", "h3"), "{apps:?}");
            assert!(pings(&mut net, "h3", "h1"), "{apps:?}: the other way");
            assert!(pings(&mut net, "h1", "h2"), "{apps:?}: another host");
            assert_eq!(datagrams(&mut net, "h1", "h3"), 0, "{apps:?}");
            assert_eq!(
                datagrams(&mut net, "h2", "h3"),
                10,
                "{apps:?}: the rule before"
            );
        }
    }
}

#[test]
fn packets_without_a_rule_are_denied() {
    let text = "allow icmp,nw_src=10.0.0.1\nallow icmp,nw_dst=10.0.0.1\ndefault deny";
    let (_folder, _, options) = rules(text);
    let mut net = net_with("ring,3", GUARDED, &options);
    assert!(pings(&mut net, "h1", "h2") && pings(&mut net, "h3", "h1"));
    assert!(!pings(&mut net, "h2", "h3"));
    assert_eq!(datagrams(&mut net, "h1", "h2"), 0);
}

#[test]
fn valid_files_apply_and_invalid_ones_do_not() {
    let (_folder, file, options) = rules("default allow");
    let mut net = net_with("ring,3", GUARDED, &options);
    assert!(net.ping_all().unwrap().is_complete());
    fs::write(&file, "deny icmp,nw_src=10.0.0.1\ndefault allow").unwrap();
    net.run_for(ms(1_100));
    assert!(
        !pings(&mut net, "h1", "h2"),
        "packets do not reach the entries of routing"
    );
    assert!(pings(&mut net, "h2", "h3"));
    fs::write(&file, "default allow\ndeny icmp").unwrap();
    net.run_for(ms(1_100));
    assert!(!pings(&mut net, "h1", "h2"), "the old rules hold");
    fs::remove_file(&file).unwrap();
    net.run_for(ms(1_100));
    assert!(!pings(&mut net, "h1", "h2"), "the old rules hold");
    fs::write(&file, "default allow").unwrap();
    net.run_for(ms(1_100));
    assert!(net.ping_all().unwrap().is_complete());
}

#[test]
fn restarted_switches_get_the_rules_again() {
    let (_folder, _, options) = rules("deny icmp,nw_src=10.0.0.1\ndefault allow");
    let mut net = net_with("linear,2", GUARDED, &options);
    net.restart_switch(net.switch("s1").unwrap()).unwrap();
    net.run_for(Duration::from_secs(3));
    assert!(!pings(&mut net, "h1", "h2"));
    assert_eq!(datagrams(&mut net, "h1", "h2"), 10);
}

#[test]
fn openflow_1_0_packets_are_checked_by_the_controller() {
    let mut session = SessionConfig::default();
    session.versions = vec![Version::Of10];
    let rules = "deny icmp,nw_src=10.0.0.1\ndefault allow".parse().unwrap();
    let controller = Controller::new()
        .session(session)
        .program(Firewall::new(rules));
    let controller = urtica_apps::add_all(controller, APPS, &options()).unwrap();
    let mut net = net_with_controller("ring,3", controller);
    for _ in 0..2 {
        assert!(!pings(&mut net, "h1", "h2"));
        assert!(pings(&mut net, "h2", "h3"));
        assert_eq!(datagrams(&mut net, "h1", "h2"), 10);
    }
}

#[test]
fn reports_missing_options() {
    let error = |options: &Options| {
        let result = urtica_apps::add_all(Controller::new(), &["firewall"], options);
        result.err().expect("no rules").to_string()
    };
    assert_eq!(
        error(&Options::default()),
        "the control program 'firewall' cannot run: it needs its rules; expected --firewall-rules FILE"
    );
    let (_folder, file, wrong) = rules("deny tcp\ndefault perhaps");
    assert_eq!(
        error(&wrong),
        format!(
            "the control program 'firewall' cannot run: {}: line 2, column 9: 'perhaps' is not a verdict; expected allow or deny",
            file.display()
        )
    );
    fs::remove_file(&file).unwrap();
    assert!(error(&wrong).contains("the rules cannot be read from"));
}
