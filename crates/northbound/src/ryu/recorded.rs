//! Tests that bodies become the messages of Ryu, and responses its JSON, as recorded by `tools/vectors/osken_ofctl.py`.

use super::payload::Payloads;
use super::read::{Printed, Printer};
use super::write;
use crate::object::Object;
use serde_json::{Value, json};
use urtica_controller::ProgramId;
use urtica_wire::{
    Experimenter, FlowModCommand, GroupModCommand, Message, MeterModCommand, Version,
};

const REQUESTS: &str = include_str!("../../tests/recorded/requests.jsonl");
const REPLIES: &str = include_str!("../../tests/recorded/replies.jsonl");

fn records(lines: &str) -> impl Iterator<Item = Value> {
    lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
}

fn version(record: &Value) -> Version {
    match record["version"].as_str().unwrap() {
        "1.0" => Version::Of10,
        _ => Version::Of13,
    }
}

fn bytes(record: &Value) -> Vec<u8> {
    let hex = record["hex"].as_str().unwrap();
    let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    (0..hex.len()).step_by(2).map(byte).collect()
}

/// Returns the message for a recorded body.
fn sent(record: &Value) -> Vec<u8> {
    let version = version(record);
    let body = Object::body(&record["body"]).unwrap();
    let payloads = Payloads::of(&record["body"]);
    let (path, command) = record["path"]
        .as_str()
        .unwrap()
        .split_once('/')
        .unwrap_or_default();
    let experimenter;
    let message = match path {
        "flowentry" => {
            let command = match command {
                "add" => FlowModCommand::Add,
                "modify" => FlowModCommand::Modify,
                "modify_strict" => FlowModCommand::ModifyStrict,
                "delete" => FlowModCommand::Delete,
                _ => FlowModCommand::DeleteStrict,
            };
            Message::FlowMod(write::flow_mod(version, command, &body, &payloads).unwrap())
        }
        "groupentry" => {
            let command = match command {
                "add" => GroupModCommand::Add,
                "modify" => GroupModCommand::Modify,
                _ => GroupModCommand::Delete,
            };
            Message::GroupMod(write::group_mod(command, &body, &payloads).unwrap())
        }
        "meterentry" => {
            let command = match command {
                "add" => MeterModCommand::Add,
                "modify" => MeterModCommand::Modify,
                _ => MeterModCommand::Delete,
            };
            Message::MeterMod(write::meter_mod(command, &body).unwrap())
        }
        "portdesc" => Message::PortMod(write::port_mod(version, &body, None).unwrap()),
        _ if record["path"] == "role" => Message::RoleRequest(write::role(&body).unwrap()),
        _ => {
            let (whose, data) = write::experimenter(version, &body, &payloads).unwrap();
            experimenter = data;
            Message::Experimenter(Experimenter {
                experimenter: whose,
                data: &experimenter,
            })
        }
    };
    let mut out = Vec::new();
    message.encode(version, 0, &mut out).unwrap();
    out
}

#[test]
fn bodies_become_ryus_messages() {
    let mut count = 0;
    for record in records(REQUESTS) {
        let (ours, ryus) = (sent(&record), bytes(&record));
        let decoded = |bytes| Message::decode(bytes).map(|(_, message)| format!("{message:#?}"));
        assert_eq!(decoded(&ours), decoded(&ryus), "{record}");
        assert_eq!(ours, ryus, "{record}");
        count += 1;
    }
    assert!(count > 150, "{count}");
}

#[test]
fn answers_are_printed_as_ryu_prints_them() {
    let mut count = 0;
    for record in records(REPLIES) {
        let bytes = bytes(&record);
        let (_, message) = Message::decode(&bytes).unwrap();
        let printer = Printer {
            version: version(&record),
            program: ProgramId::OUTSIDE,
        };
        let ours = match printer.print(&message, None).unwrap() {
            Printed::One(value) => value,
            Printed::Rows(rows) => rows.into(),
        };
        let ryus = &record["answer"]["1"];
        if let (Value::Array(ours), Value::Array(ryus)) = (&ours, ryus) {
            for (ours, ryus) in ours.iter().zip(ryus) {
                assert_eq!(ours, ryus, "{}", record["name"]);
            }
        }
        assert_eq!(json!({ "1": ours }), record["answer"], "{}", record["name"]);
        count += 1;
    }
    assert!(count > 25, "{count}");
}
