//! Identifiers: datapath ids, port numbers, buffer ids.

use std::fmt;
use std::str::FromStr;

/// The 64-bit identity of a datapath. It is always printed as 16 hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct DatapathId(pub u64);

impl fmt::Display for DatapathId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Debug for DatapathId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The error that a text is not a datapath id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{text}' is not a datapath id; expected a decimal number, 0x and hex digits, 16 hex digits, or eight pairs of \
     them with colons"
)]
pub struct ParseDatapathIdError {
    text: String,
}

impl FromStr for DatapathId {
    type Err = ParseDatapathIdError;

    /// Parses decimal, `0x…`, exactly 16 hex digits, and the colon form `00:00:00:00:00:00:00:01`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = if let Some(hex) = text.strip_prefix("0x") {
            u64::from_str_radix(hex, 16).ok()
        } else if text.contains(':') {
            parse_colon_form(text)
        } else if text.len() == 16 {
            u64::from_str_radix(text, 16).ok()
        } else {
            text.parse().ok()
        };
        number.map(Self).ok_or_else(|| ParseDatapathIdError {
            text: text.to_owned(),
        })
    }
}

fn parse_colon_form(text: &str) -> Option<u64> {
    let mut bytes = [0; 8];
    let mut parts = text.split(':');
    for byte in &mut bytes {
        *byte = parts
            .next()
            .filter(|part| part.len() == 2)
            .and_then(|part| u8::from_str_radix(part, 16).ok())?;
    }
    parts.next().is_none().then(|| u64::from_be_bytes(bytes))
}

/// The number of a port, in OpenFlow 1.3's 32-bit numbering, to which 1.0's codec maps that version's reserved ports.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortNo(pub u32);

impl PortNo {
    /// The highest number of a physical or logical port (OFPP_MAX).
    pub const MAX: Self = Self(0xffff_ff00);
    /// Send the packet back to its input port (OFPP_IN_PORT).
    pub const IN_PORT: Self = Self(0xffff_fff8);
    /// Submit the packet to the first table; only in packet-outs (OFPP_TABLE).
    pub const TABLE: Self = Self(0xffff_fff9);
    /// Forwarding without OpenFlow (OFPP_NORMAL).
    pub const NORMAL: Self = Self(0xffff_fffa);
    /// All ports of the spanning tree except the input port (OFPP_FLOOD).
    pub const FLOOD: Self = Self(0xffff_fffb);
    /// All ports except the input port (OFPP_ALL).
    pub const ALL: Self = Self(0xffff_fffc);
    /// The controller (OFPP_CONTROLLER).
    pub const CONTROLLER: Self = Self(0xffff_fffd);
    /// The switch's own network stack (OFPP_LOCAL).
    pub const LOCAL: Self = Self(0xffff_fffe);
    /// No port, or any (OFPP_ANY; OFPP_NONE in 1.0).
    pub const ANY: Self = Self(0xffff_ffff);

    const NAMES: [(Self, &'static str); 8] = [
        (Self::IN_PORT, "IN_PORT"),
        (Self::TABLE, "TABLE"),
        (Self::NORMAL, "NORMAL"),
        (Self::FLOOD, "FLOOD"),
        (Self::ALL, "ALL"),
        (Self::CONTROLLER, "CONTROLLER"),
        (Self::LOCAL, "LOCAL"),
        (Self::ANY, "ANY"),
    ];

    /// Returns `true` for the reserved numbers above.
    pub fn is_reserved(self) -> bool {
        self > Self::MAX
    }
}

/// Writes the name of a reserved port, as in `output:FLOOD`, and the number of any other port.
impl fmt::Display for PortNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Self::NAMES.iter().find(|(port, _)| port == self) {
            Some((_, name)) => f.write_str(name),
            None => write!(f, "{}", self.0),
        }
    }
}

impl fmt::Debug for PortNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The error that a text is not a port.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{text}' is not a port; expected a number or one of IN_PORT, TABLE, NORMAL, FLOOD, ALL, CONTROLLER, LOCAL, ANY"
)]
pub struct ParsePortNoError {
    text: String,
}

impl FromStr for PortNo {
    type Err = ParsePortNoError;

    /// Parses a number or a reserved port's name, in upper or lower case; `NONE` is 1.0's name for `ANY`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let named = Self::NAMES
            .iter()
            .find(|(_, name)| name.eq_ignore_ascii_case(text))
            .map(|&(port, _)| port);
        let none = text.eq_ignore_ascii_case("NONE").then_some(Self::ANY);
        named
            .or(none)
            .or_else(|| text.parse().ok().map(Self))
            .ok_or_else(|| ParsePortNoError {
                text: text.to_owned(),
            })
    }
}

/// The buffer in which a switch keeps a packet for the controller, if it does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BufferId(pub u32);

impl BufferId {
    /// No packet was buffered; the message contains the whole packet (OFP_NO_BUFFER).
    pub const NONE: Self = Self(0xffff_ffff);

    /// Returns `true` if a packet was buffered.
    #[inline]
    pub fn is_some(self) -> bool {
        self != Self::NONE
    }
}

impl fmt::Debug for BufferId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_some() {
            write!(f, "{:#x}", self.0)
        } else {
            f.write_str("none")
        }
    }
}

/// The table id that stands for all tables (OFPTT_ALL).
pub const TABLE_ALL: u8 = 0xff;
/// The group id that stands for no particular group (OFPG_ANY).
pub const GROUP_ANY: u32 = 0xffff_ffff;
/// The group id that stands for all groups, to delete them (OFPG_ALL).
pub const GROUP_ALL: u32 = 0xffff_fffc;
/// The highest number of a group (OFPG_MAX).
pub const GROUP_MAX: u32 = 0xffff_ff00;
/// The meter id that stands for all meters (OFPM_ALL).
pub const METER_ALL: u32 = 0xffff_ffff;
/// The queue id that stands for all queues of a port (OFPQ_ALL).
pub const QUEUE_ALL: u32 = 0xffff_ffff;
/// The `max_len` of an output to the controller that sends whole packets and never buffers them (OFPCML_NO_BUFFER).
pub const CONTROLLER_NO_BUFFER: u16 = 0xffff;
