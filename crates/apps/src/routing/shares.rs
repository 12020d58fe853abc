//! Shares of the entries: the port to which each flow is charged, and the number of flows that a port may have.
//!
//! **Why.** Each flow has an entry in every switch of its path. A host that forges source addresses, or sweeps the known
//! addresses, starts a flow with each of them, and could fill the tables of all switches.
//!
//! **What.** A flow is charged to the port that started the conversation: its source's, or, if the reverse flow has a path,
//! the port to which that flow is charged. While a port is charged for its maximum, further flows of its hosts get no entries,
//! and neither do flows to them, which may be replies to forged senders. The controller forwards their packets.
//!
//! **When a table is full**, a flow of another port displaces flows of the port with the most flows over that switch: half of
//! the surplus over the other port's flows. It displaces several because it is unknown which of them the switch has refused.
//!
//! **Cost.** Some look-ups per hop when a flow gets a path or loses it; while a table is full, a check of each port that has
//! flows over the switch.

use super::Flow;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;
use urtica_services::EVENT_INTERVAL;
use urtica_topology::{Path, PortId};
use urtica_wire::DatapathId;

/// The shares of all ports.
pub(super) struct Shares {
    /// The maximum number of flows that are charged to a port.
    limit: usize,
    payers: BTreeMap<Flow, PortId>,
    /// The number of flows that are charged to each port.
    charged: BTreeMap<PortId, usize>,
    /// The flows over each switch, by the port to which they are charged.
    over: BTreeMap<DatapathId, BTreeMap<PortId, BTreeSet<Flow>>>,
    /// The time of the last log line about each port at its limit.
    told: BTreeMap<PortId, Instant>,
}

