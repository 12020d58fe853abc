//! Meters: rate limits that packets pass through (1.3.5 sections 5.7, 7.3.4.4).
//!
//! # How
//! Each band is a separate token bucket, which fills at the band's rate up to its burst; a packet takes its size out of it.
//! If there are too few tokens, the packet exceeds the band's rate, and takes none. Of several exceeded bands, the one with
//! the highest rate acts (section 5.7).
//!
//! A token is a billionth of a kilobit, or of a packet: the amount of one nanosecond at a rate of 1. So rates are exact,
//! however often packets arrive.
//!
//! A packet that is larger than the whole burst passes when the bucket is full, and leaves it in debt. Otherwise a meter
//! whose burst is smaller than a frame would pass nothing.
//!
//! # Bursts
//! Without OFPMF_BURST, a band's burst is one second of its rate. That is enough for TCP to reach the rate, and for bursty
//! senders; averaged over half a minute it is 3 % of the rate.

use crate::Packet;
use crate::entry::nanoseconds;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use urtica_wire::{Action, Field, MeterBand, MeterFlags, OxmField};

/// The highest number of a meter (OFPM_MAX). Beyond it are virtual meters, which this pipeline does not have.
pub const METER_MAX: u32 = 0xffff_0000;
/// The maximum number of bands of a meter.
pub const MAX_BANDS: usize = 16;

/// Tokens in a kilobit, or in a packet.
const TOKENS: i64 = 1_000_000_000;
/// Tokens in a byte: eight thousandths of a kilobit.
const TOKENS_IN_BYTE: i64 = TOKENS / 1000 * 8;

/// The flags that a meter can have.
pub(crate) const METER_FLAGS: MeterFlags = MeterFlags::KBPS
    .union(MeterFlags::PKTPS)
    .union(MeterFlags::BURST)
    .union(MeterFlags::STATS);

/// All meters, by their numbers.
#[derive(Debug, Default)]
pub struct Meters {
    pub(crate) meters: BTreeMap<u32, Arc<Meter>>,
}

/// One meter.
///
/// Thread-safety: any thread may measure packets, under a lock. Counters can be read at any time, and may be inconsistent
/// with each other.
#[derive(Debug)]
pub struct Meter {
    /// The units and present fields.
    pub flags: MeterFlags,
    /// Its bands, as given.
    pub bands: Vec<Band>,
    /// The time when it was added.
    pub added: Duration,
    /// Packets received.
    pub packets: AtomicU64,
    /// Their bytes.
    pub bytes: AtomicU64,
    /// The tokens of each band.
    buckets: Mutex<Buckets>,
}

/// One band of a meter.
#[derive(Debug)]
pub struct Band {
    /// Its action and rate.
    pub band: MeterBand<'static>,
    /// Packets that it acted on.
    pub packets: AtomicU64,
    /// Their bytes.
    pub bytes: AtomicU64,
}

/// The token buckets of a meter.
#[derive(Debug)]
struct Buckets {
    /// The time when they were last filled.
    filled_ns: u64,
    /// The tokens of each band, negative if in debt.
    tokens: Vec<i64>,
}

/// A meter's decision about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeterVerdict {
    /// It passes unchanged.
    Pass,
    /// It passes with its drop precedence raised by this much (DSCP remark).
    Remark(u8),
    /// The packet is not processed further.
    Drop,
}

impl Meters {
    /// The meter with this number.
    pub fn get(&self, meter_id: u32) -> Option<&Meter> {
        self.meters.get(&meter_id).map(AsRef::as_ref)
    }

    /// Returns the meter with this number, to be kept as long as packets may pass through it.
    pub(crate) fn get_shared(&self, meter_id: u32) -> Option<&Arc<Meter>> {
        self.meters.get(&meter_id)
    }

    /// All meters, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Meter)> {
        self.meters.iter().map(|(&id, meter)| (id, meter.as_ref()))
    }
}

impl Meter {
    pub(crate) fn new(flags: MeterFlags, bands: Vec<Band>, now: Duration) -> Self {
        let tokens = bands.iter().map(|band| band.depth(flags)).collect();
        Self {
            flags,
            bands,
            added: now,
            packets: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            buckets: Mutex::new(Buckets {
                filled_ns: nanoseconds(now),
                tokens,
            }),
        }
    }

