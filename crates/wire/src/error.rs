//! What may be wrong with bytes that came, or with a message that is to be written.

use crate::{ErrorCode, Version};

/// Why bytes are not the OpenFlow structure that they claim to be.
///
/// Each error knows the code that a switch or controller answers with ([`DecodeError::code`]).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The structure ends before all its fields were read.
    #[error("the {what} is cut short: {needed} more bytes were expected and {available} are left")]
    Truncated {
        /// The structure.
        what: &'static str,
        /// How many bytes the next field takes.
        needed: usize,
        /// How many bytes are left.
        available: usize,
    },
    /// A length field holds a value that the structure cannot have.
    #[error("the {what} gives its length as {length}; expected {expected}")]
    Length {
        /// The structure.
        what: &'static str,
        /// The value of its length field, in bytes.
        length: usize,
        /// What the specification allows, in words.
        expected: &'static str,
    },
    /// The structure ends before its bytes do.
    #[error("the {what} is too long: {count} bytes are left after its last field; expected none")]
    TrailingBytes {
        /// The structure.
        what: &'static str,
        /// How many bytes are left.
        count: usize,
    },
    /// The version byte names no version that we speak.
    #[error(
        "version {0:#04x} is not spoken here; expected 0x01 (OpenFlow 1.0) or 0x04 (OpenFlow 1.3)"
    )]
    UnknownVersion(u8),
    /// The message type does not exist in its version.
    #[error("message type {message_type} does not exist in OpenFlow {version}")]
    UnknownType {
        /// The version in the header.
        version: Version,
        /// The type in the header.
        message_type: u8,
    },
    /// A field holds a value that the specification does not allow.
    #[error("the {what} is {value:#x}; expected {expected}")]
    BadValue {
        /// The field.
        what: &'static str,
        /// Its value.
        value: u64,
        /// What the specification allows, in words.
        expected: &'static str,
        /// The code that the specification has for this.
        code: ErrorCode,
    },
}

impl DecodeError {
    /// What to put into an OFPT_ERROR that answers the message (1.3.5 section 7.4.4, 1.0 section 5.4.4).
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Truncated { what, .. }
            | Self::Length { what, .. }
            | Self::TrailingBytes { what, .. } => length_code(what),
            Self::UnknownVersion(_) => ErrorCode::BadRequestBadVersion,
            Self::UnknownType { .. } => ErrorCode::BadRequestBadType,
            Self::BadValue { code, .. } => *code,
        }
    }
}

/// The specification has a length error of its own for some structures; they are known by the end of their name.
fn length_code(what: &str) -> ErrorCode {
    const CODES: [(&str, ErrorCode); 7] = [
        ("set_field action", ErrorCode::BadActionBadSetLen),
        ("action", ErrorCode::BadActionBadLen),
        ("instruction", ErrorCode::BadInstructionBadLen),
        ("match", ErrorCode::BadMatchBadLen),
        ("match field", ErrorCode::BadMatchBadLen),
        ("bucket", ErrorCode::GroupModFailedBadBucket),
        (
            "table feature property",
            ErrorCode::TableFeaturesFailedBadLen,
        ),
    ];
    let known = CODES.iter().find(|(name, _)| what.ends_with(name));
    known.map_or(ErrorCode::BadRequestBadLen, |&(_, code)| code)
}

/// Why a message cannot be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// The message uses something that the version does not have.
    #[error("OpenFlow {version} cannot express {what}")]
    Unsupported {
        /// The version that was asked for.
        version: Version,
        /// The field, action, or message, by the specification's name.
        what: &'static str,
    },
    /// The structure would be longer than its 16-bit length field can say.
    #[error("the {what} would be {length} bytes long; at most 65535 fit")]
    TooLong {
        /// The structure.
        what: &'static str,
        /// How many bytes it would have.
        length: usize,
    },
    /// A value does not fit into the field that carries it.
    #[error("the {what} is {value:#x}; OpenFlow {version} has room for {bits} bits")]
    OutOfRange {
        /// The version that was asked for.
        version: Version,
        /// The field.
        what: &'static str,
        /// Its value.
        value: u64,
        /// The width of the field on the wire.
        bits: u32,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code_of_length(what: &'static str) -> ErrorCode {
        DecodeError::TrailingBytes { what, count: 1 }.code()
    }

    #[test]
    fn length_errors_have_the_code_of_their_structure() {
        assert_eq!(code_of_length("flow mod"), ErrorCode::BadRequestBadLen);
        assert_eq!(code_of_length("action"), ErrorCode::BadActionBadLen);
        assert_eq!(
            code_of_length("set_field action"),
            ErrorCode::BadActionBadSetLen
        );
        assert_eq!(code_of_length("match field"), ErrorCode::BadMatchBadLen);
        assert_eq!(
            code_of_length("queue property"),
            ErrorCode::BadRequestBadLen
        );
        assert_eq!(
            code_of_length("table feature property"),
            ErrorCode::TableFeaturesFailedBadLen
        );
    }

    #[test]
    fn errors_are_sentences() {
        let error = DecodeError::Length {
            what: "action",
            length: 0,
            expected: "a multiple of 8",
        };
        assert_eq!(
            error.to_string(),
            "the action gives its length as 0; expected a multiple of 8"
        );
        let error = EncodeError::Unsupported {
            version: Version::Of13,
            what: "OFPAT_ENQUEUE",
        };
        assert_eq!(
            error.to_string(),
            "OpenFlow 1.3 cannot express OFPAT_ENQUEUE"
        );
    }
}
