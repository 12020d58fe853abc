//! The host that sends a packet-in: a function of the position in the switch's sequence, so that it need not be stored.
//!
//! cbench's hosts have consecutive addresses, and send round-robin. This is the best case for prefetchers, and for tables that
//! are laid out for consecutive addresses; real hosts have unrelated addresses, and few of them send most packets. Hosts are
//! numbered from 0; a host's address number determines its MAC ([`crate::identity::Identity::source`]).

use crate::config::{Addresses, MAX_MACS};
use crate::random::mix;

/// The number of bits in an address number.
const ADDRESS_BITS: u32 = MAX_MACS.trailing_zeros();

/// The number of fractional bits in [`Hosts::by_zipf`].
const FRACTION_BITS: u32 = 27;

/// The hosts of one switch, and the order in which they send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hosts {
    macs: u32,
    addresses: Addresses,
    /// Makes the draws of switches differ.
    salt: u32,
    /// The binary logarithm of the number of hosts plus one, with [`FRACTION_BITS`] fractional bits.
    log2: u32,
}

impl Hosts {
    /// Creates `macs` hosts for the switch with this datapath id.
    pub fn new(macs: u32, addresses: Addresses, datapath_id: u64) -> Self {
        let log2 = f64::from(macs + 1).log2() * f64::from(1 << FRACTION_BITS);
        Self {
            macs,
            addresses,
            salt: mix(datapath_id) as u32,
            log2: log2 as u32,
        }
    }

    /// Returns the number of the host that sends the packet-in after `seq` others.
    pub fn number_at(self, seq: u64) -> u32 {
        match self.addresses {
            Addresses::InTurn => (seq % u64::from(self.macs)) as u32,
            // If each packet-in needs a new host, hosts cannot be drawn at random.
            Addresses::Random if self.macs == MAX_MACS => (seq % u64::from(self.macs)) as u32,
            Addresses::Random => ((u64::from(self.draw(seq)) * u64::from(self.macs)) >> 32) as u32,
            Addresses::Zipf => self.by_zipf(self.draw(seq)),
        }
    }

    /// Returns the number of the host that sends after `number`, which has sent packet-in `seq`.
    #[inline]
    pub fn number_after(self, number: u32, seq: u64) -> u32 {
        match self.addresses {
            Addresses::InTurn => {
                let next = number + 1;
                if next == self.macs { 0 } else { next }
            }
            _ => self.number_at(seq + 1),
        }
    }

    /// Returns the address number of a host: its own number if addresses are consecutive, otherwise a pseudo-random and unique
    /// one.
    #[inline]
    pub fn address(self, number: u32) -> u32 {
        match self.addresses {
            Addresses::InTurn => number,
            _ => scatter(number),
        }
    }

    fn draw(self, seq: u64) -> u32 {
        (mix(seq ^ (u64::from(self.salt) << 32)) >> 32) as u32
    }

    /// Draws by Zipf's law with exponent 1: the number of hosts plus one, to the power of a uniformly drawn fraction, minus one.
    /// So host `k` is drawn in proportion to `ln(k + 2) - ln(k + 1)`, which is nearly `1 / (k + 1.5)`.
    fn by_zipf(self, drawn: u32) -> u32 {
        const ONE: u64 = 1 << FRACTION_BITS;
        let exponent = (u64::from(drawn) * u64::from(self.log2)) >> 32;
        let (whole, fraction) = (exponent >> FRACTION_BITS, exponent & (ONE - 1));
        // 2 to the power of the fraction, within two parts in a thousand: 1 + x (0.6564 + 0.3436 x).
        let slope = ONE * 6564 / 10_000 + fraction * 3436 / 10_000;
        let power = ONE + ((fraction * slope) >> FRACTION_BITS);
        let number = ((power << whole) >> FRACTION_BITS) - 1;
        (number as u32).min(self.macs - 1)
    }
}

/// Maps numbers below 2^29 to others, one to one, since multiplying by an odd number and folding high bits into low ones are
/// both invertible.
fn scatter(number: u32) -> u32 {
    const MASK: u32 = (1 << ADDRESS_BITS) - 1;
    let number = number.wrapping_mul(0x0a5b_3d25) & MASK;
    let number = number ^ (number >> 15);
    let number = number.wrapping_mul(0x1b87_3593) & MASK;
    number ^ (number >> 13)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    const COUNT: usize = 100_000;

    fn drawn(hosts: Hosts) -> Vec<u32> {
        (0..COUNT as u64).map(|seq| hosts.number_at(seq)).collect()
    }

    #[test]
    fn in_turn_counts_up() {
        let hosts = Hosts::new(7, Addresses::InTurn, 1);
        let numbers: Vec<u32> = (0..9).map(|seq| hosts.number_at(seq)).collect();
        assert_eq!(numbers, [0, 1, 2, 3, 4, 5, 6, 0, 1]);
        assert_eq!(hosts.address(5), 5);
    }

    #[test]
    fn number_after_agrees_with_number_at() {
        for addresses in [Addresses::InTurn, Addresses::Random, Addresses::Zipf] {
            let hosts = Hosts::new(1000, addresses, 3);
            let mut number = hosts.number_at(0);
            for seq in 0..5000 {
                assert_eq!(number, hosts.number_at(seq), "{addresses:?}");
                number = hosts.number_after(number, seq);
            }
        }
    }

    #[test]
    fn random_draws_are_uniform() {
        let mut counts = [0; 10];
        for number in drawn(Hosts::new(10, Addresses::Random, 1)) {
            counts[number as usize] += 1;
        }
        assert!(
            counts.iter().all(|count| (9_500..10_500).contains(count)),
            "{counts:?}"
        );
    }

    #[test]
    fn zipf_draws_favour_few_hosts() {
        let numbers = drawn(Hosts::new(100_000, Addresses::Zipf, 1));
        let share = |range: std::ops::Range<u32>| {
            numbers
                .iter()
                .filter(|number| range.contains(number))
                .count() as f64
                / COUNT as f64
        };
        let expected = |range: &std::ops::Range<u32>| {
            (f64::from(range.end + 1) / f64::from(range.start + 1)).ln() / 100_001f64.ln()
        };
        for range in [0..1, 1..2, 2..10, 10..100, 100..1000, 1000..100_000] {
            let (found, wanted) = (share(range.clone()), expected(&range));
            assert!(
                (found - wanted).abs() < 0.005,
                "{range:?}: {found} for {wanted}"
            );
        }
        assert!(numbers.iter().all(|&number| number < 100_000));
    }

    #[test]
    fn random_addresses_are_distinct_and_far_apart() {
        let hosts = Hosts::new(MAX_MACS, Addresses::Random, 1);
        let addresses: Vec<u32> = (0..COUNT as u32)
            .map(|number| hosts.address(number))
            .collect();
        assert!(addresses.iter().all(|&address| address < MAX_MACS));
        assert_eq!(addresses.iter().collect::<HashSet<_>>().len(), COUNT);
        let near = addresses
            .windows(2)
            .filter(|pair| pair[0].abs_diff(pair[1]) < 1000);
        assert!(near.count() < COUNT / 1000);
        assert_eq!(
            (hosts.number_at(5), hosts.number_at(6)),
            (5, 6),
            "never again"
        );
    }

    #[test]
    fn switches_draw_differently() {
        let [one, two] = [1, 2].map(|id| drawn(Hosts::new(1000, Addresses::Random, id)));
        assert_ne!(one, two);
    }
}
