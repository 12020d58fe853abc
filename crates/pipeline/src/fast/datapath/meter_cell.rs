//! The link from flow records to their meter.

use crate::Meter;
use std::ptr::null_mut;
use std::sync::atomic::AtomicPtr;

/// The target of the flow records of all entries with one meter. Its address is stable while any of them exists; a modified
/// meter is swapped in here, and the old one is kept until no packet can use it.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct MeterCell {
    /// Null until the meter is known, and never again.
    pub meter: AtomicPtr<Meter>,
    /// Its number.
    pub meter_id: u32,
}

impl MeterCell {
    /// The cell of a meter that is not known yet.
    pub fn new(meter_id: u32) -> Self {
        Self {
            meter: AtomicPtr::new(null_mut()),
            meter_id,
        }
    }
}
