//! os-ken's OpenFlow 1.3 switch tests on our switch: 991 cases, in memory and on a simulated clock.
//!
//! Each case has its own switch with three ports. Its set-up messages arrive as from a controller, and must be stored
//! as sent; then port 1 receives a packet, or 30 s of packets, and the result is compared as the suite does, with
//! tables compiled and without. `make conformance` prints the score.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::fd::BorrowedFd;
use serde::Deserialize;
use urtica_pipeline::{EntryMatch, Packet};
use urtica_switch::{ConnectionId, Forwarding, PortIo, Switch, SwitchConfig};
use urtica_wire::{
    DatapathId, FlowStatsRequest, Hello, METER_ALL, MacAddr, Message, MultipartFlags,
    MultipartReplyBody, MultipartRequest, MultipartRequestBody, PortNo, TableStats, Version,
    split_frame,
};

use crate::process::run;
use crate::require;

const PYTHON: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../.venv/bin/python");
const CASES: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../tools/conformance/cases.py"
);

/// The ports for input and output.
const IN: u32 = 1;
const OUT: u32 = 2;

/// A rate may be off by this much, as in the suite.
const TOLERANCE: f64 = 0.1;

/// The suite counts 1024 bits as a kilobit.
const BYTES_PER_KILOBIT: f64 = 128.0;

/// A test case, as `tools/conformance/cases.py` prints it.
#[derive(Deserialize)]
struct Case {
    name: String,
    about: String,
    setup: Vec<String>,
    frame: Option<String>,
    #[serde(default)]
    frames: Vec<String>,
    #[serde(default)]
    tail: String,
    #[serde(default)]
    pktps: u32,
    #[serde(default)]
    seconds: u32,
    expect: Expectation,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Expectation {
    Frame(String),
    PacketIn(String),
    Miss(Vec<u8>),
    Rates(Vec<Rate>),
}

#[derive(Deserialize)]
struct Rate {
    #[serde(rename = "match")]
    flow_mod: String,
    kbps: Option<f64>,
    pktps: Option<f64>,
}

type Queue = Arc<Mutex<VecDeque<Vec<u8>>>>;

/// A port whose frames the test supplies and collects.
struct Wire {
    name: String,
    incoming: Queue,
    outgoing: Queue,
}

impl PortIo for Wire {
    fn name(&self) -> &str {
        &self.name
    }

    fn hw_addr(&self) -> MacAddr {
        MacAddr::new([2, 0, 0, 0, 0, self.name.as_bytes()[0]])
    }

    fn is_up(&self) -> bool {
        true
    }

    fn speed_kbps(&self) -> u32 {
        0
    }

    fn receive(&mut self, max: usize, handle: &mut dyn FnMut(&[u8])) -> std::io::Result<usize> {
        let mut incoming = self.incoming.lock().unwrap();
        let count = incoming.len().min(max);
        incoming.drain(..count).for_each(|frame| handle(&frame));
        Ok(count)
    }

    fn send(&mut self, frame: &[u8]) -> bool {
        self.outgoing.lock().unwrap().push_back(frame.to_vec());
        true
    }

    fn flush(&mut self) {}

    fn as_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// A switch with three ports and a controller.
struct Bed {
    switch: Switch,
    controller: ConnectionId,
    incoming: Queue,
    /// The sent frames, by port.
    outgoing: BTreeMap<u32, Queue>,
    now: Duration,
    last_xid: u32,
}

impl Bed {
    fn new(forwarding: Forwarding) -> Self {
        let mut switch = Switch::new(SwitchConfig {
            datapath_id: DatapathId(1),
            forwarding,
            ..SwitchConfig::default()
        });
        let (now, incoming) = (Duration::ZERO, Queue::default());
        let mut outgoing = BTreeMap::new();
        for number in 1..=3 {
            let port = Wire {
                name: format!("{number}"),
                incoming: if number == IN {
                    incoming.clone()
                } else {
                    Queue::default()
                },
                outgoing: Queue::default(),
            };
            outgoing.insert(number, port.outgoing.clone());
            switch.add_port(PortNo(number), Box::new(port), now);
        }
        let controller = switch.connect("a test".to_owned(), now);
        let mut bed = Self {
            switch,
            controller,
            incoming,
            outgoing,
            now,
            last_xid: 0,
        };
        let mut hello = Vec::new();
        Hello::write(&[Version::Of13], 0, &mut hello);
        bed.say(&hello).expect("a hello is taken");
        bed.heard();
        bed
    }

    fn say(&mut self, bytes: &[u8]) -> Result<(), String> {
        let handled = self.switch.handle_input(self.controller, bytes, self.now);
        handled.map_err(|error| error.to_string())
    }

