//! Hosts that say that they have others' addresses, and what becomes of those who are talked to meanwhile.

use crate::support::{APPS, frame, inject, ms, net_with, options};
use std::net::Ipv4Addr;
use std::time::Duration;
use urtica_net::{HostId, Net};
use urtica_wire::MacAddr;
use urtica_wire::packet::{Arp, ether_type};

const ALL: u64 = 0xffff_ffff_ffff;

fn mac(host: u64) -> MacAddr {
    MacAddr::from_u64(host)
}

fn ip(host: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, host)
}

fn arp_frame(src: u64, dst: u64, arp: Arp) -> Vec<u8> {
    let mut payload = Vec::new();
    arp.write(&mut payload);
    frame(src, dst, ether_type::ARP, &payload)
}

/// A line of three whose hosts know each other. The first host's MAC address is 1, and so on.
fn line() -> Net {
    let mut net = net_with("linear,3", APPS, &options());
    assert!(net.ping_all().unwrap().is_complete());
    net
}

fn hosts(net: &Net) -> [HostId; 3] {
    ["h1", "h2", "h3"].map(|name| net.host(name).unwrap())
}

#[test]
fn who_says_that_it_has_a_live_hosts_address_gets_none_of_its_packets() {
    let mut net = line();
    let [h1, h2, h3] = hosts(&net);
    let ping = net.start_ping(h2, h1, 98).unwrap();
    let asking = |target| Arp::request(mac(3), ip(1), ip(target));
    let telling = Arp::request(mac(2), ip(2), ip(1)).reply(mac(3));
    for round in 0..98 {
        inject(
            &net,
            "s3",
            1,
            [
                arp_frame(3, ALL, asking(9 + round)),
                arp_frame(3, ALL, asking(1)),
                arp_frame(3, ALL, telling),
                // From a MAC address that nobody has, about the forger's own.
                arp_frame(7, ALL, asking(9 + round)),
            ],
        );
        net.run_for(ms(1_000));
    }
    net.run_for(Duration::from_secs(2));
    let report = net.ping_report(ping).unwrap();
    assert_eq!((report.received, report.lost()), (98, 0));
    // They would come with the forger's MAC address and its victim's IP address.
    assert_eq!(net.host_counters(h3).unwrap().unexpected, 0);
}

#[test]
fn who_takes_over_the_address_of_a_host_that_is_silent_gets_its_packets() {
    let mut net = line();
    let [h1, h2, h3] = hosts(&net);
    net.set_loss(net.link("h1", "s1").unwrap(), 1.0).unwrap();
    net.run_for(ms(100));
    // It tells so once.
    let taking = Arp::request(mac(3), ip(1), ip(1));
    inject(&net, "s3", 1, [arp_frame(3, ALL, taking)]);
    net.run_for(Duration::from_secs(2));
    net.start_ping(h2, h1, 5).unwrap();
    net.run_for(Duration::from_secs(6));
    assert_eq!(net.host_counters(h3).unwrap().unexpected, 5);
}
