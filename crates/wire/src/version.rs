//! The supported versions.

use std::fmt;

/// A supported version of OpenFlow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Version {
    /// OpenFlow 1.0 (wire version 0x01).
    Of10 = 0x01,
    /// OpenFlow 1.3 (wire version 0x04), with the structures of 1.3.5.
    Of13 = 0x04,
}

impl Version {
    /// All versions, oldest first.
    pub const ALL: [Version; 2] = [Version::Of10, Version::Of13];

    /// Returns the byte in the header.
    #[inline]
    pub fn to_wire(self) -> u8 {
        self as u8
    }
}

/// Writes `1.0` or `1.3`.
impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Of10 => "1.0",
            Self::Of13 => "1.3",
        })
    }
}

/// The error that a text is not a supported version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not a supported OpenFlow version; expected 1.0 or 1.3")]
pub struct ParseVersionError {
    text: String,
}

impl std::str::FromStr for Version {
    type Err = ParseVersionError;

    /// Parses `1.0` or `1.3`, and Open vSwitch's names `OpenFlow10` and `OpenFlow13`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "1.0" | "OpenFlow10" => Ok(Self::Of10),
            "1.3" | "OpenFlow13" => Ok(Self::Of13),
            other => Err(ParseVersionError {
                text: other.to_owned(),
            }),
        }
    }
}
