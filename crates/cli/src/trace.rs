//! `urtica trace`: traces a packet through a switch, table by table.
//!
//! The entries, from the switch or from files, are loaded into our own pipeline, which then reports each step. So this
//! works for any switch that can be queried, sends nothing through it, and changes none of its counters.
//!
//! The steps are those of the pipeline's plain form. The packet is also processed by the compiled form, in a separate
//! pipeline: the template that finds its entry in each table is printed, and so is any difference between the two
//! forms.

mod compiled;
mod compose;
mod tell;

use crate::status;
use compiled::{Outcome, Passage};
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use tell::Teller;
use urtica_client::{Client, ClientError, LoadError, Loader, SwitchName};
use urtica_pipeline::{Packet, is_fragment};
use urtica_socket::{Tls, TlsArgs};
use urtica_wire::text::ParseError;
use urtica_wire::{Match, OxmField, PortNo, Version};

/// Options of `urtica trace`.
#[derive(clap::Args)]
pub struct TraceArgs {
    /// The packet's fields, as in 'in_port=1,tcp,nw_dst=10.0.0.1,tp_dst=80'; all others are zero.
    #[arg(value_name = "FIELDS")]
    fields: String,
    /// Read the entries from this switch: tcp:HOST[:PORT], ssl:HOST[:PORT], unix:FILE, or the name of an Open vSwitch bridge.
    #[arg(long, value_name = "SWITCH", required_unless_present = "flows")]
    switch: Option<SwitchName>,
    /// Read the entries from this file, or - for standard input: flows, groups and meters, one per line, as for 'urtica
    /// flows add'; group and meter lines start with group_id= and meter=.
    #[arg(long, value_name = "FILE|-")]
    flows: Vec<PathBuf>,
    /// The packet's bytes in hex digits, from its Ethernet header on; only in_port, metadata and tun_id of FIELDS are then
    /// used.
    #[arg(long, value_name = "HEX")]
    packet: Option<String>,
    /// Use only this version of OpenFlow with the switch.
    #[arg(short = 'O', long, value_name = "VERSION")]
    openflow: Vec<Version>,
    /// Seconds to wait for the switch's answers.
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    timeout: u64,
    #[command(flatten)]
    tls: TlsArgs,
}

/// An error that prevents a trace.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("'{text}': {error}")]
    Fields { text: String, error: ParseError },
    #[error("'{text}': {reason}")]
    Packet { text: String, reason: String },
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error("the entries cannot be compiled: {0}")]
    Compile(io::Error),
    #[error("{}", differing(.plain, .compiled))]
    Differing { plain: Outcome, compiled: Outcome },
    #[error("cannot write the output: {0}")]
    Output(#[from] io::Error),
}

/// Compares the compiled form's result with the plain form's.
fn compare(plain: Outcome, compiled: Option<Outcome>) -> Result<(), Error> {
    match compiled {
        Some(compiled) if compiled != plain => Err(Error::Differing { plain, compiled }),
        _ => Ok(()),
    }
}

fn differing(plain: &Outcome, compiled: &Outcome) -> String {
    format!(
        "THE COMPILED FORM HANDLES THIS PACKET DIFFERENTLY. That is a bug in Urtica: please report it, with the \
         entries and the packet.\n  the plain form, which is right:\n{plain}  the compiled form:\n{compiled}"
    )
}

/// Prints the packet's path; the exit status is 1 if it could not be determined.
pub fn run(args: TraceArgs) -> ExitCode {
    let done = args.execute(&mut io::stdout().lock());
    status::of_printed(done.map(|()| ExitCode::SUCCESS), |error| match error {
        Error::Output(error) => Some(error),
        _ => None,
    })
}

impl TraceArgs {
    fn execute(&self, out: &mut dyn Write) -> Result<(), Error> {
        let loader = self.loader()?;
        let packet = match self.packet()? {
            // The switch hides a fragment's ports for entries of 1.0; so does this.
            fragment if loader.is_of10() && is_fragment(fragment.frame()) => {
                fragment.as_fragment_of10()
            }
            packet => packet,
        };
        let pipeline = loader.clone().finish(Some(packet.in_port))?;
        // A separate pipeline, so that no meter counts the packet twice.
        let to_compile = loader.finish(Some(packet.in_port))?;
        let (passage, compiled) = Passage::new(to_compile, &packet).map_err(Error::Compile)?;
        let mut teller = Teller::new(&passage);
        pipeline.process(packet.clone(), Duration::ZERO, &mut teller);
        writeln!(out, "packet: {}", tell::headers(&packet))?;
        for line in &teller.lines {
            writeln!(out, "{line}")?;
        }
        // Without steps, the port is down or does not receive: neither form sees the packet.
        compare(
            teller.outcome,
            compiled.filter(|_| !teller.lines.is_empty()),
        )
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

    fn loader(&self) -> Result<Loader, Error> {
        let mut loader = Loader::default();
        if let Some(switch) = &self.switch {
            loader.query(&mut self.connect(switch)?)?;
        }
        for file in &self.flows {
            loader.read(file)?;
        }
        Ok(loader)
    }

    fn connect(&self, switch: &SwitchName) -> Result<Client, ClientError> {
        let timeout = Duration::from_secs(self.timeout.max(1));
        let tls = self.tls.config().map(Tls::load).transpose()?;
        Client::connect(switch.address(), tls.as_ref(), &self.openflow, timeout)
    }
}

/// Creates a packet of these bytes, with metadata from the fields.
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
    let digits = digits?;
    let pairs = digits.chunks_exact(2);
    let bytes = pairs.clone().map(|pair| (pair[0] << 4 | pair[1]) as u8);
    pairs.remainder().is_empty().then(|| bytes.collect())
}

/// Formats each byte as two hex digits.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use urtica_pipeline::Sink;

    #[test]
    fn differing_forms_are_reported_with_the_packets_they_sent() {
        let packet = Packet::new(PortNo(1), &[0xab; 14]);
        let mut sent = Outcome::default();
        sent.transmit(PortNo(2), &packet);
        assert!(compare(sent.clone(), Some(sent.clone())).is_ok());
        assert!(compare(sent.clone(), None).is_ok());
        let error = compare(sent, Some(Outcome::default())).unwrap_err();
        let told = error.to_string();
        assert!(
            told.starts_with("THE COMPILED FORM HANDLES THIS PACKET DIFFERENTLY"),
            "{told}"
        );
        let (plain, compiled) = told.split_once("the compiled form:").unwrap();
        assert!(plain.contains("-> port 2: abab"), "{told}");
        assert!(compiled.contains("nothing"), "{told}");
    }
}
