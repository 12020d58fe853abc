//! Tests that fragments, IPv6 extension headers and long frames are processed in the compiled form.

use crate::support::differential::{Comparison, ComparisonConfig};
use urtica_wire::{FlowMod, FlowModCommand, GroupMod, GroupModCommand, PortNo};

const ENTRIES: [&str; 8] = [
    "priority=9,udp,udp_dst=81,actions=set_field:82->udp_dst,output:2",
    "priority=9,tcp6,tcp_dst=81,actions=set_field:82->tcp_dst,dec_ttl,output:2",
    "priority=8,udp,actions=set_field:02:00:00:00:00:09->eth_dst,goto_table:1",
    "priority=8,tcp6,actions=dec_ttl,goto_table:1",
    "priority=8,udp6,actions=push_vlan:0x8100,output:4",
    "priority=7,icmp6,icmp_type=135,actions=output:3",
    "priority=6,ipv6,nw_proto=50,actions=output:in_port",
    "priority=0,actions=output:2,output:3",
];

const BEHIND: [&str; 2] = [
    "table=1,ip,nw_dst=10.0.0.0/24,actions=set_field:10.9.9.9->ip_dst,group:1",
    "table=1,priority=0,actions=group:1",
];

fn comparison() -> Comparison {
    let mut comparison = Comparison::new(ComparisonConfig::default());
    let group =
        "group_id=1,type=select,bucket=weight:1,actions=output:2,bucket=weight:1,actions=output:3";
    comparison.group_mod(&GroupMod::parse(GroupModCommand::Add, group).expect(group));
    for text in ENTRIES.iter().chain(&BEHIND) {
        let flow_mod = FlowMod::parse(FlowModCommand::Add, text).expect(text);
        comparison.flow_mod(&flow_mod).expect(text);
    }
    comparison
}

/// Sends frames; returns the number left to the plain form.
#[track_caller]
fn punted(comparison: &mut Comparison, frames: impl IntoIterator<Item = Vec<u8>>) -> u64 {
    let before = comparison.punted;
    let frames: Vec<_> = frames.into_iter().map(|frame| (PortNo(1), frame)).collect();
    for burst in frames.chunks(urtica_pipeline::BURST) {
        comparison.send(burst);
    }
    comparison.compare_counters();
    (comparison.punted - before) / comparison.subjects.len() as u64
}

fn ethernet(eth_type: u16) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 1, 1];
    frame.extend(eth_type.to_be_bytes());
    frame
}

/// Creates a fragment of a UDP packet over IPv4, with this word of flags and offset, and `payload` bytes of payload.
fn ipv4_fragment(fragment: u16, payload: usize) -> Vec<u8> {
    let mut frame = ethernet(0x0800);
    frame.extend([0x45, 0, 0, 20 + payload as u8, 0, 7]);
    frame.extend(fragment.to_be_bytes());
    frame.extend([64, 17, 0x12, 0x34, 10, 0, 0, 1, 10, 0, 0, 2]);
    frame.extend([0, 80, 0, 81, 0, 20, 0x56, 0x78].iter().take(payload));
    frame.resize(60, 0);
    frame
}

#[test]
fn fragments_of_ipv4_have_ports_only_if_they_have_their_header() {
    let mut comparison = comparison();
    let fragments = [0, 0x2000, 0x2001, 1, 0x1fff, 0x8000, 0xa000];
    let frames = fragments
        .iter()
        .flat_map(|&fragment| [8, 7, 4, 0].map(|payload| ipv4_fragment(fragment, payload)));
    assert_eq!(punted(&mut comparison, frames), 0);
}

