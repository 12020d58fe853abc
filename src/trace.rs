//! `urtica trace`: what happens to a packet in a switch, table by table.
//!
//! The switch's entries are taken from it, or from files, into a pipeline of our own, which then tells each step. So it
//! works for any switch that can be asked, sends nothing through it, and changes none of its counters.

mod compose;
mod load;
mod tell;

use crate::flows::SwitchName;
use crate::status;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use urtica_pipeline::{Packet, Pipeline};
use urtica_wire::text::ParseError;
use urtica_wire::{Match, OxmField, PortNo, Version};

/// Options of `urtica trace`.
#[derive(clap::Args)]
pub struct TraceArgs {
    /// The packet, by the fields that it has, as in 'in_port=1,tcp,nw_dst=10.0.0.1,tp_dst=80'; all others are zero.
    #[arg(value_name = "FIELDS")]
    fields: String,
    /// Take the entries from this switch: tcp:HOST[:PORT], unix:FILE, or the name of an Open vSwitch bridge.
    #[arg(long, value_name = "SWITCH", required_unless_present = "flows")]
    switch: Option<SwitchName>,
    /// Take the entries from this file: flows, groups and meters, one a line, as 'urtica flows add' takes them; group and
    /// meter lines begin with group_id= and meter=.
    #[arg(long, value_name = "FILE")]
    flows: Vec<PathBuf>,
    /// The packet's bytes in hex digits, from its Ethernet header on; of FIELDS only in_port, metadata and tun_id count
    /// then.
    #[arg(long, value_name = "HEX")]
    packet: Option<String>,
    /// Speak only this version of OpenFlow to the switch.
    #[arg(short = 'O', long, value_name = "VERSION")]
    openflow: Vec<Version>,
    /// How many seconds to wait for the switch's answers.
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    timeout: u64,
}

/// Why nothing could be traced.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("'{text}': {error}")]
    Fields { text: String, error: ParseError },
    #[error("'{text}': {reason}")]
    Packet { text: String, reason: String },
    #[error(transparent)]
    Load(#[from] load::LoadError),
    #[error("the output cannot be written: {0}")]
    Output(#[from] io::Error),
}

/// Tells what happens; the status is 1 where that could not be found out.
pub fn run(args: TraceArgs) -> ExitCode {
    let done = args.execute(&mut io::stdout().lock());
    status::of_printed(done.map(|()| ExitCode::SUCCESS), |error| match error {
        Error::Output(error) => Some(error),
        _ => None,
    })
}

impl TraceArgs {
    fn execute(&self, out: &mut dyn Write) -> Result<(), Error> {
        let packet = self.packet()?;
        let pipeline = self.pipeline(packet.in_port)?;
        let mut lines = Vec::new();
        pipeline.process(
            packet.clone(),
            Duration::ZERO,
            &mut tell::Teller::new(&mut lines),
        );
        writeln!(out, "packet: {}", tell::headers(&packet))?;
        for line in lines {
            writeln!(out, "{line}")?;
        }
        Ok(())
    }

    fn packet(&self) -> Result<Packet, Error> {
        let parsed = self.fields.parse::<Match>();
        let fields = parsed.map_err(|error| Error::Fields {
            text: self.fields.clone(),
            error,
        })?;
        let Some(digits) = &self.packet else {
            return compose::packet(&fields).map_err(|reason| Error::Packet {
                text: self.fields.clone(),
                reason,
            });
        };
        let frame = bytes(digits).ok_or_else(|| Error::Packet {
            text: digits.clone(),
            reason: "expected two hex digits for each byte".to_owned(),
        })?;
        Ok(with_pipeline_fields(&frame, &fields))
    }

    fn pipeline(&self, in_port: PortNo) -> Result<Pipeline, Error> {
        let mut loader = load::Loader::default();
        if let Some(switch) = &self.switch {
            let timeout = Duration::from_secs(self.timeout.max(1));
            loader.ask(switch, &self.openflow, timeout)?;
        }
        for file in &self.flows {
            loader.read(file)?;
        }
        Ok(loader.finish(in_port)?)
    }
}

/// A packet of these bytes, and with what is not in its bytes from the fields.
fn with_pipeline_fields(frame: &[u8], fields: &Match) -> Packet {
    let get = |field| fields.get(field).map_or(0, |(value, _)| value);
    let in_port = fields
        .get(OxmField::InPort)
        .map_or(1, |(value, _)| value as u32);
    let mut packet = Packet::new(PortNo(in_port), frame);
    packet.metadata = get(OxmField::Metadata) as u64;
    packet.tunnel_id = get(OxmField::TunnelId) as u64;
    packet
}

fn bytes(digits: &str) -> Option<Vec<u8>> {
    let digits = digits.chars().filter(|letter| !letter.is_whitespace());
    let digits: Option<Vec<_>> = digits.map(|letter| letter.to_digit(16)).collect();
    let (pairs, odd) = digits.as_ref()?.as_chunks::<2>();
    let whole = odd.is_empty().then(|| pairs.iter());
    Some(whole?.map(|[high, low]| (high << 4 | low) as u8).collect())
}
