//! Random frames: ordinary ones with few different addresses, so that they match entries, and all kinds that the compiled
//! form has to leave to the plain form.

use super::choices::Choices;

/// Values that frames and entries share.
pub const PORTS: [u16; 4] = [80, 443, 53, 0x1234];
pub const VIDS: [u16; 4] = [0, 1, 2, 0xfff];
pub const TTLS: [u8; 5] = [64, 0, 1, 2, 255];

/// The Ethernet types that have a meaning, and some others.
const TYPES: [u16; 10] = [
    0x0806, 0x8847, 0x8848, 0x88e7, 0x9999, 0x0600, 0x05ff, 30, 0x0800, 0x86dd,
];

/// Protocols that announce IPv6 extension headers, real ones and others.
const EXTENSIONS: [u8; 11] = [0, 43, 44, 60, 50, 51, 59, 135, 139, 140, 253];

pub fn mac(choices: &mut Choices) -> u64 {
    0x0200_0000_0000 + choices.below(16) as u64
}

pub fn ipv4(choices: &mut Choices) -> u32 {
    let octets = [
        10,
        choices.pick(&[0, 1]),
        choices.pick(&[0, 1, 128]),
        choices.pick(&[0, 1, 2, 3, 255]),
    ];
    u32::from_be_bytes(octets)
}

pub fn ipv6(choices: &mut Choices) -> u128 {
    let high = 0x2001_0db8_0000_0000_u128 + choices.pick(&[0, 1, 0x1_0000_u128]);
    high << 64 | choices.pick(&[0, 1, 2, 1 << 63, 0xff])
}

/// A frame.
pub fn frame(choices: &mut Choices) -> Vec<u8> {
    if choices.is_in(2) {
        let len = 14 + choices.below(120);
        return choices.bytes(len);
    }
    let mut frame = Vec::with_capacity(128);
    frame.extend(&mac(choices).to_be_bytes()[2..]);
    frame.extend(&mac(choices).to_be_bytes()[2..]);
    push_tags(&mut frame, choices);
    match choices.below(8) {
        0..4 => push_ipv4(&mut frame, choices),
        4..6 => push_ipv6(&mut frame, choices),
        6 => push_arp(&mut frame, choices),
        _ => push_other(&mut frame, choices),
    }
    cut_or_pad(&mut frame, choices);
    frame
}

fn push_tags(frame: &mut Vec<u8>, choices: &mut Choices) {
    for _ in 0..choices.pick(&[0, 0, 0, 0, 1, 1, 2, 3]) {
        frame.extend(choices.pick(&[0x8100_u16, 0x88a8]).to_be_bytes());
        let bits = choices.pick(&[0, 0x2000, 0x1000, 0xf000]);
        frame.extend((choices.pick(&VIDS) | bits).to_be_bytes());
    }
}

fn push_ipv4(frame: &mut Vec<u8>, choices: &mut Choices) {
    frame.extend([8, 0]);
    let options = choices.pick(&[0, 0, 0, 0, 0, 0, 1, 2, 10]);
    let proto = choices.pick(&[6, 17, 6, 17, 1, 132, 58, 47]);
    let payload = upper(proto, choices);
    let header_len = 20 + 4 * options;
    let mut total_len = (header_len + payload.len()) as u16;
    let mut version = 0x45 + options as u8;
    let mut fragment = choices.pick(&[0, 0x4000]);
    if choices.is_in(4) {
        fragment = choices.pick(&[0x2000, 1, 0x2001, 0x8000]);
    }
    if choices.is_in(2) {
        total_len = choices.number(2) as u16;
    }
    if choices.is_in(2) {
        version = choices.byte();
    }
    frame.extend([version, choices.pick(&[0, 0x28, 3])]);
    frame.extend(total_len.to_be_bytes());
    frame.extend([0, 7]);
    frame.extend(u16::to_be_bytes(fragment));
    frame.extend([choices.pick(&TTLS), proto]);
    frame.extend(checksum(choices));
    frame.extend(ipv4(choices).to_be_bytes());
    frame.extend(ipv4(choices).to_be_bytes());
    frame.resize(frame.len() + 4 * options, 1);
    frame.extend(payload);
}

