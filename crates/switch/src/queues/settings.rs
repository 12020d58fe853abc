//! The configuration of a port's queues.

use std::collections::BTreeMap;
use urtica_wire::{PortNo, QUEUE_ALL};

/// Maximum number of queues of a port.
pub const MAX_QUEUES: usize = 64;

/// The lowest and highest rates, in bits per second.
const RATES_BPS: std::ops::RangeInclusive<u64> = 1000..=10_000_000_000_000;

/// Range of a queue's limit on frames.
const PACKETS: std::ops::RangeInclusive<u32> = 1..=65_536;

/// Range of a queue's limit on bytes, which includes at least one frame of any length.
const BYTES: std::ops::RangeInclusive<u32> = 65_536..=(64 << 20);

/// The queues of a port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortQueues {
    /// Maximum rate of the port, in bits per second, for all queues together. Without it, the port's reported rate is the
    /// maximum; if it reports none, the rate is unlimited.
    pub rate_bps: Option<u64>,
    /// The queues, by number.
    pub queues: BTreeMap<u32, Queue>,
}

/// A queue of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queue {
    /// The rate that the queue gets in any case, in bits per second, whatever the load of the others.
    pub min_rate_bps: Option<u64>,
    /// The rate that the queue never exceeds, in bits per second.
    pub max_rate_bps: Option<u64>,
    /// The priority: queues with the lowest number use the capacity above the minimum rates first.
    pub priority: u8,
    /// Maximum number of waiting frames; further frames are dropped.
    pub max_packets: u32,
    /// Maximum number of waiting bytes.
    pub max_bytes: u32,
}

impl Default for Queue {
    /// Returns a queue without rates, with priority 0, and with space for 1,000 frames of 2 MiB in total.
    fn default() -> Self {
        Self {
            min_rate_bps: None,
            max_rate_bps: None,
            priority: 0,
            max_packets: 1000,
            max_bytes: 2 << 20,
        }
    }
}

/// The reason why a port cannot have such queues.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QueueError {
    /// The number stands for all queues.
    #[error("no queue can have the number {QUEUE_ALL}, which stands for all; expected 0 to {max}", max = QUEUE_ALL - 1)]
    BadNumber,
    /// The port has too many queues.
    #[error("{0} queues are too many; expected at most {MAX_QUEUES} per port")]
    TooMany(usize),
    /// A rate is too low or too high.
    #[error("the {what} of {rate_bps} bit/s is out of range; expected {min} bit/s to {max} bit/s", min = RATES_BPS.start(), max = RATES_BPS.end())]
    BadRate {
        /// The kind of rate.
        what: &'static str,
        /// The rate, in bits per second.
        rate_bps: u64,
    },
    /// A queue's minimum rate is above its maximum rate.
    #[error(
        "the minimum rate of {min_bps} bit/s is above the maximum rate of {max_bps} bit/s; expected one that is not above it"
    )]
    MinAboveMax {
        /// The minimum, in bits per second.
        min_bps: u64,
        /// The maximum, in bits per second.
        max_bps: u64,
    },
    /// The port cannot guarantee all minimum rates.
    #[error(
        "the minimum rates add up to {sum_bps} bit/s, and the port sends {rate_bps} bit/s; expected minimum rates within its rate"
    )]
    MinimaAboveRate {
        /// The sum of the minimum rates, in bits per second.
        sum_bps: u64,
        /// The port's rate, in bits per second.
        rate_bps: u64,
    },
    /// A queue's limit on frames or bytes is too low or too high.
    #[error("a queue cannot hold {value} {what}; expected {min} to {max}")]
    BadLimit {
        /// The unit: frames or bytes.
        what: &'static str,
        /// The invalid limit.
        value: u32,
        /// The lowest valid limit.
        min: u32,
        /// The highest valid limit.
        max: u32,
    },
    /// The port does not exist.
    #[error("there is no port '{0}'; expected the number or name of a port")]
    NoPort(String),
    /// The port does not have the queue.
    #[error("port {port} has no queue {queue_id}; expected one of its queues")]
    NoQueue {
        /// The port.
        port: PortNo,
        /// The queue.
        queue_id: u32,
    },
}

impl PortQueues {
    /// Checks whether a port can have these queues.
    ///
    /// # Errors
    /// The first problem.
    pub fn check(&self) -> Result<(), QueueError> {
        if self.queues.len() > MAX_QUEUES {
            return Err(QueueError::TooMany(self.queues.len()));
        }
        check_rate("rate", self.rate_bps)?;
        for (&queue_id, queue) in &self.queues {
            Self::check_number(queue_id)?;
            queue.check()?;
        }
        self.check_minima(self.rate_bps)
    }

