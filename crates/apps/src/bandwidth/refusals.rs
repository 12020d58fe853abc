//! The latest reasons why flows with a demand got no bandwidth, by sender and receiver.

use super::BandwidthError;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// The maximum number of remembered pairs.
const MAX_PAIRS: usize = 1024;

/// The addresses of the sender and the receiver.
pub(super) type Pair = (IpAddr, IpAddr);

/// The latest reasons, in bounded memory.
#[derive(Default)]
pub(super) struct Refusals {
    by_pair: BTreeMap<Pair, (u64, BandwidthError)>,
    /// The pairs in the order in which they were refused last.
    by_number: BTreeMap<u64, Pair>,
    count: u64,
}

impl Refusals {
    /// Notes the reason why a pair's flow was refused. The pair refused longest ago makes space.
    pub fn note(&mut self, pair: Pair, error: BandwidthError) {
        self.forget(pair);
        if self.by_pair.len() >= MAX_PAIRS {
            if let Some((_, oldest)) = self.by_number.pop_first() {
                self.by_pair.remove(&oldest);
            }
        }
        self.count += 1;
        self.by_number.insert(self.count, pair);
        self.by_pair.insert(pair, (self.count, error));
    }

    /// Forgets the reason of a pair whose flow now has bandwidth.
    pub fn forget(&mut self, pair: Pair) {
        if let Some((number, _)) = self.by_pair.remove(&pair) {
            self.by_number.remove(&number);
        }
    }

    pub fn find(&self, pair: Pair) -> Option<BandwidthError> {
        self.by_pair.get(&pair).map(|(_, error)| error.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(number: usize) -> Pair {
        let address = std::net::Ipv4Addr::from_bits(number as u32);
        (address.into(), std::net::Ipv4Addr::LOCALHOST.into())
    }

    #[test]
    fn keeps_the_latest_reasons() {
        let mut refusals = Refusals::default();
        for number in 0..MAX_PAIRS {
            refusals.note(pair(number), BandwidthError::Nothing);
        }
        refusals.note(pair(0), BandwidthError::Busy);
        assert_eq!(refusals.by_number.len(), MAX_PAIRS);
        refusals.note(pair(MAX_PAIRS), BandwidthError::Nothing);
        assert_eq!(refusals.find(pair(0)), Some(BandwidthError::Busy));
        assert_eq!(refusals.find(pair(1)), None, "refused longest ago");
        refusals.forget(pair(0));
        assert_eq!(refusals.find(pair(0)), None);
        assert_eq!(refusals.by_number.len(), refusals.by_pair.len());
    }
}
