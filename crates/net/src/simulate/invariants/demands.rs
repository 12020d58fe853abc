//! A flow with a demand is either carried whole or refused with a reason.

use super::{Faced, Invariant};
use crate::names::Names;
use crate::simulate::{Refused, Scenario};
use crate::{Datagrams, Draw, HostId, Net, NetError};
use std::rc::Rc;
use std::time::Duration;

/// The number of flows in the check.
const FLOWS: usize = 3;

/// The datagrams of each flow.
const DATAGRAMS: Datagrams = Datagrams {
    count: 20,
    payload_bytes: 64,
    interval: Duration::from_millis(20),
};

/// The duration of a flow.
const DONE_WITHIN: Duration = Duration::from_secs(2);

/// Sends datagrams, which have a demand.
pub(super) struct Demands {
    refused: Option<Refused>,
    draw: Draw,
}

impl Demands {
    pub fn new(scenario: &Scenario, seed: u64) -> Self {
        Self {
            refused: scenario.refused.as_ref().map(Rc::clone),
            draw: Draw::of(seed, "demands"),
        }
    }

    /// Draws some of these pairs, without repetition.
    fn choose(&mut self, mut pairs: Vec<(HostId, HostId)>) -> Vec<(HostId, HostId)> {
        let count = FLOWS.min(pairs.len());
        let choose = |_| pairs.swap_remove(self.draw.place(pairs.len()));
        (0..count).map(choose).collect()
    }
}

impl Invariant for Demands {
    fn sentence(&self) -> &'static str {
        "a flow with a demand is carried whole, or refused with a reason"
    }

    fn after_recovery(&mut self, net: &mut Net, faced: &Faced) -> Result<(), String> {
        let Some(refused) = self.refused.as_ref().map(Rc::clone) else {
            return Ok(());
        };
        for pair in self.choose(faced.connected_pairs(net)) {
            let lost = send(net, pair, &refused);
            if let Some(lost) = lost.map_err(|error| error.to_string())? {
                let names = Names::of(net);
                return Err(format!(
                    "{lost} of {} datagrams from {} to {} were lost, and the flow was not refused",
                    DATAGRAMS.count,
                    names.host(pair.0),
                    names.host(pair.1)
                ));
            }
        }
        Ok(())
    }
}

/// Sends a flow. Returns the number of lost datagrams if some are lost although the flow was not refused.
fn send(
    net: &mut Net,
    (from, to): (HostId, HostId),
    refused: &Refused,
) -> Result<Option<u64>, NetError> {
    let flow = net.start_datagrams(from, to, DATAGRAMS)?;
    net.run_for(DONE_WITHIN);
    let [(_, src), (_, dst)] = [net.host_addresses(from)?, net.host_addresses(to)?];
    let lost = DATAGRAMS.count - net.flow_report(flow)?.received.min(DATAGRAMS.count);
    Ok((lost > 0 && refused(src, dst).is_none()).then_some(lost))
}
