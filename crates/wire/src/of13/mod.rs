//! The codec of OpenFlow 1.3 (specification 1.3.5). The files correspond to the version-neutral types; each has decoding, then
//! encoding, then golden bytes.

pub(crate) mod action;
pub(crate) mod config;
pub(crate) mod features;
pub(crate) mod flow_mod;
pub(crate) mod group;
pub(crate) mod hello;
pub(crate) mod instruction;
pub(crate) mod matching;
pub(crate) mod message;
pub(crate) mod meter;
pub(crate) mod multipart;
pub(crate) mod oxm;
pub(crate) mod packet_in;
pub(crate) mod packet_out;
pub(crate) mod port;
pub(crate) mod queue;
pub(crate) mod role;
pub(crate) mod table;

#[cfg(test)]
mod golden;

use crate::{EncodeError, Version};

/// Creates the error that 1.3 lacks `what`.
fn unsupported(what: &'static str) -> EncodeError {
    EncodeError::Unsupported {
        version: Version::Of13,
        what,
    }
}

/// Refuses a field that 1.3 lacks, unless it has its neutral value.
fn lacks<T: PartialEq>(what: &'static str, value: T, neutral: T) -> Result<(), EncodeError> {
    if value == neutral {
        Ok(())
    } else {
        Err(unsupported(what))
    }
}
