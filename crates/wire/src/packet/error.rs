//! Errors of reading and writing headers.

/// The error that a header cannot be read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PacketError {
    /// The bytes end within the header.
    #[error("{layer} is cut short: it needs {needed} bytes, but only {available} are left")]
    Truncated {
        /// The header, or the part of one, that was being read.
        layer: &'static str,
        /// The number of bytes that it needs, if known.
        needed: usize,
        /// The number of available bytes.
        available: usize,
    },
    /// A length field is too small for its header.
    #[error("{layer} gives its {field} as {found} bytes, but it must be at least {minimum}")]
    BadLength {
        /// The header that was being read.
        layer: &'static str,
        /// The length field, by its specification's name.
        field: &'static str,
        /// The smallest valid length, in bytes.
        minimum: usize,
        /// The length found, in bytes.
        found: usize,
    },
    /// A field that must have one value has another.
    #[error("{layer} has {field} {found:#x}, but {expected:#x} was expected")]
    BadValue {
        /// The header that was being read.
        layer: &'static str,
        /// The field, by its specification's name.
        field: &'static str,
        /// The value that it must have.
        expected: u32,
        /// The value that it has.
        found: u32,
    },
    /// There are more consecutive headers than in a valid packet.
    #[error("{layer}: more than {limit} follow each other in one packet")]
    TooMany {
        /// The headers that were being read.
        layer: &'static str,
        /// The maximum number that is read.
        limit: usize,
    },
    /// A field or payload does not fit into the header's length field.
    #[error("{layer} cannot be written: {found} bytes of {field}, but at most {limit} fit")]
    TooLong {
        /// The header that was being written.
        layer: &'static str,
        /// The part that is too long.
        field: &'static str,
        /// The largest length that fits, in bytes.
        limit: usize,
        /// The requested length in bytes.
        found: usize,
    },
}

impl PacketError {
    /// Checks the length of data to be written.
    pub(super) fn check_limit(
        layer: &'static str,
        field: &'static str,
        found: usize,
        limit: usize,
    ) -> Result<(), Self> {
        if found > limit {
            return Err(Self::TooLong {
                layer,
                field,
                limit,
                found,
            });
        }
        Ok(())
    }

    /// Checks a length that was read.
    #[inline]
    pub(super) fn check_minimum(
        layer: &'static str,
        field: &'static str,
        found: usize,
        minimum: usize,
    ) -> Result<(), Self> {
        if found < minimum {
            return Err(Self::BadLength {
                layer,
                field,
                minimum,
                found,
            });
        }
        Ok(())
    }

    /// Checks a field that must have one value.
    #[inline]
    pub(super) fn check_value(
        layer: &'static str,
        field: &'static str,
        found: impl Into<u32>,
        expected: impl Into<u32>,
    ) -> Result<(), Self> {
        let (found, expected) = (found.into(), expected.into());
        if found != expected {
            return Err(Self::BadValue {
                layer,
                field,
                expected,
                found,
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_sentences() {
        let cut = PacketError::Truncated {
            layer: "TCP header",
            needed: 20,
            available: 7,
        };
        assert_eq!(
            cut.to_string(),
            "TCP header is cut short: it needs 20 bytes, but only 7 are left"
        );
        let short = PacketError::check_minimum("UDP header", "length", 3, 8).unwrap_err();
        assert_eq!(
            short.to_string(),
            "UDP header gives its length as 3 bytes, but it must be at least 8"
        );
        let version = PacketError::check_value("IPv4 header", "version", 6u8, 4u8).unwrap_err();
        assert_eq!(
            version.to_string(),
            "IPv4 header has version 0x6, but 0x4 was expected"
        );
        let many = PacketError::TooMany {
            layer: "IPv6 extension headers",
            limit: 16,
        };
        assert_eq!(
            many.to_string(),
            "IPv6 extension headers: more than 16 follow each other in one packet"
        );
        let long = PacketError::check_limit("IPv4 header", "options", 44, 40).unwrap_err();
        assert_eq!(
            long.to_string(),
            "IPv4 header cannot be written: 44 bytes of options, but at most 40 fit"
        );
    }
}
