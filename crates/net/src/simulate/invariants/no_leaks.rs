//! Nothing is left over.

use super::Invariant;
use crate::simulate::Scenario;
use crate::{Net, SwitchId};
use std::time::Duration;

/// The time in which routine messages arrive: echo requests, and programs' periodic requests to switches.
const SETTLED_WITHIN: Duration = Duration::from_secs(2);

/// Checks the resources used by switches, links and channels when the network is quiescent.
pub(super) struct NoLeaks {
    entries: usize,
}

impl NoLeaks {
    pub fn new(scenario: &Scenario) -> Self {
        Self {
            entries: scenario.entries_when_quiescent,
        }
    }
}

impl Invariant for NoLeaks {
    fn sentence(&self) -> &'static str {
        "nothing is left over when the network is quiescent: entries, frames, bytes, connections"
    }

    fn when_quiescent(&mut self, net: &mut Net) -> Result<(), String> {
        let is_quiet =
            |net: &mut Net| (net.frames_under_way(), net.control_bytes_under_way()) == (0, 0);
        if !net.run_until(is_quiet, SETTLED_WITHIN) {
            let (frames, bytes) = (net.frames_under_way(), net.control_bytes_under_way());
            return Err(format!(
                "{frames} frames and {bytes} bytes to or from the controller are under way"
            ));
        }
        check_connections(net)?;
        check_peers(net)?;
        net.switches()
            .try_for_each(|switch| self.check_switch(net, switch))
    }
}

fn check_connections(net: &Net) -> Result<(), String> {
    let switches = net.switches().len();
    let (of_switches, of_controller) = net.connections();
    let known = net
        .controller()
        .map_or(0, |controller| controller.switches().len());
    match [of_switches, of_controller, known] == [switches; 3] {
        true => Ok(()),
        false => Err(format!(
            "{switches} switches have {of_switches} connections, the controller has {of_controller} and knows {known} switches"
        )),
    }
}

/// Checks that the controller has closed the connections of peers that are not switches of the network.
fn check_peers(net: &Net) -> Result<(), String> {
    match net.peers() {
        0 => Ok(()),
        peers => Err(format!(
            "the controller still has {peers} connections to others than the switches"
        )),
    }
}

impl NoLeaks {
    fn check_switch(&self, net: &mut Net, switch: SwitchId) -> Result<(), String> {
        let name = net
            .switch_name(switch)
            .map_err(|error| error.to_string())?
            .to_owned();
        let Ok(Some(looked_at)) = net.switch_mut(switch) else {
            return Err(format!("{name} is off"));
        };
        let (entries, connections) = (looked_at.entry_count(), looked_at.connection_count());
        if entries > self.entries {
            return Err(format!(
                "{name} has {entries} entries; expected at most {}",
                self.entries
            ));
        }
        match connections {
            1 => Ok(()),
            _ => Err(format!(
                "{name} has {connections} connections; expected one"
            )),
        }
    }
}
