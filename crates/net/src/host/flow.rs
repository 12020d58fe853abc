//! What came of a flow, of datagrams or of a stream.

use std::fmt;
use std::time::Duration;

/// What came of a flow so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowReport {
    /// How many packets with data were sent, those again included.
    pub sent: u64,
    /// How many arrived.
    pub received: u64,
    /// How many bytes of data arrived; of a stream, in order.
    pub received_bytes: u64,
    /// How many packets arrived after a later one.
    pub reordered: u64,
    /// How many packets of a stream held other bytes than were sent.
    pub corrupted: u64,
    /// How many packets were sent again. Datagrams never are.
    pub sent_again: u64,
    /// Whether the sender has sent everything and, of a stream, knows that it arrived.
    pub is_done: bool,
    /// How long a stream took from its first packet until it was done.
    pub took: Option<Duration>,
}

impl FlowReport {
    /// How many packets have not arrived.
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
            write!(f, ", {} of them sent again", self.sent_again)?;
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
