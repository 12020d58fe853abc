//! Tests that no input, in chunks of any size, causes a panic or unbounded growth.

use crate::support::{Bench, HELLO, config, encode, frame};
use proptest::prelude::*;
use std::time::Duration;
use urtica_switch::{FailMode, SwitchConfig};
use urtica_wire::{Header, Message, Version, split_frame};

/// A header of either version with an arbitrary body, or, rarely, arbitrary bytes.
fn message() -> impl Strategy<Value = Vec<u8>> {
    let body = prop::collection::vec(any::<u8>(), 0..120);
    let version = prop_oneof![Just(1), Just(4)];
    let framed = (version, 0..31_u8, any::<u32>(), body).prop_map(|(version, kind, xid, body)| {
        let mut bytes = Vec::new();
        let header = Header {
            version,
            message_type: kind,
            length: (Header::SIZE + body.len()) as u16,
            xid,
        };
        header.write(&mut bytes);
        bytes.extend(body);
        bytes
    });
    prop_oneof![
        20 => framed,
        1 => prop::collection::vec(any::<u8>(), 0..40),
    ]
}

/// The maximum unread output for a few small messages.
const MAX_OUTPUT_BYTES: usize = 1 << 20;

proptest! {
    #[test]
    fn arbitrary_messages_in_arbitrary_chunks(
        messages in prop::collection::vec(message(), 0..30),
        sizes in prop::collection::vec(1..200_usize, 1..10),
        greets: bool,
        standalone: bool,
    ) {
        let mut bench = Bench::new(SwitchConfig {
            fail_mode: if standalone { FailMode::Standalone } else { FailMode::Secure },
            ..config()
        });
        bench.add_port(1);
        bench.add_port(2);
        let controller = bench.connect_silently();
        let mut stream = if greets { HELLO.to_vec() } else { Vec::new() };
        stream.extend(messages.concat());
        let mut rest = stream.as_slice();
        for size in sizes.iter().cycle() {
            let (chunk, after) = rest.split_at(rest.len().min(*size));
            if rest.is_empty() || bench.input(controller, chunk).is_err() {
                break;
            }
            rest = after;
            bench.receive(1, &frame(1, 2));
        }
        bench.pass(Duration::from_secs(5));
        let output = bench.switch.output(controller).unwrap();
        prop_assert!(output.len() < MAX_OUTPUT_BYTES);
        let mut sent = output.as_slice();
        while let Some((frame, after)) = split_frame(sent).unwrap() {
            prop_assert!(Message::decode(frame).is_ok(), "{frame:?}");
            sent = after;
        }
        prop_assert!(sent.is_empty());
    }

    #[test]
    fn arbitrary_frames(
        frames in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..50),
        standalone: bool,
    ) {
        let mut bench = Bench::new(SwitchConfig {
            fail_mode: if standalone { FailMode::Standalone } else { FailMode::Secure },
            ..config()
        });
        bench.add_port(1);
        bench.add_port(2);
        for frame in &frames {
            bench.receive(1, frame);
            prop_assert!(bench.sent_by(1).is_empty());
        }
    }

    #[test]
    fn a_message_is_handled_once_however_it_is_cut(cut in 0..40_usize) {
        let (mut bench, controller) = Bench::with_controller(Version::Of13);
        let mut stream = encode(Version::Of13, 1, &Message::EchoRequest(&[7; 24]));
        stream.extend(encode(Version::Of13, 2, &Message::BarrierRequest));
        let (head, tail) = stream.split_at(cut);
        bench.input(controller, head).unwrap();
        bench.input(controller, tail).unwrap();
        prop_assert_eq!(bench.take(controller).len(), 2);
    }
}
