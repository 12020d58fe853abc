//! More switches than the kernel has space for, and several controllers.

use crate::attempts::Attempts;
use crate::packets::{Draw, Packet};
use crate::pair::Pair;
use crate::support::kernel;
use crate::switch::{Channel, InMemory, connect, headers, join, offloaded, settle, start};
use std::io::{Read, Write};
use std::net::TcpStream;
use urtica_apps::{FloodLimit, L2};
use urtica_controller::SwitchInfo;
use urtica_offload::{LearningSwitch, Mode};
use urtica_wire::{DatapathId, Version};

/// The program answers a switch beyond the limit, and the kernel keeps answering the others.
#[test]
fn one_switch_too_many() {
    let Some(kernel) = kernel() else { return };
    let kernel = kernel.max_switches(1);
    let controller = offloaded(&kernel, Mode::Kernel, 64);
    let mut sockets = [1, 2].map(|id| {
        let mut socket = connect(&controller);
        join(&mut socket, Version::Of13, id);
        socket
    });
    let counters = [1, 2].map(|id| controller.network().counters(DatapathId(id)).unwrap());
    let mut packet = Vec::new();
    Packet::udp(1, 2).encode(Version::Of13, 1, &mut packet);
    let attempts = Attempts::new();
    while counters[0].answered_in_kernel.get() == 0 {
        attempts.next("the kernel answers the first switch");
        for socket in &mut sockets {
            socket.write_all(&packet).unwrap();
            let mut reply = [0; 200];
            let count = socket.read(&mut reply).expect("an answer comes in time");
            assert_eq!(headers(&reply[..count]).count(), 1);
        }
    }
    assert_eq!(counters[1].answered_in_kernel.get(), 0);
    assert!(counters[1].packet_ins.get() > 0);

    // When the first has left, there is space for another.
    let [first, second] = sockets;
    drop(first);
    while controller.network().counters(DatapathId(1)).is_some() {
        std::thread::yield_now();
    }
    let mut third = connect(&controller);
    join(&mut third, Version::Of13, 3);
    let counters = controller.network().counters(DatapathId(3)).unwrap();
    while counters.answered_in_kernel.get() == 0 {
        attempts.next("the kernel answers the third switch");
        third.write_all(&packet).unwrap();
        assert!(third.read(&mut [0; 200]).expect("an answer comes in time") > 0);
    }
    drop((second, third));
    controller.stop().unwrap();
}

/// Many more switches than there are sessions at first join at once, three times, in sessions that other switches have
/// returned. The kernel finally answers each of them, and never with another switch's hosts.
#[test]
fn many_switches_join_and_leave() {
    let Some(kernel) = kernel() else { return };
    let controller = offloaded(&kernel, Mode::Kernel, 64);
    for round in 0..3 {
        let ids = round * 40 + 1..=round * 40 + 40;
        let switches = ids.map(|id| {
            let mut socket = connect(&controller);
            join(&mut socket, Version::Of13, id);
            let counters = controller.network().counters(DatapathId(id)).unwrap();
            (socket, counters)
        });
        let mut switches: Vec<_> = switches.collect();
        let ask = |socket: &mut TcpStream, from, to| {
            let mut packet = Vec::new();
            Packet::udp(from, to).encode(Version::Of13, 1, &mut packet);
            socket.write_all(&packet).unwrap();
            let mut reply = [0; 200];
            let count = socket.read(&mut reply).expect("an answer comes in time");
            assert!(count > 8);
            reply[1]
        };
        for (socket, _) in &mut switches {
            assert_eq!(ask(socket, 1, 2), PACKET_OUT, "host 2 was never heard here");
            let _ = ask(socket, 2, 1);
        }
        let attempts = Attempts::new();
        while switches
            .iter()
            .any(|(_, counters)| counters.answered_in_kernel.get() == 0)
        {
            attempts.next("the kernel answers all switches");
            for (socket, _) in &mut switches {
                assert_eq!(ask(socket, 1, 2), FLOW_MOD, "host 2 is known");
            }
        }
    }
    controller.stop().unwrap();
}

/// A host's packets to addresses that do not exist are flooded within the limit of kernel and program, which is set once.
#[test]
fn floods_are_limited_in_kernel_and_program() {
    const BURST: u32 = 10;
    let Some(kernel) = kernel() else { return };
    let program = LearningSwitch::new(kernel).mode(Mode::Kernel);
    let controller = start(program.flood_limit(FloodLimit::new(0, BURST)));
    let mut socket = connect(&controller);
    join(&mut socket, Version::Of13, 1);
    let counters = controller.network().counters(DatapathId(1)).unwrap();
    let packet = |src, dst| {
        let mut packet = Vec::new();
        Packet::udp(src, dst).encode(Version::Of13, 1, &mut packet);
        packet
    };
    let (to_unknown, to_known) = (packet(1, 2), packet(1, 3));
    let (mut said, attempts) = (Vec::new(), Attempts::new());
    socket.write_all(&packet(3, 1)).unwrap();
    while counters.answered_in_kernel.get() < 100 {
        attempts.next("the kernel answers");
        socket.write_all(&to_unknown).unwrap();
        socket.write_all(&to_known).unwrap();
        let entries = |said: &[u8]| {
            let added = headers(said).filter(|header| header.message_type == FLOW_MOD);
            added.count()
        };
        let before = entries(&said);
        while entries(&said) == before {
            said.extend(socket.receive());
        }
    }
    let floods = headers(&said).filter(|header| header.message_type == PACKET_OUT);
    let floods = floods.count() as u32;
    // One more for the first packet, from host 3.
    let expected = BURST..=2 * BURST + 1;
    assert!(expected.contains(&floods), "{floods} flooded");
    controller.stop().unwrap();
}

