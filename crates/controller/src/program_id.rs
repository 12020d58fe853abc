//! The program that installed an entry: the top byte of the entry's cookie.
//!
//! ```text
//!  63     56 55                                             0
//! ┌─────────┬────────────────────────────────────────────────┐
//! │ program │ the program's own: EntryOptions::cookie        │
//! └─────────┴────────────────────────────────────────────────┘
//! ```
//! The framework writes the top byte of each entry that a program adds, so that a delete in OpenFlow 1.3 can select one
//! program's entries by cookie and mask. Entries that belong to no program, such as table-miss entries and other controllers'
//! entries, have 0 there.

use crate::xid::{MAX_PROGRAMS, Origin};
use std::fmt;
use urtica_wire::{FlowMod, FlowModCommand, Message, Version};

/// The bits of a cookie that are the program's own; the others are the framework's.
pub const OWN_COOKIE_BITS: u64 = (1 << PROGRAM_SHIFT) - 1;

const PROGRAM_SHIFT: u32 = 56;

/// A program of a controller, as in cookies and xids: its number, from 1, in the order in which programs see messages
/// ([`Stage`](crate::Stage)). A program that is added later gets a free number
/// ([`Running::set_programs`](crate::Running::set_programs)).
///
/// ```
/// use urtica_controller::{OWN_COOKIE_BITS, ProgramId};
///
/// // As it is in flow statistics and flow-removed messages.
/// let cookie = 0x0200_0000_0000_c0de;
/// let program = ProgramId::of_cookie(cookie).expect("a program installed it");
/// assert_eq!(program.to_string(), "program 2");
/// assert_eq!(cookie & OWN_COOKIE_BITS, 0xc0de);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProgramId(u8);

impl ProgramId {
    /// Code outside of programs, which uses the network of [`Running::network`](crate::Running::network).
    pub const OUTSIDE: Self = Self(MAX_PROGRAMS as u8 + 1);

    /// Returns the program that installed an entry with this cookie; `None` if no program of this framework did. A program
    /// at the same position in an earlier run of the controller has the same number.
    pub fn of_cookie(cookie: u64) -> Option<Self> {
        let number = (cookie >> PROGRAM_SHIFT) as u8;
        (1..=Self::OUTSIDE.0)
            .contains(&number)
            .then_some(Self(number))
    }

    /// Returns the program of a handler.
    pub(crate) fn of_handler(origin: Origin) -> Self {
        Self(origin.tag())
    }

    /// Returns the number.
    pub fn number(self) -> u8 {
        self.0
    }

    /// Returns the cookie of an entry of this program with the program's own part `own`.
    pub fn cookie(self, own: u64) -> u64 {
        u64::from(self.0) << PROGRAM_SHIFT | own & OWN_COOKIE_BITS
    }

    /// Restricts a delete to this program's entries.
    pub(crate) fn restrict(self, deletion: FlowMod) -> FlowMod {
        FlowMod {
            cookie: self.cookie(0),
            cookie_mask: !OWN_COOKIE_BITS,
            ..deletion
        }
    }

    /// Writes the program into an encoded flow mod that adds entries. A flow mod that selects entries by cookie but no
    /// program applies to all programs.
    pub(crate) fn mark(self, message: &Message, version: Version, frame: &mut [u8]) {
        let Message::FlowMod(flow_mod) = message else {
            return;
        };
        use FlowModCommand::{Add, Delete, DeleteStrict};
        match (version, flow_mod.command) {
            (Version::Of10, Delete | DeleteStrict) => {}
            // In 1.0, modifying a missing entry adds it.
            (Version::Of10, _) => frame[OF10_COOKIE] = self.0,
            (Version::Of13, Add) => frame[OF13_COOKIE] = self.0,
            (Version::Of13, _) if flow_mod.cookie <= OWN_COOKIE_BITS => {
                frame[OF13_COOKIE_MASK] = 0;
            }
            (Version::Of13, _) => {}
        }
    }
}

/// The offset of the top byte of `cookie` in `ofp_flow_mod` of 1.0 (section 5.3.3).
const OF10_COOKIE: usize = 48;

/// The offsets of the top bytes of `cookie` and `cookie_mask` in 1.3 (section 7.3.4.1).
const OF13_COOKIE: usize = 8;
const OF13_COOKIE_MASK: usize = 16;

impl From<Origin> for ProgramId {
    /// Maps code that is neither a program nor the session to `OUTSIDE`.
    fn from(origin: Origin) -> Self {
        match origin.tag() {
            0 | 0xff => Self::OUTSIDE,
            number => Self(number),
        }
    }
}

impl fmt::Display for ProgramId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::OUTSIDE => write!(f, "code outside of programs"),
            Self(number) => write!(f, "program {number}"),
        }
    }
}
