//! Bundled programs in one controller: each works as documented together with the others.

use crate::bandwidth::{PacketsTo, datagram};
use crate::elephants::{fat_tree_with, throughput};
use crate::l3::{CONFIG, in_subnets, listen};
use crate::security::syn;
use crate::support::{frame, hold, inject, ms, net_of_plan, options};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs;
use std::net::Ipv4Addr;
use std::rc::Rc;
use std::time::Duration;
use tempfile::TempDir;
use urtica_apps::Options;
use urtica_controller::Controller;
use urtica_net::simulate::{Programs, Scenario};
use urtica_net::watch::{Event, Violation, Watcher};
use urtica_net::{Datagrams, End, HostId, Net};
use urtica_wire::packet::{Arp, Headers, arp, ether_type};
use urtica_wire::{MacAddr, Version};

/// Routers in networks of all topologies, behind each of the filters.
const WATCHED: &[&str] = &[
    "discovery",
    "hosts",
    "l3",
    "security",
    "routing",
    "elephants",
];
const GUARDED: &[&str] = &["firewall", "l3", "elephants", "routing"];
const RESERVED: &[&str] = &["security", "bandwidth", "l3", "routing", "elephants"];
const GLOBAL: &[&str] = &["discovery", "l3", "security", "global"];

/// The MAC address of the gateway of 10.0.1.0/24 in [`CONFIG`].
const GATEWAY: u64 = 0x0200_0000_01fe;

/// Returns options for all programs, and the files that they name. The firewall denies datagrams to port 5001, which hosts
/// send, and bandwidth is reserved for them.
fn options_of_all(l3_config: &str) -> (TempDir, Options) {
    let folder = tempfile::tempdir().unwrap();
    let mut options = options();
    let write = |name: &str, text: &str| {
        let file = folder.path().join(name);
        fs::write(&file, text).unwrap();
        Some(file)
    };
    options.l3.l3_config = write("subnets.toml", l3_config);
    options.firewall.firewall_rules = write("rules", "deny udp,tp_dst=5001\ndefault allow\n");
    options.elephants.elephants_interval = Some(1);
    options.bandwidth.bandwidth_demand = vec!["1M udp,tp_dst=5001".parse().unwrap()];
    (folder, options)
}

/// Returns only the options of these programs.
fn options_for(apps: &[&str], options: &Options) -> Options {
    let mut options = options.clone();
    for unused in ["l3", "firewall", "elephants", "bandwidth"] {
        match unused {
            runs if apps.contains(&runs) => {}
            "l3" => options.l3 = Default::default(),
            "firewall" => options.firewall = Default::default(),
            "elephants" => options.elephants = Default::default(),
            _ => options.bandwidth = Default::default(),
        }
    }
    options
}

fn controller(apps: &[&str], options: &Options) -> Controller {
    urtica_apps::add_all(Controller::new(), apps, &options_for(apps, options)).unwrap()
}

/// Creates a ring of six switches whose hosts are in three subnets.
fn ring(apps: &[&str], options: &Options) -> Net {
    net_of_plan(&in_subnets("ring,6"), controller(apps, options))
}

/// Checks that every host reaches every other. A few packets may be lost before, since at most four wait for an unknown host.
fn all_reach(net: &mut Net, when: &str) {
    for _ in 0..2 {
        net.ping_all().unwrap();
    }
    let report = net.ping_all().unwrap();
    assert!(report.is_complete(), "{when}: {report} {:?}", report.failed);
    assert_eq!(report.duplicates, 0, "{when}");
}

/// Returns the number of ten datagrams that arrive.
fn datagrams(net: &mut Net, from: &str, to: &str) -> u64 {
    let (from, to) = (net.host(from).unwrap(), net.host(to).unwrap());
    let datagrams = Datagrams {
        count: 10,
        payload_bytes: 64,
        interval: ms(10),
    };
    let flow = net.start_datagrams(from, to, datagrams).unwrap();
    net.run_for(ms(1_000));
    net.flow_report(flow).unwrap().received
}

