//! The cells of all meters that flow records refer to.

use crate::fast::datapath::meter_cell::MeterCell;
use crate::{Meter, Meters};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Release;
use std::time::Duration;
use urtica_wire::MeterFlags;

/// Cells, by the number of their meter.
#[derive(Debug, Default)]
pub(super) struct MeterCells {
    cells: HashMap<u32, HeldMeter>,
    /// Meters whose cells are not up to date.
    stale: Vec<u32>,
}

/// A cell, and its data.
#[derive(Debug)]
struct HeldMeter {
    cell: Arc<MeterCell>,
    /// The number of flow records that refer to it.
    records: usize,
    /// The meter that the cell shows.
    meter: Option<Arc<Meter>>,
}

impl MeterCells {
    /// Returns the address of a meter's cell, for another flow record.
    pub fn acquire(&mut self, meter_id: u32) -> u64 {
        let stale = &mut self.stale;
        let held = self.cells.entry(meter_id).or_insert_with(|| {
            stale.push(meter_id);
            HeldMeter {
                cell: Arc::new(MeterCell::new(meter_id)),
                records: 0,
                meter: None,
            }
        });
        held.records += 1;
        Arc::as_ptr(&held.cell) as u64
    }

    /// Releases the cell of a flow record that no packet uses any longer.
    pub fn release(&mut self, meter_id: u32) {
        if let Some(held) = self.cells.get_mut(&meter_id) {
            held.records -= 1;
            if held.records == 0 {
                self.cells.remove(&meter_id);
            }
        }
    }

    /// Notes that a meter was added, modified or deleted.
    pub fn note(&mut self, meter_id: u32) {
        if self.cells.contains_key(&meter_id) {
            self.stale.push(meter_id);
        }
    }

    /// Updates the cells to the current meters. Returns the replaced ones, which packets may still use.
    pub fn refresh(&mut self, meters: &Meters) -> Vec<Arc<Meter>> {
        let mut replaced = Vec::new();
        for meter_id in std::mem::take(&mut self.stale) {
            let Some(held) = self.cells.get_mut(&meter_id) else {
                continue;
            };
            let known = meters.get_shared(meter_id).cloned();
            // Without bands a meter passes all packets, as in the plain form if the meter does not exist.
            let missing = || Arc::new(Meter::new(MeterFlags::empty(), Vec::new(), Duration::ZERO));
            let meter = known.unwrap_or_else(missing);
            let shown = Arc::as_ptr(&meter).cast_mut();
            held.cell.meter.store(shown, Release);
            replaced.extend(held.meter.replace(meter));
        }
        replaced
    }
}