/// A switch that refuses an entry because its table is full gets no entries for a while, not even from the kernel.
#[test]
fn a_full_switch_gets_no_entries_from_the_kernel() {
    let Some(kernel) = kernel() else { return };
    let controller = offloaded(&kernel, Mode::Kernel, 64);
    let mut socket = connect(&controller);
    join(&mut socket, Version::Of13, 1);
    let counters = controller.network().counters(DatapathId(1)).unwrap();
    let mut packet = Vec::new();
    Packet::udp(2, 1).encode(Version::Of13, 1, &mut packet);
    socket.write_all(&packet).unwrap();
    packet.clear();
    Packet::udp(1, 2).encode(Version::Of13, 1, &mut packet);
    let full = [&[4, 1, 0, 76, 0, 0, 0, 9, 0, 5, 0, 1][..], &[0; 64]].concat();
    let (mut said, attempts) = (Vec::new(), Attempts::new());
    let mut is_sent_on_by_the_kernel = || {
        socket.write_all(&full).unwrap();
        settle(&mut socket, &mut said, Version::Of13);
        said.clear();
        attempts.next("the kernel sends it on");
        let before = counters.answered_in_kernel.get();
        socket.write_all(&packet).unwrap();
        settle(&mut socket, &mut said, Version::Of13);
        let answers: Vec<_> = headers(&said).map(|header| header.message_type).collect();
        counters.answered_in_kernel.get() > before && !answers.contains(&FLOW_MOD)
    };
    while !is_sent_on_by_the_kernel() {}
    controller.stop().unwrap();
}

/// The kernel half needs time to load. It is loaded while switches are served, which then have kernel halves.
#[test]
fn a_switch_is_answered_before_the_kernel_half_is_loaded() {
    if kernel().is_none() {
        return;
    }
    let program = LearningSwitch::later().mode(Mode::Kernel);
    let controller = start(program.clone());
    let mut socket = connect(&controller);
    join(&mut socket, Version::Of13, 1);
    let counters = controller.network().counters(DatapathId(1)).unwrap();
    let mut packet = Vec::new();
    Packet::udp(1, 2).encode(Version::Of13, 1, &mut packet);
    let mut ask = || {
        socket.write_all(&packet).unwrap();
        let count = socket.read(&mut [0; 200]).expect("an answer comes in time");
        assert!(count > 8);
        counters.answered_in_kernel.get()
    };
    for _ in 0..50 {
        assert_eq!(ask(), 0, "nothing is loaded");
    }
    program.load(8).unwrap();
    let attempts = Attempts::new();
    while ask() == 0 {
        attempts.next("the kernel answers once it is loaded");
    }
    controller.stop().unwrap();
}

/// The kernel's table does not grow. When it is crowded, the program answers that switch alone, and has not forgotten any host.
#[test]
fn a_switch_with_many_hosts_returns_to_the_program() {
    const HOSTS: u16 = 9000;
    let Some(kernel) = kernel() else { return };
    for version in Version::ALL {
        let program = LearningSwitch::new(kernel.clone()).mode(Mode::Kernel);
        let reference = InMemory::new(|_: &SwitchInfo| L2::default());
        let mut pair = Pair::of(start(program), reference, version);
        let mut learn_and_ask = |first: u16| {
            let mut stream = Vec::new();
            for host in first..first + 50 {
                // To a host that was heard long ago.
                packet_of(host, host / 2).encode(version, 1, &mut stream);
            }
            pair.send(&stream);
            pair.compare();
            pair.counters().answered_in_kernel.get()
        };
        let answered: Vec<_> = (0..HOSTS).step_by(50).map(&mut learn_and_ask).collect();
        // Counted when the kernel passes input on, at the latest when its table is crowded.
        let last = answered[answered.len() - 1];
        assert!(last > 0, "in the kernel at first");
        assert_eq!(answered[answered.len() - 20], last);
        pair.finish();
    }
}

/// Returns a packet between hosts with these numbers, from one of 6 ports.
fn packet_of(from: u16, to: u16) -> Packet {
    let mut packet = Packet::udp(0, 0);
    packet.frame[4..6].copy_from_slice(&to.to_be_bytes());
    packet.frame[10..12].copy_from_slice(&from.to_be_bytes());
    (packet.frame[1], packet.frame[7]) = (1, 1);
    packet.in_port = u32::from(from) % 6 + 1;
    packet
}

const PACKET_OUT: u8 = 13;
const FLOW_MOD: u8 = 14;

/// Two controllers on one host, with separate programs in the kernel, do not affect each other; when one ends, the
/// other continues.
#[test]
fn two_controllers_on_one_host() {
    let (Some(one), Some(other)) = (kernel(), kernel()) else {
        return;
    };
    for version in Version::ALL {
        let mut pairs =
            [&one, &other].map(|kernel| Pair::new(kernel, Mode::Auto, version, 1 << 13));
        let mut draws = [Draw::new(1), Draw::new(2)];
        for _ in 0..100 {
            for (pair, draw) in pairs.iter_mut().zip(&mut draws) {
                let stream = draw.stream(version, 30);
                for piece in draw.cut(&stream) {
                    pair.send(piece);
                }
            }
            pairs.iter_mut().for_each(Pair::compare);
        }
        let [ends, mut goes_on] = pairs;
        ends.finish();
        for _ in 0..100 {
            let stream = draws[1].stream(version, 30);
            goes_on.send(&stream);
            goes_on.compare();
        }
        goes_on.finish();
    }
}
