//! Tests of the output of `urtica trace`, and of its error messages.

use std::process::{Command, Output, Stdio};

fn trace(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_urtica"));
    command
        .arg("trace")
        .args(arguments)
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
        .stdin(Stdio::null());
    command.output().expect("the program starts")
}

fn told(arguments: &[&str]) -> String {
    let Output {
        status,
        stdout,
        stderr,
    } = trace(arguments);
    let stderr = String::from_utf8_lossy(&stderr);
    assert!(status.success(), "{arguments:?}: {stderr}");
    String::from_utf8(stdout).expect("text")
}

#[test]
fn explains_how_entries_are_found_and_when_the_plain_form_is_used() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("switch.txt");
    let hosts =
        (1..=9).map(|host| format!("table=1,dl_dst=02:00:00:00:00:0{host} actions=goto_table:2\n"));
    let text: String = std::iter::once("in_port=1,actions=goto_table:1\n".to_owned())
        .chain(hosts)
        .chain(["table=2,actions=set_queue:5,push_mpls:0x8847,goto_table:3\n".to_owned()])
        .chain(["table=3,tun_id=0,actions=output:2\n".to_owned()])
        .collect();
    std::fs::write(&file, text).unwrap();
    let trace = |fields: &str| told(&["--flows", file.to_str().unwrap(), fields]);
    let host = trace("in_port=1,dl_dst=02:00:00:00:00:05");
    for expected in [
        "table 0 (direct code): in_port=1",
        "table 1 (compound hash): dl_dst=02:00:00:00:00:05",
        "table 2 (direct code, then plain form):",
        "  continued in the plain form, since its entry does push_mpls:0x8847",
        "table 3 (plain form): tun_id=0",
    ] {
        assert!(host.contains(expected), "{expected} in:\n{host}");
    }
    let stranger = trace("in_port=1,dl_dst=02:00:00:00:01:05");
    assert!(
        stranger.contains("table 1 (compound hash): no entry matches"),
        "{stranger}"
    );
    let inside = trace("in_port=1,metadata=5");
    assert!(inside.contains("table 0 (plain form)"), "{inside}");
    assert!(inside.contains("have no such fields"), "{inside}");
}

#[test]
fn reports_groups_meters_and_action_sets() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("switch.txt");
    std::fs::write(
        &file,
        "group_id=2,type=indirect,bucket=actions=group:1\n\
         group_id=1,type=all,bucket=actions=output:2,bucket=actions=output:3\n\
         meter=7,pktps,bands=type=drop,rate=1000\n\
         in_port=1,actions=meter:7,write_actions(group:2)\n",
    )
    .unwrap();
    let told = told(&["--flows", file.to_str().unwrap(), "in_port=1"]);
    for expected in [
        "meter 7: it passes",
        "action set: group:2",
        "bucket of group 2: group:1",
        "bucket of group 1: output:3",
        "-> port 2",
        "-> port 3",
    ] {
        assert!(told.contains(expected), "{expected} in:\n{told}");
    }
}

#[test]
fn traces_a_packet_given_by_its_bytes() {
    let frame = "ffffffffffff 020000000001 0806 0001080006040001 020000000001 0a000001 000000000000 0a000002";
    let told = told(&[
        "--flows",
        "examples/gateway.flows",
        "in_port=1",
        "--packet",
        frame,
    ]);
    assert!(told.starts_with("packet: arp,in_port=1"), "{told}");
    assert!(
        told.contains("table 0 (direct code): no entry matches"),
        "{told}"
    );
}

#[test]
fn untraceable_input_is_refused_with_a_message() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bad.txt");
    std::fs::write(&file, "\nin_port=1 actions=otput:2\n").unwrap();
    let bad = file.to_str().unwrap();
    let good = "examples/gateway.flows";
    for (arguments, expected) in [
        (&["in_port=1"][..], "--switch"),
        (&["--flows", "/nowhere", "in_port=1"], "/nowhere: "),
        (&["--flows", bad, "in_port=1"], "bad.txt:2: column 19"),
        (&["--flows", good, "in_port=x"], "column 9"),
        (
            &["--flows", good, "in_port=1", "--packet", "abc"],
            "two hex digits",
        ),
        (
            &["--switch", "tcp:127.0.0.1:1", "in_port=1"],
            "expected a switch that listens there",
        ),
    ] {
        let Output { status, stderr, .. } = trace(arguments);
        let stderr = String::from_utf8_lossy(&stderr);
        assert!(!status.success(), "{arguments:?}");
        assert!(stderr.contains(expected), "{arguments:?}: {stderr}");
    }
}
