//! Meters: rate limits for packets (1.3.5 sections 5.7, 7.3.4.4).
//!
//! # How
//! Each band is a separate token bucket, which fills at the band's rate up to its burst. A packet removes tokens for its size.
//! If there are too few tokens, the packet exceeds the band's rate, and removes none. Of several exceeded bands, the one
//! with the highest rate applies (section 5.7).
//!
//! A token is a billionth of a kilobit, or of a packet: the number added per nanosecond is the rate. So rates are exact,
//! however often packets arrive.
//!
//! A packet that is larger than the whole burst passes if the bucket is full, and leaves it in debt. Otherwise a meter whose
//! burst is smaller than a frame would pass no packets.
//!
//! # Bursts
//! Without OFPMF_BURST, a band's burst is one second of its rate. That is enough for TCP and for bursty senders to reach the
//! rate; averaged over half a minute it is 3 % of the rate.

use crate::Packet;
use crate::entry::nanoseconds;
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use urtica_wire::{Action, Field, MeterBand, MeterFlags, OxmField};

/// The highest number of a meter (OFPM_MAX). Higher numbers are virtual meters, which this pipeline does not have.
pub const METER_MAX: u32 = 0xffff_0000;
/// The maximum number of bands of a meter.
pub const MAX_BANDS: usize = 16;

/// The number of tokens per kilobit, or per packet.
const TOKENS: i64 = 1_000_000_000;
/// The number of tokens per byte: eight thousandths of a kilobit.
const TOKENS_IN_BYTE: i64 = TOKENS / 1000 * 8;

/// The flags that a meter may have.
pub(crate) const METER_FLAGS: MeterFlags = MeterFlags::KBPS
    .union(MeterFlags::PKTPS)
    .union(MeterFlags::BURST)
    .union(MeterFlags::STATS);

/// All meters, by number.
#[derive(Debug, Default)]
pub struct Meters {
    pub(crate) meters: BTreeMap<u32, Arc<Meter>>,
}

/// A meter.
///
/// A packet that passes a meter with one band touches only the first cache line, which has the buckets and counters.
///
/// Thread-safety: any thread may measure packets, under a lock. Counters can be read at any time, and may be inconsistent
/// with each other.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Meter {
    buckets: Mutex<Buckets>,
    /// The number of packets received.
    pub packets: AtomicU64,
    /// The number of their bytes.
    pub bytes: AtomicU64,
    /// The unit, and the optional fields in use.
    pub flags: MeterFlags,
    /// The bands, in the controller's order.
    pub bands: Vec<Band>,
    /// The time when it was added.
    pub added: Duration,
}

/// A band of a meter.
#[derive(Debug)]
pub struct Band {
    /// The action and rate.
    pub band: MeterBand<'static>,
    /// The number of packets that it was applied to.
    pub packets: AtomicU64,
    /// The number of their bytes.
    pub bytes: AtomicU64,
}

/// The token buckets of a meter.
#[derive(Debug)]
struct Buckets {
    /// The time when they were last filled.
    filled_ns: u64,
    /// The bucket of each band. Most meters have one band.
    buckets: SmallVec<[Bucket; 1]>,
}

/// The token bucket of a band.
#[derive(Debug)]
struct Bucket {
    /// The number of tokens, which is negative in debt.
    tokens: i64,
    /// The number of tokens added per nanosecond.
    rate: u32,
    /// The burst, in kilobits or packets.
    burst: u32,
}

/// A meter's verdict on a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeterVerdict {
    /// The packet passes unchanged.
    Pass,
    /// The packet passes, with its drop precedence raised by this much (DSCP remark).
    Remark(u8),
    /// The packet is dropped.
    Drop,
}

impl Meters {
    /// Returns the meter with this number.
    pub fn get(&self, meter_id: u32) -> Option<&Meter> {
        self.meters.get(&meter_id).map(AsRef::as_ref)
    }

    /// Returns the meter with this number, to be kept while packets may pass through it.
    pub(crate) fn get_shared(&self, meter_id: u32) -> Option<&Arc<Meter>> {
        self.meters.get(&meter_id)
    }

    /// Returns all meters, by number.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Meter)> {
        self.meters.iter().map(|(&id, meter)| (id, meter.as_ref()))
    }
}

impl Meter {
    pub(crate) fn new(flags: MeterFlags, bands: Vec<Band>, now: Duration) -> Self {
        let buckets = bands.iter().map(|band| Bucket::full(band, flags)).collect();
        Self {
            buckets: Mutex::new(Buckets {
                filled_ns: nanoseconds(now),
                buckets,
            }),
            packets: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            flags,
            bands,
            added: now,
        }
    }

    /// Counts a packet of `bytes` at `now`, and returns the verdict on it.
    pub fn measure(&self, bytes: usize, now: Duration) -> MeterVerdict {
        self.measure_at(bytes, nanoseconds(now))
    }

    /// Like [`Meter::measure`], with the time in nanoseconds.
    #[inline]
    pub(crate) fn measure_at(&self, bytes: usize, now_ns: u64) -> MeterVerdict {
        // A thread that panicked has left consistent numbers behind; at worst, one packet was not subtracted.
        let mut buckets = self.buckets.lock();
        add_locked(&self.packets, 1);
        add_locked(&self.bytes, bytes as u64);
        let Some(exceeded) = buckets.exceeded(self.cost(bytes), now_ns) else {
            return MeterVerdict::Pass;
        };
        let band = &self.bands[exceeded];
        add_locked(&band.packets, 1);
        add_locked(&band.bytes, bytes as u64);
        match band.band {
            MeterBand::Drop { .. } => MeterVerdict::Drop,
            MeterBand::DscpRemark { prec_level, .. } => MeterVerdict::Remark(prec_level),
            MeterBand::Experimenter { .. } => MeterVerdict::Pass,
        }
    }

