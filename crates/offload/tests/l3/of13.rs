//! OpenFlow 1.3: generated packet-ins, such as switches of all kinds send them, get the program's replies byte for byte.

use crate::packets::Draw;
use crate::pair::Pair;
use crate::plan::{HOSTS, handed, header, ip_of, port_of, question, question_for_gateway};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use std::cell::Cell;
use std::net::Ipv4Addr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use urtica_offload::Mode;
use urtica_wire::packet::Ipv4;
use urtica_wire::{BufferId, Match, Message, PacketIn, PacketInReason, PortNo, Version};

/// A packet-in of 1.3.
#[derive(Clone, Debug)]
struct Sent {
    from: u8,
    what: What,
    buffer_id: u32,
    reason: u8,
    table_id: u8,
    cookie: u64,
    /// Whether the match has the packet's tunnel, too.
    has_tunnel: bool,
    /// The number of bytes by which the packet claims to be longer.
    missing: u16,
}

#[derive(Clone, Debug)]
enum What {
    /// A packet to a host, or beyond the other router.
    Packet {
        to: Ipv4Addr,
        ttl: u8,
        tos: u8,
        proto: u8,
        payload: usize,
    },
    /// A request for a gateway, or for this address.
    Gateway,
    Address(Ipv4Addr),
    /// Not a packet-in.
    Echo(usize),
    Barrier,
}

fn address() -> impl Strategy<Value = Ipv4Addr> {
    prop_oneof![
        8 => (1..=HOSTS).prop_map(ip_of),
        1 => (0..4_u8).prop_map(|last| Ipv4Addr::new(192, 168, 0, last)),
    ]
}

fn what() -> impl Strategy<Value = What> {
    let packet = (
        address(),
        2..=255_u8,
        any::<u8>(),
        any::<u8>(),
        0..1_400_usize,
    );
    prop_oneof![
        10 => packet.prop_map(|(to, ttl, tos, proto, payload)| What::Packet { to, ttl, tos, proto, payload }),
        4 => Just(What::Gateway),
        1 => address().prop_map(What::Address),
        1 => (0..100_usize).prop_map(What::Echo),
        1 => Just(What::Barrier),
    ]
}

fn sent() -> impl Strategy<Value = Sent> {
    let buffer_id = prop_oneof![6 => Just(u32::MAX), 1 => 0..256_u32];
    let missing = prop_oneof![9 => Just(0), 1 => 1..50_u16];
    let has_tunnel = prop_oneof![9 => Just(false), 1 => Just(true)];
    let origin = (0..3_u8, any::<u8>(), any::<u64>());
    (1..=HOSTS, what(), buffer_id, origin, has_tunnel, missing).prop_map(
        |(from, what, buffer_id, (reason, table_id, cookie), has_tunnel, missing)| Sent {
            from,
            what,
            buffer_id,
            reason,
            table_id,
            cookie,
            has_tunnel,
            missing,
        },
    )
}

impl Sent {
    fn encode(&self, number: u16, to: &mut Vec<u8>) {
        let frame = match &self.what {
            What::Packet {
                to,
                ttl,
                tos,
                proto,
                payload,
            } => {
                let header = Ipv4 {
                    identification: number,
                    ttl: *ttl,
                    dscp: tos >> 2,
                    ecn: tos & 3,
                    proto: *proto,
                    ..header(self.from, *to)
                };
                handed(self.from, &header, &vec![number as u8; *payload])
            }
            What::Gateway => question_for_gateway(self.from),
            What::Address(address) => question(self.from, *address),
            What::Echo(bytes) => {
                let data = vec![7; *bytes];
                let echo = Message::EchoRequest(&data);
                return echo.encode(Version::Of13, number.into(), to).unwrap();
            }
            What::Barrier => {
                let barrier = Message::BarrierReply;
                return barrier.encode(Version::Of13, number.into(), to).unwrap();
            }
        };
        let in_port = PortNo(port_of(self.from));
        let match_ = Match::any().in_port(in_port);
        let packet = PacketIn {
            buffer_id: BufferId(self.buffer_id),
            total_len: frame.len() as u16 + self.missing,
            reason: [
                PacketInReason::NoMatch,
                PacketInReason::Action,
                PacketInReason::InvalidTtl,
            ][usize::from(self.reason)],
            table_id: self.table_id,
            cookie: self.cookie,
            in_port,
            match_: match self.has_tunnel {
                true => match_.tunnel_id(0x77),
                false => match_,
            },
            data: &frame,
        };
        let message = Message::PacketIn(packet);
        message.encode(Version::Of13, number.into(), to).unwrap();
    }
}

/// Each case has another switch with identical hosts. Failing cases are repeated with fewer and simpler messages.
#[test]
fn generated_messages_have_the_programs_replies() {
    for mode in [Mode::Kernel, Mode::Auto] {
        let Some(base) = Pair::with_hosts(mode, Version::Of13, []) else {
            return;
        };
        let (id, answered) = (Cell::new(1), Cell::new(0));
        let check = |(messages, seed): (Vec<Sent>, u64)| {
            base.wait_until_alone();
            id.set(id.get() + 1);
            let mut pair = base.beside(id.get());
            let (mut stream, mut cuts) = (Vec::new(), Draw::new(seed));
            for (number, message) in messages.iter().enumerate() {
                message.encode(number as u16, &mut stream);
            }
            let compared = catch_unwind(AssertUnwindSafe(|| {
                pair.introduce(1..=HOSTS);
                // At the second time, the kernel knows all necessary facts.
                for _ in 0..3 {
                    for piece in cuts.cut(&stream) {
                        pair.send(piece);
                    }
                    pair.compare();
                }
                answered.set(answered.get() + pair.counters().answered_in_kernel.get());
                pair.finish();
            }));
            compared.map_err(|_| TestCaseError::fail("see above"))
        };
        let config = Config {
            cases: 20,
            failure_persistence: None,
            // Each may wait for messages that do not arrive.
            max_shrink_iters: 5,
            ..Config::default()
        };
        let cases = (vec(sent(), 1..150), any::<u64>());
        TestRunner::new(config).run(&cases, check).unwrap();
        assert!(answered.get() > 0, "the kernel has answered nothing");
    }
}
