//! The demands of flows: their rates if only their hosts limited them (Hedera, section IV.A).

use std::collections::BTreeMap;

/// A host's whole bandwidth: the unit of demands is a millionth of it.
pub(super) const WHOLE: u64 = 1_000_000;

#[derive(Clone, Copy)]
struct Estimate {
    demand: u64,
    /// Whether the flow's receiver limits it, so that its demand is final.
    is_limited: bool,
}

/// Returns the demand of each flow, given by its sender and receiver.
///
/// Senders share their bandwidth among their flows; then receivers that would get too much limit the largest flows. Both
/// steps repeat until nothing changes.
pub(super) fn estimate<H: Ord + Copy>(flows: &[(H, H)]) -> Vec<u64> {
    let nothing = Estimate {
        demand: 0,
        is_limited: false,
    };
    let mut estimates = vec![nothing; flows.len()];
    // Each round but the last limits at least one more flow.
    for _ in 0..=flows.len() {
        share_among_senders(flows, &mut estimates);
        if !limit_by_receivers(flows, &mut estimates) {
            break;
        }
    }
    estimates.iter().map(|estimate| estimate.demand).collect()
}

fn share_among_senders<H: Ord + Copy>(flows: &[(H, H)], estimates: &mut [Estimate]) {
    for places in group(flows.iter().map(|flow| flow.0)).values() {
        let (limited, free): (Vec<_>, Vec<_>) = places
            .iter()
            .partition(|&&place| estimates[place].is_limited);
        let taken: u64 = limited.iter().map(|&&place| estimates[place].demand).sum();
        for &&place in &free {
            estimates[place].demand = WHOLE.saturating_sub(taken) / free.len() as u64;
        }
    }
}

/// Limits the flows of overloaded receivers. Returns `true` if further flows are limited.
fn limit_by_receivers<H: Ord + Copy>(flows: &[(H, H)], estimates: &mut [Estimate]) -> bool {
    let mut has_changed = false;
    for mut places in group(flows.iter().map(|flow| flow.1)).into_values() {
        let total: u64 = places.iter().map(|&place| estimates[place].demand).sum();
        if total <= WHOLE {
            continue;
        }
        // Small flows get their demand, the others share the rest equally.
        places.sort_by_key(|&place| estimates[place].demand);
        let mut left = WHOLE;
        for (before, &place) in places.iter().enumerate() {
            let share = left / (places.len() - before) as u64;
            let estimate = &mut estimates[place];
            if estimate.demand > share {
                has_changed |= !estimate.is_limited;
                *estimate = Estimate {
                    demand: share,
                    is_limited: true,
                };
            }
            left -= estimate.demand;
        }
    }
    has_changed
}

/// Returns the indices at which each host occurs.
fn group<H: Ord>(hosts: impl Iterator<Item = H>) -> BTreeMap<H, Vec<usize>> {
    let mut groups: BTreeMap<H, Vec<usize>> = BTreeMap::new();
    for (place, host) in hosts.enumerate() {
        groups.entry(host).or_default().push(place);
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn flows_of_a_sender_share_its_bandwidth() {
        assert_eq!(estimate(&[(1, 2)]), [WHOLE]);
        assert_eq!(estimate(&[(1, 2), (1, 3)]), [WHOLE / 2; 2]);
        assert_eq!(estimate(&[(1, 3), (2, 3)]), [WHOLE / 2; 2]);
        assert_eq!(estimate::<u8>(&[]), []);
    }

    #[test]
    fn receivers_get_the_unused_rate_of_others() {
        // Host 4 receives a third of each sender's rate; host 5 receives the rest of host 1's.
        let demands = estimate(&[(1, 4), (2, 4), (3, 4), (1, 5)]);
        assert_eq!(demands, [333_333, 333_333, 333_334, 666_667]);
    }

    proptest! {
        #[test]
        fn hosts_stay_within_their_capacity(flows in prop::collection::vec((0..6_u8, 6..12_u8), 0..40)) {
            let demands = estimate(&flows);
            for host in 0..12 {
                let of = |has: fn(&(u8, u8)) -> u8| -> u64 {
                    flows.iter().zip(&demands).filter(|(flow, _)| has(flow) == host).map(|(_, demand)| demand).sum()
                };
                prop_assert!(of(|flow| flow.0) <= WHOLE && of(|flow| flow.1) <= WHOLE);
            }
            prop_assert!(demands.iter().all(|&demand| demand > 0));
        }
    }
}