/// Creates an IPv6 packet with these extension headers before this protocol. Fragment headers have this word of offset and flags.
fn ipv6_chain(kinds: &[u8], proto: u8, fragment: u16) -> Vec<u8> {
    let mut headers = Vec::new();
    for (at, &kind) in kinds.iter().enumerate() {
        let next = kinds.get(at + 1).copied().unwrap_or(proto);
        let [high, low] = fragment.to_be_bytes();
        match kind {
            44 => headers.extend([next, 0, high, low, 0, 0, 0, 1]),
            // An authentication header's length is in units of 4 bytes, less 2.
            51 => headers.extend([next, 2, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 2]),
            _ => headers.extend([next, 0, 1, 4, 0, 0, 0, 0]),
        }
    }
    headers.extend([
        135, 80, 0, 81, 0, 20, 0x56, 0x78, 0, 0, 0, 0, 0x50, 0x10, 0, 0, 0xab, 0xcd, 0, 0, 1, 2, 3,
        4,
    ]);
    let mut frame = ethernet(0x86dd);
    frame.extend([0x60, 0, 0, 0, 0, headers.len() as u8]);
    frame.extend([kinds.first().copied().unwrap_or(proto), 64]);
    frame.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    frame.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
    frame.extend(headers);
    frame
}

#[test]
fn the_upper_layer_is_behind_extension_headers() {
    let mut comparison = comparison();
    let chains: [&[u8]; 11] = [
        &[],
        &[0],
        &[43],
        &[44],
        &[60],
        &[51],
        &[0, 60, 43, 44, 60],
        &[0, 43, 51, 60],
        &[60, 60, 60, 60],
        &[44, 44],
        &[43, 0],
    ];
    let frames = chains.iter().flat_map(|kinds| {
        let protos = [6_u8, 17, 58, 132, 50, 59, 135, 253];
        protos.into_iter().flat_map(move |proto| {
            [0, 1, 8, 0xfff8].map(|fragment| ipv6_chain(kinds, proto, fragment))
        })
    });
    assert_eq!(punted(&mut comparison, frames), 0);
}

#[test]
fn incomplete_chains_use_the_plain_form() {
    let mut comparison = comparison();
    let whole = ipv6_chain(&[0, 43, 60], 6, 0);
    let mut too_long = whole.clone();
    too_long[14 + 40 + 1] = 0xff;
    let endless = ipv6_chain(&[60; 20], 6, 0);
    let cut = whole[..14 + 40 + 12].to_vec();
    assert_eq!(punted(&mut comparison, [too_long, endless, cut]), 3);
    assert_eq!(punted(&mut comparison, [whole]), 0);
}

/// A frame of this length, which may be an IPv4 packet.
fn long(len: usize, dst_port: u8) -> Vec<u8> {
    let mut frame = ethernet(0x0800);
    let total = (len - 14) as u16;
    frame.extend([0x45, 0]);
    frame.extend(total.to_be_bytes());
    frame.extend([0, 7, 0, 0, 64, 17, 0x12, 0x34, 10, 0, 0, 1, 10, 0, 0, 2]);
    frame.extend([0, 80, 0, dst_port, 0, 20, 0x56, 0x78]);
    frame.resize(len, 0x5a);
    frame
}

#[test]
fn long_frames_are_processed_unless_copies_leave() {
    let mut comparison = comparison();
    let lens = [1920, 1921, 2040, 2041, 9014, 65_549];
    let frames = || {
        lens.iter()
            .flat_map(|&len| [81, 82].map(|port| long(len, port)))
    };
    assert_eq!(punted(&mut comparison, frames()), 0);
    assert_eq!(punted(&mut comparison, frames()), 0, "in the same buffers");
    let copies = "priority=10,udp,udp_dst=81,actions=output:2,pop_vlan,push_vlan:0x8100,output:3";
    let flow_mod = FlowMod::parse(FlowModCommand::Add, copies).expect(copies);
    comparison.flow_mod(&flow_mod).expect(copies);
    assert_eq!(
        punted(&mut comparison, frames()),
        4,
        "those of more than 2,036 bytes"
    );
    let beyond = vec![
        long(65_535 + 14, 81),
        [long(65_549, 81), vec![0; 9]].concat(),
    ];
    let before = comparison.compared;
    assert_eq!(
        punted(&mut comparison, beyond),
        1,
        "one is too long for a burst"
    );
    assert_eq!(
        comparison.compared - before,
        2 * comparison.subjects.len() as u64
    );
}
