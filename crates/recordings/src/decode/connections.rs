//! OpenFlow connections in a pcap or pcapng capture.
//!
//! `stream` splits each reassembled direction into messages. Gaps are reported; printing resumes at the next certain message
//! boundary (`boundary`).

use super::outcome::Outcome;
use super::stream::MessageStream;
use crate::packets::{Packets, ReadError};
use crate::reassembly::{Piece, Reassembly};
use crate::segment::{Direction, Segment, tcp_segment};
use std::collections::HashMap;
use std::io::{self, Write};

/// The number of ports that the error about unmatched ports lists.
const PORTS_LISTED: usize = 10;

/// An error of a capture that cannot be read completely, or has nothing to print.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CaptureError {
    /// The file cannot be read to its end.
    #[error(transparent)]
    File(#[from] ReadError),
    /// It contains no TCP.
    #[error(
        "the capture has no readable TCP segment in {packets} packets; expected an OpenFlow connection, \
         captured on Ethernet, lo or any"
    )]
    NoTcp {
        /// The number of packets.
        packets: u64,
    },
    /// No connection uses the given ports.
    #[error(
        "no TCP connection in the capture is from or to port {}; its connections are from and to {}; --port names the \
         controller's", listed(.asked, " or "), ports_told(.there)
    )]
    OtherPorts {
        /// The given ports.
        asked: Vec<u16>,
        /// The ports in use, with the number of segments of each.
        there: Vec<(u16, u64)>,
    },
    /// The connections carry no data.
    #[error("the connections from or to port {} carry no bytes in this capture", listed(.asked, " or "))]
    NoBytes {
        /// The given ports.
        asked: Vec<u16>,
    },
    /// The output cannot be written.
    #[error("cannot write the output: {0}")]
    Output(#[from] io::Error),
}

fn listed(ports: &[u16], between: &str) -> String {
    let ports: Vec<_> = ports.iter().map(u16::to_string).collect();
    ports.join(between)
}

/// Lists the ports with the most segments, in decreasing order.
fn ports_told(there: &[(u16, u64)]) -> String {
    let told = there.iter().take(PORTS_LISTED);
    let told: Vec<_> = told
        .map(|(port, count)| match count {
            1 => format!("port {port} (1 segment)"),
            _ => format!("port {port} ({count} segments)"),
        })
        .collect();
    match there.len().saturating_sub(PORTS_LISTED) {
        0 => told.join(", "),
        more => format!("{} and {more} more", told.join(", ")),
    }
}

