//! IP prefixes.

use std::fmt;
use std::net::{AddrParseError, Ipv4Addr, Ipv6Addr};
use std::num::ParseIntError;
use std::str::FromStr;

/// The error that an address and a length, or a text, are not a prefix.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PrefixError {
    /// The part before the slash is not an address of this version.
    #[error("'{text}' is not an IP prefix: {error}; expected ADDRESS/LENGTH, as in {example}")]
    Address {
        /// The text.
        text: String,
        /// The error in the address.
        error: AddrParseError,
        /// An example of a prefix.
        example: &'static str,
    },
    /// The part after the slash is not a number.
    #[error(
        "'{text}' is not an IP prefix: its length is not a number ({error}); expected ADDRESS/LENGTH, as in {example}"
    )]
    Length {
        /// The text.
        text: String,
        /// The error in the length.
        error: ParseIntError,
        /// An example of a prefix.
        example: &'static str,
    },
    /// The prefix is longer than an address.
    #[error("a prefix of {length} bits is longer than an address; expected at most {max}")]
    TooLong {
        /// The requested length in bits.
        length: u8,
        /// The number of bits of an address.
        max: u8,
    },
    /// The address has bits set after the prefix: it identifies a host instead of a network.
    #[error("{address} has bits set after the first {length}; expected {network}/{length}")]
    HostBits {
        /// The address.
        address: std::net::IpAddr,
        /// The length, in bits.
        length: u8,
        /// The address with the host bits cleared.
        network: std::net::IpAddr,
    },
}

/// Defines a prefix. Columns: type, type of addresses, type of their bits as a number, number of bits, an example.
macro_rules! prefix {
    ($(#[$meta:meta])* $type:ident($address:ty, $bits:ty, $max:literal), $example:literal) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $type {
            address: $address,
            length: u8,
        }

        impl $type {
            /// The number of bits of an address.
            const MAX_LENGTH: u8 = $max;

            /// Creates the prefix of addresses whose first `length` bits are those of `address`.
            ///
            /// # Errors
            /// [`PrefixError::TooLong`] if an address has fewer bits; [`PrefixError::HostBits`] if `address` has other bits set.
            pub fn new(address: $address, length: u8) -> Result<Self, PrefixError> {
                if length > Self::MAX_LENGTH {
                    let max = Self::MAX_LENGTH;
                    return Err(PrefixError::TooLong { length, max });
                }
                let network = <$address>::from_bits(address.to_bits() & Self::mask_of(length));
                if network != address {
                    return Err(PrefixError::HostBits {
                        address: address.into(),
                        length,
                        network: network.into(),
                    });
                }
                Ok(Self { address, length })
            }

            #[inline]
            fn mask_of(length: u8) -> $bits {
                let cleared = u32::from(Self::MAX_LENGTH - length);
                <$bits>::MAX.checked_shl(cleared).unwrap_or(0)
            }

            /// Returns the first address of the prefix.
            #[inline]
            pub fn address(self) -> $address {
                self.address
            }

            /// Returns the length of the prefix in bits.
            #[inline]
            pub fn length(self) -> u8 {
                self.length
            }

            /// Returns the mask of the prefix.
            #[inline]
            pub fn mask(self) -> $address {
                <$address>::from_bits(Self::mask_of(self.length))
            }

            /// Returns `true` if `address` is within the prefix.
            pub fn contains(self, address: $address) -> bool {
                address.to_bits() & Self::mask_of(self.length) == self.address.to_bits()
            }
        }

        /// The prefix that contains only this address.
        impl From<$address> for $type {
            #[inline]
            fn from(address: $address) -> Self {
                let length = Self::MAX_LENGTH;
                Self { address, length }
            }
        }

        impl FromStr for $type {
            type Err = PrefixError;

            #[doc = concat!("Reads `", $example, "`; an address without a length is a prefix of all its bits.")]
            fn from_str(text: &str) -> Result<Self, PrefixError> {
                let (address, length) = match text.split_once('/') {
                    Some((address, length)) => (address, Some(length)),
                    None => (text, None),
                };
                let example = $example;
                let address = address.parse().map_err(|error| {
                    let text = text.to_owned();
                    PrefixError::Address { text, error, example }
                })?;
                let length = length.map_or(Ok(Self::MAX_LENGTH), str::parse).map_err(|error| {
                    let text = text.to_owned();
                    PrefixError::Length { text, error, example }
                })?;
                Self::new(address, length)
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}/{}", self.address, self.length)
            }
        }

        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    };
}

