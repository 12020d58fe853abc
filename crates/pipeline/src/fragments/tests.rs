//! Tests of fragment detection.

use super::*;
use std::net::{Ipv4Addr, Ipv6Addr};
use urtica_wire::packet::{Ipv4, Ipv6, ip_proto};

fn ipv4(change: impl FnOnce(&mut Ipv4)) -> Vec<u8> {
    let mut header = Ipv4::new(Ipv4Addr::LOCALHOST, Ipv4Addr::LOCALHOST, ip_proto::UDP);
    change(&mut header);
    let mut frame = vec![0; 12];
    frame.extend([0x81, 0x00, 0x00, 0x07, 0x08, 0x00]);
    header.write(&mut frame, &[0; 16]).unwrap();
    frame
}

#[test]
fn fragments_of_ipv4_behind_a_tag() {
    assert!(!is_fragment(&ipv4(|_| {})));
    assert!(is_fragment(&ipv4(|header| header.more_fragments = true)));
    assert!(is_fragment(&ipv4(|header| header.fragment_offset = 2)));
}

#[test]
fn fragments_of_ipv6() {
    let with = |next_header| {
        let header = Ipv6::new(Ipv6Addr::LOCALHOST, Ipv6Addr::LOCALHOST, next_header);
        let mut frame = vec![0; 12];
        frame.extend(0x86dd_u16.to_be_bytes());
        header
            .write(&mut frame, &[ip_proto::UDP, 0, 0, 1, 0, 0, 0, 1])
            .unwrap();
        frame
    };
    assert!(is_fragment(&with(ip_proto::FRAGMENT)));
    assert!(!is_fragment(&with(ip_proto::UDP)));
}

#[test]
fn other_frames_are_no_fragments() {
    assert!(!is_fragment(&[]));
    assert!(!is_fragment(&[0xff; 60]));
}
