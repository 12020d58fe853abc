//! Meters: rate limits that packets pass through.

use crate::codec::wire_enum;
use crate::{DecodeError, Element, EncodeError, List, Reader, Version, of13};
use bitflags::bitflags;

wire_enum! {
    /// What a meter mod does (`ofp_meter_mod_command`).
    MeterModCommand: u16 {
        /// Adds a meter.
        Add = 0,
        /// Changes a meter.
        Modify = 1,
        /// Deletes a meter, or all.
        Delete = 2,
    }
}

bitflags! {
    /// `ofp_meter_flags`.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct MeterFlags: u16 {
        /// Rates are in kb/s.
        const KBPS = 1 << 0;
        /// Rates are in packets/s.
        const PKTPS = 1 << 1;
        /// Burst sizes are given.
        const BURST = 1 << 2;
        /// Statistics are collected.
        const STATS = 1 << 3;
        /// Bits without a meaning are kept.
        const _ = !0;
    }
}

/// Adds, changes or deletes meters (1.3.5 section 7.3.4.4). 1.0 has none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeterMod<'a> {
    /// What to do.
    pub command: MeterModCommand,
    /// Units, and what is given.
    pub flags: MeterFlags,
    /// Which meter.
    pub meter_id: u32,
    /// Its bands.
    pub bands: List<'a, MeterBand<'a>>,
}

/// One band of a meter: from which rate on it acts, and how. Rate and burst are in the unit that the meter's flags
/// name: kb/s and kilobits, or packets/s and packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeterBand<'a> {
    /// Drops packets.
    Drop {
        /// The rate.
        rate: u32,
        /// The burst.
        burst_size: u32,
    },
    /// Raises the drop precedence in the DSCP field.
    DscpRemark {
        /// The rate.
        rate: u32,
        /// The burst.
        burst_size: u32,
        /// By how many levels.
        prec_level: u8,
    },
    /// An experimenter's band.
    Experimenter {
        /// The rate.
        rate: u32,
        /// The burst.
        burst_size: u32,
        /// Whose it is.
        experimenter: u32,
        /// What follows the experimenter id.
        data: &'a [u8],
    },
}

impl<'a> Element<'a> for MeterBand<'a> {
    fn decode(_: Version, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        of13::meter::decode_band(reader)
    }

    fn encode(&self, _: Version, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        of13::meter::encode_band(self, out)
    }
}