    /// Returns the number of tokens for a packet.
    fn cost(&self, bytes: usize) -> i64 {
        match self.flags.contains(MeterFlags::PKTPS) {
            true => TOKENS,
            false => TOKENS_IN_BYTE.saturating_mul(bytes as i64),
        }
    }
}

impl Buckets {
    /// Removes the tokens for a packet from each bucket that has enough. Returns the bucket without enough tokens that has the
    /// highest rate, the last of several.
    #[inline]
    fn exceeded(&mut self, cost: i64, now_ns: u64) -> Option<usize> {
        let elapsed_ns = now_ns.saturating_sub(self.filled_ns);
        self.filled_ns += elapsed_ns;
        let mut exceeded: Option<(u32, usize)> = None;
        for (index, bucket) in self.buckets.iter_mut().enumerate() {
            bucket.fill(elapsed_ns);
            if !bucket.take(cost) && exceeded.is_none_or(|(rate, _)| rate <= bucket.rate) {
                exceeded = Some((bucket.rate, index));
            }
        }
        exceeded.map(|(_, index)| index)
    }
}

impl Bucket {
    /// Creates a band's bucket, filled.
    fn full(band: &Band, flags: MeterFlags) -> Self {
        let burst = band.burst(flags);
        Self {
            tokens: i64::from(burst) * TOKENS,
            rate: band.rate(),
            burst,
        }
    }

    /// Returns its size in tokens.
    fn depth(&self) -> i64 {
        i64::from(self.burst) * TOKENS
    }

    #[inline]
    fn fill(&mut self, elapsed_ns: u64) {
        // If either saturates, it exceeds any bucket's capacity.
        let brought = u64::from(self.rate).saturating_mul(elapsed_ns);
        let tokens = self.tokens.saturating_add_unsigned(brought);
        self.tokens = tokens.min(self.depth());
    }

    /// Removes the tokens for a packet; returns `false` if there are too few.
    #[inline]
    fn take(&mut self, cost: i64) -> bool {
        let passes = self.tokens >= cost.min(self.depth());
        self.tokens -= if passes { cost } else { 0 };
        passes
    }
}

impl Band {
    /// Returns the rate above which it applies, in kb/s or packets/s.
    pub fn rate(&self) -> u32 {
        match self.band {
            MeterBand::Drop { rate, .. }
            | MeterBand::DscpRemark { rate, .. }
            | MeterBand::Experimenter { rate, .. } => rate,
        }
    }

    /// Returns the size of its bucket, in kilobits or packets.
    fn burst(&self, flags: MeterFlags) -> u32 {
        match self.band {
            _ if !flags.contains(MeterFlags::BURST) => self.rate(),
            MeterBand::Drop { burst_size, .. }
            | MeterBand::DscpRemark { burst_size, .. }
            | MeterBand::Experimenter { burst_size, .. } => burst_size,
        }
    }
}

/// Adds to a counter that is changed only under its meter's lock.
fn add_locked(counter: &AtomicU64, more: u64) {
    counter.store(counter.load(Relaxed) + more, Relaxed);
}

impl Packet {
    /// Raises the drop precedence by `levels`, up to the highest, if the packet's DSCP is one of assured forwarding (RFC
    /// 2597). Other packets have no drop precedence, and are not changed.
    pub(crate) fn raise_drop_precedence(&mut self, levels: u8) {
        let Some(dscp) = self.field(OxmField::IpDscp) else {
            return;
        };
        let raised = raised_drop_precedence(dscp as u8, levels);
        self.apply(&Action::SetField(Field::exact(
            OxmField::IpDscp,
            raised.into(),
        )));
    }
}

/// Returns the raised DSCP. AFxy is 8x + 2y, with x from 1 to 4 and y, the drop precedence, from 1 to 3.
pub(crate) fn raised_drop_precedence(dscp: u8, levels: u8) -> u8 {
    let (class, precedence) = (dscp >> 3, dscp >> 1 & 3);
    let is_assured = (1..=4).contains(&class) && precedence > 0 && dscp & 1 == 0;
    match is_assured {
        true => class << 3 | precedence.saturating_add(levels).min(3) << 1,
        false => dscp,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns a bucket's tokens after some time, calculated without saturation.
    fn filled(bucket: &Bucket, elapsed_ns: u64) -> i64 {
        let brought = i128::from(bucket.rate) * i128::from(elapsed_ns);
        let tokens = i128::from(bucket.tokens) + brought;
        tokens.min(i128::from(bucket.depth())) as i64
    }

    proptest! {
        #[test]
        fn filling_saturates_only_beyond_the_burst(
            debt in 0..=i64::MAX / 2,
            rate: u32,
            burst: u32,
            elapsed_ns in prop_oneof![any::<u64>(), 0_u64..10_000_000_000],
        ) {
            let mut bucket = Bucket { tokens: 0, rate, burst };
            bucket.tokens = bucket.depth() - debt;
            let expected = filled(&bucket, elapsed_ns);
            bucket.fill(elapsed_ns);
            prop_assert_eq!(bucket.tokens, expected);
        }
    }

    #[test]
    fn a_packet_touches_one_cache_line_of_a_meter_with_one_band() {
        let end = std::mem::offset_of!(Meter, flags) + std::mem::size_of::<MeterFlags>();
        assert!(end <= 64, "{end}");
        let band = Band {
            band: MeterBand::Drop {
                rate: 1,
                burst_size: 0,
            },
            packets: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
        };
        let meter = Meter::new(MeterFlags::KBPS, vec![band], Duration::ZERO);
        assert!(!meter.buckets.lock().buckets.spilled());
    }
}