prefix! {
    /// A block of IPv4 addresses with the same first bits: `10.1.0.0/16`.
    ///
    /// ```
    /// use std::net::Ipv4Addr;
    /// use urtica_wire::{Ipv4Prefix, Match};
    ///
    /// let network: Ipv4Prefix = "10.1.0.0/16".parse()?;
    /// assert!(network.contains(Ipv4Addr::new(10, 1, 2, 3)));
    /// assert_eq!(Ipv4Prefix::new(Ipv4Addr::new(10, 1, 0, 0), 16)?, network);
    ///
    /// let match_ = Match::any().eth_type(0x0800).ipv4_dst(network);
    /// assert_eq!(match_.to_string(), "ip,nw_dst=10.1.0.0/16");
    ///
    /// let error = "10.1.2.3/16".parse::<Ipv4Prefix>().unwrap_err();
    /// assert_eq!(
    ///     error.to_string(),
    ///     "10.1.2.3 has bits set after the first 16; expected 10.1.0.0/16"
    /// );
    /// # Ok::<(), urtica_wire::PrefixError>(())
    /// ```
    Ipv4Prefix(Ipv4Addr, u32, 32), "10.1.0.0/16"
}

prefix! {
    /// A block of IPv6 addresses with the same first bits: `2001:db8::/32`.
    ///
    /// ```
    /// use urtica_wire::{EtherType, Ipv6Prefix, Match};
    ///
    /// let network: Ipv6Prefix = "2001:db8::/32".parse()?;
    /// let match_ = Match::any().eth_type(EtherType::IPV6).ipv6_src(network);
    /// assert_eq!(match_.to_string(), "ipv6,ipv6_src=2001:db8::/32");
    /// # Ok::<(), urtica_wire::PrefixError>(())
    /// ```
    Ipv6Prefix(Ipv6Addr, u128, 128), "2001:db8::/32"
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn refused<T: FromStr<Err = PrefixError> + fmt::Debug>(text: &str) -> String {
        text.parse::<T>().expect_err(text).to_string()
    }

    #[test]
    fn an_address_alone_is_a_prefix_of_all_its_bits() {
        let alone: Ipv4Prefix = "10.0.0.1".parse().unwrap();
        assert_eq!(alone, Ipv4Addr::new(10, 0, 0, 1).into());
        assert_eq!(alone.to_string(), "10.0.0.1/32");
        assert_eq!("::1".parse(), Ok(Ipv6Prefix::from(Ipv6Addr::LOCALHOST)));
    }

    #[test]
    fn a_prefix_of_no_bits_has_every_address() {
        let all: Ipv4Prefix = "0.0.0.0/0".parse().unwrap();
        assert!(all.contains(Ipv4Addr::BROADCAST));
        assert_eq!(all.mask(), Ipv4Addr::UNSPECIFIED);
    }

    #[test]
    fn errors_name_the_expected_input() {
        assert_eq!(
            refused::<Ipv4Prefix>("10.1/16"),
            "'10.1/16' is not an IP prefix: invalid IPv4 address syntax; expected ADDRESS/LENGTH, as in 10.1.0.0/16"
        );
        assert_eq!(
            refused::<Ipv4Prefix>("10.1.0.0/wide"),
            "'10.1.0.0/wide' is not an IP prefix: its length is not a number (invalid digit found in string); expected \
             ADDRESS/LENGTH, as in 10.1.0.0/16"
        );
        assert_eq!(
            refused::<Ipv4Prefix>("10.1.0.0/33"),
            "a prefix of 33 bits is longer than an address; expected at most 32"
        );
        assert_eq!(
            refused::<Ipv6Prefix>("2001:db8::1/32"),
            "2001:db8::1 has bits set after the first 32; expected 2001:db8::/32"
        );
        assert!(refused::<Ipv6Prefix>("10.1.0.0/16").contains("as in 2001:db8::/32"));
    }

    proptest! {
        #[test]
        fn text_and_prefix_round_trip(bits: u128, length in 0..=128_u8) {
            let network = Ipv6Addr::from_bits(bits & Ipv6Prefix::mask_of(length));
            let prefix = Ipv6Prefix::new(network, length).unwrap();
            prop_assert_eq!(prefix.to_string().parse(), Ok(prefix));
            prop_assert!(prefix.contains(network));
        }

        #[test]
        fn a_prefix_contains_the_addresses_with_its_first_bits(a: u32, b: u32, length in 0..=32_u8) {
            let network = Ipv4Addr::from_bits(a & Ipv4Prefix::mask_of(length));
            let prefix = Ipv4Prefix::new(network, length).unwrap();
            let common = (a ^ b).leading_zeros() >= u32::from(length);
            prop_assert_eq!(prefix.contains(b.into()), common);
        }

        #[test]
        fn parsing_never_panics(text: String) {
            let _ = text.parse::<Ipv4Prefix>();
            let _ = text.parse::<Ipv6Prefix>();
        }
    }
}
