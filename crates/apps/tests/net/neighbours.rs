//! Hosts that claim the addresses of other hosts, while these communicate.

use crate::support::{
    APPS, frame, frames_carried, inject, ms, net_speaking, net_with, options, tagged,
};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;
use urtica_controller::Controller;
use urtica_net::{HostId, Net};
use urtica_wire::packet::icmpv6::{self, nd_flags};
use urtica_wire::packet::{Arp, Icmpv6, Ipv6, Nd, ether_type, ip_proto};
use urtica_wire::{MacAddr, Version};

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

/// Creates a line of three switches whose hosts know each other. The first host's MAC address is 1, and so on.
fn line() -> Net {
    let mut net = net_with("linear,3", APPS, &options());
    assert!(net.ping_all().unwrap().is_complete());
    net
}

/// Like [`line`], with switches that speak these versions.
fn line_speaking(versions: &[Version]) -> Net {
    let controller = urtica_apps::add_all(Controller::new(), APPS, &options()).unwrap();
    let mut net = net_speaking(versions, "linear,3", controller);
    assert!(net.ping_all().unwrap().is_complete());
    net
}

fn hosts(net: &Net) -> [HostId; 3] {
    ["h1", "h2", "h3"].map(|name| net.host(name).unwrap())
}

#[test]
fn impostors_of_live_hosts_receive_no_packets() {
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
                // From an unused MAC address, about the forger's own.
                arp_frame(7, ALL, asking(9 + round)),
            ],
        );
        net.run_for(ms(1_000));
    }
    net.run_for(Duration::from_secs(2));
    let report = net.ping_report(ping).unwrap();
    assert_eq!((report.received, report.lost()), (98, 0));
    // Such packets would have the forger's MAC address and the victim's IP address.
    assert_eq!(net.host_counters(h3).unwrap().unexpected, 0);
}

#[test]
fn successors_of_silent_hosts_receive_their_packets() {
    let mut net = line();
    let [h1, h2, h3] = hosts(&net);
    net.set_loss(net.link("h1", "s1").unwrap(), 1.0).unwrap();
    net.run_for(ms(100));
    // The successor announces itself once.
    let taking = Arp::request(mac(3), ip(1), ip(1));
    inject(&net, "s3", 1, [arp_frame(3, ALL, taking)]);
    net.run_for(Duration::from_secs(2));
    net.start_ping(h2, h1, 5).unwrap();
    net.run_for(Duration::from_secs(6));
    assert_eq!(net.host_counters(h3).unwrap().unexpected, 5);
}

fn ip6(host: u16) -> Ipv6Addr {
    Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, host)
}

/// Builds a neighbour advertisement by `src` to `dst` that `address` is at `claimed`.
fn advertisement(src: u64, dst: u64, address: Ipv6Addr, claimed: u64) -> Vec<u8> {
    let body = Nd {
        flags: nd_flags::SOLICITED | nd_flags::OVERRIDE,
        target: address,
        sll: None,
        tll: Some(mac(claimed)),
    };
    let (mut nd, mut icmp, mut packet) = (Vec::new(), Vec::new(), Vec::new());
    body.write(&mut nd);
    let ip = Ipv6 {
        hop_limit: 255,
        ..Ipv6::new(address, ip6(dst as u16), ip_proto::ICMPV6)
    };
    let header = Icmpv6 {
        icmp_type: icmpv6::NEIGHBOR_ADVERTISEMENT,
        icmp_code: 0,
    };
    header.write(&mut icmp, &ip.pseudo_header(), &nd);
    ip.write(&mut packet, &icmp).unwrap();
    frame(src, dst, ether_type::IPV6, &packet)
}

/// Sends frames from the third host's port, and returns the number that the first host's link carries.
fn sent_to_the_first(net: &mut Net, frames: impl IntoIterator<Item = Vec<u8>>) -> u64 {
    let link = net.link("h1", "s1").unwrap();
    let before = frames_carried(net, link);
    inject(net, "s3", 1, frames);
    net.run_for(ms(10));
    frames_carried(net, link) - before
}

/// The third host claims the second's addresses, along the entries of its flow to the first.
#[test]
fn forged_unicast_messages_do_not_arrive() {
    let arp = arp_frame(3, 1, Arp::request(mac(1), ip(1), ip(2)).reply(mac(3)));
    let tagged_arp = tagged(ether_type::VLAN, 0, arp.clone());
    let nd = advertisement(3, 1, ip6(2), 3);
    for (version, forged) in [
        (Version::Of10, vec![arp.clone(), tagged_arp.clone()]),
        (Version::Of13, vec![arp, tagged_arp, nd]),
    ] {
        let mut net = line_speaking(&[version]);
        inject(&net, "s2", 1, [advertisement(2, 1, ip6(2), 2)]);
        net.run_for(ms(10));
        let data = frame(3, 1, 0x88b5, b"data");
        assert_eq!(sent_to_the_first(&mut net, [data]), 1, "{version:?}");
        for frame in forged {
            let count = sent_to_the_first(&mut net, [frame.clone()]);
            assert_eq!(count, 0, "{version:?}: {frame:02x?}");
        }
    }
}

#[test]
fn forged_replies_divert_no_packets() {
    for version in Version::ALL {
        let mut net = line_speaking(&[version]);
        let [h1, h2, h3] = hosts(&net);
        let ping = net.start_ping(h1, h2, 30).unwrap();
        let forged = arp_frame(3, 1, Arp::request(mac(1), ip(1), ip(2)).reply(mac(3)));
        for _ in 0..40 {
            inject(&net, "s3", 1, [forged.clone()]);
            net.run_for(ms(1_000));
        }
        let report = net.ping_report(ping).unwrap();
        assert_eq!((report.received, report.lost()), (30, 0), "{version:?}");
        assert_eq!(net.host_counters(h3).unwrap().unexpected, 0, "{version:?}");
    }
}

#[test]
fn genuine_unicast_messages_arrive() {
    let mut net = line_speaking(&[Version::Of13]);
    let about_itself = arp_frame(3, 1, Arp::request(mac(1), ip(1), ip(3)).reply(mac(3)));
    let nd = advertisement(3, 1, ip6(3), 3);
    assert_eq!(sent_to_the_first(&mut net, [about_itself, nd]), 2);
}
