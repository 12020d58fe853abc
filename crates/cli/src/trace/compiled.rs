//! Traces the packet through the compiled form, whose result must be equal.

use super::hex;
use std::fmt;
use std::io;
use std::time::Duration;
use urtica_pipeline::{
    Backend, Burst, CompileConfig, MAX_FRAME, Packet, PacketInCause, Pipeline, PlainReason, Sink,
    TemplateKind, Verdict,
};
use urtica_wire::{Action, PortNo};

/// The outputs of a packet, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome(Vec<Sent>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Sent {
    Port(PortNo, Vec<u8>),
    Controller(PacketInCause, Vec<u8>),
    Normal(Vec<u8>),
}

impl Sink for Outcome {
    fn transmit(&mut self, port: PortNo, packet: &Packet) {
        self.0.push(Sent::Port(port, packet.frame().to_vec()));
    }

    fn packet_in(&mut self, packet: &Packet, cause: PacketInCause) {
        self.0
            .push(Sent::Controller(cause, packet.frame().to_vec()));
    }

    fn normal(&mut self, packet: &Packet) {
        self.0.push(Sent::Normal(packet.frame().to_vec()));
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return writeln!(f, "    nothing");
        }
        self.0.iter().try_for_each(|sent| match sent {
            Sent::Port(port, bytes) => writeln!(f, "    -> port {port}: {}", hex(bytes)),
            Sent::Controller(cause, bytes) => {
                writeln!(f, "    -> controller ({cause:?}): {}", hex(bytes))
            }
            Sent::Normal(bytes) => writeln!(f, "    -> NORMAL: {}", hex(bytes)),
        })
    }
}

/// The compiled form's result.
#[derive(Debug)]
pub struct Passage {
    /// Describes how each table is searched.
    pipeline: Pipeline,
    /// The point at which the plain form takes over, and the reason, if it does.
    pub plain: Option<PlainReason>,
}

impl Passage {
    /// Compiles a pipeline, and sends a packet through it: by the compiled form up to the point where the plain form
    /// takes over. The result is `None` if the compiled form was not used.
    ///
    /// # Errors
    /// The system's error, if memory for the code cannot be allocated.
    pub fn new(mut pipeline: Pipeline, packet: &Packet) -> io::Result<(Self, Option<Outcome>)> {
        let compiled = pipeline
            .compile(CompileConfig::default())
            // If the system forbids generated code, use the interpreter.
            .or_else(|_| {
                pipeline.compile(CompileConfig {
                    backend: Backend::Interpreter,
                    ..CompileConfig::default()
                })
            })?;
        compiled.set_misses_punt(pipeline.misses_to_controller());
        let mut passage = Self {
            pipeline,
            plain: None,
        };
        let mut burst = Burst::new();
        if let Some(why) = why_not_asked(packet, &mut burst) {
            passage.plain = Some(PlainReason {
                table_id: 0,
                is_searched: false,
                why: why.into(),
            });
            return Ok((passage, None));
        }
        compiled.reader().process(&mut burst, Duration::ZERO);
        let pipeline = &passage.pipeline;
        let mut outcome = Outcome::default();
        for frame in burst.iter() {
            passage.plain = pipeline.why_plain(frame);
            for sent in frame.sent() {
                pipeline.send(sent, Duration::ZERO, &mut outcome);
            }
            match frame.verdict() {
                Verdict::Output(port) => send(pipeline, port, frame.bytes(), packet, &mut outcome),
                Verdict::Drop => {}
                Verdict::Punt => pipeline.resume(frame, Duration::ZERO, &mut outcome),
            }
        }
        Ok((passage, Some(outcome)))
    }

    /// Describes the search for a packet's entry in a table, given the packet as it reaches the table: the template,
    /// and if the table was decomposed, the template of the packet's part.
    pub fn way(&self, table_id: u8, packet: &Packet) -> String {
        let templates = self.pipeline.templates(table_id, packet);
        let templates: Vec<_> = templates.iter().map(TemplateKind::to_string).collect();
        let template = templates.join(", ");
        match &self.plain {
            Some(plain) if plain.table_id == table_id && plain.is_searched => {
                format!("{template}, then {}", TemplateKind::PlainForm)
            }
            Some(plain) if plain.table_id <= table_id => TemplateKind::PlainForm.to_string(),
            _ => template,
        }
    }
}

/// Returns why a packet does not reach the compiled form, if so; otherwise puts it into the burst.
fn why_not_asked(packet: &Packet, burst: &mut Burst) -> Option<String> {
    let is_inside = packet.metadata != 0 || packet.tunnel_id != 0;
    if is_inside || packet.in_phy_port != packet.in_port {
        return Some("packets received at a port have no such fields".to_owned());
    }
    if packet.is_fragment_of10() {
        return Some("ports of fragments are 0 for entries of OpenFlow 1.0".to_owned());
    }
    let is_in = burst.push(packet.in_port, packet.frame());
    (!is_in).then(|| format!("it is longer than {MAX_FRAME} bytes, or has no Ethernet header"))
}

/// Outputs a packet by a port, if the port may send.
fn send(pipeline: &Pipeline, port: PortNo, bytes: &[u8], packet: &Packet, outcome: &mut Outcome) {
    let port = if port == packet.in_port {
        PortNo::IN_PORT
    } else {
        port
    };
    let max_len = 0;
    pipeline.packet_out(
        Packet::new(packet.in_port, bytes),
        &[Action::Output { port, max_len }],
        Duration::ZERO,
        outcome,
    );
}
