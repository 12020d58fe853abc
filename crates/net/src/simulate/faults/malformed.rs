//! The input of a peer that is not an OpenFlow switch, or a faulty one.

use crate::Draw;

/// The version numbers and minimum lengths of features replies.
const FEATURES_REPLY: u8 = 6;
const FEATURES_REPLY_BYTES: u64 = 32;

/// The maximum length of random bytes.
const MOST_BYTES: u64 = 64;

/// Returns the input of a peer of [`FaultKind::MalformedPeer`](super::FaultKind::MalformedPeer), for tests of controllers that
/// are not simulated.
pub fn malformed_input(seed: u64) -> Vec<u8> {
    bytes(&mut Draw::new(seed))
}

/// Returns input that starts like that of one of several kinds of peers.
pub(super) fn bytes(draw: &mut Draw) -> Vec<u8> {
    let version = [1, 4][draw.place(2)];
    let hello = [version, 0, 0, 8, 0, 0, 0, 1];
    match draw.below(7) {
        0 => noise(draw),
        // Mininet's check for a controller.
        1 => b"echo A\n".to_vec(),
        2 => b"GET / HTTP/1.1\r\nHost: controller\r\n\r\n".to_vec(),
        // A version that does not exist, and a hello that ends after some of its bytes.
        3 => vec![0x7f, 0, 0, 8, 0, 0, 0, 1],
        4 => hello[..draw.within(1..=8) as usize].to_vec(),
        5 => [&hello[..], &noise(draw)].concat(),
        // A features reply with an invalid length.
        _ => {
            let length = draw.below(2 * FEATURES_REPLY_BYTES) as u8;
            let header = [version, FEATURES_REPLY, 0, length, 0, 0, 0, 2];
            [&hello[..], &header, &noise(draw)].concat()
        }
    }
}

fn noise(draw: &mut Draw) -> Vec<u8> {
    let count = draw.within(1..=MOST_BYTES);
    (0..count).map(|_| draw.below(256) as u8).collect()
}
