//! Compares actions with [`Packet::apply`], byte for byte.

use super::*;
use crate::Packet;
use crate::fast::control::machine::Assembler;
use crate::fast::control::store::thread_counts_of;
use crate::fast::datapath::frame::{DROP, PUNT};
use crate::packet::testing::set;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use std::mem::offset_of;
use urtica_wire::packet::ether_type;
use urtica_wire::{Action, OxmField, PortNo};

const HEADROOM: usize = 64;

/// A frame in the state in which the parser leaves it.
#[derive(Clone, Debug)]
struct Parsed {
    bytes: Vec<u8>,
    kinds: Kinds,
    network: usize,
    transport: usize,
}

/// A list of actions with parameters, for the compiled and for the plain form.
#[derive(Clone, Debug)]
struct List {
    program: ActionProgram,
    params: Vec<u8>,
    plain: Vec<Plain>,
}

#[derive(Clone, Debug)]
enum Plain {
    Action(Action<'static>),
    Metadata { bits: u64, keep: u64 },
}

/// Bytes that are often edge cases for checksums.
fn edgy_byte() -> impl Strategy<Value = u8> {
    prop_oneof![select(&[0, 0xff, 1, 2]), any::<u8>()]
}

fn edgy(len: usize) -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        vec(edgy_byte(), len),
        Just(vec![0; len]),
        Just(vec![0xff; len])
    ]
}

fn parsed() -> impl Strategy<Value = Parsed> {
    let tags = vec(
        (
            select(&[ether_type::VLAN, ether_type::SERVICE_VLAN]),
            any::<[u8; 2]>(),
        ),
        0..3,
    );
    let upper = select(vec![
        (Kinds::IPV4, 0),
        (Kinds::IPV4 | Kinds::TCP, 6),
        (Kinds::IPV4 | Kinds::UDP, 17),
        (Kinds::IPV4 | Kinds::ICMPV4, 1),
        (Kinds::IPV6, 0),
        (Kinds::IPV6 | Kinds::TCP, 6),
        (Kinds::IPV6 | Kinds::UDP, 17),
        (Kinds::empty(), 0),
    ]);
    (edgy(12), tags, upper, edgy(40), edgy(20)).prop_map(
        |(addresses, tags, (kinds, proto), network, transport)| {
            let mut bytes = addresses;
            for (tpid, tci) in &tags {
                bytes.extend(tpid.to_be_bytes());
                bytes.extend(tci);
            }
            let eth_type = match kinds {
                kinds if kinds.contains(Kinds::IPV4) => ether_type::IPV4,
                kinds if kinds.contains(Kinds::IPV6) => ether_type::IPV6,
                _ => 0x1234,
            };
            bytes.extend(eth_type.to_be_bytes());
            let at = bytes.len();
            bytes.extend(network_header(&network, kinds, proto));
            let transport_at = bytes.len();
            bytes.extend(transport_header(&transport, kinds));
            Parsed {
                bytes,
                kinds: if tags.is_empty() {
                    kinds
                } else {
                    kinds | Kinds::VLAN
                },
                network: at,
                transport: transport_at,
            }
        },
    )
}

/// A valid, otherwise arbitrary header; the transport header after it has 20 bytes.
fn network_header(random: &[u8], kinds: Kinds, proto: u8) -> Vec<u8> {
    let mut header = random.to_vec();
    if kinds.contains(Kinds::IPV4) {
        header.truncate(20);
        header[0] = 0x45;
        header[2..4].copy_from_slice(&40_u16.to_be_bytes());
        header[6..8].fill(0);
        header[9] = proto;
    } else if kinds.contains(Kinds::IPV6) {
        header[0] = 0x60;
        header[4..6].copy_from_slice(&20_u16.to_be_bytes());
        header[6] = proto;
        if proto == 0 {
            header[6] = 59;
        }
    }
    header
}

