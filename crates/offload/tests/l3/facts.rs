//! The kernel uses the program's facts, but no outdated ones.

use crate::pair::{Pair, packet_in};
use crate::plan::{HOSTS, handed, header, ip_of, mac_of, port_of, question_for_gateway};
use crate::switch::{PATIENCE, port};
use crate::traffic::Traffic;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;
use urtica_apps::L3Kernel;
use urtica_offload::Mode;
use urtica_wire::{DatapathId, Message, PortReason, PortState, PortStatus, Version};

/// Sends from host 2 to host 3 until the kernel has forwarded some of it.
fn forward_in_kernel(pair: &mut Pair) {
    let (counters, start) = (pair.counters(), Instant::now());
    let before = counters.answered_in_kernel.get();
    while counters.answered_in_kernel.get() == before {
        assert!(start.elapsed() < PATIENCE, "the kernel forwards nothing");
        pair.come(2, handed(2, &header(2, ip_of(3)), b"to 3"));
        pair.compare();
    }
}

fn send_port_status(pair: &mut Pair, number: u32, is_up: bool) {
    let mut port = port(number);
    if !is_up {
        port.state = PortState::LINK_DOWN;
    }
    let status = PortStatus {
        reason: PortReason::Modify,
        port,
    };
    let mut message = Vec::new();
    Message::PortStatus(status)
        .encode(pair.version, 1, &mut message)
        .unwrap();
    pair.send(&message);
}

#[test]
fn a_host_is_found_at_its_new_port() {
    for version in Version::ALL {
        let Some(mut pair) = Pair::new(Mode::Kernel, version) else {
            return;
        };
        for new_port in [7, 1, 7, 5] {
            forward_in_kernel(&mut pair);
            let at = pair.hosts.find(mac_of(3)).unwrap().attached.port_no.0;
            send_port_status(&mut pair, at, false);
            send_port_status(&mut pair, at, true);
            pair.come_in(new_port, question_for_gateway(3));
            pair.come(2, question_for_gateway(2));
            pair.come(2, handed(2, &header(2, ip_of(3)), b"to where it is now"));
            pair.compare();
            forward_in_kernel(&mut pair);
        }
        pair.finish();
    }
}

/// Facts may be forgotten at any time, by any thread.
#[test]
fn facts_can_be_forgotten_at_any_time() {
    for version in Version::ALL {
        let Some(mut pair) = Pair::new(Mode::Kernel, version) else {
            return;
        };
        let (kernel, is_over) = (pair.kernel.clone(), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Relaxed) {
                    kernel.forget(DatapathId(1));
                    std::thread::yield_now();
                }
            });
            let mut traffic = Traffic::new(5);
            for _ in 0..100 {
                let stream = traffic.stream(version, 30);
                for piece in traffic.draw.cut(&stream) {
                    pair.send(piece);
                }
                pair.compare();
            }
            is_over.store(true, Relaxed);
        });
        forward_in_kernel(&mut pair);
        pair.finish();
    }
}

/// A host that only the kernel has heard does not count as silent.
#[test]
fn hosts_are_tracked_while_the_kernel_answers() {
    for version in Version::ALL {
        let Some(mut pair) = Pair::new(Mode::Kernel, version) else {
            return;
        };
        let counters = pair.counters();
        let by_program = || counters.packet_ins.get() - counters.answered_in_kernel.get();
        let mut attempts = 0..50;
        // Because of a tick, the program may answer some of it.
        loop {
            attempts
                .next()
                .expect("now and then the kernel answers all");
            forward_in_kernel(&mut pair);
            let (before, start) = (by_program(), Instant::now());
            let last_answered = counters.answered_in_kernel.get();
            let seen = pair.hosts.find(mac_of(2)).unwrap().last_seen();
            pair.come(2, handed(2, &header(2, ip_of(3)), b"to 3"));
            pair.compare();
            while counters.answered_in_kernel.get() == last_answered && by_program() == before {
                assert!(start.elapsed() < PATIENCE, "nobody tells who has answered");
                std::thread::yield_now();
            }
            if by_program() == before {
                assert!(pair.hosts.find(mac_of(2)).unwrap().last_seen() > seen);
                break;
            }
        }
        pair.finish();
    }
}

/// The program answers hosts that do not fit into the tables.
#[test]
fn more_addresses_than_fit() {
    let Some(mut pair) = Pair::new(Mode::Kernel, Version::Of10) else {
        return;
    };
    for _ in 0..2 {
        for high in 0..72 {
            let mut stream = Vec::new();
            for low in 0..=255 {
                let src = low % HOSTS + 1;
                let frame = handed(src, &header(src, [192, 168, high, low].into()), b"far");
                packet_in(port_of(src), frame).encode(Version::Of10, 1, &mut stream);
            }
            pair.send_in_pieces(&stream, |stream| stream.chunks(3000).collect());
        }
    }
    let counters = pair.counters();
    pair.finish();
    assert!(counters.answered_in_kernel.get() > 0);
}
