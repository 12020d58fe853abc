//! The results of a flow of datagrams or of a stream.

use std::fmt;
use std::time::Duration;

/// The results of a flow so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowReport {
    /// Packets with data sent, including retransmissions.
    pub sent: u64,
    /// Packets that arrived.
    pub received: u64,
    /// Bytes of data that arrived; of a stream, in order.
    pub received_bytes: u64,
    /// Packets that arrived after a later one.
    pub reordered: u64,
    /// Packets of a stream whose bytes were not those sent.
    pub corrupted: u64,
    /// Retransmissions; 0 for datagrams.
    pub sent_again: u64,
    /// Whether the sender has sent everything and, for a stream, everything was acknowledged.
    pub is_done: bool,
    /// The time from a stream's first packet until it was done.
    pub took: Option<Duration>,
}

impl FlowReport {
    /// Returns the number of packets that have not arrived.
    pub fn lost(&self) -> u64 {
        self.sent.saturating_sub(self.received)
    }
}

impl fmt::Display for FlowReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} packets sent, {} received with {} bytes",
            self.sent, self.received, self.received_bytes
        )?;
        if self.sent_again > 0 {
            write!(f, ", {} of them retransmitted", self.sent_again)?;
        }
        if let Some(took) = self.took {
            let megabits = self.received_bytes as f64 * 8.0 / 1e6;
            write!(
                f,
                ", {:.1} Mb/s over {took:.3?}",
                megabits / took.as_secs_f64()
            )?;
        }
        Ok(())
    }
}