fn transport_header(random: &[u8], kinds: Kinds) -> Vec<u8> {
    let mut header = random.to_vec();
    if kinds.contains(Kinds::TCP) {
        header[12] = 0x50;
    } else if kinds.contains(Kinds::UDP) {
        header[4..6].copy_from_slice(&20_u16.to_be_bytes());
    }
    header
}

/// Returns the operations that entries with these requirements can have.
fn ops_for(require: Kinds) -> Vec<Op> {
    let mut ops = vec![
        Op::SetEthDst,
        Op::SetEthSrc,
        Op::SetVlanVid,
        Op::SetVlanPcp,
        Op::DecNwTtl,
        Op::PushVlan(ether_type::VLAN),
        Op::PushVlan(ether_type::SERVICE_VLAN),
        Op::PopVlan,
        Op::WriteMetadata,
    ];
    if require.contains(Kinds::IPV4) {
        ops.extend([Op::SetIpv4Src, Op::SetIpv4Dst]);
    }
    if require.intersects(Kinds::TCP | Kinds::UDP) {
        ops.extend([Op::SetTransportSrc, Op::SetTransportDst]);
    }
    ops
}

/// An operation with its parameters.
fn op_for(require: Kinds) -> impl Strategy<Value = (Op, Vec<u8>)> {
    select(ops_for(require)).prop_flat_map(|op| {
        let params = edgy(op.params_len()).prop_map(move |mut params| {
            match op {
                Op::SetVlanVid => params[0] &= 0xf,
                Op::SetVlanPcp => params[0] &= 7,
                _ => {}
            }
            params
        });
        (Just(op), params)
    })
}

fn list_for(kinds: Kinds) -> impl Strategy<Value = List> {
    let all: Vec<Kinds> = kinds.iter().collect();
    let some = 0..=all.len();
    let require = subsequence(all, some).prop_map(|kinds| kinds.into_iter().collect::<Kinds>());
    let end = select(&[End::Output, End::InPort, End::Goto, End::Drop]);
    (require, end)
        .prop_flat_map(|(require, end)| {
            vec(op_for(require), 0..7).prop_map(move |ops| {
                let params: Vec<u8> = ops.iter().flat_map(|(_, params)| params.clone()).collect();
                List {
                    program: ActionProgram {
                        require,
                        ops: ops.iter().map(|(op, _)| *op).collect(),
                        sent: 0,
                        end,
                        set: None,
                    },
                    params,
                    plain: ops
                        .iter()
                        .map(|(op, params)| plain(*op, params, require))
                        .collect(),
                }
            })
        })
        .prop_filter("a record has room for the parameters", |list| {
            list.params.len() <= MAX_PARAMS
        })
}

fn plain(op: Op, params: &[u8], require: Kinds) -> Plain {
    let number = params
        .iter()
        .fold(0, |number: u128, &byte| number << 8 | u128::from(byte));
    let is_tcp = require.contains(Kinds::TCP);
    let action = match op {
        Op::SetEthDst => set(OxmField::EthDst, number),
        Op::SetEthSrc => set(OxmField::EthSrc, number),
        Op::SetVlanVid => set(OxmField::VlanVid, number | 0x1000),
        Op::SetVlanPcp => set(OxmField::VlanPcp, number),
        Op::SetIpv4Src => set(OxmField::Ipv4Src, number),
        Op::SetIpv4Dst => set(OxmField::Ipv4Dst, number),
        Op::SetTransportSrc if is_tcp => set(OxmField::TcpSrc, number),
        Op::SetTransportSrc => set(OxmField::UdpSrc, number),
        Op::SetTransportDst if is_tcp => set(OxmField::TcpDst, number),
        Op::SetTransportDst => set(OxmField::UdpDst, number),
        Op::DecNwTtl => Action::DecNwTtl,
        Op::PushVlan(ether_type) => Action::PushVlan(ether_type),
        Op::PopVlan => Action::PopVlan,
        Op::Meter | Op::Send => {
            unreachable!("no strategy makes these: whole pipelines are compared with them")
        }
        Op::WriteMetadata => {
            let word =
                |at: usize| u64::from_ne_bytes(params[at..at + 8].try_into().expect("8 bytes"));
            return Plain::Metadata {
                bits: word(0),
                keep: word(8),
            };
        }
    };
    Plain::Action(action)
}