    /// Counts a packet of `bytes` at `now`, and decides about it.
    pub fn measure(&self, bytes: usize, now: Duration) -> MeterVerdict {
        self.measure_at(bytes, nanoseconds(now))
    }

    /// Like [`Meter::measure`], with the time in nanoseconds.
    #[inline]
    pub(crate) fn measure_at(&self, bytes: usize, now_ns: u64) -> MeterVerdict {
        // A thread that panicked has left consistent numbers behind: one packet may not have been subtracted.
        let mut buckets = self.buckets.lock();
        add_locked(&self.packets, 1);
        add_locked(&self.bytes, bytes as u64);
        let Some(band) = self.exceeded(&mut buckets, bytes, now_ns) else {
            return MeterVerdict::Pass;
        };
        add_locked(&band.packets, 1);
        add_locked(&band.bytes, bytes as u64);
        match band.band {
            MeterBand::Drop { .. } => MeterVerdict::Drop,
            MeterBand::DscpRemark { prec_level, .. } => MeterVerdict::Remark(prec_level),
            MeterBand::Experimenter { .. } => MeterVerdict::Pass,
        }
    }

    /// Returns the band with the highest rate that a packet exceeds.
    #[inline]
    fn exceeded(&self, buckets: &mut Buckets, bytes: usize, now_ns: u64) -> Option<&Band> {
        let elapsed_ns = now_ns.saturating_sub(buckets.filled_ns);
        buckets.filled_ns += elapsed_ns;
        let cost = self.cost(bytes);
        let exceeded = self.bands.iter().zip(&mut buckets.tokens);
        let exceeded = exceeded.filter_map(|(band, tokens)| {
            let depth = band.depth(self.flags);
            if elapsed_ns > 0 {
                *tokens = filled(*tokens, band.rate(), elapsed_ns, depth);
            }
            let passes = *tokens >= cost.min(depth);
            *tokens -= if passes { cost } else { 0 };
            (!passes).then_some(band)
        });
        exceeded.max_by_key(|band| band.rate())
    }

    /// Returns the number of tokens for a packet.
    fn cost(&self, bytes: usize) -> i64 {
        match self.flags.contains(MeterFlags::PKTPS) {
            true => TOKENS,
            false => TOKENS_IN_BYTE.saturating_mul(bytes as i64),
        }
    }
}

impl Band {
    /// From which rate on it acts, in kb/s or packets/s.
    pub fn rate(&self) -> u32 {
        match self.band {
            MeterBand::Drop { rate, .. }
            | MeterBand::DscpRemark { rate, .. }
            | MeterBand::Experimenter { rate, .. } => rate,
        }
    }

    /// Returns the size of its bucket in tokens.
    fn depth(&self, flags: MeterFlags) -> i64 {
        let burst = match self.band {
            _ if !flags.contains(MeterFlags::BURST) => self.rate(),
            MeterBand::Drop { burst_size, .. }
            | MeterBand::DscpRemark { burst_size, .. }
            | MeterBand::Experimenter { burst_size, .. } => burst_size,
        };
        i64::from(burst) * TOKENS
    }
}

/// Adds to a counter that is only changed under its meter's lock.
fn add_locked(counter: &AtomicU64, more: u64) {
    counter.store(counter.load(Relaxed) + more, Relaxed);
}

/// Returns the tokens of a bucket after some time.
fn filled(tokens: i64, rate: u32, elapsed_ns: u64, depth: i64) -> i64 {
    let brought = i128::from(rate) * i128::from(elapsed_ns);
    // At most `depth`, so that it fits.
    (i128::from(tokens) + brought).min(i128::from(depth)) as i64
}

impl Packet {
    /// Raises the drop precedence by `levels` if the packet has a class of assured forwarding (RFC 2597), up to the highest.
    /// Packets of other classes have no drop precedence, and are not changed.
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

/// AFxy is 8x + 2y, with x from 1 to 4 and y, the drop precedence, from 1 to 3.
pub(crate) fn raised_drop_precedence(dscp: u8, levels: u8) -> u8 {
    let (class, precedence) = (dscp >> 3, dscp >> 1 & 3);
    let is_assured = (1..=4).contains(&class) && precedence > 0 && dscp & 1 == 0;
    match is_assured {
        true => class << 3 | precedence.saturating_add(levels).min(3) << 1,
        false => dscp,
    }
}