fn push_ipv6(frame: &mut Vec<u8>, choices: &mut Choices) {
    frame.extend([0x86, 0xdd]);
    let mut proto = choices.pick(&[6, 17, 58, 58, 132, 1, 47]);
    let mut payload = upper(proto, choices);
    if choices.is_in(10) {
        let mut header = vec![proto, choices.pick(&[0, 0, 1])];
        header.extend(choices.pick(&[[0; 6], [0, 1, 0, 0, 0, 1], [1, 4, 0, 0, 0, 0]]));
        payload.splice(0..0, header);
        proto = choices.pick(&EXTENSIONS);
    }
    let mut len = payload.len() as u16;
    let mut first = 0x6000_0000_u32 | u32::from(choices.pick(&[0_u8, 0x28, 3])) << 20;
    first |= choices.pick(&[0, 5, 0xf_ffff]);
    if choices.is_in(2) {
        len = choices.number(2) as u16;
    }
    if choices.is_in(2) {
        first = choices.number(4) as u32;
    }
    frame.extend(first.to_be_bytes());
    frame.extend(len.to_be_bytes());
    frame.extend([proto, choices.pick(&TTLS)]);
    frame.extend(ipv6(choices).to_be_bytes());
    frame.extend(ipv6(choices).to_be_bytes());
    frame.extend(payload);
}

/// The payload of IP.
fn upper(proto: u8, choices: &mut Choices) -> Vec<u8> {
    let mut bytes = choices.pick(&PORTS).to_be_bytes().to_vec();
    bytes.extend(choices.pick(&PORTS).to_be_bytes());
    match proto {
        6 => {
            bytes.extend([0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x10, 1, 0]);
            bytes.extend(checksum(choices));
            bytes.extend([0, 0]);
        }
        17 => {
            bytes.extend([0, 8]);
            bytes.extend(checksum(choices));
        }
        1 | 58 => {
            bytes = vec![choices.pick(&[8, 0, 135, 136]), choices.pick(&[0, 1])];
            bytes.extend(checksum(choices));
            bytes.extend([0; 4]);
            bytes.extend(ipv6(choices).to_be_bytes());
            bytes.extend([choices.pick(&[1, 2]), 1, 2, 0, 0, 0, 0, choices.byte()]);
        }
        132 => bytes.extend([0; 8]),
        _ => {}
    }
    let more = choices.pick(&[0, 1, 6, 50]);
    bytes.extend((0..more).map(|byte| byte as u8));
    if choices.is_in(3) {
        bytes.truncate(choices.below(20));
    }
    bytes
}

/// A checksum, which need not be correct for updates to agree; both zeros of ones' complement occur.
fn checksum(choices: &mut Choices) -> [u8; 2] {
    match choices.below(4) {
        0 => [0, 0],
        1 => [0xff, 0xff],
        _ => [choices.byte(), choices.byte()],
    }
}

fn push_arp(frame: &mut Vec<u8>, choices: &mut Choices) {
    frame.extend([8, 6, 0, 1, 8, 0, choices.pick(&[6, 6, 6, 5]), 4, 0]);
    frame.push(choices.pick(&[1, 2, 255]));
    for _ in 0..2 {
        frame.extend(&mac(choices).to_be_bytes()[2..]);
        frame.extend(ipv4(choices).to_be_bytes());
    }
}

fn push_other(frame: &mut Vec<u8>, choices: &mut Choices) {
    frame.extend(choices.pick(&TYPES).to_be_bytes());
    // A SNAP header, MPLS labels, or invalid bytes.
    frame.extend(choices.pick(&[
        [0xaa, 0xaa, 3, 0, 0, 0, 8, 0],
        [0, 0, 0x11, 64, 0, 0, 0x10, 1],
        [0; 8],
    ]));
    let len = choices.below(60);
    frame.resize(frame.len() + len, 0x45);
}

fn cut_or_pad(frame: &mut Vec<u8>, choices: &mut Choices) {
    match choices.below(32) {
        0..8 => {}
        8..28 => frame.resize(frame.len().max(60), 0),
        28 => frame.truncate(14.max(choices.below(frame.len()))),
        29 => frame.truncate(choices.below(frame.len())),
        30 => frame.resize(1500, 0xaa),
        _ => {
            let len = choices.pick(&[1900, 1900, 2030, 9000, 65_530]);
            frame.resize(len + choices.below(40), 0xaa);
        }
    }
}