#[test]
fn hosts_of_all_subnets_reach_each_other_after_random_faults() {
    let (_folder, options) = options_of_all(CONFIG);
    for apps in [WATCHED, GUARDED, RESERVED, GLOBAL] {
        let mut net = ring(apps, &options);
        let told = |when: &str| format!("{apps:?}, {when}");
        all_reach(&mut net, &told("at first"));
        let link = net.link("s1", "s2").unwrap();
        net.cut(link).unwrap();
        // Entries of global stay for five seconds over a link that is cut.
        net.run_for(Duration::from_secs(6));
        all_reach(&mut net, &told("without a link"));
        net.repair(link).unwrap();
        net.run_for(Duration::from_secs(6));
        all_reach(&mut net, &told("with it again"));
        net.restart_switch(net.switch("s3").unwrap()).unwrap();
        net.run_for(Duration::from_secs(6));
        all_reach(&mut net, &told("with a switch that has forgotten all"));
        net.break_connection(net.switch("s5").unwrap()).unwrap();
        net.run_for(Duration::from_secs(6));
        all_reach(&mut net, &told("with a new connection"));
        let (h1, s4) = (net.host("h1").unwrap(), net.switch("s4").unwrap());
        net.move_host(h1, s4).unwrap();
        net.run_for(Duration::from_secs(6));
        all_reach(&mut net, &told("with a host elsewhere"));
        net.start_controller(controller(apps, &options)).unwrap();
        net.run_for(Duration::from_secs(15));
        all_reach(&mut net, &told("with another controller"));
    }
}

/// Records the addresses that a host is told are at this MAC address.
struct Claims {
    to: HostId,
    mac: MacAddr,
    addresses: Rc<RefCell<Vec<Ipv4Addr>>>,
}

impl Watcher for Claims {
    fn see(&mut self, _now: Duration, event: &Event<'_>) -> Result<(), Violation> {
        if let Event::Arrived(_, End::Host(host), bytes) = *event {
            let claim = Headers::parse(bytes).arp;
            let claim = claim.filter(|claim| host == self.to && claim.sha == self.mac);
            self.addresses
                .borrow_mut()
                .extend(claim.map(|claim| claim.spa));
        }
        Ok(())
    }
}

#[test]
fn forged_addresses_reach_no_host_with_gateways() {
    let (_folder, options) = options_of_all(CONFIG);
    let mut net = ring(&["l3", "routing"], &options);
    all_reach(&mut net, "before");
    let [victim, liar] = ["h1", "h4"].map(|name| net.host(name).unwrap());
    let [(to, to_ipv4), (mac, own)] = [victim, liar].map(|host| net.host_addresses(host).unwrap());
    let addresses = Rc::default();
    let claims = Claims {
        to: victim,
        mac,
        addresses: Rc::clone(&addresses),
    };
    net.watch(claims);
    let (host, gateway) = ([10, 0, 2, 2].into(), [10, 0, 1, 254].into());
    for address in [host, gateway, own] {
        for dst in [to, MacAddr::BROADCAST] {
            let reply = Arp {
                op: arp::REPLY,
                sha: mac,
                spa: address,
                tha: to,
                tpa: to_ipv4,
            };
            let mut payload = Vec::new();
            reply.write(&mut payload);
            let frame = frame(mac.to_u64(), dst.to_u64(), ether_type::ARP, &payload);
            net.send_frame(liar, &frame).unwrap();
            net.run_for(ms(200));
        }
    }
    assert_eq!(*addresses.borrow(), [own, own]);
    all_reach(&mut net, "after");
}

/// The gateway is no host, so no bandwidth can be reserved for the flow.
#[test]
fn flows_across_subnets_get_only_best_effort() {
    let (_folder, mut options) = options_of_all(CONFIG);
    let mut received = |best_effort: bool| {
        options.bandwidth.bandwidth_best_effort = best_effort;
        let mut net = ring(&["bandwidth", "l3", "routing"], &options);
        all_reach(&mut net, "before datagrams");
        let heard = PacketsTo::new(&net, "h2");
        net.watch(heard.clone());
        for _ in 0..20 {
            let (from, to) = ([10, 0, 1, 1].into(), [10, 0, 2, 2].into());
            inject(&net, "s1", 1, [datagram((1, from), (GATEWAY, to))]);
            net.run_for(ms(10));
        }
        heard.count()
    };
    assert_eq!(received(false), 1, "one per second passes");
    assert_eq!(received(true), 20, "all pass");
}

/// Each subnet has one host: with two, one would receive the other's requests, and hosts of these networks learn from them.
#[test]
fn packets_between_subnets_have_a_decremented_ttl() {
    let (_folder, options) = options_of_all(CONFIG);
    for apps in [WATCHED, GUARDED, RESERVED, GLOBAL] {
        let mut net = net_of_plan(&in_subnets("ring,3"), controller(apps, &options));
        let heard = listen(&mut net, "h1");
        all_reach(&mut net, &format!("{apps:?}"));
        let heard: BTreeSet<_> = heard
            .borrow()
            .iter()
            .map(|&(src, .., ttl)| (src, ttl))
            .collect();
        let expected = [2, 3].map(|number| (Ipv4Addr::new(10, 0, number, number), 63));
        assert_eq!(heard, expected.into(), "{apps:?}");
    }
}

