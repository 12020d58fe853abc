//! Cells, which link flow records to meters.

use crate::Meter;
use std::ptr::null_mut;
use std::sync::atomic::AtomicPtr;

/// The target of the flow records of all entries with one meter. Its address is stable while any of them exists. A modified
/// meter is swapped in here, and the old one is kept until no packet can use it.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct MeterCell {
    /// The meter; null until it is known, and never again.
    pub meter: AtomicPtr<Meter>,
    /// The meter's number.
    pub meter_id: u32,
}

impl MeterCell {
    /// Creates the cell of a meter that is not known yet.
    pub fn new(meter_id: u32) -> Self {
        Self {
            meter: AtomicPtr::new(null_mut()),
            meter_id,
        }
    }
}
