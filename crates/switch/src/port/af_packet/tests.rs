use super::*;
use crate::port::testing::{
    eventually, frame, in_namespace, ip, is_quiet_without_interface, is_readable, receive,
    tcp_passes, veth,
};

fn link() -> (AfPacketPort, AfPacketPort) {
    veth("v0", "v1");
    let open = |name| AfPacketPort::open(name).unwrap();
    (open("v0"), open("v1"))
}

#[test]
fn bursts_arrive_whole_and_in_order() {
    in_namespace(|| {
        let (mut a, mut b) = link();
        for mark in 0..100 {
            assert!(a.send(&frame(60 + usize::from(mark), mark)));
        }
        a.flush();
        let expected: Vec<_> = (0..100)
            .map(|mark| frame(60 + usize::from(mark), mark))
            .collect();
        assert_eq!(receive(&mut b, 100), expected);
        assert_eq!(
            a.receive(32, &mut |_| {}).unwrap(),
            0,
            "own frames do not come back"
        );
    });
}

/// This uses a datagram socket of another family, which stays full until it is read.
#[test]
fn frames_for_a_full_socket_are_kept() {
    let (socket, peer) = std::os::unix::net::UnixDatagram::pair().unwrap();
    socket.set_nonblocking(true).unwrap();
    sockopt::set_socket_send_buffer_size(&socket, 4096).unwrap();
    let mut sender = Sender {
        socket: socket.into(),
        bytes: Vec::new(),
        ends: Vec::new(),
        index: 1,
        name: "v0".into(),
    };
    let marks = 0..=255_u8;
    let accepted: Vec<_> = marks
        .take_while(|&mark| sender.send(&frame(60, mark)))
        .collect();
    assert!(accepted.len() < 256, "no queue is that long");
    assert_eq!(sender.ends.len(), BATCH);
    let mut buffer = [0; 100];
    for mark in accepted {
        let len = peer.recv(&mut buffer).unwrap();
        assert_eq!(buffer[..len], frame(60, mark));
        sender.flush();
    }
    assert!(sender.ends.is_empty() && sender.bytes.is_empty());
}

#[test]
fn more_frames_than_the_ring_has_slots() {
    in_namespace(|| {
        let (mut a, mut b) = link();
        for round in 0..100 {
            (0..50).for_each(|mark| assert!(a.send(&frame(70, mark ^ round))));
            a.flush();
            let marks: Vec<_> = receive(&mut b, 50).iter().map(|frame| frame[20]).collect();
            assert!(marks.iter().copied().eq((0..50).map(|mark| mark ^ round)));
        }
    });
}

#[test]
fn frames_without_a_slot_are_counted() {
    in_namespace(|| {
        let (mut a, mut b) = link();
        let slots = b.ring.slots.count;
        (0..slots + 100).for_each(|_| assert!(a.send(&frame(60, 1))));
        a.flush();
        assert_eq!(receive(&mut b, slots).len(), slots);
        assert_eq!((b.take_dropped(), b.take_dropped()), (100, 0));
    });
}

#[test]
fn readable_exactly_while_frames_wait() {
    in_namespace(|| {
        let (mut a, mut b) = link();
        assert!(!is_readable(&b, 0));
        a.send(&frame(60, 1));
        a.flush();
        assert!(is_readable(&b, 500));
        receive(&mut b, 1);
        assert!(!is_readable(&b, 0));
    });
}

#[test]
fn a_deleted_interface_causes_no_wakeups() {
    in_namespace(|| {
        let (mut a, _b) = link();
        assert!(is_quiet_without_interface(&mut a));
    });
}

#[test]
fn additional_senders_can_send() {
    in_namespace(|| {
        let (mut a, mut b) = link();
        let mut others = [a.sender(), a.sender()].map(|sender| sender.unwrap().unwrap());
        for (mark, other) in (1..).zip(&mut others) {
            (0..40).for_each(|_| assert!(other.send(&frame(60, mark))));
            other.flush();
            assert!(!other.has_unsent());
        }
        assert!(a.send(&frame(60, 0)));
        a.flush();
        let mut marks: Vec<_> = receive(&mut b, 81).iter().map(|frame| frame[20]).collect();
        marks.sort_unstable();
        let expected = [vec![0; 1], vec![1; 40], vec![2; 40]].concat();
        assert_eq!(marks, expected);
    });
}

/// Frames fit into slots, bypass them, or are refused by the interface.
#[test]
fn frames_of_every_length_pass_or_are_lost_alone() {
    in_namespace(|| {
        let (mut a, mut b) = link();
        for end in ["v0", "v1"] {
            ip(&format!("link set {end} mtu 65535"));
        }
        let slots = b.ring.slots.slot_bytes;
        let lengths: Vec<_> = (14..=slots + 10)
            .chain(65_500..=65_549)
            .chain([4096, 9014, 32_768])
            .collect();
        for &length in &lengths {
            let sent = frame(length, length as u8);
            assert!(a.send(&sent), "{length} bytes");
            a.flush();
            assert!(receive(&mut b, 1) == [sent], "{length} bytes");
        }
        for length in (0..14).chain([65_550, 70_000, 200_000]) {
            a.send(&vec![1; length]);
            a.send(&frame(60, 3));
            a.flush();
            assert_eq!(receive(&mut b, 1), [frame(60, 3)], "after {length} bytes");
        }
    });
}

#[test]
fn jumbo_frames_pass_and_longer_ones_are_lost() {
    in_namespace(|| {
        let (mut a, mut b) = link();
        for end in ["v0", "v1"] {
            ip(&format!("link set {end} mtu 9000"));
        }
        // The slots were created for an MTU of 1500, so this frame is received by `recv`.
        for len in [9014, 60, 9015, 61] {
            assert!(a.send(&frame(len, 5)));
        }
        a.flush();
        let lengths: Vec<_> = receive(&mut b, 3).iter().map(Vec::len).collect();
        assert_eq!(lengths, [9014, 60, 61]);
    });
}

#[test]
fn vlan_tags_are_kept() {
    in_namespace(|| {
        let (mut a, mut b) = link();
        for (tpid, len) in [([0x81, 0], 1518), ([0x88, 0xa8], 1514)] {
            let mut tagged = frame(len, 3);
            tagged[12..18].copy_from_slice(&[tpid[0], tpid[1], 0x60, 7, 0x88, 0xb5]);
            assert!(a.send(&tagged));
            a.flush();
            assert_eq!(receive(&mut b, 1), [tagged]);
        }
    });
}

#[test]
fn the_link_state_is_reported() {
    in_namespace(|| {
        let (a, b) = link();
        eventually(|| a.is_up() && b.is_up());
        ip("link set v1 down");
        // The kernel reports a carrier within a second.
        eventually(|| !a.is_up() && !b.is_up());
        assert!(!is_readable(&b, 0), "the error was taken");
        ip("link set v1 up");
        eventually(|| a.is_up() && b.is_up());
    });
}

/// A machine's own TCP over a veth has no checksums, and has segments far larger than the MTU.
#[test]
fn local_tcp_passes() {
    in_namespace(|| tcp_passes(|name| Box::new(AfPacketPort::open(name).unwrap())));
}
