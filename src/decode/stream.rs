//! Bytes of one direction of a connection, cut into messages and printed.

use super::Outcome;
use std::io::{self, Write};
use urtica::wire::text::message;
use urtica::wire::{Header, Message, split_frame};

/// Bytes that have come and not been printed yet.
#[derive(Default)]
pub(super) struct MessageStream {
    bytes: Vec<u8>,
    /// How many bytes came before these.
    offset: usize,
}

impl MessageStream {
    #[cfg(test)]
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Prints every message that is there as a whole, each line or block after `prefix`. Where a header cannot be
    /// trusted, all bytes that are there are passed over.
    pub(super) fn print(
        &mut self,
        out: &mut dyn Write,
        prefix: &str,
        verbose: bool,
    ) -> io::Result<Outcome> {
        let mut outcome = Outcome::AllRead;
        let mut at = 0;
        let done = loop {
            match split_frame(&self.bytes[at..]) {
                Ok(Some((frame, _))) => {
                    let printed = print_frame(out, prefix, self.offset + at, frame, verbose)?;
                    outcome = outcome.and(printed);
                    at += frame.len();
                }
                Ok(None) => break at,
                Err(error) => {
                    let (byte, left) = (self.offset + at, self.bytes.len() - at);
                    write!(out, "{prefix}byte {byte}: {error}; ")?;
                    writeln!(out, "the {left} bytes from here on are passed over")?;
                    outcome = Outcome::SomeUnreadable;
                    break self.bytes.len();
                }
            }
        };
        self.bytes.drain(..done);
        self.offset += done;
        Ok(outcome)
    }

    /// Tells of a message whose end did not come.
    pub(super) fn finish(&self, out: &mut dyn Write, prefix: &str) -> io::Result<Outcome> {
        if self.bytes.is_empty() {
            return Ok(Outcome::AllRead);
        }
        let (byte, length) = (self.offset, self.bytes.len());
        write!(
            out,
            "{prefix}byte {byte}: the message ends after {length} bytes; "
        )?;
        match Header::peek(&self.bytes) {
            Some(header) => writeln!(out, "expected {}, as its header says", header.length)?,
            None => writeln!(out, "expected at least the {} of a header", Header::SIZE)?,
        }
        Ok(Outcome::SomeUnreadable)
    }

    /// Gives up what is there, and counts `lost` bytes that never came.
    pub(super) fn skip(&mut self, lost: usize) {
        self.offset += self.bytes.len() + lost;
        self.bytes.clear();
    }
}

/// Prints a frame, which is at least as long as a header.
fn print_frame(
    out: &mut dyn Write,
    prefix: &str,
    at: usize,
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
