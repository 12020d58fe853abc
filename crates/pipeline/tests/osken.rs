//! os-ken's switch tests: the packet that comes out of a switch with given flow mods, byte by byte.
//! `tools/vectors/osken_packets.py` makes the files and says how.

use std::time::Duration;
use urtica_pipeline::{Packet, PacketInCause, Pipeline, PipelineConfig, Sink};
use urtica_wire::{
    FixedName, FlowMod, MacAddr, Message, Port, PortConfig, PortFeatures, PortNo, PortState,
};

/// One test: what is in the tables, what comes in, and what goes out, if anything.
struct Vector {
    name: String,
    flow_mods: Vec<Vec<u8>>,
    packet_in: Vec<u8>,
    packet_out: Option<Vec<u8>>,
}

fn vectors(file: &str) -> Vec<Vector> {
    let path = format!("{}/tests/vectors/{file}", env!("CARGO_MANIFEST_DIR"));
    let lines = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    lines.lines().map(vector).collect()
}

fn vector(line: &str) -> Vector {
    let value: serde_json::Value = serde_json::from_str(line).expect("a line is a JSON object");
    let flow_mods = value["flow_mods"].as_array().expect("flow mods");
    Vector {
        name: value["name"].as_str().expect("a name").to_owned(),
        flow_mods: flow_mods.iter().filter_map(bytes).collect(),
        packet_in: bytes(&value["in"]).expect("a packet"),
        packet_out: bytes(&value["out"]),
    }
}

fn bytes(hex: &serde_json::Value) -> Option<Vec<u8>> {
    let hex = hex.as_str()?;
    let digit = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex digits");
    Some((0..hex.len()).step_by(2).map(digit).collect())
}

fn check(vector: &Vector) -> Result<(), String> {
    let mut pipeline = Pipeline::new(PipelineConfig::default());
    for number in [1, 2] {
        pipeline.set_port(port(number));
    }
    for bytes in &vector.flow_mods {
        let added = pipeline.flow_mod(&flow_mod(bytes), Duration::ZERO, &mut Vec::new());
        added.map_err(|error| format!("{}: {error}", vector.name))?;
    }
    let mut sent = Sent::default();
    let packet = Packet::new(PortNo(1), &vector.packet_in);
    pipeline.process(packet, Duration::ZERO, &mut sent);
    let found = without_padding(sent.0.as_deref());
    let expected = without_padding(vector.packet_out.as_deref());
    if found == expected {
        return Ok(());
    }
    let (found, expected) = (hex(found), hex(expected));
    Err(format!(
        "{}\n  found    {found}\n  expected {expected}",
        vector.name
    ))
}

/// What has left by port 2.
#[derive(Default)]
struct Sent(Option<Vec<u8>>);

impl Sink for Sent {
    fn transmit(&mut self, port: PortNo, packet: &Packet) {
        assert_eq!(port, PortNo(2), "os-ken's tests send by port 2");
        self.0 = Some(packet.frame().to_vec());
    }

    fn packet_in(&mut self, _: &Packet, _: PacketInCause) {
        panic!("these tests send nothing to the controller");
    }

    fn normal(&mut self, _: &Packet) {
        panic!("these tests have no output to NORMAL");
    }
}

fn port(number: u32) -> Port {
    Port {
        port_no: PortNo(number),
        hw_addr: MacAddr::from_u64(number.into()),
        name: FixedName::truncated("port"),
        config: PortConfig::empty(),
        state: PortState::empty(),
        curr: PortFeatures::empty(),
        advertised: PortFeatures::empty(),
        supported: PortFeatures::empty(),
        peer: PortFeatures::empty(),
        curr_speed: 0,
        max_speed: 0,
    }
}

/// os-ken's tests are of two minds about how much padding an ICMP packet has once its MPLS header is popped.
fn without_padding(packet: Option<&[u8]>) -> Option<&[u8]> {
    let packet = packet?;
    let len = packet.iter().rposition(|&byte| byte != 0)? + 1;
    Some(&packet[..len])
}

fn hex(packet: Option<&[u8]>) -> String {
    packet.map_or("nothing".into(), |bytes| {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    })
}

fn flow_mod(bytes: &[u8]) -> FlowMod<'_> {
    match Message::decode(bytes) {
        Ok((_, Message::FlowMod(flow_mod))) => flow_mod,
        other => panic!("a flow mod, not {other:?}"),
    }
}

fn check_all(file: &str, count: usize) {
    let vectors = vectors(file);
    assert_eq!(vectors.len(), count);
    let failures: Vec<_> = vectors
        .iter()
        .filter_map(|vector| check(vector).err())
        .collect();
    assert!(
        failures.is_empty(),
        "{} of {count} fail:\n{}",
        failures.len(),
        failures.join("\n")
    );
}

#[test]
fn actions() {
    check_all("actions.jsonl", 226);
}

#[test]
fn matches() {
    check_all("matches.jsonl", 476);
}
