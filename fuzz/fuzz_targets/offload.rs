//! Any frame with any offload header of the kernel's: nothing panics; segments carry the payload of the
//! large one, all of it in order, each no more than it may.

#![no_main]

#[path = "../../crates/switch/src/port/offload.rs"]
#[allow(dead_code, reason = "the switch uses all of it")]
mod offload;

use libfuzzer_sys::fuzz_target;
use offload::{Offload, Segmenter};

fuzz_target!(|input: ([u8; Offload::BYTES], Vec<u8>)| {
    let (header, frame) = input;
    let offload = Offload::parse(&header);
    let mut partial = frame.clone();
    offload::complete_if_partial(&mut partial);
    offload.complete_checksum(&mut partial);
    assert_eq!(partial.len(), frame.len());
    cut(frame, &offload, u16::from_ne_bytes([header[4], header[5]]));
});

fn cut(frame: Vec<u8>, offload: &Offload, most: u16) {
    let mut segmenter = Segmenter::default();
    segmenter.frame = frame.clone();
    if !segmenter.begin(offload) {
        return;
    }
    let mut segments = Vec::new();
    while let Some(segment) = segmenter.next_segment() {
        segments.push(segment.to_vec());
    }
    let further = segments.len() - 1;
    let total: usize = segments.iter().map(Vec::len).sum();
    // Each further segment has the headers once more.
    let Some(headers) = (total - frame.len()).checked_div(further) else {
        return assert_eq!(total, frame.len());
    };
    let payloads = segments.iter().map(|segment| &segment[headers..]);
    assert!(
        payloads
            .clone()
            .all(|payload| payload.len() <= usize::from(most))
    );
    assert_eq!(payloads.collect::<Vec<_>>().concat(), frame[headers..]);
}
