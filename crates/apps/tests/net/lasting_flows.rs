//! Flows that last are checked again by `security`, and count only once.

use crate::security::{
    dropped, echo_request, from_made_up, icmp, port, segment, syn, watched, who_has,
};
use crate::support::{PacketIns, inject, ms};
use std::time::Duration;
use urtica_apps::{Offence, Security, SecurityConfig};
use urtica_net::Net;
use urtica_wire::MacAddr;
use urtica_wire::packet::{icmpv4, ip_proto, tcp};

const fn h1() -> Option<MacAddr> {
    Some(MacAddr::from_u64(1))
}

/// Several windows.
const SECONDS: usize = 40;

/// Creates a network in which hosts know each other.
fn started() -> (Net, Security) {
    let (mut net, security) = watched("linear,3", SecurityConfig::default());
    assert!(net.ping_all().unwrap().is_complete());
    (net, security)
}

/// Returns packets of host 1 to `count` addresses, each of another flow.
fn to_addresses(count: u32) -> Vec<Vec<u8>> {
    let packets = (0..count).map(|dst| syn((1, 4_000), (1_000 + dst, 443)));
    packets.collect()
}

/// Makes host 1 start `begun_per_second` of these flows a second, and send a packet of each every `every` seconds.
fn send_on(net: &mut Net, flows: &[Vec<u8>], begun_per_second: usize, every: usize) {
    let begun_s = flows.len().div_ceil(begun_per_second);
    for second in 0..begun_s + SECONDS {
        let batches = flows.chunks(begun_per_second).enumerate().take(second + 1);
        let due = batches.filter(|(begun, _)| (second - begun) % every == 0);
        inject(net, "s1", 1, due.flat_map(|(_, batch)| batch.to_vec()));
        net.run_for(ms(1_000));
    }
}

/// Checks that host 1 is not blocked for flows that it starts slowly, however often their packets are sent.
fn may_last(flows: &[Vec<u8>], begun_per_second: usize) {
    for every in [1, 3, 5, 9] {
        let (mut net, security) = started();
        send_on(&mut net, flows, begun_per_second, every);
        assert_eq!(dropped(&security), [], "a packet every {every} s");
    }
}

#[test]
fn lasting_flows_to_many_addresses_are_no_sweep() {
    may_last(&to_addresses(200), 10);
    let pinged = (0..200).map(|dst| echo_request(1, 1_000 + dst));
    may_last(&pinged.collect::<Vec<_>>(), 10);
}

#[test]
fn lasting_flows_to_many_ports_are_no_scan() {
    let flows = (0..200).map(|dst_port| syn((1, 4_000), (3, 1_000 + dst_port)));
    may_last(&flows.collect::<Vec<_>>(), 8);
}

#[test]
fn many_lasting_flows_are_no_flood() {
    let flows: Vec<_> = (0..1_500)
        .map(|src_port| syn((1, 1_000 + src_port), (3, 80)))
        .collect();
    let (mut net, security) = started();
    send_on(&mut net, &flows, 90, 4);
    assert_eq!(dropped(&security), []);
    // Started at once, these flows are a flood.
    let (mut net, security) = started();
    inject(&net, "s1", 1, flows);
    net.run_for(ms(500));
    assert_eq!(dropped(&security), [(port(1, 1), h1(), Offence::Flood)]);
}

#[test]
fn hosts_with_lasting_flows_are_blocked_for_scans_and_sweeps() {
    let lasting = to_addresses(150);
    let sweep: Vec<_> = (0..150).map(|dst| echo_request(1, 2_000 + dst)).collect();
    let scan: Vec<_> = (1..=120).map(|port| syn((1, 4_000), (3, port))).collect();
    for (offence, frames) in [(Offence::Sweep, sweep), (Offence::PortScan, scan)] {
        let (mut net, security) = started();
        send_on(&mut net, &lasting, 10, 3);
        assert_eq!(dropped(&security), []);
        inject(&net, "s1", 1, frames);
        net.run_for(ms(500));
        assert_eq!(dropped(&security), [(port(1, 1), h1(), offence)]);
    }
}

#[test]
fn scans_that_continue_after_a_block_are_blocked_again() {
    let config = SecurityConfig {
        drop_s: 8,
        ..SecurityConfig::default()
    };
    let (mut net, security) = watched("linear,3", config);
    assert!(net.ping_all().unwrap().is_complete());
    for _ in 0..5 {
        let scan = (1..=120).map(|port| syn((1, 4_000), (3, port)));
        inject(&net, "s1", 1, scan);
        net.run_for(ms(500));
        assert_eq!(dropped(&security), [(port(1, 1), h1(), Offence::PortScan)]);
        net.run_for(ms(8_500));
        assert_eq!(dropped(&security), []);
    }
}