#[test]
fn only_scanners_are_blocked() {
    let (_folder, options) = options_of_all(CONFIG);
    for apps in [WATCHED, RESERVED, GLOBAL] {
        let mut net = ring(apps, &options);
        all_reach(&mut net, "nobody has done anything");
        let scan = (1..=120).map(|port| syn((1, 4_000), (4, port)));
        inject(&net, "s1", 1, scan);
        net.run_for(ms(1_000));
        let report = net.ping_all().unwrap();
        let h1 = net.host("h1").unwrap();
        assert_eq!(report.failed.len(), 10, "{apps:?}: {report}");
        assert!(
            report
                .failed
                .iter()
                .all(|pair| pair.0 == h1 || pair.1 == h1)
        );
        net.run_for(Duration::from_secs(65));
        all_reach(&mut net, "it is unblocked");
    }
}

#[test]
fn denials_hold_within_and_between_subnets() {
    let (_folder, options) = options_of_all(CONFIG);
    let mut guarded = ring(GUARDED, &options);
    let mut watched = ring(WATCHED, &options);
    for net in [&mut guarded, &mut watched] {
        all_reach(net, "pings are allowed");
    }
    for to in ["h2", "h4"] {
        assert_eq!(datagrams(&mut guarded, "h1", to), 0, "{to}");
        assert_eq!(datagrams(&mut watched, "h1", to), 10, "{to}");
    }
}

/// An idle router and a filter in the same controller do not prevent the spreading of large flows.
#[test]
fn large_flows_are_spread_behind_a_filter() {
    let subnet = "[[interface]]\naddress = \"10.0.0.254/24\"\nmac = \"02:00:00:00:00:fe\"\n";
    let (_folder, options) = options_of_all(subnet);
    let by_hash = ["l3", "security", "routing"];
    let by_hash = throughput(&mut fat_tree_with(controller(&by_hash, &options)));
    let by_size = throughput(&mut fat_tree_with(controller(WATCHED, &options)));
    assert!(by_hash < 800, "{by_hash}: the hash is a bad one");
    assert!(by_size > 990, "{by_size}, and {by_hash} without");
}

#[test]
fn programs_do_not_interfere_under_random_faults() {
    let subnet = "[[interface]]\naddress = \"10.0.0.254/24\"\nmac = \"02:00:00:00:00:fe\"\n";
    let (_folder, options) = options_of_all(subnet);
    for apps in [WATCHED, GUARDED, RESERVED] {
        let options = options.clone();
        let programs = move || Programs {
            controller: controller(apps, &options),
            reservations: None,
        };
        let scenario = Scenario {
            quiescent_after: Duration::from_secs(100),
            entries_when_quiescent: 22,
            versions: vec![Version::Of13],
            ..Scenario::on_loops(programs)
        };
        hold(&scenario, 1..=4);
    }
}

#[test]
fn meaningless_settings_are_refused() {
    let (_folder, options) = options_of_all(CONFIG);
    let error = |apps: &[&str]| {
        let options = options_for(apps, &options);
        let result = urtica_apps::add_all(Controller::new(), apps, &options);
        result.err().expect("it cannot run").to_string()
    };
    for (apps, expected) in [
        (
            &["discovery", "l2", "routing"][..],
            "'routing' cannot run: l2 forwards all packets, too, so that each would arrive twice; expected one of the two",
        ),
        (
            &["l3", "neighbour-proxy", "routing"],
            "'l3' cannot run: the neighbour-proxy would consume requests for its gateways; expected l3 without neighbour-proxy",
        ),
        (
            &["routing", "l3"],
            "'l3' cannot run: routing would forward its packets first; expected l3 before routing",
        ),
        (
            &["l3", "security", "firewall", "routing"],
            "'security' cannot run: the firewall passes flows that this program must inspect; expected one of the two",
        ),
        (
            &["discovery", "l3", "global", "elephants"],
            "'elephants' cannot run: it moves flows of routing; expected routing, too",
        ),
    ] {
        let error = error(apps);
        assert_eq!(error, format!("the control program {expected}"));
    }
}
