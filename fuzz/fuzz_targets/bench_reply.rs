//! Any bytes as a controller's answer to the benchmark: nothing panics, and what it finds lies within the message.

#![no_main]

use libfuzzer_sys::fuzz_target;
use urtica_bench::config::Version;
use urtica_bench::frame::{FrameKind, Packet};
use urtica_bench::reply::Reply;

fuzz_target!(|bytes: &[u8]| {
    for version in [Version::V10, Version::V13] {
        let Some(reply) = Reply::parse(version, bytes) else {
            continue;
        };
        reply.output();
        for kind in FrameKind::ALL {
            let packet = Packet {
                kind,
                eth_src: reply.frame_eth_src().unwrap_or([2; 6]),
                eth_dst: [4; 6],
            };
            reply.faults(&packet, 60);
        }
        if let Some(at) = reply.eth_src_at() {
            assert!(at + 6 <= bytes.len(), "the match's address lies at {at}");
        }
        let buffer_id = &bytes[reply.buffer_at..reply.buffer_at + 4];
        assert_eq!(buffer_id, reply.buffer_id.to_be_bytes());
    }
});