/// Returns the result of the plain form; `None` if a TTL is too low.
fn applied(parsed: &Parsed, list: &List, metadata: u64) -> Option<Packet> {
    let mut packet = Packet::new(PortNo(7), &parsed.bytes);
    packet.metadata = metadata;
    for op in &list.plain {
        match op {
            Plain::Action(action) => packet.apply(action).then_some(())?,
            Plain::Metadata { bits, keep } => packet.metadata = packet.metadata & keep | bits,
        }
    }
    Some(packet)
}

fn tag_fields(packet: &Packet) -> (u16, u16) {
    let field = |field| packet.field(field).unwrap_or(0) as u16;
    (field(OxmField::VlanVid), field(OxmField::VlanPcp))
}

/// Creates a frame in a buffer that must outlive it.
fn frame_of(parsed: &Parsed, buffer: &mut [u8], metadata: u64) -> Frame {
    let mut frame = Frame::empty(buffer);
    buffer[HEADROOM..HEADROOM + parsed.bytes.len()].copy_from_slice(&parsed.bytes);
    frame.data = frame.floor.wrapping_add(HEADROOM);
    frame.network = frame.data.wrapping_add(parsed.network);
    frame.transport = frame.data.wrapping_add(parsed.transport);
    frame.len = parsed.bytes.len() as u32;
    frame.kinds = parsed.kinds;
    frame.in_port = 7;
    frame.metadata = metadata;
    let packet = Packet::new(PortNo(7), &parsed.bytes);
    (frame.vlan_vid, frame.vlan_pcp) = tag_fields(&packet);
    frame
}

fn bytes_of(frame: &Frame, buffer: &[u8]) -> Vec<u8> {
    let start = frame.data.addr() - buffer.as_ptr().addr();
    buffer[start..start + frame.len as usize].to_vec()
}

/// A run of the actions as a table's default.
struct Run {
    world: World,
    buffer: Box<[u8; 512]>,
    frame: Frame,
    counters: [u64; 3],
}

fn run(parsed: &Parsed, list: &List, target: u32, headroom: usize, is_shared: bool) -> Run {
    let mut world = World::new();
    let assembler = Assembler::new(1 << 20, is_shared);
    let actions = assembler.actions(&list.program).unwrap();
    let table = assembler
        .hash(&[super::tables::part_that_never_matches()])
        .unwrap();
    let plain = assembler.plain().unwrap();
    let there = body(&plain);
    world.headers[THERE].body = AtomicPtr::new((&raw const there).cast_mut());
    let block = world.block(&[], &record(&actions, 0, target, &list.params));
    let threads = is_shared.then(|| thread_counts_of(&world.arena));
    if let Some(threads) = &threads {
        // Several threads join, so that their counters are at different offsets.
        threads.join();
        world.context.entry_counts = threads.join();
    }
    let mut body = body(&table);
    body.default = world.record(block, 0);

    let mut buffer = Box::new([0; 512]);
    let mut frame = frame_of(parsed, &mut buffer[..], METADATA);
    frame.floor = frame.data.wrapping_sub(headroom);
    world.run(&mut frame, &body);
    // SAFETY: the flow record is in the arena, and is not shared.
    let own = unsafe { &(*body.default).counters };
    let counts = match &threads {
        // SAFETY: as above.
        Some(threads) => unsafe { threads.counts(own) },
        None => own.read(),
    };
    Run {
        counters: [counts.packets, counts.bytes, counts.last_used_ns],
        world,
        buffer,
        frame,
    }
}

