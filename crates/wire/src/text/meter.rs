//! Meters: `meter=1,kbps,burst,bands=type=drop,rate=1000,burst_size=100`.

use super::ParseError;
use super::action::write_experimenter;
use super::item::{Item, Span};
use crate::{List, METER_ALL, MeterBand, MeterFlags, MeterMod, MeterModCommand};
use std::fmt::{self, Write};

/// Flags, in the order in which they are written.
pub(super) const FLAGS: [(&str, MeterFlags); 4] = [
    ("kbps", MeterFlags::KBPS),
    ("pktps", MeterFlags::PKTPS),
    ("burst", MeterFlags::BURST),
    ("stats", MeterFlags::STATS),
];

const IDS: [(&str, u32); 3] = [
    ("all", METER_ALL),
    ("controller", 0xffff_fffe),
    ("slowpath", 0xffff_fffd),
];

const WORDS: [&str; 8] = [
    "meter",
    "bands",
    "type",
    "rate",
    "burst_size",
    "prec_level",
    "kbps",
    "pktps",
];

impl MeterMod<'static> {
    /// Parses a meter like `ovs-ofctl add-meter` and similar commands. Each `type=` starts a band.
    ///
    /// An empty text deletes all meters.
    ///
    /// # Errors
    /// A [`ParseError`] that names the column; also if an add or modify has no `meter=`.
    pub fn parse(command: MeterModCommand, text: &str) -> Result<Self, ParseError> {
        let mut draft = Draft::default();
        let mut items = Span::new(text).items();
        for span in &mut items {
            draft.take(&span.item()?)?;
        }
        let meter_id = match draft.meter_id {
            Some(meter_id) => meter_id,
            None if command == MeterModCommand::Delete => METER_ALL,
            None => return Err(items.rest().error("names the meter", "meter=NUMBER")),
        };
        Ok(Self {
            command,
            flags: draft.flags,
            meter_id,
            bands: List::from(draft.bands),
        })
    }
}

/// A meter being parsed.
#[derive(Default)]
struct Draft {
    meter_id: Option<u32>,
    flags: MeterFlags,
    bands: Vec<MeterBand<'static>>,
}

impl Draft {
    fn take(&mut self, item: &Item<'_>) -> Result<(), ParseError> {
        if let Some((_, flag)) = FLAGS.iter().find(|(name, _)| *name == item.name()) {
            self.flags |= *flag;
            return item.no_value();
        }
        match (item.name(), self.bands.last_mut()) {
            ("meter", _) => self.meter_id = Some(item.value()?.u32_or(&IDS)?),
            ("flags", _) => self.flags = MeterFlags::from_bits_retain(item.value()?.u16()?),
            ("band" | "bands", _) => {
                if let Some(first) = item.value_if_any().filter(|value| !value.is_empty()) {
                    self.take(&first.item()?)?;
                }
            }
            ("type", _) => self.bands.push(parse_type(item.value()?)?),
            ("rate", Some(band)) => *rate_of(band) = item.value()?.u32()?,
            ("burst_size", Some(band)) => *burst_size_of(band) = item.value()?.u32()?,
            ("prec_level", Some(MeterBand::DscpRemark { prec_level, .. })) => {
                *prec_level = item.value()?.u8()?;
            }
            _ => return Err(unknown(item)),
        }
        Ok(())
    }
}

fn unknown(item: &Item<'_>) -> ParseError {
    if WORDS.contains(&item.name()) {
        let problem = "belongs to a band, but no band precedes it";
        return item
            .key
            .error(problem, "type=drop or type=dscp_remark before it");
    }
    let error = item.key.error("is not part of a meter", WORDS.join(", "));
    error.or_did_you_mean(WORDS.into_iter().chain(FLAGS.map(|(name, _)| name)))
}

fn parse_type(value: Span<'_>) -> Result<MeterBand<'static>, ParseError> {
    let (rate, burst_size) = (0, 0);
    match value.text() {
        "drop" => Ok(MeterBand::Drop { rate, burst_size }),
        "dscp_remark" => Ok(MeterBand::DscpRemark {
            rate,
            burst_size,
            prec_level: 0,
        }),
        _ => Err(value.error("is not a type of band", "drop or dscp_remark")),
    }
}

fn rate_of<'b>(band: &'b mut MeterBand<'_>) -> &'b mut u32 {
    match band {
        MeterBand::Drop { rate, .. }
        | MeterBand::DscpRemark { rate, .. }
        | MeterBand::Experimenter { rate, .. } => rate,
    }
}

fn burst_size_of<'b>(band: &'b mut MeterBand<'_>) -> &'b mut u32 {
    match band {
        MeterBand::Drop { burst_size, .. }
        | MeterBand::DscpRemark { burst_size, .. }
        | MeterBand::Experimenter { burst_size, .. } => burst_size,
    }
}

/// Writes the meter for [`MeterMod::parse`], in one line, without the command.
impl fmt::Display for MeterMod<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_meter(f, self.meter_id, self.flags, &self.bands, " ")
    }
}

