//! Rules that mark and meter packets before a learning switch forwards them.

use crate::rest_firewall::answer;
use crate::support::{frame, inject, ms, net_with_controller, options};
use std::cell::RefCell;
use std::net::Ipv4Addr;
use std::rc::Rc;
use std::time::Duration;
use urtica_apps::{Apps, QosAction, RestQos};
use urtica_controller::Controller;
use urtica_net::watch::{Event, Violation, Watcher};
use urtica_net::{End, HostId, Net};
use urtica_wire::packet::{Headers, Ipv4, ether_type, ip_proto};
use urtica_wire::{DatapathId, Match, MeterBand, MeterMod};

const S1: DatapathId = DatapathId(1);

/// Records the DSCPs of the IPv4 packets that a host receives.
struct Heard(HostId, Rc<RefCell<Vec<u8>>>);

impl Watcher for Heard {
    fn see(&mut self, _: Duration, event: &Event<'_>) -> Result<(), Violation> {
        if let Event::Arrived(_, End::Host(host), frame) = event {
            let headers = Headers::parse(frame);
            if *host == self.0 && headers.eth_type == Some(ether_type::IPV4) {
                self.1.borrow_mut().extend(headers.ip_dscp);
            }
        }
        Ok(())
    }
}

struct Bench {
    net: Net,
    qos: RestQos,
    heard: Rc<RefCell<Vec<u8>>>,
}

impl Bench {
    fn new() -> Self {
        let apps = Apps::new(&["rest_qos", "l2"], &options()).unwrap();
        let qos = apps.services().ryu.qos.clone();
        let mut net = net_with_controller("single,3", apps.add_to(Controller::new()));
        let heard: Rc<RefCell<Vec<u8>>> = Rc::default();
        net.watch(Heard(net.host("h3").unwrap(), Rc::clone(&heard)));
        Self { net, qos, heard }
    }

    /// Returns the DSCPs of `count` packets from host 1 when host 3 receives them.
    fn marks(&mut self, count: usize) -> Vec<u8> {
        let header = Ipv4::new(
            Ipv4Addr::new(10, 0, 0, 1),
            Ipv4Addr::new(10, 0, 0, 3),
            ip_proto::UDP,
        );
        let mut packet = Vec::new();
        header.write(&mut packet, &[0; 512]).unwrap();
        let frame = frame(1, 3, ether_type::IPV4, &packet);
        self.heard.borrow_mut().clear();
        inject(&self.net, "s1", 1, vec![frame; count]);
        self.net.run_for(ms(200));
        self.heard.borrow().clone()
    }

    fn add(&mut self, priority: u16, action: QosAction) -> u32 {
        let from_h1 = Match::any()
            .eth_type(ether_type::IPV4)
            .ipv4_src(Ipv4Addr::new(10, 0, 0, 1));
        let qos = self.qos.clone();
        answer(
            &mut self.net,
            qos.add_rule(S1, 0, priority, from_h1, action),
        )
        .unwrap()
    }
}

#[test]
fn marked_packets_are_forwarded_with_their_mark() {
    let mut bench = Bench::new();
    assert_eq!(bench.marks(1), [0], "nothing is in the way");
    let mark = QosAction {
        mark: Some(26),
        ..QosAction::default()
    };
    let rule = bench.add(1, mark);
    assert_eq!(bench.marks(2), [26, 26]);

    let s1 = bench.net.switch("s1").unwrap();
    bench.net.break_connection(s1).unwrap();
    bench.net.run_for(ms(15_000));
    assert_eq!(bench.marks(1), [26], "after a reconnection");

    let qos = bench.qos.clone();
    let deleted = answer(&mut bench.net, qos.delete_rules(S1, None, Some(rule)));
    assert_eq!(deleted.unwrap().len(), 1);
    assert_eq!(bench.marks(1), [0]);
}

#[test]
fn meters_drop_the_excess_and_are_restored_after_a_reconnection() {
    let mut bench = Bench::new();
    let meter = QosAction {
        meter: Some(1),
        ..QosAction::default()
    };
    bench.add(1, meter);
    assert_eq!(bench.marks(50).len(), 50, "the rule waits for its meter");
    let band = MeterBand::Drop {
        rate: 8,
        burst_size: 8,
    };
    let qos = bench.qos.clone();
    answer(&mut bench.net, qos.set_meter(S1, MeterMod::kbps(1, [band]))).unwrap();
    for is_back in [false, true] {
        if is_back {
            let s1 = bench.net.switch("s1").unwrap();
            bench.net.break_connection(s1).unwrap();
            bench.net.run_for(ms(15_000));
        }
        let passed = bench.marks(50).len();
        assert!(passed < 25, "{passed} of 50 pass 8 kb/s");
    }
    assert_eq!(answer(&mut bench.net, qos.delete_meter(S1, 1)), Ok(true));
    assert_eq!(answer(&mut bench.net, qos.delete_meter(S1, 1)), Ok(false));
    assert_eq!(qos.rules(S1), Ok(Vec::new()));
    assert_eq!(bench.marks(50).len(), 50);
}
