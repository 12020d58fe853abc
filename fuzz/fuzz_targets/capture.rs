//! `urtica decode` on any file: nothing panics, and where all is said to have been read, nothing was passed over.
//!
//! A file that begins as no capture does is read as the packets of one: two bytes of length and the bytes, again and again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use urtica_recordings::decode::{Outcome, print_capture};
use urtica_recordings::is_capture;

const PORTS: [u16; 2] = [6633, 6653];

/// The header of a pcap file of Ethernet frames.
const HEADER: [u8; 24] = [
    0xa1, 0xb2, 0xc3, 0xd4, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 1,
];

fuzz_target!(|bytes: &[u8]| {
    match is_capture(bytes) {
        true => read(bytes),
        false => read(&file_of(bytes)),
    }
});

fn read(file: &[u8]) {
    let mut told = [Vec::new(), Vec::new()];
    let [plain, verbose] = &mut told;
    let outcome = print_capture(file, &PORTS, false, plain);
    let again = print_capture(file, &PORTS, true, verbose);
    assert_eq!(outcome.is_ok(), again.is_ok());
    let text = std::str::from_utf8(plain).expect("what is printed is text");
    if matches!(outcome, Ok(Outcome::AllRead)) {
        assert!(text.lines().all(|line| !line.contains(": byte ")), "{text}");
    }
}

/// A pcap file of these packets, each after its length.
fn file_of(mut bytes: &[u8]) -> Vec<u8> {
    let mut file = HEADER.to_vec();
    while let [l0, l1, rest @ ..] = bytes {
        let length = usize::from(u16::from_le_bytes([*l0, *l1])).min(rest.len());
        let (packet, after) = rest.split_at(length);
        let lengths = (length as u32).to_be_bytes();
        file.extend([0; 8]);
        file.extend([lengths, lengths].concat());
        file.extend(packet);
        bytes = after;
    }
    file
}
