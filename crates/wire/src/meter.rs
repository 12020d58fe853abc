//! Meters, which limit the rates of packets.

use crate::List;
use crate::codec::wire_enum;
use bitflags::bitflags;

wire_enum! {
    /// The command of a meter mod (`ofp_meter_mod_command`).
    MeterModCommand: u16 {
        /// Adds a meter.
        Add = 0,
        /// Changes a meter.
        Modify = 1,
        /// Deletes a meter, or all meters.
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
        /// Bands have burst sizes.
        const BURST = 1 << 2;
        /// Statistics are collected.
        const STATS = 1 << 3;
        /// Undefined bits are kept.
        const _ = !0;
    }
}

/// A message that adds, changes or deletes meters (1.3.5 section 7.3.4.4). 1.0 has none.
///
/// The constructors add a meter; [`MeterMod::modify`] changes an existing one instead. An entry uses it with
/// [`Instruction::Meter`](crate::Instruction::Meter).
///
/// ```
/// use urtica_wire::{Message, MeterBand, MeterMod, Version};
///
/// // At most 10 Mbit/s, with bursts of up to 1 Mbit.
/// let limit = MeterMod::kbps(1, [MeterBand::drop_above(10_000).burst(1_000)]);
/// assert_eq!(limit.to_string(), "meter=1 kbps burst bands=type=drop rate=10000 burst_size=1000");
///
/// let mut out = Vec::new();
/// Message::MeterMod(limit.clone()).encode(Version::Of13, 1, &mut out)?;
/// let error = Message::MeterMod(limit).encode(Version::Of10, 2, &mut out).unwrap_err();
/// assert_eq!(error.to_string(), "OpenFlow 1.0 cannot express the message OFPT_METER_MOD");
/// # Ok::<(), urtica_wire::EncodeError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeterMod<'a> {
    /// The unit, and the optional fields in use.
    pub command: MeterModCommand,
    /// The units and present fields.
    pub flags: MeterFlags,
    /// The number of the meter.
    pub meter_id: u32,
    /// The bands.
    pub bands: List<'a, MeterBand<'a>>,
}

impl<'a> MeterMod<'a> {
    /// Adds a meter whose bands have rates in kb/s, and burst sizes in kilobits.
    pub fn kbps(meter_id: u32, bands: impl IntoIterator<Item = MeterBand<'a>>) -> Self {
        Self::add(MeterFlags::KBPS, meter_id, bands)
    }

    /// Adds a meter whose bands have rates in packets/s, and burst sizes in packets.
    pub fn packets_per_second(
        meter_id: u32,
        bands: impl IntoIterator<Item = MeterBand<'a>>,
    ) -> Self {
        Self::add(MeterFlags::PKTPS, meter_id, bands)
    }

    /// Deletes a meter, and the flow entries that use it; [`crate::METER_ALL`] for all meters. A missing meter is no error.
    pub fn delete(meter_id: u32) -> Self {
        Self {
            command: MeterModCommand::Delete,
            ..Self::add(MeterFlags::empty(), meter_id, [])
        }
    }

    /// Changes the existing meter's unit and bands; its users stay.
    pub fn modify(self) -> Self {
        Self {
            command: MeterModCommand::Modify,
            ..self
        }
    }

    /// Requests that the switch keep statistics of the meter (OFPMF_STATS).
    pub fn with_stats(self) -> Self {
        Self {
            flags: self.flags | MeterFlags::STATS,
            ..self
        }
    }

    /// Adds a meter. If any band has a burst size, the burst sizes of all bands are valid (OFPMF_BURST).
    fn add(
        unit: MeterFlags,
        meter_id: u32,
        bands: impl IntoIterator<Item = MeterBand<'a>>,
    ) -> Self {
        let bands: List<_> = bands.into_iter().collect();
        let burst = match bands.iter().any(|band| band.burst_size() != 0) {
            true => MeterFlags::BURST,
            false => MeterFlags::empty(),
        };
        Self {
            command: MeterModCommand::Add,
            flags: unit | burst,
            meter_id,
            bands,
        }
    }
}

/// A band of a meter: an action, and the rate above which it applies. Rate and burst have the unit in the meter's flags: kb/s
/// and kilobits, or packets/s and packets.
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
        /// The number of levels.
        prec_level: u8,
    },
    /// An experimenter's band.
    Experimenter {
        /// The rate.
        rate: u32,
        /// The burst.
        burst_size: u32,
        /// The experimenter's id.
        experimenter: u32,
        /// The bytes after the experimenter id.
        data: &'a [u8],
    },
}

impl MeterBand<'_> {
    /// Creates a band that drops packets above this rate.
    pub const fn drop_above(rate: u32) -> Self {
        let burst_size = 0;
        Self::Drop { rate, burst_size }
    }

    /// Creates a band that raises the drop precedence of packets above this rate by `prec_level` levels.
    pub const fn remark_above(rate: u32, prec_level: u8) -> Self {
        let burst_size = 0;
        Self::DscpRemark {
            rate,
            burst_size,
            prec_level,
        }
    }

    /// Sets the burst size. If one band of a meter has one, all its bands need one.
    pub const fn burst(mut self, size: u32) -> Self {
        match &mut self {
            Self::Drop { burst_size, .. }
            | Self::DscpRemark { burst_size, .. }
            | Self::Experimenter { burst_size, .. } => *burst_size = size,
        }
        self
    }

    fn burst_size(&self) -> u32 {
        match *self {
            Self::Drop { burst_size, .. }
            | Self::DscpRemark { burst_size, .. }
            | Self::Experimenter { burst_size, .. } => burst_size,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::golden::{hex, message};
    use crate::{METER_ALL, Message};

    #[test]
    fn constructors_equal_their_text() {
        for (meter, expected) in [
            (
                MeterMod::kbps(1, [MeterBand::drop_above(1000)]),
                "meter=1 kbps band=type=drop rate=1000",
            ),
            (
                MeterMod::packets_per_second(
                    2,
                    [
                        MeterBand::remark_above(100, 1).burst(10),
                        MeterBand::drop_above(200).burst(20),
                    ],
                )
                .with_stats(),
                "meter=2 pktps burst stats bands=type=dscp_remark rate=100 burst_size=10 prec_level=1 type=drop rate=200 \
                 burst_size=20",
            ),
        ] {
            let parsed = MeterMod::parse(MeterModCommand::Add, expected).expect(expected);
            assert_eq!(meter, parsed);
            let modified = MeterMod::parse(MeterModCommand::Modify, expected).expect(expected);
            assert_eq!(meter.modify(), modified);
        }
        let parsed = MeterMod::parse(MeterModCommand::Delete, "");
        assert_eq!(Ok(MeterMod::delete(METER_ALL)), parsed);
    }

    #[test]
    fn a_meter_is_the_bytes_of_the_specification() {
        let meter = MeterMod::kbps(3, [MeterBand::drop_above(1000).burst(100)]);
        let bytes = hex("04 1d 0020 00000000 0000 0005 00000003
             0001 0010 000003e8 00000064 00000000");
        message(&bytes, &Message::MeterMod(meter));
    }
}