    /// Checks whether a queue can have this number.
    ///
    /// # Errors
    /// [`QueueError::BadNumber`].
    pub fn check_number(queue_id: u32) -> Result<(), QueueError> {
        match queue_id {
            QUEUE_ALL => Err(QueueError::BadNumber),
            _ => Ok(()),
        }
    }

    /// Checks whether a port with this rate can guarantee all minimum rates.
    ///
    /// # Errors
    /// [`QueueError::MinimaAboveRate`].
    pub fn check_minima(&self, rate_bps: Option<u64>) -> Result<(), QueueError> {
        let minima = self.queues.values().filter_map(|queue| queue.min_rate_bps);
        let sum_bps = minima.fold(0, u64::saturating_add);
        match rate_bps {
            Some(rate_bps) if sum_bps > rate_bps => {
                Err(QueueError::MinimaAboveRate { sum_bps, rate_bps })
            }
            _ => Ok(()),
        }
    }
}

impl Queue {
    /// Checks whether a queue can have these settings.
    ///
    /// # Errors
    /// The first problem.
    pub fn check(&self) -> Result<(), QueueError> {
        check_rate("minimum rate", self.min_rate_bps)?;
        check_rate("maximum rate", self.max_rate_bps)?;
        if let (Some(min_bps), Some(max_bps)) = (self.min_rate_bps, self.max_rate_bps) {
            if min_bps > max_bps {
                return Err(QueueError::MinAboveMax { min_bps, max_bps });
            }
        }
        check_limit("frames", self.max_packets, PACKETS)?;
        check_limit("bytes", self.max_bytes, BYTES)
    }
}

fn check_rate(what: &'static str, rate_bps: Option<u64>) -> Result<(), QueueError> {
    match rate_bps {
        Some(rate_bps) if !RATES_BPS.contains(&rate_bps) => {
            Err(QueueError::BadRate { what, rate_bps })
        }
        _ => Ok(()),
    }
}

fn check_limit(
    what: &'static str,
    value: u32,
    range: std::ops::RangeInclusive<u32>,
) -> Result<(), QueueError> {
    match range.contains(&value) {
        true => Ok(()),
        false => Err(QueueError::BadLimit {
            what,
            value,
            min: *range.start(),
            max: *range.end(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(port: &PortQueues) -> String {
        port.check().unwrap_err().to_string()
    }

    fn with(queue: Queue) -> PortQueues {
        PortQueues {
            rate_bps: Some(1_000_000),
            queues: BTreeMap::from([(1, queue)]),
        }
    }

    #[test]
    fn queues_with_defaults_are_fine() {
        assert_eq!(with(Queue::default()).check(), Ok(()));
        assert_eq!(PortQueues::default().check(), Ok(()));
    }

    #[test]
    fn errors_name_what_was_found_and_expected() {
        let min = |bps| Queue {
            min_rate_bps: Some(bps),
            ..Queue::default()
        };
        assert_eq!(
            refused(&with(min(999))),
            "the minimum rate of 999 bit/s is out of range; expected 1000 bit/s to 10000000000000 bit/s"
        );
        assert_eq!(
            refused(&with(min(2_000_000))),
            "the minimum rates add up to 2000000 bit/s, and the port sends 1000000 bit/s; \
             expected minimum rates within its rate"
        );
        let above = Queue {
            max_rate_bps: Some(1000),
            ..min(2000)
        };
        assert_eq!(
            refused(&with(above)),
            "the minimum rate of 2000 bit/s is above the maximum rate of 1000 bit/s; expected one that is not above it"
        );
        let none = Queue {
            max_packets: 0,
            ..Queue::default()
        };
        assert_eq!(
            refused(&with(none)),
            "a queue cannot hold 0 frames; expected 1 to 65536"
        );
        let few = Queue {
            max_bytes: 100,
            ..Queue::default()
        };
        assert_eq!(
            refused(&with(few)),
            "a queue cannot hold 100 bytes; expected 65536 to 67108864"
        );
        let all = PortQueues {
            rate_bps: None,
            queues: BTreeMap::from([(u32::MAX, Queue::default())]),
        };
        assert_eq!(
            refused(&all),
            "no queue can have the number 4294967295, which stands for all; expected 0 to 4294967294"
        );
        let many = PortQueues {
            rate_bps: None,
            queues: (0..65).map(|id| (id, Queue::default())).collect(),
        };
        assert_eq!(
            refused(&many),
            "65 queues are too many; expected at most 64 per port"
        );
    }
}
