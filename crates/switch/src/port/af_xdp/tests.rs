use super::memory::RX_FRAMES;
use super::*;
use crate::port::af_packet::AfPacketPort;
use crate::port::testing::{
    FLOWS, by_flow, eventually, frame, in_namespace, ip, is_quiet_without_interface, is_readable,
    receive, receive_from_all, send_flows, tcp_passes, veth,
};
use crate::{Switch, SwitchConfig};
use std::time::{Duration, Instant};
use urtica_wire::{FlowMod, FlowModCommand, Message, PortNo, Version};

fn link() -> (AfXdpPort, AfXdpPort) {
    veth("v0", "v1");
    let open = |name| AfXdpPort::open(name).unwrap();
    (open("v0"), open("v1"))
}

#[test]
fn bursts_arrive_whole_and_in_order() {
    in_namespace(|| {
        let (mut a, mut b) = link();
        let expected: Vec<_> = (0..100)
            .map(|mark| frame(60 + usize::from(mark), mark))
            .collect();
        for _ in 0..2 * RX_FRAMES / 100 {
            expected.iter().for_each(|frame| assert!(a.send(frame)));
            a.flush();
            assert_eq!(receive(&mut b, 100), expected);
        }
        assert_eq!(
            a.receive(32, &mut |_| {}).unwrap(),
            0,
            "own frames do not come back"
        );
    });
}

#[test]
fn frames_without_space_are_counted() {
    in_namespace(|| {
        let (mut a, mut b) = link();
        for _ in 0..(RX_FRAMES + 100) / 4 {
            (0..4).for_each(|_| assert!(a.send(&frame(60, 1))));
            a.flush();
        }
        assert_eq!(receive(&mut b, RX_FRAMES).len(), RX_FRAMES);
        assert_eq!((b.take_dropped(), b.take_dropped()), (100, 0));
    });
}

#[test]
fn readable_exactly_while_frames_wait() {
    in_namespace(|| {
        let (mut a, mut b) = link();
        assert!(!is_readable(&b, 0));
        a.send(&frame(1514, 1));
        a.flush();
        assert!(is_readable(&b, 500));
        receive(&mut b, 1);
        assert!(!is_readable(&b, 0));
    });
}

#[test]
fn local_tcp_passes() {
    in_namespace(|| tcp_passes(|name| Box::new(AfXdpPort::open(name).unwrap())));
}

/// A veth supports no native XDP while its peer has more queues than itself.
#[test]
fn frames_pass_without_xdp_in_the_driver() {
    in_namespace(|| {
        ip("link add v0 numtxqueues 4 type veth peer name v1");
        for end in ["v0", "v1"] {
            ip(&format!("link set {end} addrgenmode none"));
            ip(&format!("link set {end} up"));
        }
        let mut a = AfPacketPort::open("v0").unwrap();
        let mut b = AfXdpPort::open("v1").unwrap();
        assert!(a.send(&frame(100, 1)) && a.send(&frame(1514, 2)));
        a.flush();
        assert_eq!(receive(&mut b, 2), [frame(100, 1), frame(1514, 2)]);
        assert!(b.send(&frame(200, 3)));
        b.flush();
        assert_eq!(receive(&mut a, 1), [frame(200, 3)]);
    });
}

#[test]
fn an_interface_can_be_opened_again_at_once() {
    in_namespace(|| {
        drop(link());
        assert!(AfXdpPort::open("v0").is_ok());
    });
}

#[test]
fn an_interface_that_another_program_has_is_refused() {
    in_namespace(|| {
        let _ports = link();
        let error = AfXdpPort::open("v0").err().unwrap();
        assert!(matches!(error, PortError::InUse { .. }), "{error}");
    });
}

/// Creates a host, and a port with four queues.
fn with_queues() -> (AfPacketPort, AfXdpPort) {
    ip(
        "link add w0 numrxqueues 4 numtxqueues 1 type veth peer name w1 numtxqueues 4 numrxqueues 1",
    );
    for end in ["w0", "w1"] {
        ip(&format!("link set {end} addrgenmode none"));
        ip(&format!("link set {end} up"));
    }
    let host = AfPacketPort::open("w1").unwrap();
    let port = AfXdpPort::open("w0").unwrap();
    assert_eq!(port.receivers.len(), 4);
    (host, port)
}

