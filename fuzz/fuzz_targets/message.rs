//! Any bytes, read as a message: nothing panics, and what was read is written in its version and read again as the same
//! message. In the other version it is written or refused, and what was written is read.

#![no_main]

use libfuzzer_sys::fuzz_target;
use urtica_wire::{Message, PacketIn, Version};

fuzz_target!(|bytes: &[u8]| {
    for version in Version::ALL {
        let _ = PacketIn::decode(version, bytes);
    }
    let Ok((header, message)) = Message::decode(bytes) else {
        return;
    };
    for version in Version::ALL {
        let mut out = Vec::new();
        let written = message.encode(version, header.xid, &mut out);
        if version.to_wire() == header.version {
            written.expect("a message is written in the version that it was read in");
            let (_, again) = Message::decode(&out).expect("what we write, we read");
            assert_eq!(again, message);
        } else if written.is_ok() {
            Message::decode(&out).expect("what we write, we read");
        } else {
            assert!(out.is_empty(), "a refused message leaves no trace");
        }
    }
});
