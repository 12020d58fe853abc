//! The examples do what they say, in a simulated network.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use urtica::controller::SessionConfig;
use urtica::prelude::*;
use urtica::topology::spec::{Plan, TopologySpec};
use urtica::wire::packet::{Ethernet, Ipv4, PseudoHeader, Udp, ether_type, ip_proto};
use urtica_net::{Datagrams, End, Net, NetConfig};
use who_installed::Counts;

#[expect(dead_code, reason = "an example has a `main`")]
#[path = "../examples/backup_link.rs"]
mod backup_link;
#[expect(dead_code, reason = "an example has a `main`")]
#[path = "../examples/guest_port.rs"]
mod guest_port;
#[path = "../examples/packet_rate.rs"]
mod packet_rate;
#[expect(dead_code, reason = "an example has a `main`")]
#[path = "../examples/port_stats.rs"]
mod port_stats;
#[expect(dead_code, reason = "an example has a `main`")]
#[path = "../examples/raw_hub.rs"]
mod raw_hub;
#[expect(dead_code, reason = "an example has a `main`")]
#[path = "../examples/virtual_ip.rs"]
mod virtual_ip;
#[expect(dead_code, reason = "an example has a `main`")]
#[path = "../examples/who_installed.rs"]
mod who_installed;

/// A network with this program, whose switches have joined.
fn started(spec: &str, controller: Controller) -> Net {
    let plan = spec.parse::<TopologySpec>().unwrap().plan().unwrap();
    started_with(&plan, controller)
}

/// The same of a plan.
fn started_with(plan: &Plan, controller: Controller) -> Net {
    let mut net = Net::new(plan, NetConfig::default()).unwrap();
    net.start_controller(controller).unwrap();
    net.run_for(Duration::from_secs(1));
    net
}

/// A network with this program, of which all hosts have pinged all.
fn pinged(spec: &str, controller: Controller) -> Net {
    let mut net = started(spec, controller);
    assert!(net.ping_all().unwrap().is_complete());
    net
}

/// A controller that speaks this version alone.
fn speaking(version: Version) -> Controller {
    let mut session = SessionConfig::default();
    session.versions = vec![version];
    Controller::new().session(session)
}

#[test]
fn packets_of_each_switch_are_told_every_ten_seconds() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let teller = Arc::clone(&told);
    let program = move |_: &SwitchInfo| {
        let told = Arc::clone(&teller);
        packet_rate::PacketRate {
            packets: 0,
            tell: move |switch, packets: u64| told.lock().unwrap().push((switch, packets)),
        }
    };
    let mut net = pinged("linear,2", Controller::new().program(program));
    net.run_for(Duration::from_secs(25));
    let told = told.lock().unwrap();
    for switch in [1, 2].map(DatapathId) {
        let of_switch = told.iter().filter(|(id, _)| *id == switch);
        let packets: Vec<_> = of_switch.map(|(_, packets)| *packets).collect();
        // All hosts have pinged in the first ten seconds, and nobody has sent anything since.
        assert!(
            packets.len() == 2 && packets[0] > 0,
            "{switch}: {packets:?}"
        );
        assert_eq!(packets[1], 0, "{switch}");
    }
}

#[test]
fn counters_of_all_ports_are_told_every_ten_seconds() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let teller = Arc::clone(&told);
    let tell =
        move |switch: DatapathId, port: PortStats| teller.lock().unwrap().push((switch, port));
    let mut net = pinged(
        "linear,2",
        Controller::new().program(port_stats::Poller(tell)),
    );
    net.run_for(Duration::from_secs(20));
    let told = told.lock().unwrap();
    for switch in [1, 2].map(DatapathId) {
        // Each has a host and a link.
        for port_no in [1, 2].map(PortNo) {
            let rows = told
                .iter()
                .filter(|(id, port)| (*id, port.port_no) == (switch, port_no));
            let received: Vec<u64> = rows.map(|(_, port)| port.rx_packets).collect();
            assert!(
                received.len() == 2 && received[0] > 0,
                "{switch} {port_no}: {received:?}"
            );
        }
    }
}

