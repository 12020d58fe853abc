//! Connected hosts reach each other again within a time limit after the last fault, and always from then on.

use super::{Faced, Invariant};
use crate::names::Names;
use crate::simulate::Scenario;
use crate::{HostId, Net};
use std::time::Duration;

/// Checks by pinging.
pub(super) struct Reachability {
    within: Duration,
    quickly: Option<Duration>,
}

impl Reachability {
    pub fn new(scenario: &Scenario) -> Self {
        Self {
            within: scenario.restored_within,
            quickly: scenario.quickly_restored_within,
        }
    }
}

impl Invariant for Reachability {
    fn sentence(&self) -> &'static str {
        "connected hosts reach each other within a bound after the last fault, and from then on"
    }

    fn after_faults(&mut self, net: &mut Net, faced: &Faced) -> Result<(), String> {
        let end = net.now() + self.within;
        if let Some(quickly) = self.quickly.filter(|_| faced.is_quick) {
            net.run_for(quickly);
            let pairs = faced.connected_pairs(net);
            let left = ping(net, &pairs)?;
            if !left.is_empty() && net.broken().is_none() {
                return Err(format!("after {quickly:?}, {}", tell(net, &left)));
            }
        }
        let mut left = faced.connected_pairs(net);
        while !left.is_empty() && net.broken().is_none() {
            if net.now() > end {
                return Err(format!("after {:?}, {}", self.within, tell(net, &left)));
            }
            left = ping(net, &left)?;
        }
        net.run_to(end);
        Ok(())
    }

    fn after_recovery(&mut self, net: &mut Net, faced: &Faced) -> Result<(), String> {
        let pairs = faced.connected_pairs(net);
        let failed = ping(net, &pairs)?;
        match failed.is_empty() {
            true => Ok(()),
            false => Err(format!("after recovery, {}", tell(net, &failed))),
        }
    }
}

/// Returns the pairs without an answer.
fn ping(net: &mut Net, pairs: &[(HostId, HostId)]) -> Result<Vec<(HostId, HostId)>, String> {
    let report = net.ping_pairs(pairs);
    report
        .map(|report| report.failed)
        .map_err(|error| error.to_string())
}

fn tell(net: &Net, failed: &[(HostId, HostId)]) -> String {
    let names = Names::of(net);
    let pairs = failed
        .iter()
        .map(|&(from, to)| format!("{} to {}", names.host(from), names.host(to)));
    format!("no answer from {}", pairs.collect::<Vec<_>>().join(", "))
}
