//! Random streams, cut anywhere.

use crate::support::kernel;
use crate::switch::{Channel, InMemory, connect, join, offloaded, settle};
use urtica_apps::{L2, MacTable};
use urtica_controller::SwitchInfo;
use urtica_wire::{BufferId, DatapathId, Match, Message, PacketIn, PacketInReason, PortNo, Version};

fn packet_in(version: Version, xid: u32, src: u8, dst: u8, port: u32) -> Vec<u8> {
    let mut frame = vec![0; 64];
    frame[5] = dst;
    frame[11] = src;
    frame[12..14].copy_from_slice(&[8, 0]);
    frame[14] = 0x45;
    frame[17] = 50;
    frame[23] = 17;
    frame[39] = 30;
    let packet = PacketIn {
        buffer_id: BufferId(xid),
        total_len: 64,
        reason: PacketInReason::NoMatch,
        table_id: 0,
        cookie: u64::MAX,
        in_port: PortNo(port),
        match_: Match::any().in_port(PortNo(port)),
        data: &frame,
    };
    let mut out = Vec::new();
    Message::PacketIn(packet).encode(version, xid, &mut out).unwrap();
    out
}

#[test]
fn first() {
    let Some(kernel) = kernel() else { return };
    for version in Version::ALL {
        let controller = offloaded(&kernel, 1024);
        let mut real = connect(&controller);
        join(&mut real, version, 1);
        let mut judge = InMemory::new(|_: &SwitchInfo| L2::with_table(MacTable::with_limits(1024, 300)));
        join(&mut judge, version, 1);
        let (mut a, mut b) = (Vec::new(), Vec::new());
        for i in 0..50_u8 {
            let bytes = packet_in(version, i.into(), i % 7 + 1, i % 5 + 1, u32::from(i % 7) + 1);
            judge.send(&bytes);
            b.extend(judge.take());
            real.send(&bytes); println!("{i} {}", b.len());
            while a.len() < b.len() { a.extend(real.receive()); }
            assert_eq!(a, b, "{i}");
        }
        settle(&mut real, &mut a, version);
        settle(&mut judge, &mut b, version);
        assert_eq!(a, b);
        let counters = controller.network().counters(DatapathId(1)).unwrap();
        println!("{:?}", counters.iter().collect::<Vec<_>>());
        drop(real);
        controller.stop().unwrap();
    }
}