#[test]
fn a_hub_without_the_frameworks_help_connects_all_hosts() {
    for version in Version::ALL {
        let program = |_: &SwitchInfo| raw_hub::RawHub::default();
        pinged("tree,2,2", speaking(version).raw_program(program));
    }
}

#[test]
fn clients_of_a_virtual_address_reach_a_server_each_from_the_first_packet_on() {
    for version in Version::ALL {
        let server = |number: u8| {
            virtual_ip::Server(
                MacAddr::from([0, 0, 0, 0, 0, number]),
                [10, 0, 0, number].into(),
                PortNo(number.into()),
            )
        };
        // The fifth host lends its address, and is cut off.
        let program = move |_: &SwitchInfo| virtual_ip::VirtualIp {
            mac: MacAddr::from([2, 0, 0, 0, 0, 100]),
            address: [10, 0, 0, 5].into(),
            servers: [server(1), server(2)],
        };
        let mut net = started("single,5", speaking(version).program(program));
        let link = net.link("h5", "s1").unwrap();
        net.cut(link).unwrap();
        let host = |name: &str| net.host(name).unwrap();
        let (lent, servers) = (host("h5"), [host("h1"), host("h2")]);
        for (client, chosen) in [(host("h3"), 1), (host("h4"), 0)] {
            // The packet that finds no entry, and one that does.
            for _ in 0..2 {
                let report = net.ping(client, lent).unwrap();
                assert_eq!((report.sent, report.received), (1, 1), "{version}");
            }
            let received = |net: &Net| servers.map(|id| net.host_counters(id).unwrap().received);
            let before = received(&net);
            net.ping(client, lent).unwrap();
            let mut expected = before;
            expected[chosen] += 1;
            assert_eq!(received(&net), expected, "{version}");
        }
    }
}

#[test]
fn entries_are_told_by_program_and_deleted_by_program() {
    for version in Version::ALL {
        let told = Arc::new(Mutex::new(HashMap::new()));
        let teller = Arc::clone(&told);
        let tell = move |switch: DatapathId, counts: Counts| {
            teller.lock().unwrap().insert(switch, counts);
        };
        let controller = speaking(version)
            .program(Discovery::new(DiscoveryConfig::default()))
            .program(who_installed::WhoInstalled(tell))
            .program(|_: &SwitchInfo| ToTwo);
        let mut net = started("single,2", controller);
        let network = net.controller().unwrap().clone();
        let switch = DatapathId(1);
        let (ours, stays) = (Match::any().eth_type(0x88b5), EntryOptions::PERMANENT);
        network.install(switch, ours, &[], stays).unwrap();

        let mut counts = || {
            net.run_for(Duration::from_secs(11));
            told.lock().unwrap().remove(&switch).unwrap()
        };
        let program = |number: u64| ProgramId::of_cookie(number << 56);
        let (discovery, third) = (program(1), program(3));
        let outside = Some(ProgramId::OUTSIDE);
        let mut expected = Counts::from([(discovery, 1), (third, 1), (outside, 1)]);
        if version == Version::Of13 {
            expected.insert(None, 1); // the table-miss entry
        }
        assert_eq!(counts(), expected, "{version}");

        network.delete(switch, Match::any()).unwrap();
        expected.remove(&outside);
        assert_eq!(counts(), expected, "{version}");

        network
            .delete_of(third.unwrap(), switch, Match::any())
            .unwrap();
        expected.remove(&third);
        assert_eq!(counts(), expected, "{version}");
    }
}

/// Two switches with a host each, and two links between them.
const TWO_LINKS: &str = r#"
[[switches]]
name = "s1"

[[switches]]
name = "s2"

[[hosts]]
name = "h1"
attached = "s1:1"

[[hosts]]
name = "h2"
attached = "s2:1"

[[links]]
a = "s1:2"
b = "s2:2"

[[links]]
a = "s1:3"
b = "s2:3"
"#;

