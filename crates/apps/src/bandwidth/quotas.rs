//! Quotas of the flows, and of the bandwidth, that the hosts of one port may have.

use std::collections::BTreeMap;

use urtica_topology::PortId;

use super::BandwidthError;

/// The limits of reservations and of flows without one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Quotas {
    /// The maximum number of all flows.
    pub total: usize,
    /// The maximum number of flows that start at one port.
    pub port_flows: usize,
    /// The maximum total reservation of these flows, in bits per second; `None` for the port's rate.
    pub port_bps: Option<u64>,
}

/// The totals of the flows that start at one port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Charge {
    flows: usize,
    bps: u64,
}

/// The charges of each port.
#[derive(Debug, Default)]
pub(super) struct Charges(BTreeMap<PortId, Charge>);

impl Charges {
    /// Returns the error if a flow with this bandwidth may not start at `port`, whose rate is `capacity_bps`.
    pub fn refusal(
        &self,
        port: PortId,
        bps: u64,
        capacity_bps: u64,
        quotas: &Quotas,
    ) -> Option<BandwidthError> {
        let charge = self.0.get(&port).copied().unwrap_or_default();
        let max_bps = quotas.port_bps.unwrap_or(capacity_bps);
        if charge.flows >= quotas.port_flows {
            let max = quotas.port_flows;
            return Some(BandwidthError::TooManyOfPort { port, max });
        }
        let is_beyond = bps > max_bps.saturating_sub(charge.bps);
        is_beyond.then_some(BandwidthError::TooMuchOfPort {
            port,
            bps,
            reserved_bps: charge.bps,
            max_bps,
        })
    }

    /// Charges a port for a flow.
    pub fn add(&mut self, port: PortId, bps: u64) {
        let charge = self.0.entry(port).or_default();
        charge.flows += 1;
        charge.bps += bps;
    }

    /// Undoes [`Charges::add`].
    pub fn remove(&mut self, port: PortId, bps: u64) {
        let Some(charge) = self.0.get_mut(&port) else {
            return;
        };
        charge.flows -= 1;
        charge.bps -= bps;
        if charge.flows == 0 {
            self.0.remove(&port);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use urtica_wire::{DatapathId, PortNo};

    const QUOTAS: Quotas = Quotas {
        total: 100,
        port_flows: 2,
        port_bps: Some(10),
    };

    fn port(number: u32) -> PortId {
        PortId::new(DatapathId(1), PortNo(number))
    }

    #[test]
    fn quotas_limit_flows_and_bandwidth_of_a_port() {
        let mut charges = Charges::default();
        let refusal = |charges: &Charges, number, bps| {
            let refusal = charges.refusal(port(number), bps, 1_000, &QUOTAS);
            refusal.map(|error| error.to_string())
        };
        assert_eq!(refusal(&charges, 1, 10), None);
        charges.add(port(1), 8);
        assert_eq!(refusal(&charges, 1, 2), None);
        assert_eq!(
            refusal(&charges, 1, 3).unwrap(),
            "the hosts of port 0000000000000001:1 have reserved 8 of their 10 b/s, and requested 3; release some, or raise --bandwidth-per-port"
        );
        charges.add(port(1), 0);
        assert_eq!(
            refusal(&charges, 1, 0).unwrap(),
            "the hosts of port 0000000000000001:1 have 2 flows already; wait until some end, or raise --bandwidth-flows-per-port"
        );
        assert_eq!(refusal(&charges, 2, 10), None, "another port");
        charges.remove(port(1), 8);
        assert_eq!(refusal(&charges, 1, 10), None);
        charges.remove(port(1), 0);
        assert!(charges.0.is_empty());
    }

    #[test]
    fn ports_may_reserve_their_own_rate_by_default() {
        let quotas = Quotas {
            port_bps: None,
            ..QUOTAS
        };
        let charges = Charges::default();
        assert_eq!(charges.refusal(port(1), 1_000, 1_000, &quotas), None);
        assert!(charges.refusal(port(1), 1_001, 1_000, &quotas).is_some());
    }
}