    /// Returns the messages sent to the controller since the last call.
    fn heard(&mut self) -> Vec<Vec<u8>> {
        let Some(output) = self.switch.output(self.controller) else {
            return Vec::new();
        };
        let bytes = std::mem::take(output);
        let (mut rest, mut frames) = (bytes.as_slice(), Vec::new());
        while let Some((frame, after)) = split_frame(rest).expect("whole messages") {
            frames.push(frame.to_vec());
            rest = after;
        }
        assert!(rest.is_empty(), "a message was cut off");
        frames
    }

    fn ask(&mut self, body: MultipartRequestBody) -> Vec<Vec<u8>> {
        self.last_xid += 1;
        let flags = MultipartFlags::empty();
        let request = Message::MultipartRequest(MultipartRequest { flags, body });
        let mut bytes = Vec::new();
        request
            .encode(Version::Of13, self.last_xid, &mut bytes)
            .unwrap();
        self.say(&bytes).expect("a request is taken");
        self.heard()
    }

    fn inject(&mut self, frame: Vec<u8>) {
        self.incoming.lock().unwrap().push_back(frame);
        self.switch.poll_ports(self.now);
    }

    /// Returns the frames sent by a port since the last call.
    fn left(&self, port: u32) -> Vec<Vec<u8>> {
        self.outgoing[&port].lock().unwrap().drain(..).collect()
    }

    fn table_stats(&mut self) -> BTreeMap<u8, TableStats> {
        let mut tables = BTreeMap::new();
        for frame in self.ask(MultipartRequestBody::Table) {
            if let Message::MultipartReply(reply) = Message::decode(&frame).unwrap().1 {
                if let MultipartReplyBody::Table(rows) = reply.body {
                    tables.extend(rows.iter().map(|row| (row.table_id, row)));
                }
            }
        }
        tables
    }

    /// Sends the case's set-up messages; the switch must accept each, and store it as sent.
    fn set_up(&mut self, case: &Case) -> Result<(), String> {
        for message in &case.setup {
            let bytes = hex(message);
            self.say(&bytes)?;
            if let Some(frame) = self.heard().first() {
                return Err(format!("refused: {:?}", Message::decode(frame).unwrap().1));
            }
            let (_, message) = Message::decode(&bytes).map_err(|error| error.to_string())?;
            if !self.has(&message) {
                return Err("not stored as sent".to_owned());
            }
        }
        Ok(())
    }

    fn has(&mut self, sent: &Message) -> bool {
        let question = match sent {
            Message::FlowMod(_) => MultipartRequestBody::Flow(FlowStatsRequest::default()),
            Message::GroupMod(_) => MultipartRequestBody::GroupDesc,
            Message::MeterMod(_) => MultipartRequestBody::MeterConfig(METER_ALL),
            _ => return false,
        };
        let frames = self.ask(question);
        let decoded = frames.iter().map(|frame| Message::decode(frame).unwrap().1);
        decoded.into_iter().any(|message| match message {
            Message::MultipartReply(reply) => is_in(sent, &reply.body),
            _ => false,
        })
    }

    fn run(&mut self, case: &Case) -> Result<(), String> {
        self.set_up(case)?;
        let before = self.table_stats();
        if let Expectation::Rates(rates) = &case.expect {
            return self.measure(case, rates);
        }
        self.inject(hex(case.frame.as_deref().ok_or("no packet to send")?));
        match &case.expect {
            Expectation::Frame(expected) => match &self.left(OUT)[..] {
                [frame] => same(frame, &hex(expected)),
                other => Err(format!("{} packets left, expected one", other.len())),
            },
            Expectation::PacketIn(expected) => {
                let heard = self.heard();
                let packet = heard.iter().find_map(|frame| match Message::decode(frame) {
                    Ok((_, Message::PacketIn(packet))) => Some(packet.data),
                    _ => None,
                });
                same(&padded(packet.ok_or("no packet-in")?), &hex(expected))
            }
            Expectation::Miss(tables) => missed(tables, &before, &self.table_stats()),
            Expectation::Rates(_) => unreachable!("measured above"),
        }
    }

