//! Golden files: text, value, and bytes of both versions, each checked against the others in both directions.
//!
//! `golden/requests.txt` contains texts that users type. A record's first line is a command and its text; `reads` is the text
//! as it is written again, if it differs; `of10` and `of13` are the message with xid 1; `line10` and `line13` are the lines
//! printed for these bytes. A version that cannot express the record has no bytes.
//!
//! `golden/messages.txt` contains bytes, and the lines that `{:#}` prints for them.
//!
//! If Open vSwitch is installed, its `ovs-ofctl` is compared, too.

mod golden;

use golden::{Record, hex, parse_request};
use std::process::Command;
use urtica_wire::text::message;
use urtica_wire::{Message, Version};

const REQUESTS: &str = include_str!("golden/requests.txt");
const MESSAGES: &str = include_str!("golden/messages.txt");

#[test]
fn requests_read_and_write_back() {
    for record in golden::records(REQUESTS) {
        let (command, text) = record.head();
        let parsed = parse_request(command, text);
        let written = golden::written(&parsed);
        assert_eq!(written, record.get("reads").unwrap_or(text), "{text}");
        assert_eq!(parse_request(command, &written), parsed, "{written}");
    }
}

#[test]
fn requests_have_these_bytes() {
    for record in golden::records(REQUESTS) {
        let (command, text) = record.head();
        let parsed = parse_request(command, text);
        for (key, version) in [("of10", Version::Of10), ("of13", Version::Of13)] {
            let mut bytes = Vec::new();
            let encoded = parsed.encode(version, 1, &mut bytes);
            match record.get(key) {
                Some(expected) => assert_eq!(hex(&bytes), expected, "{text} in {version}"),
                None => assert!(
                    encoded.is_err(),
                    "{text} has no {key} but encodes: {}",
                    hex(&bytes)
                ),
            }
        }
    }
}

#[test]
fn bytes_of_requests_print_as_one_line() {
    for record in golden::records(REQUESTS) {
        for (bytes, line) in [("of10", "line10"), ("of13", "line13")] {
            if let Some(bytes) = record.get(bytes) {
                let bytes = golden::bytes(bytes);
                let (header, decoded) = Message::decode(&bytes).expect("a message");
                let printed = message(&header, &decoded).to_string();
                assert_eq!(
                    Some(printed.as_str()),
                    record.get(line),
                    "{:?}",
                    record.head()
                );
            }
        }
    }
}

#[test]
fn messages_print_in_full() {
    for record in golden::records(MESSAGES) {
        let bytes = golden::bytes(record.head().1);
        let (header, decoded) = Message::decode(&bytes).expect("a message");
        let printed = format!("{:#}", message(&header, &decoded));
        assert_eq!(printed, record.body(), "{:?}", record.head());
    }
}

#[test]
fn one_line_is_one_line() {
    for record in golden::records(MESSAGES) {
        let bytes = golden::bytes(record.head().1);
        let (header, decoded) = Message::decode(&bytes).expect("a message");
        let printed = message(&header, &decoded).to_string();
        assert!(
            !printed.contains('\n') && !printed.ends_with(' '),
            "{printed:?}"
        );
    }
}

#[test]
fn damaged_messages_print_if_they_decode() {
    for record in golden::records(MESSAGES) {
        let whole = golden::bytes(record.head().1);
        for (at, value) in (0..whole.len()).flat_map(|at| [(at, 0x00), (at, 0x7f), (at, 0xff)]) {
            let mut bytes = whole.clone();
            bytes[at] = value;
            if let Ok((header, decoded)) = Message::decode(&bytes) {
                let line = message(&header, &decoded).to_string();
                assert!(!line.contains(char::is_control), "{line:?}");
                assert!(!format!("{:#}", message(&header, &decoded)).is_empty());
            }
        }
    }
}

#[test]
fn open_vswitch_prints_equal_text() {
    if !open_vswitch_is_here() {
        return;
    }
    for record in golden::records(MESSAGES).filter(|record| record.head().0 == "bytes") {
        let printed = ovs_ofctl(&["ofp-print", record.head().1]);
        assert_eq!(record.body(), printed, "{:?}", record.head());
    }
    for record in golden::records(REQUESTS).filter(|record| record.get("ovs").is_none()) {
        for text in ["of10", "of13"].iter().filter_map(|key| record.get(key)) {
            let bytes = golden::bytes(text);
            let (header, decoded) = Message::decode(&bytes).expect("a message");
            let printed = format!("{:#}", message(&header, &decoded));
            assert_eq!(
                printed,
                ovs_ofctl(&["ofp-print", text]),
                "{:?}",
                record.head()
            );
        }
    }
}

#[test]
fn open_vswitch_reads_equal_messages() {
    if !open_vswitch_is_here() {
        return;
    }
    let flows = golden::records(REQUESTS).filter(|record| record.head().0 == "add");
    for record in flows.filter(|record| record.get("ovs").is_none()) {
        if let Some(line) = record.get("line13") {
            let protocol = ["-O", "OpenFlow13", "-F", "OXM-OpenFlow13"];
            let arguments = [&protocol[..], &["parse-flow", record.head().1]].concat();
            let printed = ovs_ofctl(&arguments);
            assert_eq!(printed.lines().last(), Some(line), "{:?}", record.head());
        }
    }
}

/// Returns `true` if `ovs-ofctl` is installed, as it must be in CI.
fn open_vswitch_is_here() -> bool {
    let here = Command::new("ovs-ofctl").arg("--version").output().is_ok();
    let ci = std::env::var("CI").is_ok_and(|ci| ci == "true");
    assert!(
        here || !ci,
        "ovs-ofctl is not installed, and CI needs it: install openvswitch-common"
    );
    if !here {
        eprintln!("skipped: ovs-ofctl is not installed; its output is not compared with ours");
    }
    here
}

fn ovs_ofctl(arguments: &[&str]) -> String {
    let output = Command::new("ovs-ofctl")
        .args(arguments)
        .output()
        .expect("ovs-ofctl runs");
    String::from_utf8_lossy(&output.stdout)
        .trim_end_matches('\n')
        .to_owned()
}

#[test]
fn records_are_read_as_written() {
    let record: Vec<Record> =
        golden::records("# comment\n\nadd: a\n  of10: 01 02\n\nb: c\n").collect();
    assert_eq!(record.len(), 2);
    assert_eq!(record[0].head(), ("add", "a"));
    assert_eq!(record[0].get("of10"), Some("01 02"));
    assert_eq!(golden::bytes("0102 03"), [1, 2, 3]);
}
