//! How much flows would send if only their hosts limited them (Hedera, section IV.A).

use std::collections::BTreeMap;

/// A host's whole bandwidth: demands are in millionths of it.
pub(super) const WHOLE: u64 = 1_000_000;

#[derive(Clone, Copy)]
struct Estimate {
    demand: u64,
    /// Whether its receiver limits it: it requests no more.
    is_limited: bool,
}

/// What each flow, from a host to a host, would send.
///
/// Senders share their bandwidth among their flows; receivers that would get too much limit the largest; and so on, until
/// nothing changes.
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

/// Whether any more flows are limited than before.
fn limit_by_receivers<H: Ord + Copy>(flows: &[(H, H)], estimates: &mut [Estimate]) -> bool {
    let mut has_changed = false;
    for mut places in group(flows.iter().map(|flow| flow.1)).into_values() {
        let total: u64 = places.iter().map(|&place| estimates[place].demand).sum();
        if total <= WHOLE {
            continue;
        }
        // Small flows get what they request, the others share the rest equally.
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

/// The indices of equal ones.
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
    fn a_flow_alone_takes_all_and_several_share() {
        assert_eq!(estimate(&[(1, 2)]), [WHOLE]);
        assert_eq!(estimate(&[(1, 2), (1, 3)]), [WHOLE / 2; 2]);
        assert_eq!(estimate(&[(1, 3), (2, 3)]), [WHOLE / 2; 2]);
        assert_eq!(estimate::<u8>(&[]), []);
    }

    #[test]
    fn rate_left_by_one_receiver_is_given_to_another() {
        // Host 4 takes a third of each; the rest of what host 1 has goes to host 5.
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
