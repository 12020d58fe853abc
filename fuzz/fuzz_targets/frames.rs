//! Any bytes, arriving in two parts, cut into messages: nothing panics, no byte is lost or read twice, and where the
//! parts were cut makes no difference.

#![no_main]

use libfuzzer_sys::fuzz_target;
use urtica_wire::{DecodeError, Header, split_frame};

fuzz_target!(|input: (u16, &[u8])| {
    let (cut, stream) = input;
    let (first, _) = stream.split_at(usize::from(cut).min(stream.len()));

    let mut frames = Vec::new();
    let (rest, result) = split_all(first, &mut frames);
    if result.is_ok() {
        let read = first.len() - rest.len();
        let _ = split_all(&stream[read..], &mut frames);
    }

    let mut at_once = Vec::new();
    let (rest, _) = split_all(stream, &mut at_once);
    assert_eq!(frames, at_once);
    assert_eq!([&at_once.concat(), rest].concat(), stream);
    for frame in frames {
        let header = Header::peek(frame).expect("a frame has a header");
        assert_eq!(usize::from(header.length), frame.len());
    }
});

/// Appends the whole messages at the front of `bytes` to `frames`; gives what is left, and why.
fn split_all<'a>(
    mut bytes: &'a [u8],
    frames: &mut Vec<&'a [u8]>,
) -> (&'a [u8], Result<(), DecodeError>) {
    loop {
        match split_frame(bytes) {
            Ok(Some((frame, rest))) => {
                frames.push(frame);
                bytes = rest;
            }
            Ok(None) => return (bytes, Ok(())),
            Err(error) => return (bytes, Err(error)),
        }
    }
}
