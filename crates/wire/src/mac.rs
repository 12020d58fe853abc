//! Ethernet addresses.

use std::fmt;
use std::str::FromStr;

/// A 48-bit MAC address (IEEE 802, EUI-48).
///
/// It is printed as `02:00:00:00:00:01`, and parsed in that form and as `02-00-00-00-00-01`.
///
/// It is stored as a number, in which the first byte sent is the most significant: a controller mostly hashes and compares
/// addresses, each of which then needs one instruction.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MacAddr(u64);

impl MacAddr {
    /// `ff:ff:ff:ff:ff:ff`: every station.
    pub const BROADCAST: Self = Self(0xffff_ffff_ffff);

    /// `00:00:00:00:00:00`: no station; the unknown target of an ARP request.
    pub const ZERO: Self = Self(0);

    /// Returns the address with these six bytes, in the order in which they are sent.
    #[inline]
    pub const fn new(octets: [u8; 6]) -> Self {
        let [a, b, c, d, e, f] = octets;
        Self(u64::from_be_bytes([0, 0, a, b, c, d, e, f]))
    }

    /// Returns the address in the low 48 bits of `value`; the high 16 bits are ignored.
    #[inline]
    pub const fn from_u64(value: u64) -> Self {
        Self(value & Self::BROADCAST.0)
    }

    /// Returns the address as a number: the first byte sent is the most significant of 48 bits.
    #[inline]
    pub const fn to_u64(self) -> u64 {
        self.0
    }

    /// Returns the six bytes, in the order in which they are sent.
    #[inline]
    pub const fn octets(self) -> [u8; 6] {
        let [_, _, octets @ ..] = self.0.to_be_bytes();
        octets
    }

    /// Returns `true` if the address stands for a group of stations, such as the broadcast address.
    #[inline]
    pub const fn is_multicast(self) -> bool {
        self.0 >> 40 & 1 != 0
    }

    /// Returns `true` if bridges do not forward frames to the address: 01:80:c2:00:00:00 to :0f, which spanning tree, LLDP and
    /// pause frames use (IEEE 802.1Q section 8.6.3).
    #[inline]
    pub const fn is_link_local(self) -> bool {
        self.to_u64() >> 4 == 0x0180_c200_0000 >> 4
    }

    /// Returns `true` if the address stands for every station.
    #[inline]
    pub const fn is_broadcast(self) -> bool {
        self.to_u64() == Self::BROADCAST.to_u64()
    }
}

impl From<[u8; 6]> for MacAddr {
    #[inline]
    fn from(octets: [u8; 6]) -> Self {
        Self::new(octets)
    }
}

impl From<MacAddr> for [u8; 6] {
    #[inline]
    fn from(address: MacAddr) -> Self {
        address.octets()
    }
}

impl fmt::Display for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.octets();
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

/// Prints like `Display`.
impl fmt::Debug for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The error that a text is not a MAC address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{text}' is not a MAC address: expected six pairs of hex digits separated by ':' or '-', \
     such as 02:00:00:00:00:01"
)]
pub struct ParseMacAddrError {
    text: String,
}

impl FromStr for MacAddr {
    type Err = ParseMacAddrError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse_octets(text)
            .map(Self::new)
            .ok_or_else(|| ParseMacAddrError {
                text: text.to_owned(),
            })
    }
}

/// Parses the six bytes in `text`; `None` if it has another form or mixes separators.
fn parse_octets(text: &str) -> Option<[u8; 6]> {
    let separator = if text.contains('-') { '-' } else { ':' };
    let mut groups = text.split(separator);
    let mut octets = [0; 6];
    for octet in &mut octets {
        *octet = parse_octet(groups.next()?)?;
    }
    groups.next().is_none().then_some(octets)
}

/// Parses a byte of exactly two hex digits: `from_str_radix` would also accept `+5` and `5`.
fn parse_octet(group: &str) -> Option<u8> {
    let two_digits = group.len() == 2 && group.bytes().all(|byte| byte.is_ascii_hexdigit());
    two_digits
        .then(|| u8::from_str_radix(group, 16).ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SAMPLE: MacAddr = MacAddr::new([0x02, 0x00, 0x5e, 0x10, 0xab, 0x01]);

    #[test]
    fn prints_as_lower_case_pairs_with_colons() {
        assert_eq!(SAMPLE.to_string(), "02:00:5e:10:ab:01");
        assert_eq!(format!("{SAMPLE:?}"), "02:00:5e:10:ab:01");
    }

    #[test]
    fn reads_colons_and_dashes_in_either_case() {
        assert_eq!("02:00:5e:10:ab:01".parse(), Ok(SAMPLE));
        assert_eq!("02-00-5E-10-AB-01".parse(), Ok(SAMPLE));
    }

    #[test]
    fn refuses_other_forms_and_names_the_expected_one() {
        let others = [
            "",
            "02",
            "02:00:5e:10:ab",
            "02:00:5e:10:ab:01:02",
            "02:00-5e:10:ab:01",
            "2:0:5e:10:ab:1",
            "+2:00:5e:10:ab:01",
            "02:00:5e:10:ab:0g",
            "ä:00:5e:10:ab:01",
        ];
        let expected = "expected six pairs of hex digits separated by ':' or '-', \
                        such as 02:00:00:00:00:01";
        for text in others {
            let error = text.parse::<MacAddr>().expect_err(text).to_string();
            assert_eq!(error, format!("'{text}' is not a MAC address: {expected}"));
        }
    }

    #[test]
    fn numbers_are_most_significant_byte_first() {
        assert_eq!(SAMPLE.to_u64(), 0x0200_5e10_ab01);
        assert_eq!(MacAddr::from_u64(0xffff_0200_5e10_ab01), SAMPLE);
    }

    #[test]
    fn distinguishes_groups_from_stations() {
        assert!(MacAddr::BROADCAST.is_broadcast() && MacAddr::BROADCAST.is_multicast());
        assert!(MacAddr::new([0x01, 0x80, 0xc2, 0, 0, 0x0e]).is_multicast());
        assert!(!SAMPLE.is_multicast() && !SAMPLE.is_broadcast() && !MacAddr::ZERO.is_multicast());
    }

    proptest! {
        #[test]
        fn text_and_number_round_trip(octets: [u8; 6]) {
            let address = MacAddr::new(octets);
            prop_assert_eq!(address.to_string().parse(), Ok(address));
            prop_assert_eq!(address.to_string().replace(':', "-").parse(), Ok(address));
            prop_assert_eq!(MacAddr::from_u64(address.to_u64()), address);
        }

        #[test]
        fn parsing_never_panics(text: String) {
            let _ = text.parse::<MacAddr>();
        }
    }
}