#[test]
fn flows_of_one_port_are_not_known_at_another() {
    let lasting = to_addresses(150);
    let (mut net, security) = started();
    send_on(&mut net, &lasting, 10, 3);
    // Host 2 sends to the same addresses, as itself and with host 1's MAC address.
    for mac in [2, 1] {
        let swept = (0..150).map(|dst| {
            let mut frame = echo_request(2, 1_000 + dst);
            frame[6..12].copy_from_slice(&MacAddr::from_u64(mac).octets());
            frame
        });
        inject(&net, "s2", 1, swept);
        net.run_for(ms(12_000));
    }
    let swept = |mac| (port(2, 1), Some(MacAddr::from_u64(mac)), Offence::Sweep);
    assert_eq!(dropped(&security), [swept(1), swept(2)]);
}

#[test]
fn lasting_flows_of_hosts_that_move_do_not_count() {
    let lasting = to_addresses(150);
    let (mut net, security) = started();
    send_on(&mut net, &lasting, 10, 3);
    for _ in 0..10 {
        inject(&net, "s2", 1, lasting.clone());
        net.run_for(ms(3_000));
    }
    assert_eq!(dropped(&security), []);
}

#[test]
fn lasting_flows_are_known_when_their_switch_reconnects() {
    let lasting = to_addresses(150);
    let (mut net, security) = started();
    send_on(&mut net, &lasting, 10, 3);
    let s1 = net.switch("s1").unwrap();
    net.restart_switch(s1).unwrap();
    net.run_for(ms(4_000));
    for _ in 0..10 {
        inject(&net, "s1", 1, lasting.clone());
        net.run_for(ms(3_000));
    }
    assert_eq!(dropped(&security), []);
}

#[test]
fn flows_that_pause_for_long_count_again() {
    let flows = to_addresses(150);
    let (mut net, security) = started();
    send_on(&mut net, &flows, 10, 3);
    net.run_for(Duration::from_secs(13));
    inject(&net, "s1", 1, flows.clone());
    net.run_for(ms(500));
    assert_eq!(dropped(&security), [], "a pause of less than 15 s");
    net.run_for(Duration::from_secs(40));
    inject(&net, "s1", 1, flows);
    net.run_for(ms(500));
    assert_eq!(dropped(&security), [(port(1, 1), h1(), Offence::Sweep)]);
}

#[test]
fn lasting_flows_cost_a_packet_in_each_half_window() {
    let (mut net, _) = watched("single,3", SecurityConfig::default());
    assert!(net.ping_all().unwrap().is_complete());
    let packet_ins = PacketIns::default();
    net.watch(packet_ins.clone());
    let flags = tcp::flags::SYN | tcp::flags::ACK;
    for second in 0..60 {
        inject(&net, "s1", 1, [syn((1, 4_000), (3, 80))]);
        net.run_for(ms(500));
        inject(&net, "s1", 3, [segment(3, (3, 80), (1, 4_000), flags)]);
        net.run_for(ms(500));
        if second == 9 {
            packet_ins.take();
        }
    }
    let count = packet_ins.take();
    assert!((8..=10).contains(&count), "{count} in 50 s");
}

/// Checks that host 3 is not blocked for requesting the made-up senders of pings, sent in these seconds.
fn may_request(pings: &[u64], requests: &[u64]) {
    let (mut net, security) = started();
    let ping = icmp(icmpv4::ECHO_REQUEST, 0);
    for second in 0..60 {
        if pings.contains(&second) {
            let echo = |number| from_made_up(number, ip_proto::ICMPV4, &ping, 3);
            inject(&net, "s1", 1, (0..200).map(echo));
        }
        net.run_for(ms(500));
        if requests.contains(&second) {
            let asks = (0..200).map(|number| who_has(3, 1_000 + number));
            inject(&net, "s3", 1, asks);
        }
        net.run_for(ms(500));
        // Host 1 may be blocked.
        let sources = dropped(&security);
        let is_dropped = sources.iter().any(|(at, ..)| *at == port(3, 1));
        assert!(!is_dropped, "in second {second}: {sources:?}");
    }
}

#[test]
fn lasting_flows_provoke_requests() {
    // The entries of the first pings are still in use in second 8.
    may_request(&[0, 8], &[0, 1, 2, 8, 9, 10, 11, 12, 13]);
    let (pings, requests): (Vec<_>, Vec<_>) = ((0..40).collect(), (0..48).collect());
    may_request(&pings, &requests);
}
