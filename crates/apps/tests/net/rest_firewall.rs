//! The firewall controlled by requests: only packets that its rules allow pass.

use crate::support::{frame, inject, ms, net_speaking, options, tagged};
use std::cell::Cell;
use std::future::Future;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use urtica_apps::{Apps, RestFirewall, RyuError, Verdict};
use urtica_controller::Controller;
use urtica_net::watch::{Event, Violation, Watcher};
use urtica_net::{End, Net};
use urtica_wire::packet::{ether_type, ip_proto};
use urtica_wire::{DatapathId, Match, Version};

const S1: DatapathId = DatapathId(1);

/// A time after which switches have reconnected.
const BACK: Duration = ms(12_000);

/// Creates a network whose switches speak this version, and its firewall.
fn guarded(spec: &str, version: Version) -> (Net, RestFirewall) {
    let apps = Apps::new(&["rest_firewall"], &options()).unwrap();
    let firewall = apps.services().ryu.firewall.clone();
    let net = net_speaking(&[version], spec, apps.add_to(Controller::new()));
    (net, firewall)
}

/// Runs the network until a request is answered.
pub fn answer<T>(net: &mut Net, request: impl Future<Output = T>) -> T {
    let mut request = pin!(request);
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..60_000 {
        if let Poll::Ready(answer) = request.as_mut().poll(&mut context) {
            return answer;
        }
        net.run_for(ms(1));
    }
    panic!("the request is not answered");
}

fn pings(net: &mut Net, from: &str, to: &str) -> bool {
    let (from, to) = (net.host(from).unwrap(), net.host(to).unwrap());
    net.ping(from, to).unwrap().received == 1
}

/// Matches ICMP from one host to another.
fn icmp(src: u8, dst: u8) -> Match<'static> {
    Match::any()
        .eth_type(ether_type::IPV4)
        .ip_proto(ip_proto::ICMPV4)
        .ipv4_src(Ipv4Addr::new(10, 0, 0, src))
        .ipv4_dst(Ipv4Addr::new(10, 0, 0, dst))
}

fn add(
    net: &mut Net,
    firewall: &RestFirewall,
    priority: u16,
    match_: Match<'static>,
    verdict: Verdict,
) -> u32 {
    answer(net, firewall.add_rule(S1, 0, priority, match_, verdict)).unwrap()
}

#[test]
fn enabled_firewalls_pass_only_allowed_packets() {
    for version in Version::ALL {
        let (mut net, firewall) = guarded("single,3", version);
        assert_eq!(firewall.switches(), [S1]);
        add(&mut net, &firewall, 1, icmp(1, 2), Verdict::Allow);
        add(&mut net, &firewall, 1, icmp(2, 1), Verdict::Allow);
        assert!(!pings(&mut net, "h1", "h2"), "it is not enabled");
        answer(&mut net, firewall.enable(S1, true)).unwrap();
        assert!(pings(&mut net, "h1", "h2") && pings(&mut net, "h2", "h1"));
        assert!(!pings(&mut net, "h1", "h3"), "no rule allows it");

        let denied = add(&mut net, &firewall, 10, icmp(1, 2), Verdict::Deny);
        assert!(!pings(&mut net, "h1", "h2"));
        for logs in [false, true] {
            answer(&mut net, firewall.log(S1, logs)).unwrap();
            assert!(!pings(&mut net, "h1", "h2"));
        }
        let deleted = answer(&mut net, firewall.delete_rules(S1, Some(0), Some(denied)));
        assert_eq!(deleted.unwrap().len(), 1);
        assert!(pings(&mut net, "h1", "h2"));
        answer(&mut net, firewall.enable(S1, false)).unwrap();
        assert!(!pings(&mut net, "h1", "h2"), "it is disabled");
    }
}

#[test]
fn rules_and_status_survive_a_reconnection() {
    for version in Version::ALL {
        let (mut net, firewall) = guarded("single,3", version);
        answer(&mut net, firewall.enable(S1, true)).unwrap();
        add(&mut net, &firewall, 1, icmp(1, 2), Verdict::Allow);
        add(&mut net, &firewall, 1, icmp(2, 1), Verdict::Allow);
        let s1 = net.switch("s1").unwrap();
        net.break_connection(s1).unwrap();
        net.stall_connection(s1, ms(3_000)).unwrap();
        net.run_for(ms(1_000));
        assert_eq!(firewall.status(S1), Err(RyuError::NotConnected(S1)));
        net.run_for(BACK);
        assert!(firewall.status(S1).unwrap().is_enabled);
        assert_eq!(firewall.rules(S1).unwrap().len(), 2);
        assert!(pings(&mut net, "h1", "h2"));
        assert!(!pings(&mut net, "h1", "h3"));
    }
}

/// Counts the tagged frames that hosts receive.
#[derive(Clone, Default)]
struct Tagged(Rc<Cell<usize>>);

impl Watcher for Tagged {
    fn see(&mut self, _: Duration, event: &Event<'_>) -> Result<(), Violation> {
        if let Event::Arrived(_, End::Host(_), bytes) = event {
            if bytes.get(12..14) == Some(&[0x81, 0x00]) {
                self.0.set(self.0.get() + 1);
            }
        }
        Ok(())
    }
}

#[test]
fn vlan_rules_apply_only_to_their_vlan() {
    let (mut net, firewall) = guarded("single,3", Version::Of13);
    answer(&mut net, firewall.enable(S1, true)).unwrap();
    let ipv4_in = |vlan_id| Match::any().vlan_vid(vlan_id).eth_type(ether_type::IPV4);
    answer(
        &mut net,
        firewall.add_rule(S1, 2, 1, ipv4_in(2), Verdict::Allow),
    )
    .unwrap();
    let heard = Tagged::default();
    net.watch(heard.clone());
    // Only an IPv4 header: 20 bytes, from host 1 to host 2.
    let mut packet = vec![
        0x45, 0, 0, 20, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
    ];
    packet.resize(46, 0);
    for (vlan_id, comes) in [(2, true), (110, false)] {
        heard.0.set(0);
        inject(
            &net,
            "s1",
            1,
            [tagged(
                0x8100,
                vlan_id,
                frame(1, 2, ether_type::IPV4, &packet),
            )],
        );
        net.run_for(ms(500));
        assert_eq!(heard.0.get() > 0, comes, "VLAN {vlan_id}");
    }
}

#[test]
fn refused_requests_are_not_stored() {
    let (mut net, firewall) = guarded("single,2", Version::Of13);
    let s1 = net.switch("s1").unwrap();
    net.switch_mut(s1).unwrap().unwrap().refuse_flow_mods(true);
    let refused = answer(
        &mut net,
        firewall.add_rule(S1, 0, 1, icmp(1, 2), Verdict::Allow),
    );
    assert!(matches!(refused, Err(RyuError::Request(_))), "{refused:?}");
    assert_eq!(firewall.rules(S1), Ok(Vec::new()));
    // A rule that the version cannot express is refused before it is sent.
    let (mut net, firewall) = guarded("single,2", Version::Of10);
    let ipv6 = Match::any()
        .eth_type(ether_type::IPV6)
        .ipv6_src(Ipv6Addr::LOCALHOST);
    let refused = answer(&mut net, firewall.add_rule(S1, 0, 1, ipv6, Verdict::Allow));
    assert!(matches!(refused, Err(RyuError::Request(_))), "{refused:?}");
    assert_eq!(firewall.rules(S1), Ok(Vec::new()));
}