const METADATA: u64 = 0x0123_4567_89ab_cdef;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn equals_the_plain_form(
        (parsed, list) in parsed().prop_flat_map(|parsed| {
            let list = list_for(parsed.kinds);
            (Just(parsed), list)
        }),
        target in select(&[THERE as u32, 7]),
        is_shared in any::<bool>(),
    ) {
        let target = if list.program.end == End::Goto { THERE as u32 } else { target };
        let run = run(&parsed, &list, target, HEADROOM, is_shared);
        let frame = &run.frame;
        let start = run.buffer.as_ptr().addr() + HEADROOM;
        prop_assert_eq!(frame.network.addr(), start + parsed.network);
        prop_assert_eq!(frame.transport.addr(), start + parsed.transport);
        prop_assert_eq!(frame.in_port, 7);
        let Some(packet) = applied(&parsed, &list, METADATA) else {
            prop_assert_eq!((frame.out_port, frame.table_id), (PUNT, 100 + HERE as u16));
            prop_assert_eq!(bytes_of(frame, &run.buffer[..]), parsed.bytes);
            prop_assert_eq!(frame.metadata, METADATA);
            prop_assert_eq!(run.counters, [0, 0, 0]);
            prop_assert_eq!(run.world.count(HERE), (0, 0));
            return Ok(());
        };
        prop_assert_eq!(bytes_of(frame, &run.buffer[..]), packet.frame());
        prop_assert_eq!(frame.metadata, packet.metadata);
        prop_assert_eq!((frame.vlan_vid, frame.vlan_pcp), tag_fields(&packet));
        prop_assert_eq!(frame.kinds - Kinds::VLAN, parsed.kinds - Kinds::VLAN);
        prop_assert_eq!(frame.kinds.contains(Kinds::VLAN), packet.layout().vlan.is_some());
        let ends_at = match list.program.end {
            End::Output if target == 7 => (DROP, 0),
            End::Output => (target, 0),
            End::InPort => (7, 0),
            End::Drop => (DROP, 0),
            End::Goto | End::Punt | End::Group => (PUNT, 100 + THERE as u16),
        };
        prop_assert_eq!((frame.out_port, frame.table_id), ends_at);
        prop_assert_eq!(run.counters, [1, parsed.bytes.len() as u64, NOW_NS]);
        prop_assert_eq!(run.world.count(HERE), (1, 0));
    }
}

fn of_ops(ops: &[Op], end: End) -> List {
    List {
        program: program(Kinds::empty(), ops, end),
        params: Vec::new(),
        plain: Vec::new(),
    }
}

fn untagged() -> Parsed {
    Parsed {
        bytes: vec![0x12; 60],
        kinds: Kinds::empty(),
        network: 14,
        transport: 14,
    }
}

#[test]
fn frames_without_space_for_tags_use_the_plain_form() {
    let list = of_ops(&[Op::PushVlan(0x8100), Op::PushVlan(0x8100)], End::Drop);
    let enough = run(&untagged(), &list, 0, 8, false);
    assert_eq!((enough.frame.out_port, enough.frame.len), (DROP, 68));
    let too_little = run(&untagged(), &list, 0, 7, false);
    assert_eq!(
        (too_little.frame.out_port, too_little.frame.len),
        (PUNT, 60)
    );
    assert_eq!(too_little.counters, [0, 0, 0]);
}

#[test]
fn frames_for_the_plain_form_are_not_counted() {
    let run = run(&untagged(), &of_ops(&[], End::Punt), 0, 64, false);
    assert_eq!(
        (run.frame.out_port, run.frame.table_id),
        (PUNT, 100 + HERE as u16)
    );
    assert_eq!((run.counters, run.world.count(HERE)), ([0, 0, 0], (0, 0)));
}

#[test]
fn vlan_fields_are_where_the_code_expects_them() {
    assert_eq!(offset_of!(Frame, vlan_pcp), offset_of!(Frame, vlan_vid) + 2);
}