#[test]
fn a_backup_link_is_used_while_the_first_is_down_and_packets_are_limited() {
    let plan = Plan::from_toml(TWO_LINKS).unwrap();
    let program = |_: &SwitchInfo| backup_link::BackupLink;
    let mut net = started_with(&plan, Controller::new().program(program));
    let [h1, h2] = ["h1", "h2"].map(|name| net.host(name).unwrap());
    let s1 = net.switch("s1").unwrap();
    let link = |net: &Net, port_no| {
        let end = End::Switch(s1, PortNo(port_no));
        let found = net
            .links()
            .find(|link| net.ends(*link).unwrap().contains(&end));
        found.unwrap()
    };
    let [preferred, backup] = [2, 3].map(|port_no| link(&net, port_no));
    // The switches notice a change of a link after a moment.
    let ping = |net: &mut Net| {
        net.run_for(Duration::from_millis(200));
        net.ping(h1, h2).unwrap().received
    };
    assert_eq!(ping(&mut net), 1);
    net.stop_controller();
    net.cut(preferred).unwrap();
    assert_eq!(ping(&mut net), 1, "by the backup");
    net.cut(backup).unwrap();
    assert_eq!(ping(&mut net), 0);
    net.repair(preferred).unwrap();
    assert_eq!(ping(&mut net), 1, "by the preferred one again");

    net.run_for(Duration::from_secs(2));
    let datagrams = Datagrams {
        count: 2_000,
        payload_bytes: 64,
        interval: Duration::from_millis(1),
    };
    let flow = net.start_datagrams(h1, h2, datagrams).unwrap();
    net.run_for(Duration::from_secs(3));
    let received = net.flow_report(flow).unwrap().received;
    // A burst, and the rate for two seconds.
    assert!((299..=301).contains(&received), "{received}");
}

#[test]
fn guests_reach_what_is_permitted_and_others_reach_all() {
    for version in Version::ALL {
        let controller = speaking(version)
            .program(guest_port::GuestPorts)
            .program(|_: &SwitchInfo| urtica::apps::L2::default());
        let mut net = started("single,3", controller);
        let [h1, h2, guest] = ["h1", "h2", "h3"].map(|name| net.host(name).unwrap());
        assert_eq!(net.ping(h1, h2).unwrap().received, 1, "{version}");
        for (from, to) in [(guest, h1), (h1, guest)] {
            assert_eq!(net.ping(from, to).unwrap().received, 0, "{version}");
        }
        for (port, expected) in [(53, 1), (54, 0)] {
            let received = |net: &Net| net.host_counters(h1).unwrap().received;
            let before = received(&net);
            net.send_frame(guest, &datagram(port)).unwrap();
            net.run_for(Duration::from_secs(1));
            assert_eq!(received(&net), before + expected, "{version}: port {port}");
        }
    }
}

/// A datagram from the third host to a port of the first.
fn datagram(dst_port: u16) -> Vec<u8> {
    let [src, dst] = [3, 1].map(|host| Ipv4Addr::new(10, 0, 0, host));
    let [from, to] = [3, 1].map(MacAddr::from_u64);
    let (mut frame, mut payload) = (Vec::new(), Vec::new());
    let udp = Udp {
        src_port: 4_000,
        dst_port,
    };
    let pseudo_header = PseudoHeader::V4 { src, dst };
    udp.write(&mut payload, &pseudo_header, b"a question")
        .unwrap();
    let ethernet = Ethernet {
        dst: to,
        src: from,
        ether_type: ether_type::IPV4,
    };
    ethernet.write(&mut frame);
    let ip = Ipv4::new(src, dst, ip_proto::UDP);
    ip.write(&mut frame, &payload).unwrap();
    frame
}

/// Sends all packets of the first port to the second.
struct ToTwo;

impl SwitchHandler for ToTwo {
    fn switch_up(&mut self, switch: &mut Switch) {
        let from_1 = Match::any().in_port(PortNo(1));
        let sent = switch.install(from_1, PortNo(2), EntryOptions::PERMANENT);
        sent.unwrap();
    }
}