/// Writes a meter with its bands, each after `separator`; if that is a space, the first one follows `bands=` directly.
pub(super) fn write_meter<'a>(
    out: &mut dyn Write,
    meter_id: u32,
    flags: MeterFlags,
    bands: &List<'a, MeterBand<'a>>,
    separator: &str,
) -> fmt::Result {
    out.write_str("meter=")?;
    write_meter_id(out, meter_id)?;
    write_flags(out, flags)?;
    out.write_str(" bands=")?;
    for (index, band) in bands.iter().enumerate() {
        if index > 0 || separator != " " {
            out.write_str(separator)?;
        }
        write_band(out, &band, flags)?;
    }
    Ok(())
}

/// Writes a meter's number, or the name of a special one.
pub(super) fn write_meter_id(out: &mut dyn Write, meter_id: u32) -> fmt::Result {
    match IDS.iter().find(|(_, id)| *id == meter_id) {
        Some((name, _)) => out.write_str(name),
        None => write!(out, "{meter_id}"),
    }
}

fn write_flags(out: &mut dyn Write, flags: MeterFlags) -> fmt::Result {
    let named = FLAGS
        .iter()
        .fold(MeterFlags::empty(), |all, (_, flag)| all | *flag);
    if !named.contains(flags) {
        return write!(out, " flags={:#x}", flags.bits());
    }
    let set = FLAGS.iter().filter(|(_, flag)| flags.contains(*flag));
    set.map(|(name, _)| name)
        .try_for_each(|name| write!(out, " {name}"))
}

fn write_band(out: &mut dyn Write, band: &MeterBand<'_>, flags: MeterFlags) -> fmt::Result {
    let (name, rate, burst_size) = match *band {
        MeterBand::Drop { rate, burst_size } => ("drop", rate, burst_size),
        MeterBand::DscpRemark {
            rate, burst_size, ..
        } => ("dscp_remark", rate, burst_size),
        MeterBand::Experimenter {
            rate, burst_size, ..
        } => ("experimenter", rate, burst_size),
    };
    write!(out, "type={name} rate={rate}")?;
    if burst_size != 0 || flags.contains(MeterFlags::BURST) {
        write!(out, " burst_size={burst_size}")?;
    }
    match *band {
        MeterBand::Drop { .. } => Ok(()),
        MeterBand::DscpRemark { prec_level, .. } => write!(out, " prec_level={prec_level}"),
        MeterBand::Experimenter {
            experimenter, data, ..
        } => {
            out.write_char(' ')?;
            write_experimenter(out, experimenter, data)
        }
    }
}

const COMMANDS: [(MeterModCommand, &str); 3] = [
    (MeterModCommand::Add, "ADD"),
    (MeterModCommand::Modify, "MOD"),
    (MeterModCommand::Delete, "DEL"),
];

/// Writes a meter mod as `ovs-ofctl ofp-print` does.
pub(super) fn write_meter_mod(out: &mut dyn Write, meter: &MeterMod<'_>) -> fmt::Result {
    match COMMANDS.iter().find(|(known, _)| *known == meter.command) {
        Some((_, name)) => write!(out, " {name} ")?,
        None => write!(out, " cmd:{} ", u16::from(meter.command))?,
    }
    write_meter(out, meter.meter_id, meter.flags, &meter.bands, "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_type_begins_a_band() {
        let text = "meter=1 kbps burst bands=type=drop rate=1000 burst_size=100 type=dscp_remark rate=1 burst_size=0 \
                    prec_level=2";
        let meter = MeterMod::parse(MeterModCommand::Add, text).expect("a meter");
        assert_eq!(meter.bands.len(), 2);
        assert_eq!(meter.to_string(), text);
    }

    #[test]
    fn errors_are_sentences_with_a_column() {
        let error = |text: &str| {
            MeterMod::parse(MeterModCommand::Add, text)
                .expect_err(text)
                .to_string()
        };
        assert_eq!(
            error("kbps"),
            "column 5: nothing names the meter; expected meter=NUMBER"
        );
        assert_eq!(
            error("meter=1,rate=5"),
            "column 9: 'rate' belongs to a band, but no band precedes it; expected type=drop or type=dscp_remark \
             before it"
        );
        assert_eq!(
            error("meter=1,band=type=slow"),
            "column 19: 'slow' is not a type of band; expected drop or dscp_remark"
        );
    }
}
