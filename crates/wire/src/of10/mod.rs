//! The codec of OpenFlow 1.0 (specification 1.0.0 and 1.0.1).
//!
//! Each file is for one structure: its section in the specification, decoding, encoding, and a test with its bytes. Section
//! numbers refer to the specification's version 1.0.0.
//!
//! **How versions are mapped.** Decoding maps 1.0's structures to the version-neutral types. Encoding refuses elements that
//! 1.0 cannot express with [`EncodeError::Unsupported`], which has the specification's name for them; it never silently omits
//! anything. Reasons have the same numbers in both versions, and are kept even if 1.0 does not define them, since switches
//! also send 1.3's reasons in 1.0 messages.

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

pub(crate) use crate::matching::OF10_SIZE as MATCH_SIZE;

/// Creates the error that 1.0 lacks `what`.
fn unsupported(what: &'static str) -> EncodeError {
    EncodeError::Unsupported {
        version: Version::Of10,
        what,
    }
}

/// Refuses a field that 1.0 lacks, unless it has its neutral value.
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
