//! Meter mods: adding, changing and deleting meters (1.3.5 section 7.3.4.4).

use crate::change_log::StateChange;
use crate::entry_change::{EntryChange, Kind};
use crate::entry_walk::Wanted;
use crate::meter::METER_FLAGS;
use crate::removed_entry::RemovedEntry;
use crate::{Band, MAX_BANDS, METER_MAX, Meter, Pipeline};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;
use urtica_wire::{
    ErrorCode, FlowRemovedReason, METER_ALL, MeterBand, MeterFlags, MeterMod, MeterModCommand,
};

impl Pipeline {
    /// Executes a meter mod completely, or not at all. Deleting a meter deletes the entries that use it; those whose flags
    /// request a notification are appended to `removed`. Modifying a meter resets it.
    ///
    /// # Errors
    /// The specification's error if the message is invalid.
    pub fn meter_mod(
        &mut self,
        meter_mod: &MeterMod,
        now: Duration,
        removed: &mut Vec<RemovedEntry>,
    ) -> Result<(), ErrorCode> {
        let change = self.begin_meter_mod(meter_mod, now)?;
        self.finish(change, removed);
        Ok(())
    }

    /// Executes a meter mod, but only starts the deletion of entries, for [`Pipeline::go_on`]. Until that is complete, packets of
    /// these entries find no meter.
    ///
    /// # Errors
    /// As for [`Pipeline::meter_mod`].
    pub fn begin_meter_mod(
        &mut self,
        meter_mod: &MeterMod,
        now: Duration,
    ) -> Result<Option<EntryChange>, ErrorCode> {
        use MeterModCommand::*;
        let meter_id = meter_mod.meter_id;
        let is_known = self.meters.get(meter_id).is_some();
        match meter_mod.command {
            Delete if meter_id == METER_ALL => return Ok(Some(self.delete_all_meters())),
            Add | Modify | Delete if meter_id == 0 || meter_id > METER_MAX => {
                return Err(ErrorCode::MeterModFailedInvalidMeter);
            }
            Add if is_known => return Err(ErrorCode::MeterModFailedMeterExists),
            Add if self.meters.meters.len() >= self.config().max_meters as usize => {
                return Err(ErrorCode::MeterModFailedOutOfMeters);
            }
            Modify if !is_known => return Err(ErrorCode::MeterModFailedUnknownMeter),
            Add | Modify => {
                let meter = check_meter(meter_mod, now)?;
                let meter = Arc::new(meter);
                self.log
                    .note(|| StateChange::Meter(meter_id, Some(Arc::clone(&meter))));
                self.meters.meters.insert(meter_id, meter);
                self.follow_meter_changes(std::iter::once(meter_id));
            }
            Delete => return Ok(Some(self.delete_meter(meter_id))),
            Other(_) => return Err(ErrorCode::MeterModFailedBadCommand),
        }
        Ok(None)
    }

    fn delete_all_meters(&mut self) -> EntryChange {
        let deleted = std::mem::take(&mut self.meters.meters);
        for &meter_id in deleted.keys() {
            self.log.note(|| StateChange::Meter(meter_id, None));
        }
        self.follow_meter_changes(deleted.into_keys());
        self.remove_meter_users(None)
    }

    /// Deletes a meter. Deleting a missing one is no error.
    fn delete_meter(&mut self, meter_id: u32) -> EntryChange {
        if self.meters.meters.remove(&meter_id).is_some() {
            self.log.note(|| StateChange::Meter(meter_id, None));
        }
        self.follow_meter_changes(std::iter::once(meter_id));
        self.remove_meter_users(Some(meter_id))
    }

    /// Starts the removal of entries that use a meter, or any. 1.3 has no separate reason for such removals.
    fn remove_meter_users(&self, meter: Option<u32>) -> EntryChange {
        let kind = Kind::Remove(FlowRemovedReason::Delete);
        self.begin_change(0..self.tables.len(), Wanted::MeterUsers(meter), kind)
    }

    /// Returns the number of entries that use a meter.
    pub fn meter_flow_count(&self, meter_id: u32) -> u32 {
        let tables = self.tables.iter();
        tables
            .map(|table| table.meter_users().count(meter_id))
            .sum()
    }
}

/// Checks and converts a meter mod. The unit is kb/s unless OFPMF_PKTPS is set.
pub(crate) fn check_meter(meter_mod: &MeterMod, now: Duration) -> Result<Meter, ErrorCode> {
    let flags = meter_mod.flags;
    if !METER_FLAGS.contains(flags) || flags.contains(MeterFlags::KBPS | MeterFlags::PKTPS) {
        return Err(ErrorCode::MeterModFailedBadFlags);
    }
    if meter_mod.bands.len() > MAX_BANDS {
        return Err(ErrorCode::MeterModFailedOutOfBands);
    }
    let bands: Result<_, _> = meter_mod.bands.iter().map(check_band).collect();
    Ok(Meter::new(flags, bands?, now))
}

/// Checks a band. A band without a rate would drop or change all packets, for which an entry needs no meter; one that raises
/// the drop precedence by 0 has no effect.
fn check_band(band: MeterBand) -> Result<Band, ErrorCode> {
    let band = match band {
        MeterBand::Experimenter { .. } => return Err(ErrorCode::MeterModFailedBadBand),
        MeterBand::Drop { rate: 0, .. } | MeterBand::DscpRemark { rate: 0, .. } => {
            return Err(ErrorCode::MeterModFailedBadRate);
        }
        MeterBand::DscpRemark { prec_level: 0, .. } => {
            return Err(ErrorCode::MeterModFailedBadBandValue);
        }
        MeterBand::Drop { rate, burst_size } => MeterBand::Drop { rate, burst_size },
        MeterBand::DscpRemark {
            rate,
            burst_size,
            prec_level,
        } => MeterBand::DscpRemark {
            rate,
            burst_size,
            prec_level,
        },
    };
    Ok(Band {
        band,
        packets: AtomicU64::new(0),
        bytes: AtomicU64::new(0),
    })
}
