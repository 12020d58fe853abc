//! A hostile host does not fill flow tables.

use super::{Faced, Invariant};
use crate::Net;
use crate::simulate::Scenario;

/// Counts each switch's entries at the end of the faults.
pub(super) struct BoundedEntries(Option<usize>);

impl BoundedEntries {
    pub fn new(scenario: &Scenario) -> Self {
        Self(scenario.entries_at_most)
    }
}

impl Invariant for BoundedEntries {
    fn sentence(&self) -> &'static str {
        "no host fills the tables of switches"
    }

    fn after_faults(&mut self, net: &mut Net, _faced: &Faced) -> Result<(), String> {
        let Some(most) = self.0 else { return Ok(()) };
        for switch in net.switches() {
            let looked_at = net.switch_mut(switch).map_err(|error| error.to_string())?;
            let entries = looked_at.map_or(0, |switch| switch.entry_count());
            if entries > most {
                let name = net.switch_name(switch).map_err(|error| error.to_string())?;
                return Err(format!("{name} has {entries} entries, more than {most}"));
            }
        }
        Ok(())
    }
}
