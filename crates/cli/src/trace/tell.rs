//! Prints a packet's path through the pipeline.

use super::compiled::{Outcome, Passage};
use super::hex;
use urtica_pipeline::{FlowEntry, MeterVerdict, Packet, PacketInCause, Sink, Step};
use urtica_wire::text::Actions;
use urtica_wire::{CONTROLLER_NO_BUFFER, FlowMod, List, Match, PacketInReason, PortNo};

/// Writes a line per step.
pub struct Teller<'p> {
    pub lines: Vec<String>,
    /// The packet's outputs.
    pub outcome: Outcome,
    /// The compiled form's searches in the tables, and the point at which the plain form takes over.
    passage: &'p Passage,
}

impl<'p> Teller<'p> {
    pub fn new(passage: &'p Passage) -> Self {
        Self {
            lines: Vec::new(),
            outcome: Outcome::default(),
            passage,
        }
    }

    fn tell(&mut self, line: impl Into<String>) {
        self.lines.push(line.into());
    }

    fn tell_table(&mut self, table_id: u8, packet: &Packet, found: &str) {
        let way = self.passage.way(table_id, packet);
        self.tell(format!("table {table_id} ({way}): {found}"));
        let plain = self.passage.plain.as_ref();
        if let Some(plain) = plain.filter(|plain| plain.table_id == table_id) {
            self.tell(format!(
                "  continued in the plain form, since {}",
                plain.why
            ));
        }
    }

    fn tell_result(&mut self, what: &str, packet: &Packet) {
        self.tell(format!("    {what}: {}", headers(packet)));
        self.tell(format!("      {}", hex(packet.frame())));
    }
}

impl Sink for Teller<'_> {
    fn transmit(&mut self, port: PortNo, packet: &Packet) {
        self.outcome.transmit(port, packet);
        let queue = match packet.queue_id {
            0 => String::new(),
            queue_id => format!(", queue {queue_id}"),
        };
        self.tell_result(&format!("-> port {port}{queue}"), packet);
    }

    fn packet_in(&mut self, packet: &Packet, cause: PacketInCause) {
        self.outcome.packet_in(packet, cause);
        let why = match cause.reason {
            PacketInReason::NoMatch => "no entry matched",
            PacketInReason::Action => "an action requests it",
            PacketInReason::InvalidTtl => "its TTL is invalid",
            PacketInReason::Other(_) => "of an unknown reason",
        };
        let length = match cause.max_len {
            CONTROLLER_NO_BUFFER => "whole".to_owned(),
            bytes => format!("{bytes} bytes"),
        };
        self.tell_result(&format!("-> controller ({why}, {length})"), packet);
    }

    fn normal(&mut self, packet: &Packet) {
        self.outcome.normal(packet);
        self.tell_result("-> forwarded as by a switch without OpenFlow", packet);
    }

    fn step(&mut self, step: Step<'_>) {
        match step {
            Step::Table {
                table_id,
                packet,
                entry: Some(entry),
            } => self.tell_table(table_id, packet, &row(entry)),
            Step::Table {
                table_id,
                packet,
                entry: None,
            } => self.tell_table(table_id, packet, "no entry matches"),
            Step::Meter { meter_id, verdict } => self.tell(match verdict {
                MeterVerdict::Pass => format!("  meter {meter_id}: it passes"),
                MeterVerdict::Remark(levels) => {
                    format!("  meter {meter_id}: its drop precedence is raised by {levels}")
                }
                MeterVerdict::Drop => format!("  meter {meter_id}: dropped"),
            }),
            Step::Action { action, .. } => self.tell(format!("  {action}")),
            Step::ActionSet(set) if set.actions().is_empty() => {}
            Step::ActionSet(set) => {
                let actions = Actions(List::from(set.actions()));
                self.tell(format!("action set: {actions}"));
            }
            Step::Bucket { group_id, bucket } => {
                let actions = Actions(List::from(bucket.actions.clone()));
                self.tell(format!("  bucket of group {group_id}: {actions}"));
            }
            other => self.tell(format!("  {other:?}")),
        }
    }
}

/// Returns the packet's headers as a match on all of them.
pub fn headers(packet: &Packet) -> String {
    let exact = Match::exact_frame(packet.in_port, packet.frame());
    format!("{exact} ({} bytes)", packet.frame().len())
}

fn row(entry: &FlowEntry) -> String {
    FlowMod {
        priority: entry.priority,
        match_: entry.match_.to_wire(),
        instructions: entry.instructions.to_wire(),
        ..FlowMod::default()
    }
    .to_string()
}