#[test]
fn queues_are_distributed_to_threads() {
    for count in [2, 3, 9] {
        in_namespace(move || {
            let (mut a, mut b) = with_queues();
            let others = b.split(count).unwrap();
            let mut ports: Vec<Box<dyn PortIo>> = vec![Box::new(b)];
            ports.extend(others);
            assert_eq!(ports.len(), count.min(4));
            let sent = usize::from(FLOWS) * 20;
            for number in 0..20 {
                send_flows(&mut a, number);
            }
            let received = receive_from_all(&mut ports, sent);
            // The peer's queue depends on the sending processor, so several ports may receive a flow.
            for mut numbers in by_flow(&received.concat()).into_values() {
                numbers.sort_unstable();
                assert!(numbers.into_iter().eq(0..20));
            }
            for (mark, port) in (1..).zip(&mut ports) {
                assert!(!is_readable(&**port, 0));
                assert!(port.send(&frame(100, mark)));
                port.flush();
                assert_eq!(receive(&mut a, 1), [frame(100, mark)]);
            }
        });
    }
}

#[test]
fn all_queues_are_received_from() {
    in_namespace(|| {
        let (mut a, mut b) = with_queues();
        assert!(!is_readable(&b, 0));
        let sent: Vec<_> = (0..64)
            .map(|mark| frame(60 + usize::from(mark), mark))
            .collect();
        for frame in &sent {
            assert!(a.send(frame));
            a.flush();
        }
        assert!(is_readable(&b, 500));
        let mut received = receive(&mut b, sent.len());
        received.sort_by_key(Vec::len);
        assert_eq!(received, sent);
        assert!(!is_readable(&b, 0));
        assert!(b.send(&frame(100, 9)));
        b.flush();
        assert_eq!(receive(&mut a, 1), [frame(100, 9)]);
    });
}

#[test]
fn frames_of_every_length_pass_or_are_refused() {
    in_namespace(|| {
        veth("v0", "v1");
        for end in ["v0", "v1"] {
            ip(&format!("link set {end} mtu 65535"));
        }
        let open = |name| AfXdpPort::open(name).unwrap();
        let (mut a, mut b) = (open("v0"), open("v1"));
        let edges = (1..=17).flat_map(|parts| [3840, 4096].map(|bytes| parts * bytes));
        let around = edges.flat_map(|edge| edge - 2..=edge + 2);
        let lengths: Vec<_> = (14..=1600).chain(around).chain(65_500..=65_549).collect();
        for length in lengths.into_iter().filter(|&length| length <= 65_549) {
            let sent = frame(length, length as u8);
            assert!(a.send(&sent), "{length} bytes");
            a.flush();
            assert!(receive(&mut b, 1) == [sent], "{length} bytes");
        }
        for length in (0..14).chain([65_558, 70_000, 200_000]) {
            assert!(!a.send(&vec![1; length]), "{length} bytes");
        }
    });
}

/// Creates two links, whose inner ends share memory.
fn two_links() -> (AfPacketPort, AfXdpPort, AfXdpPort, AfPacketPort) {
    let mut memory = FrameMemory::for_ports(2);
    veth("p1", "h1");
    veth("p2", "h2");
    let mut open = |name| AfXdpPort::open_sharing(name, &mut memory).unwrap();
    let (p1, p2) = (open("p1"), open("p2"));
    let host = |name| AfPacketPort::open(name).unwrap();
    (host("h1"), p1, p2, host("h2"))
}

#[test]
fn frames_go_from_port_to_port_without_a_copy() {
    in_namespace(|| {
        let (mut a, mut p1, mut p2, mut b) = two_links();
        for round in 0..3 * RX_FRAMES / 32 {
            let mark = round as u8;
            (0..32).for_each(|_| assert!(a.send(&frame(100, mark))));
            a.flush();
            let mut passed = 0;
            while passed < 32 {
                let received = p1.receive_lent(32, &mut |received| match received {
                    Received::Lent(lent) => p2.send_lent(lent).unwrap(),
                    Received::Bytes(bytes) => panic!("{} bytes to copy", bytes.len()),
                });
                passed += received.unwrap();
            }
            p2.flush();
            assert_eq!(receive(&mut b, 32), vec![frame(100, mark); 32]);
        }
    });
}