    fn measure(&mut self, case: &Case, rates: &[Rate]) -> Result<(), String> {
        let tail = hex(&case.tail);
        let frames = case
            .frames
            .iter()
            .map(|frame| [hex(frame), tail.clone()].concat());
        let frames: Vec<_> = frames.collect();
        let count = case.pktps * case.seconds;
        let messages: Vec<_> = rates.iter().map(|rate| hex(&rate.flow_mod)).collect();
        let matches = messages.iter().map(|bytes| match Message::decode(bytes) {
            Ok((_, Message::FlowMod(flow))) => EntryMatch::new(&flow.match_).unwrap(),
            other => panic!("expected a flow mod: {other:?}"),
        });
        let mut counted: Vec<_> = matches.map(|match_| (match_, 0_u64, 0_u64)).collect();
        for number in 0..count {
            self.now += Duration::from_secs(1) / case.pktps;
            self.inject(frames[number as usize % frames.len()].clone());
            for port in [2, 3] {
                for frame in self.left(port) {
                    let packet = Packet::new(PortNo(port), &frame);
                    for (match_, packets, bytes) in &mut counted {
                        if match_.matches(&packet) {
                            *packets += 1;
                            *bytes += frame.len() as u64;
                        }
                    }
                }
            }
        }
        let seconds = f64::from(case.seconds);
        for (rate, (_, packets, bytes)) in rates.iter().zip(counted) {
            let (expected, measured) = match (rate.kbps, rate.pktps) {
                (Some(kbps), _) => (kbps, bytes as f64 / BYTES_PER_KILOBIT / seconds),
                (_, Some(pktps)) => (pktps, packets as f64 / seconds),
                _ => return Err("a rate without a unit".to_owned()),
            };
            if (measured - expected).abs() > expected * TOLERANCE {
                return Err(format!("a rate of {measured:.1}, expected {expected}"));
            }
        }
        Ok(())
    }
}

/// Returns `true` if a reply contains the sent entry, group or meter.
fn is_in(sent: &Message, reply: &MultipartReplyBody) -> bool {
    match (sent, reply) {
        (Message::FlowMod(sent), MultipartReplyBody::Flow(rows)) => rows.iter().any(|row| {
            row.table_id == sent.table_id
                && row.priority == sent.priority
                && row.cookie == sent.cookie
                && row.match_ == sent.match_
                && row.instructions == sent.instructions
        }),
        (Message::GroupMod(sent), MultipartReplyBody::GroupDesc(rows)) => rows.iter().any(|row| {
            row.group_id == sent.group_id
                && row.group_type == sent.group_type
                && row.buckets == sent.buckets
        }),
        (Message::MeterMod(sent), MultipartReplyBody::MeterConfig(rows)) => rows
            .iter()
            .any(|row| row.meter_id == sent.meter_id && row.bands == sent.bands),
        _ => false,
    }
}

/// Checks that each packet was looked up in at least one of the tables, and matched in none.
fn missed(
    tables: &[u8],
    before: &BTreeMap<u8, TableStats>,
    after: &BTreeMap<u8, TableStats>,
) -> Result<(), String> {
    let mut looked_up = false;
    for table in tables {
        let (before, after) = (&before[table], &after[table]);
        looked_up |= after.lookup_count > before.lookup_count;
        if after.lookup_count > before.lookup_count && after.matched_count > before.matched_count {
            return Err(format!("it matched in table {table}"));
        }
    }
    match looked_up {
        true => Ok(()),
        false => Err("it was not looked up".to_owned()),
    }
}

fn same(frame: &[u8], expected: &[u8]) -> Result<(), String> {
    match frame == expected {
        true => Ok(()),
        false => Err(format!(
            "{}\n  expected {}",
            digits(frame),
            digits(expected)
        )),
    }
}

/// Pads a frame as os-ken does, to Ethernet's minimum of 60 bytes, even if a popped tag has made it shorter and it goes to
/// the controller, where no Ethernet requires this.
fn padded(frame: &[u8]) -> Vec<u8> {
    const SHORTEST: usize = 60;
    let mut padded = frame.to_vec();
    padded.resize(frame.len().max(SHORTEST), 0);
    padded
}

fn hex(digits: &str) -> Vec<u8> {
    let pairs = digits.as_bytes().chunks(2);
    let byte = |pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    pairs.map(byte).collect()
}

fn digits(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[test]
fn every_case_passes() {
    if !require::all(&[PYTHON]) {
        return;
    }
    let lines = run(Command::new(PYTHON).arg(CASES));
    let mut score: BTreeMap<String, (u32, u32)> = BTreeMap::new();
    let mut failures = String::new();
    for line in lines.lines() {
        let case: Case = serde_json::from_str(line).expect("a case");
        let category = case.name.split('/').next().unwrap_or_default();
        let (passed, all) = score.entry(category.to_owned()).or_default();
        *all += 1;
        match run_both_ways(&case) {
            Ok(()) => *passed += 1,
            Err(why) => {
                let _ = writeln!(failures, "{} {}\n  {why}", case.name, case.about);
            }
        }
    }
    for (category, (passed, all)) in &score {
        println!("{category:8} {passed:4} of {all:4}");
    }
    let (passed, all) = score
        .values()
        .fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    println!("total    {passed:4} of {all:4}");
    assert_eq!(all, 991, "os-ken's suite has changed");
    assert!(failures.is_empty(), "{failures}");
}

/// Runs a case with tables compiled, and without.
fn run_both_ways(case: &Case) -> Result<(), String> {
    let run = |forwarding| {
        let result = Bed::new(forwarding).run(case);
        result.map_err(|why| format!("{forwarding:?}: {why}"))
    };
    run(Forwarding::default()).and_then(|()| run(Forwarding::Plain))
}