/// Prints the messages of every TCP connection from or to one of `ports` in a pcap or pcapng file, and a line for each
/// missing or invalid part.
///
/// # Errors
/// [`CaptureError`]; messages before an error of the file are printed.
pub fn print_capture(
    bytes: &[u8],
    ports: &[u16],
    is_verbose: bool,
    out: &mut dyn Write,
) -> Result<Outcome, CaptureError> {
    let mut packets = Packets::new(bytes)?;
    let mut connections = Connections::new(ports, is_verbose);
    let read = loop {
        match packets.next() {
            Ok(Some(packet)) => connections.packet(tcp_segment(packet.link, &packet.data), out)?,
            Ok(None) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    // Everything read before the error is still reported.
    let outcome = connections.finish(out)?;
    read?;
    connections.tally.check(ports, packets.count())?;
    Ok(outcome)
}

/// The connections of a capture, from the segments of its packets.
pub struct Connections<'p> {
    ports: &'p [u16],
    is_verbose: bool,
    directions: HashMap<Direction, OneWay>,
    tally: Tally,
    outcome: Outcome,
}

/// One direction of a connection.
struct OneWay {
    reassembly: Reassembly,
    messages: MessageStream,
}

/// Counts for the error message if nothing is printed.
#[derive(Default)]
struct Tally {
    segments_by_port: HashMap<u16, u64>,
    /// Number of segments on the given ports.
    segments: u64,
    pieces: u64,
}

impl<'p> Connections<'p> {
    /// Creates an empty set of connections; it prints the messages of those from or to one of `ports`.
    pub fn new(ports: &'p [u16], is_verbose: bool) -> Self {
        Self {
            ports,
            is_verbose,
            directions: HashMap::new(),
            tally: Tally::default(),
            outcome: Outcome::AllRead,
        }
    }

    /// Handles a packet's segment, if it has one.
    ///
    /// # Errors
    /// Errors of the output.
    pub fn packet(
        &mut self,
        segment: Option<(Direction, Segment<'_>)>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let Some((direction, segment)) = segment else {
            return Ok(());
        };
        let ends = [direction.from.port(), direction.to.port()];
        for port in ends {
            *self.tally.segments_by_port.entry(port).or_default() += 1;
        }
        if !ends.iter().any(|port| self.ports.contains(port)) {
            return Ok(());
        }
        self.tally.segments += 1;
        self.take(direction, &segment, out)?;
        match segment.ack {
            Some(ack) => self.acknowledge(direction.reversed(), ack, out),
            None => Ok(()),
        }
    }

    fn take(
        &mut self,
        direction: Direction,
        segment: &Segment<'_>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let known = self.directions.get(&direction);
        if known.is_some_and(|known| known.reassembly.is_new_connection(segment)) {
            self.end(direction, out)?;
        }
        let is_verbose = self.is_verbose;
        let one_way = self
            .directions
            .entry(direction)
            .or_insert_with(|| OneWay::new(direction, segment.starts, is_verbose));
        self.tally.pieces +=
            one_way.advance(out, |reassembly, give| reassembly.take(segment, give))?;
        Ok(())
    }

    fn acknowledge(
        &mut self,
        direction: Direction,
        ack: u32,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        if let Some(one_way) = self.directions.get_mut(&direction) {
            one_way.advance(out, |reassembly, give| reassembly.acknowledge(ack, give))?;
        }
        Ok(())
    }

    /// Ends this direction.
    fn end(&mut self, direction: Direction, out: &mut dyn Write) -> io::Result<()> {
        if let Some(mut one_way) = self.directions.remove(&direction) {
            self.tally.pieces += one_way.advance(out, Reassembly::finish)?;
            one_way.messages.finish(out)?;
            self.outcome = self.outcome.and(one_way.messages.outcome());
        }
        Ok(())
    }

    /// Prints the waiting messages, at the end of the capture.
    ///
    /// # Errors
    /// Errors of the output.
    pub fn finish(&mut self, out: &mut dyn Write) -> io::Result<Outcome> {
        let mut directions: Vec<_> = self.directions.keys().copied().collect();
        directions.sort_unstable();
        for direction in directions {
            self.end(direction, out)?;
        }
        Ok(self.outcome)
    }
}

impl OneWay {
    fn new(direction: Direction, has_beginning: bool, is_verbose: bool) -> Self {
        let mut messages = MessageStream::new(direction.to_string(), is_verbose);
        if !has_beginning {
            messages.lose_boundary();
        }
        Self {
            reassembly: Reassembly::default(),
            messages,
        }
    }

    /// Prints the pieces that the reassembly delivers in `step`. Returns their number.
    fn advance(
        &mut self,
        out: &mut dyn Write,
        step: impl FnOnce(&mut Reassembly, &mut dyn FnMut(Piece<'_>)),
    ) -> io::Result<u64> {
        let (messages, mut pieces, mut printed) = (&mut self.messages, 0, Ok(()));
        step(&mut self.reassembly, &mut |piece| {
            pieces += 1;
            if printed.is_ok() {
                printed = match piece {
                    Piece::Bytes(bytes) => messages.push(bytes, out),
                    Piece::Lost(count) => messages.lose(count, out),
                };
            }
        });
        printed.map(|()| pieces)
    }
}

impl Tally {
    /// Returns an error if there was nothing to print.
    fn check(&self, ports: &[u16], packets: u64) -> Result<(), CaptureError> {
        let asked = ports.to_vec();
        if self.segments_by_port.is_empty() {
            return Err(CaptureError::NoTcp { packets });
        }
        if self.segments == 0 {
            let there = &self.segments_by_port;
            let mut there: Vec<_> = there.iter().map(|(&port, &count)| (port, count)).collect();
            there.sort_unstable_by_key(|&(port, count)| (std::cmp::Reverse(count), port));
            return Err(CaptureError::OtherPorts { asked, there });
        }
        match self.pieces {
            0 => Err(CaptureError::NoBytes { asked }),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
