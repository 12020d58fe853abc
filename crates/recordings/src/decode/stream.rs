//! Splits one direction of a connection into messages and prints them.

use super::boundary::{Found, Search};
use super::outcome::Outcome;
use std::io::{self, Write};
use urtica_wire::text::message;
use urtica_wire::{Header, Message, Version, split_frame};

/// A search for a boundary is repeated after new input of one GROWTH-th, an eighth, of the input at the last search.
const GROWTH: usize = 8;

/// Input that is not printed yet.
pub(super) struct MessageStream {
    /// The prefix of each line or block.
    prefix: String,
    /// Whether all fields and payloads are printed.
    is_verbose: bool,
    bytes: Vec<u8>,
    /// Number of bytes before this input, including lost ones.
    offset: u64,
    position: Position,
    /// The version of the last message.
    version: Option<u8>,
    outcome: Outcome,
}

/// The position of the next byte relative to messages.
enum Position {
    /// At the start of a message.
    Boundary,
    /// In a message that lost bytes: the number of its remaining bytes.
    Inside(u64),
    /// Unknown.
    Unknown(Unknown),
}

/// The state while no message boundary is known.
#[derive(Default)]
struct Unknown {
    /// The position from which no boundary is known.
    since: u64,
    /// The positions at which segments start.
    starts: Vec<usize>,
    /// The amount of input at the last search for a boundary.
    searched: usize,
}

impl MessageStream {
    /// Creates a stream that starts with a message.
    pub fn new(prefix: String, is_verbose: bool) -> Self {
        Self {
            prefix,
            is_verbose,
            bytes: Vec::new(),
            offset: 0,
            position: Position::Boundary,
            version: None,
            outcome: Outcome::AllRead,
        }
    }

    /// Notes that the next byte may be in the middle of a message.
    pub fn lose_boundary(&mut self) {
        self.position = Position::Unknown(Unknown {
            since: self.offset,
            ..Unknown::default()
        });
    }

    /// Returns the validity of the input so far.
    pub fn outcome(&self) -> Outcome {
        self.outcome
    }

    /// Handles the bytes of one segment, and prints every complete message. Reports invalid data, and searches the next
    /// boundary.
    pub fn push(&mut self, bytes: &[u8], out: &mut dyn Write) -> io::Result<()> {
        if let Position::Unknown(unknown) = &mut self.position {
            unknown.starts.push(self.bytes.len());
        }
        self.bytes.extend_from_slice(bytes);
        self.print(out, false)
    }

    /// Reports that bytes are missing, and continues after them.
    pub fn lose(&mut self, count: u64, out: &mut dyn Write) -> io::Result<()> {
        self.settle(out)?;
        self.outcome = Outcome::SomeUnreadable;
        let left = match self.position {
            Position::Boundary => self.length_left(),
            Position::Inside(left) => Some(left),
            Position::Unknown(_) => None,
        };
        if !self.bytes.is_empty() {
            self.report_incomplete(out)?;
        }
        let (prefix, at) = (&self.prefix, self.offset + self.bytes.len() as u64);
        writeln!(out, "{prefix}byte {at}: {}", missing(count))?;
        self.offset = at + count;
        self.bytes.clear();
        match left.and_then(|left| left.checked_sub(count)) {
            Some(0) => self.position = Position::Boundary,
            Some(left) => self.position = Position::Inside(left),
            None => self.lose_boundary(),
        }
        Ok(())
    }

    /// Ends the stream: prints the rest, and reports an incomplete message.
    pub fn finish(&mut self, out: &mut dyn Write) -> io::Result<()> {
        self.settle(out)?;
        if !self.bytes.is_empty() {
            self.outcome = Outcome::SomeUnreadable;
            self.report_incomplete(out)?;
            self.drop_front(self.bytes.len());
        }
        Ok(())
    }

    /// Prints all messages before a gap or the end. Leaves only the start of an incomplete message.
    fn settle(&mut self, out: &mut dyn Write) -> io::Result<()> {
        self.print(out, true)?;
        if let Position::Unknown(unknown) = &self.position {
            let since = unknown.since;
            self.drop_front(self.bytes.len());
            let count = self.offset - since;
            if count > 0 {
                self.outcome = Outcome::SomeUnreadable;
                let prefix = &self.prefix;
                write!(out, "{prefix}byte {since}: {}; ", skipping(count))?;
                writeln!(out, "no message was found in them")?;
                self.lose_boundary();
            }
        }
        Ok(())
    }

    fn print(&mut self, out: &mut dyn Write, is_all: bool) -> io::Result<()> {
        loop {
            let has_changed = match &mut self.position {
                Position::Inside(left) => {
                    let taken = (*left).min(self.bytes.len() as u64);
                    *left -= taken;
                    if *left > 0 {
                        self.drop_front(taken as usize);
                        return Ok(());
                    }
                    self.position = Position::Boundary;
                    self.drop_front(taken as usize);
                    true
                }
                Position::Boundary => self.print_messages(out)?,
                Position::Unknown(_) => self.search_boundary(out, is_all)?,
            };
            if !has_changed {
                return Ok(());
            }
        }
    }

