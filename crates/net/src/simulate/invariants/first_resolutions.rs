//! A host that sweeps does not keep other hosts from being resolved.

use super::{Faced, Invariant};
use crate::Net;
use crate::names::Names;
use crate::simulate::Scenario;
use std::time::Duration;

/// Checks the pings of hosts that were unknown while another host swept.
pub(super) struct FirstResolutions {
    within: Option<Duration>,
}

impl FirstResolutions {
    pub fn new(scenario: &Scenario) -> Self {
        Self {
            within: scenario.resolved_within,
        }
    }
}

impl Invariant for FirstResolutions {
    fn sentence(&self) -> &'static str {
        "a host is found within a bound while another one sweeps"
    }

    fn after_faults(&mut self, net: &mut Net, faced: &Faced) -> Result<(), String> {
        let Some(within) = self.within.filter(|_| !faced.has_accidents) else {
            return Ok(());
        };
        for resolution in &faced.resolutions {
            // Hostile hosts, and hosts that were made to request many addresses, have used up their own shares.
            let is_share_used = faced.provoked.contains(&resolution.pair.0);
            if is_share_used || faced.is_offended_by(resolution.pair) {
                continue;
            }
            let report = net.ping_report(resolution.ping);
            let report = report.map_err(|error| error.to_string())?;
            if report.received == 0 || report.rtt_max > within {
                let (names, (from, to)) = (Names::of(net), resolution.pair);
                let (from, to) = (names.host(from), names.host(to));
                return Err(match report.received {
                    0 => format!("{to} has not answered the first ping of {from}"),
                    _ => format!(
                        "{to} has answered the first ping of {from} after {:?}; expected {within:?}",
                        report.rtt_max
                    ),
                });
            }
        }
        Ok(())
    }
}
