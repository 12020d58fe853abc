//! Thousands of packets to unknown hosts from one port: a budget limits them, and they delay no other packets.

use crate::support::{APPS, PacketIns, frame, inject, ms, net_with, options};
use std::time::Duration;
use urtica_apps::{FloodLimit, Options};
use urtica_net::{Datagrams, Net};

/// The programs that flood packets to unknown hosts.
const FLOODING: [&[&str]; 5] = [
    &["l2"],
    &["discovery", "l2"],
    &["global"],
    &["discovery", "global"],
    &["discovery", "hosts", "routing"],
];

/// The number of packets to unknown hosts in a second.
const SENT: u64 = 6_000;

/// The default burst, and a second at the default rate.
const ADMITTED: u64 = 2_000 + 1_000;

/// Three hosts, which know each other.
fn net(apps: &[&str], options: &Options) -> Net {
    let mut net = net_with("single,3", apps, options);
    assert!(net.ping_all().unwrap().is_complete(), "{apps:?}");
    net
}

/// Sends packets to unknown hosts from the host at a port within a second. Returns the number that the third host receives.
fn flood(net: &mut Net, port_no: u32, packets: u64) -> u64 {
    let [sender, third] = [format!("h{port_no}"), "h3".into()].map(|name| net.host(&name).unwrap());
    let src = net.host_addresses(sender).unwrap().0.to_u64();
    let received = |net: &Net| net.host_counters(third).unwrap().for_others;
    let before = received(net);
    for step in 0..10 {
        let unknown =
            (step * packets / 10..(step + 1) * packets / 10).map(|n| 0x0200_0099_0000 + n);
        let frames = unknown.map(|dst| frame(src, dst, 0x88b5, b"to nobody"));
        inject(net, "s1", port_no, frames);
        net.run_for(ms(100));
    }
    received(net) - before
}

#[test]
fn flood_budgets_are_separate_for_each_port() {
    for apps in FLOODING {
        let mut net = net(apps, &options());
        let received = flood(&mut net, 1, SENT);
        let budget = ADMITTED - 150..=ADMITTED + 1;
        assert!(budget.contains(&received), "{apps:?}: {received}");
        assert_eq!(flood(&mut net, 2, 100), 100, "{apps:?}: another port");
        // Known hosts are still reached, even from the port without budget.
        flood(&mut net, 1, SENT);
        assert!(net.ping_all().unwrap().is_complete(), "{apps:?}");
    }
}

#[test]
fn flood_limits_are_options() {
    for apps in FLOODING {
        let unlimited = limited(apps, FloodLimit::NONE);
        assert_eq!(flood(&mut net(apps, &unlimited), 1, SENT), SENT, "{apps:?}");
        let little = limited(apps, FloodLimit::new(0, 10));
        assert_eq!(flood(&mut net(apps, &little), 1, SENT), 10, "{apps:?}");
    }
}

/// Returns options with this limit for these programs.
fn limited(apps: &[&str], limit: FloodLimit) -> Options {
    let (mut options, limit) = (options(), Some(limit));
    for app in apps {
        match *app {
            "l2" => options.l2.l2_flood_limit = limit,
            "global" => options.global.global_flood_limit = limit,
            "routing" => options.routing.routing_flood_limit = limit,
            _ => {}
        }
    }
    options
}

/// Returns the MAC address of the host with this name, as a number.
fn mac(net: &Net, name: &str) -> u64 {
    let host = net.host(name).unwrap();
    net.host_addresses(host).unwrap().0.to_u64()
}

/// Sends packets from forged senders at a switch's first port to a known host.
fn from_made_up_senders(net: &mut Net, senders: u64, to: &str) {
    let dst = mac(net, to);
    let frames = (0..senders).map(|n| frame(0x0200_0099_0000 + n, dst, 0x88b5, b"made up"));
    inject(net, "s1", 1, frames);
    net.run_for(ms(200));
}

fn entries(net: &mut Net, switch: &str) -> usize {
    let switch = net.switch(switch).unwrap();
    net.switch_mut(switch).unwrap().unwrap().entry_count()
}

#[test]
fn forged_senders_use_only_their_ports_share_of_entries() {
    let mut options = options();
    options.routing.routing_flows_per_port = Some(50);
    let mut net = net_with("linear,3", APPS, &options);
    assert!(net.ping_all().unwrap().is_complete());
    let [s2, s3] = ["s2", "s3"].map(|switch| entries(&mut net, switch));
    let h3 = net.host("h3").unwrap();
    let received = |net: &Net| net.host_counters(h3).unwrap().received;
    let before = received(&net);
    from_made_up_senders(&mut net, 500, "h3");
    assert_eq!(received(&net) - before, 500, "all are forwarded");
    for (switch, before) in [("s2", s2), ("s3", s3)] {
        let added = entries(&mut net, switch) - before;
        assert!((1..=50).contains(&added), "{switch}: {added}");
    }
    assert!(net.ping_all().unwrap().is_complete());
    // Their entries expire, and their port has its share again.
    net.run_for(Duration::from_secs(70));
    from_made_up_senders(&mut net, 10, "h3");
    let fresh = entries(&mut net, "s3");
    from_made_up_senders(&mut net, 20, "h3");
    assert_eq!(entries(&mut net, "s3") - fresh, 10);
}

#[test]
fn packets_of_unknown_senders_reach_only_known_receivers() {
    let mut net = net_with("linear,3", APPS, &options());
    assert!(net.ping_all().unwrap().is_complete());
    let [h2, h3] = ["h2", "h3"].map(|name| net.host(name).unwrap());
    // More than the share of a port in the table of hosts.
    let dst = mac(&net, "h3");
    let received = |net: &Net| net.host_counters(h3).unwrap().received;
    let before = received(&net);
    for batch in 0..15 {
        let senders = (0..300).map(|n| 0x0200_0099_0000 + 300 * batch + n);
        inject(
            &net,
            "s1",
            1,
            senders.map(|src| frame(src, dst, 0x88b5, b"made up")),
        );
        net.run_for(ms(100));
    }
    assert_eq!(received(&net) - before, 4_500, "all are forwarded");
    assert_eq!(net.host_counters(h2).unwrap().for_others, 0);
    // A second host uses the address of another host, which answers a probe and so proves to be alive.
    let frames = [frame(mac(&net, "h2"), dst, 0x88b5, b"mine")];
    let before = received(&net);
    inject(&net, "s1", 1, frames);
    net.run_for(ms(200));
    assert_eq!(received(&net), before + 1);
    assert_eq!(net.host_counters(h2).unwrap().for_others, 0);
}

#[test]
fn busiest_port_of_a_full_switch_loses_entries() {
    let mut net = net_with("linear,3", APPS, &options());
    net.announce_hosts();
    net.run_for(ms(500));
    let s2 = net.switch("s2").unwrap();
    net.switch_mut(s2).unwrap().unwrap().leave_room_for(20);
    from_made_up_senders(&mut net, 200, "h3");
    let packet_ins = PacketIns::default();
    net.watch(packet_ins.clone());
    let datagrams = Datagrams {
        count: 80,
        payload_bytes: 64,
        interval: ms(10),
    };
    let [h2, h3] = ["h2", "h3"].map(|name| net.host(name).unwrap());
    let flow = net.start_datagrams(h2, h3, datagrams).unwrap();
    net.run_for(ms(700));
    let report = net.flow_report(flow).unwrap();
    assert!(report.received >= 60, "{report}");
    let seen = packet_ins.take();
    assert!(seen <= 30, "{seen} packet-ins: its entry is there");
}