/// Adds entries as a controller would.
fn add_entries(switch: &mut Switch, entries: &[&str]) {
    let controller = switch.connect("a test".to_owned(), Duration::ZERO);
    let hello = [4, 0, 0, 8, 0, 0, 0, 1];
    let mut input = hello.to_vec();
    for entry in entries {
        let entry = FlowMod::parse(FlowModCommand::Add, entry).unwrap();
        let message = Message::FlowMod(entry);
        message.encode(Version::Of13, 7, &mut input).unwrap();
    }
    switch
        .handle_input(controller, &input, Duration::ZERO)
        .unwrap();
    assert_eq!(switch.entry_count(), entries.len());
}

/// More frames are sent than the memory has, by all outputs of the switch, so none may keep its memory.
#[test]
fn a_switch_forwards_frames_in_place() {
    in_namespace(|| {
        let (mut a, p1, p2, mut b) = two_links();
        let mut switch = Switch::new(SwitchConfig::default());
        let now = Duration::from_secs(1);
        switch.add_port(PortNo(1), Box::new(p1), now);
        switch.add_port(PortNo(2), Box::new(p2), now);
        add_entries(
            &mut switch,
            &[
                "in_port=1,dl_dst=02:00:00:00:00:01,actions=output:2",
                "in_port=1,dl_dst=02:00:00:00:00:02,actions=push_vlan:0x8100,set_field:4103->vlan_vid,output:2",
                "in_port=1,dl_dst=02:00:00:00:00:03,dl_vlan=7,actions=pop_vlan,output:2",
                "in_port=1,dl_dst=02:00:00:00:00:04,actions=output:2,output:in_port",
                "in_port=1,dl_dst=02:00:00:00:00:05,actions=drop",
                "in_port=1,dl_dst=02:00:00:00:00:06,actions=output:in_port",
                "in_port=1,dl_dst=02:00:00:00:00:07,actions=output:2,set_field:02:00:00:00:00:09->eth_dst,output:in_port",
            ],
        );
        for round in 0..1500 {
            let len = 60 + round * 7 % 1440;
            let sent: Vec<_> = (1..=7).map(|kind| of_kind(kind, len)).collect();
            sent.iter().for_each(|frame| assert!(a.send(frame)));
            a.flush();
            let (mut there, mut back) = (Vec::new(), Vec::new());
            let start = Instant::now();
            while there.len() < 5 || back.len() < 3 {
                assert!(start.elapsed() < Duration::from_secs(5), "round {round}");
                switch.poll_ports(now);
                b.receive(32, &mut |frame| there.push(frame.to_vec()))
                    .unwrap();
                a.receive(32, &mut |frame| back.push(frame.to_vec()))
                    .unwrap();
            }
            let mut tagged = sent[1].clone();
            tagged.splice(12..12, [0x81, 0, 0, 7]);
            let mut popped = sent[2].clone();
            popped.drain(12..16);
            popped.resize(popped.len().max(60), 0);
            let mut changed = sent[6].clone();
            changed[5] = 9;
            let [first, .., fourth, _, sixth, last] = &sent[..] else {
                panic!("seven frames");
            };
            let expected = [first.clone(), tagged, popped, fourth.clone(), last.clone()];
            assert!(there == expected, "round {round}");
            assert!(
                back == [fourth.clone(), sixth.clone(), changed],
                "round {round}"
            );
        }
        assert_eq!(switch.plain_packets(), 0, "all are compiled");
    });
}

/// Creates a frame to the address that ends in `kind`; the third kind has a tag.
fn of_kind(kind: u8, len: usize) -> Vec<u8> {
    let mut frame = frame(len, kind);
    frame[5] = kind;
    if kind == 3 {
        frame[12..18].copy_from_slice(&[0x81, 0, 0, 7, 0x88, 0xb5]);
    }
    frame
}

