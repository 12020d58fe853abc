//! The codec of OpenFlow 1.0 (specification 1.0.0 and 1.0.1).
//!
//! Each file speaks of one structure: where the specification has it, reading, writing, and a test with its bytes.
//! Section numbers are those of the specification's version 1.0.0.
//!
//! **What becomes of the differences.** Reading maps what 1.0 says to the version-neutral types. Writing refuses,
//! with [`EncodeError::Unsupported`] and by the specification's name, what 1.0 has no words for; it never leaves
//! anything out silently. Reasons, which are numbered alike, pass through even where 1.0 does not define them:
//! switches send 1.3's in 1.0 messages too.

pub(crate) mod action;
pub(crate) mod features;
pub(crate) mod flow_mod;
#[cfg(test)]
mod golden;
pub(crate) mod matching;
pub(crate) mod message;
pub(crate) mod multipart;
pub(crate) mod packet_in;
pub(crate) mod packet_out;
pub(crate) mod port;
pub(crate) mod queue;

use crate::{EncodeError, Version};

/// The size of `ofp_match` in bytes.
pub(crate) const MATCH_SIZE: usize = 40;

/// 1.0 lacks what `what` names.
fn unsupported(what: &'static str) -> EncodeError {
    EncodeError::Unsupported {
        version: Version::Of10,
        what,
    }
}

/// Refuses a field that 1.0 lacks, unless it holds the value that means nothing.
fn lacks<T: PartialEq>(what: &'static str, value: T, neutral: T) -> Result<(), EncodeError> {
    if value == neutral {
        Ok(())
    } else {
        Err(unsupported(what))
    }
}

/// Refuses a value that needs more than `bits` bits.
fn fits(what: &'static str, value: u64, bits: u32) -> Result<(), EncodeError> {
    if value >> bits == 0 {
        return Ok(());
    }
    Err(EncodeError::OutOfRange {
        version: Version::Of10,
        what,
        value,
        bits,
    })
}