impl Shares {
    /// Creates the shares of ports that are charged for at most `limit` flows.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            payers: BTreeMap::new(),
            charged: BTreeMap::new(),
            over: BTreeMap::new(),
            told: BTreeMap::new(),
        }
    }

    /// Adds a flow that gets a path.
    pub fn insert(&mut self, flow: Flow, path: &Path) {
        let Some(from) = path.begin() else { return };
        let payer = self.payer(&flow, from);
        self.payers.insert(flow, payer);
        *self.charged.entry(payer).or_default() += 1;
        for hop in &path.hops {
            let ports = self.over.entry(hop.switch).or_default();
            ports.entry(payer).or_default().insert(flow);
        }
    }

    /// Removes a flow that loses this path.
    pub fn remove(&mut self, flow: &Flow, path: &Path) {
        let Some(payer) = self.payers.remove(flow) else {
            return;
        };
        if let Some(charged) = self.charged.get_mut(&payer) {
            *charged -= 1;
            if *charged == 0 {
                self.charged.remove(&payer);
            }
        }
        for hop in &path.hops {
            self.remove_over(hop.switch, payer, flow);
        }
    }

    fn remove_over(&mut self, switch: DatapathId, payer: PortId, flow: &Flow) {
        let Some(ports) = self.over.get_mut(&switch) else {
            return;
        };
        if let Some(flows) = ports.get_mut(&payer) {
            flows.remove(flow);
            if flows.is_empty() {
                ports.remove(&payer);
            }
        }
        if ports.is_empty() {
            self.over.remove(&switch);
        }
    }

    /// Returns the port to which a flow from this port is charged, or would be.
    pub fn payer(&self, flow: &Flow, from: PortId) -> PortId {
        let payer = self.payers.get(flow);
        let payer = payer.or_else(|| self.payers.get(&flow.reversed()));
        payer.copied().unwrap_or(from)
    }

    /// Returns `true` if a new flow between these ports may have entries.
    pub fn has_room(&mut self, flow: &Flow, from: PortId, to: PortId, now: Instant) -> bool {
        let ports = [self.payer(flow, from), to];
        let full = ports
            .into_iter()
            .find(|port| self.charged(*port) >= self.limit);
        if let Some(port) = full {
            self.warn_of_full(port, now);
        }
        full.is_none()
    }

    /// Returns the flows over a switch whose table is full that make space for a flow charged to this port: flows of the port
    /// with the most flows there, if that has more than this port will have.
    pub fn find_displaced(&self, switch: DatapathId, payer: PortId) -> Vec<Flow> {
        let Some(ports) = self.over.get(&switch) else {
            return Vec::new();
        };
        let own = ports.get(&payer).map_or(0, BTreeSet::len);
        let largest = ports.values().max_by_key(|flows| flows.len());
        let larger = largest.filter(|flows| flows.len() > own + 1);
        let displaced = larger.map(|flows| flows.iter().rev().take((flows.len() - own) / 2));
        displaced.into_iter().flatten().copied().collect()
    }

    fn charged(&self, port: PortId) -> usize {
        self.charged.get(&port).copied().unwrap_or(0)
    }

    fn warn_of_full(&mut self, port: PortId, now: Instant) {
        if self.is_worth_telling(port, now) {
            urtica_log::warn!(about: port, %port, flows = self.limit, "a port's hosts have started too many flows; forwarding further ones without entries");
        }
    }

    fn is_worth_telling(&mut self, port: PortId, now: Instant) -> bool {
        self.told.retain(|_, told| now < *told + EVENT_INTERVAL);
        let is_new = !self.told.contains_key(&port);
        self.told.entry(port).or_insert(now);
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use urtica_topology::Hop;
    use urtica_wire::{MacAddr, PortNo};

    const SWITCH: DatapathId = DatapathId(1);
    const LIMIT: usize = 4;

    fn port(port_no: u32) -> PortId {
        PortId::new(SWITCH, PortNo(port_no))
    }

    fn flow(src: u64, dst: u64) -> Flow {
        let [src, dst] = [src, dst].map(MacAddr::from_u64);
        Flow {
            tag: None,
            src,
            dst,
        }
    }

    /// Returns a path over the only switch.
    fn path(from: u32, to: u32) -> Path {
        Path {
            hops: vec![Hop {
                switch: SWITCH,
                in_port: PortNo(from),
                out_port: PortNo(to),
            }],
        }
    }

    /// Returns the flows from forged senders at port 1 to host 9 at port 2 that reach the limit.
    fn swept() -> (Shares, Vec<Flow>) {
        let mut shares = Shares::new(LIMIT);
        let mut admitted = Vec::new();
        for src in 100..200 {
            let flow = flow(src, 9);
            if shares.has_room(&flow, port(1), port(2), Instant::now()) {
                shares.insert(flow, &path(1, 2));
                admitted.push(flow);
            }
        }
        (shares, admitted)
    }

    #[test]
    fn forged_senders_exhaust_only_their_port() {
        let (mut shares, admitted) = swept();
        let now = Instant::now();
        assert_eq!(admitted.len(), LIMIT);
        assert!(
            !shares.has_room(&flow(9, 150), port(2), port(1), now),
            "an answer"
        );
        assert!(shares.has_room(&flow(9, 8), port(2), port(3), now));
        shares.remove(&admitted[0], &path(1, 2));
        assert!(shares.has_room(&flow(150, 9), port(1), port(2), now));
    }

    #[test]
    fn answers_are_charged_to_the_initiator() {
        let mut shares = Shares::new(LIMIT);
        for dst in 1..=2 {
            shares.insert(flow(9, dst), &path(2, 1));
            shares.insert(flow(dst, 9), &path(1, 2));
        }
        assert_eq!(shares.charged(port(2)), LIMIT);
        assert_eq!(shares.charged(port(1)), 0);
    }

    #[test]
    fn removing_flows_leaves_no_records() {
        let (mut shares, admitted) = swept();
        for flow in &admitted {
            shares.remove(flow, &path(1, 2));
            shares.remove(flow, &path(1, 2));
        }
        assert!(shares.payers.is_empty() && shares.charged.is_empty() && shares.over.is_empty());
    }

    #[test]
    fn largest_share_of_a_full_table_makes_space() {
        let (mut shares, admitted) = swept();
        let displaced = shares.find_displaced(SWITCH, port(2));
        assert_eq!(displaced.len(), LIMIT / 2);
        for lost in &displaced {
            assert!(admitted.contains(lost));
            shares.remove(lost, &path(1, 2));
        }
        shares.insert(flow(9, 10), &path(2, 3));
        for (switch, payer) in [(SWITCH, 1), (SWITCH, 2), (DatapathId(2), 3)] {
            assert_eq!(shares.find_displaced(switch, port(payer)), [], "{payer}");
        }
    }

    #[test]
    fn full_shares_are_logged_once_per_interval() {
        let (mut shares, now) = (Shares::new(LIMIT), Instant::now());
        let mut tells = |port_no, at| shares.is_worth_telling(port(port_no), at);
        assert!(tells(1, now) && tells(2, now));
        let before = now + EVENT_INTERVAL - Duration::from_millis(1);
        assert!(!tells(1, now) && !tells(1, before));
        assert!(tells(1, now + EVENT_INTERVAL));
    }
}