#[test]
fn frames_of_separate_memories_are_copied() {
    in_namespace(|| {
        let (mut a, mut p1, _p2, _b) = two_links();
        let mut other = {
            veth("p3", "h3");
            AfXdpPort::open("p3").unwrap()
        };
        let mut back = Vec::new();
        for mark in 0..100 {
            assert!(a.send(&frame(100, mark)));
            a.flush();
            while back.is_empty() {
                p1.receive_lent(1, &mut |received| {
                    let Received::Lent(lent) = received else {
                        panic!("a frame to copy");
                    };
                    back.push(other.send_lent(lent).unwrap_err());
                })
                .unwrap();
            }
            p1.take_back(&mut back);
            assert!(back.is_empty());
        }
    });
}

#[test]
fn a_deleted_interface_causes_no_wakeups() {
    in_namespace(|| {
        let (mut a, mut p1, mut p2, mut b) = two_links();
        assert!(is_quiet_without_interface(&mut p1));
        drop(p1);
        assert!(b.send(&frame(60, 1)) && p2.send(&frame(60, 2)));
        b.flush();
        p2.flush();
        assert_eq!(
            receive(&mut p2, 1),
            [frame(60, 1)],
            "which shares its memory"
        );
        assert_eq!(receive(&mut b, 1), [frame(60, 2)]);
        a.flush();
    });
}

#[test]
fn a_recreated_interface_is_reopened() {
    in_namespace(|| {
        let (_, mut p1, mut p2, mut b) = two_links();
        for round in 0..3 {
            ip("link delete p1");
            assert!(!p1.reopen().unwrap(), "there is none");
            veth("p1", "h1");
            assert!(p1.reopen().unwrap() && !p1.reopen().unwrap(), "once");
            let mut a = AfPacketPort::open("h1").unwrap();
            eventually(|| p1.is_up() && a.is_up());
            assert!(a.send(&frame(60, round)));
            a.flush();
            assert_eq!(receive(&mut p1, 1), [frame(60, round)]);
            assert!(p1.send(&frame(90, round)));
            p1.flush();
            assert_eq!(receive(&mut a, 1), [frame(90, round)]);
        }
        assert!(p2.send(&frame(60, 9)));
        p2.flush();
        assert_eq!(receive(&mut b, 1), [frame(60, 9)], "it shared its memory");
    });
}

/// The first port then has all queues, whichever reopens first.
#[test]
fn a_recreated_interface_with_queues_is_reopened() {
    in_namespace(|| {
        let (_, mut port) = with_queues();
        let mut ports = port.split(3).unwrap();
        ports.push(Box::new(port));
        ip("link delete w0");
        let (mut host, probe) = with_queues();
        drop(probe);
        for port in &mut ports {
            assert!(port.reopen().unwrap() && !port.reopen().unwrap());
        }
        eventually(|| host.is_up() && ports.iter().all(|port| port.is_up()));
        for number in 0..20 {
            send_flows(&mut host, number);
        }
        receive_from_all(&mut ports, usize::from(FLOWS) * 20);
        for (mark, port) in (1..).zip(&mut ports) {
            assert!(port.send(&frame(100, mark)));
            port.flush();
            assert_eq!(receive(&mut host, 1), [frame(100, mark)]);
        }
    });
}

/// Frames for an interface that is down are dropped, and not sent when it is up again.
#[test]
fn frames_for_a_down_interface_are_dropped() {
    in_namespace(|| {
        let (mut a, mut b) = link();
        for down in ["v0", "v1"] {
            ip(&format!("link set {down} down"));
            for _ in 0..5000 {
                a.send(&frame(60, 1));
                a.flush();
            }
            ip(&format!("link set {down} up"));
            eventually(|| a.is_up() && b.is_up());
            let mut came = false;
            eventually(|| {
                a.send(&frame(60, 2));
                a.flush();
                b.receive(RX_FRAMES, &mut |got| {
                    assert_eq!(got, frame(60, 2));
                    came = true;
                })
                .unwrap();
                came
            });
        }
    });
}