    /// Prints all complete messages. Returns `true` if it stopped at an implausible header.
    fn print_messages(&mut self, out: &mut dyn Write) -> io::Result<bool> {
        let mut at = 0;
        let is_lost = loop {
            let place = self.offset + at as u64;
            match split_frame(&self.bytes[at..]) {
                Ok(Some((frame, _))) => {
                    let printed = print_frame(out, &self.prefix, place, frame, self.is_verbose)?;
                    self.outcome = self.outcome.and(printed);
                    self.version = frame
                        .first()
                        .copied()
                        .filter(|&version| Version::from_wire(version).is_ok());
                    at += frame.len();
                }
                Ok(None) => break false,
                Err(error) => {
                    writeln!(out, "{}byte {place}: {error}", self.prefix)?;
                    self.outcome = Outcome::SomeUnreadable;
                    break true;
                }
            }
        };
        self.drop_front(at);
        if is_lost {
            self.lose_boundary();
        }
        Ok(is_lost)
    }

    /// Searches a message boundary. Returns `true` if one was found.
    fn search_boundary(&mut self, out: &mut dyn Write, is_all: bool) -> io::Result<bool> {
        let Position::Unknown(unknown) = &mut self.position else {
            return Ok(false);
        };
        let enough = unknown.searched + unknown.searched / GROWTH;
        if self.bytes.len() <= enough && !is_all {
            return Ok(false);
        }
        unknown.searched = self.bytes.len();
        let search = Search {
            bytes: &self.bytes,
            starts: &unknown.starts,
            version: self.version,
            is_all,
        };
        match search.run() {
            Found::Boundary(at) => {
                let since = unknown.since;
                self.position = Position::Boundary;
                self.drop_front(at);
                self.report_skipped(since, out)?;
                Ok(true)
            }
            Found::NotBefore(at) => {
                unknown.searched -= at;
                unknown.starts.retain(|&start| start >= at);
                unknown.starts.iter_mut().for_each(|start| *start -= at);
                self.drop_front(at);
                Ok(false)
            }
        }
    }

    fn report_skipped(&mut self, since: u64, out: &mut dyn Write) -> io::Result<()> {
        let count = self.offset - since;
        if count > 0 {
            self.outcome = Outcome::SomeUnreadable;
            let (prefix, next) = (&self.prefix, self.offset);
            write!(out, "{prefix}byte {since}: {}; ", skipping(count))?;
            writeln!(out, "the next message starts at byte {next}")?;
        }
        Ok(())
    }

    /// Reports the incomplete message.
    fn report_incomplete(&self, out: &mut dyn Write) -> io::Result<()> {
        let (prefix, byte, length) = (&self.prefix, self.offset, self.bytes.len());
        write!(
            out,
            "{prefix}byte {byte}: the message ends after {length} bytes; "
        )?;
        match Header::peek(&self.bytes) {
            Some(header) => writeln!(out, "expected {}, as its header says", header.length),
            None => writeln!(out, "expected at least the {} of a header", Header::SIZE),
        }
    }

    /// Returns the number of missing bytes of the incomplete message; `None` if its header is incomplete.
    fn length_left(&self) -> Option<u64> {
        let header = Header::peek(&self.bytes)?;
        u64::from(header.length).checked_sub(self.bytes.len() as u64)
    }

    fn drop_front(&mut self, count: usize) {
        self.bytes.drain(..count);
        self.offset += count as u64;
    }
}

fn missing(count: u64) -> String {
    match count {
        1 => "1 byte is missing from the capture".to_owned(),
        _ => format!("{count} bytes are missing from the capture"),
    }
}

fn skipping(count: u64) -> String {
    match count {
        1 => "skipping 1 byte".to_owned(),
        _ => format!("skipping {count} bytes"),
    }
}

/// Prints a frame, which is at least as long as a header.
fn print_frame(
    out: &mut dyn Write,
    prefix: &str,
    at: u64,
    frame: &[u8],
    verbose: bool,
) -> io::Result<Outcome> {
    match Message::decode(frame) {
        Ok((header, decoded)) if verbose => {
            writeln!(out, "{prefix}{:#}", message(&header, &decoded))?;
            Ok(Outcome::AllRead)
        }
        Ok((header, decoded)) => {
            writeln!(out, "{prefix}{}", message(&header, &decoded))?;
            Ok(Outcome::AllRead)
        }
        Err(error) => {
            let xid = Header::peek(frame).map_or(0, |header| header.xid);
            let length = frame.len();
            writeln!(
                out,
                "{prefix}byte {at}: {error} ({length} bytes, xid={xid:#x})"
            )?;
            Ok(Outcome::SomeUnreadable)
        }
    }
}
