//! Decode and encode errors.

use crate::message_type::{self, OFPT_PACKET_IN};
use crate::{ErrorCode, Version};
use std::fmt;

/// The error that bytes are not a valid OpenFlow structure.
///
/// Each error has the code with which a switch or controller answers ([`DecodeError::code`]).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The structure ends before all its fields have been read.
    #[error("the {what} is cut short: {needed} more bytes were expected and {available} are left")]
    Truncated {
        /// The structure.
        what: Structure,
        /// The size of the next field.
        needed: usize,
        /// The number of bytes left.
        available: usize,
    },
    /// A length field holds a value that the structure cannot have.
    #[error("the {what} gives its length as {length}; expected {expected}")]
    Length {
        /// The structure.
        what: Structure,
        /// The value of its length field, in bytes.
        length: usize,
        /// What the specification allows.
        expected: &'static str,
    },
    /// The structure contains bytes after its last field.
    #[error("the {what} is too long: {count} bytes are left after its last field; expected none")]
    TrailingBytes {
        /// The structure.
        what: Structure,
        /// The number of bytes left.
        count: usize,
    },
    /// The version byte is not that of a supported version.
    #[error(
        "version {0:#04x} is not supported; expected 0x01 (OpenFlow 1.0) or 0x04 (OpenFlow 1.3)"
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
        /// What the specification allows.
        expected: &'static str,
        /// The specification's code for this error.
        code: ErrorCode,
    },
}

impl DecodeError {
    /// Returns the code of an OFPT_ERROR that answers the message (1.3.5 section 7.4.4, 1.0 section 5.4.4).
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Truncated { what, .. }
            | Self::Length { what, .. }
            | Self::TrailingBytes { what, .. } => what.length_code(),
            Self::UnknownVersion(_) => ErrorCode::BadRequestBadVersion,
            Self::UnknownType { .. } => ErrorCode::BadRequestBadType,
            Self::BadValue { code, .. } => *code,
        }
    }
}

/// The part of a message to which a [`DecodeError`] refers. It is printed as a noun: `flow mod`, `match field`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Structure {
    /// The header of a message.
    Header,
    /// A message whose type is not known yet.
    Message,
    /// The body of a message.
    Body {
        /// The version in the header.
        version: Version,
        /// The type in the header, which the version defines.
        message_type: u8,
    },
    /// A match.
    Match,
    /// One field of a match.
    MatchField,
    /// An action.
    Action,
    /// The list of actions in a packet-out.
    PacketOutActions,
    /// The field in a set_field action.
    SetField,
    /// An instruction.
    Instruction,
    /// A bucket of a group.
    Bucket,
    /// An element of a hello.
    HelloElement,
    /// The version bitmap in a hello.
    VersionBitmap,
    /// The statistics of a flow entry.
    FlowStats,
    /// The statistics of a group.
    GroupStats,
    /// The description of a group.
    GroupDesc,
    /// A band of a meter.
    MeterBand,
    /// The statistics of a meter.
    MeterStats,
    /// The configuration of a meter.
    MeterConfig,
    /// A queue of a port.
    Queue,
    /// A property of a queue.
    QueueProperty,
    /// The features of a flow table.
    TableFeatures,
    /// One property of a flow table's features.
    TableFeatureProperty,
    /// The compiled form of a flow table.
    TableForm,
}

impl Structure {
    /// Returns the body of a packet-in.
    pub(crate) const fn packet_in(version: Version) -> Self {
        Self::Body {
            version,
            message_type: OFPT_PACKET_IN,
        }
    }

    /// Returns the code for a structure that is too short or too long; some structures have their own.
    const fn length_code(self) -> ErrorCode {
        match self {
            Self::Match | Self::MatchField => ErrorCode::BadMatchBadLen,
            Self::Action => ErrorCode::BadActionBadLen,
            Self::SetField => ErrorCode::BadActionBadSetLen,
            Self::Instruction => ErrorCode::BadInstructionBadLen,
            Self::Bucket => ErrorCode::GroupModFailedBadBucket,
            Self::TableFeatureProperty => ErrorCode::TableFeaturesFailedBadLen,
            _ => ErrorCode::BadRequestBadLen,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Header => "header",
            Self::Message => "message",
            Self::Body {
                version,
                message_type,
            } => message_type::name(version, message_type),
            Self::Match => "match",
            Self::MatchField => "match field",
            Self::Action => "action",
            Self::PacketOutActions => "packet-out's actions",
            Self::SetField => "set_field action",
            Self::Instruction => "instruction",
            Self::Bucket => "bucket",
            Self::HelloElement => "hello element",
            Self::VersionBitmap => "version bitmap",
            Self::FlowStats => "flow stats entry",
            Self::GroupStats => "group stats",
            Self::GroupDesc => "group description",
            Self::MeterBand => "meter band",
            Self::MeterStats => "meter stats",
            Self::MeterConfig => "meter configuration",
            Self::Queue => "queue",
            Self::QueueProperty => "queue property",
            Self::TableFeatures => "table features",
            Self::TableForm => "form of a table",
            Self::TableFeatureProperty => "table feature property",
        }
    }
}

impl fmt::Display for Structure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The error that a message cannot be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// The message has an element that the version cannot express.
    #[error("OpenFlow {version} cannot express {what}")]
    Unsupported {
        /// The requested version.
        version: Version,
        /// The field, action or message, by the specification's name.
        what: &'static str,
    },
    /// The structure would be longer than its 16-bit length field allows.
    #[error("the {what} would be {length} bytes long; at most 65535 fit")]
    TooLong {
        /// The structure.
        what: &'static str,
        /// Its length in bytes.
        length: usize,
    },
    /// A value does not fit into the field that carries it.
    #[error("the {what} is {value:#x}; OpenFlow {version} has {bits} bits for it")]
    OutOfRange {
        /// The requested version.
        version: Version,
        /// The field.
        what: &'static str,
        /// Its value.
        value: u64,
        /// The width of the field on the wire.
        bits: u32,
    },
    /// The message changes the state of the switch, but the controller's role only permits reading (1.3.5 section 6.3.6).
    #[error(
        "a secondary controller may only read from a switch; expected the role primary or equal before this is sent"
    )]
    Secondary,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code_of_length(what: Structure) -> ErrorCode {
        DecodeError::TrailingBytes { what, count: 1 }.code()
    }

    fn flow_mod(version: Version) -> Structure {
        let message_type = 14;
        Structure::Body {
            version,
            message_type,
        }
    }

    #[test]
    fn length_errors_have_the_code_of_their_structure() {
        let expected = [
            (Structure::Header, ErrorCode::BadRequestBadLen),
            (flow_mod(Version::Of10), ErrorCode::BadRequestBadLen),
            (flow_mod(Version::Of13), ErrorCode::BadRequestBadLen),
            (Structure::Match, ErrorCode::BadMatchBadLen),
            (Structure::MatchField, ErrorCode::BadMatchBadLen),
            (Structure::Action, ErrorCode::BadActionBadLen),
            (Structure::PacketOutActions, ErrorCode::BadRequestBadLen),
            (Structure::SetField, ErrorCode::BadActionBadSetLen),
            (Structure::Instruction, ErrorCode::BadInstructionBadLen),
            (Structure::Bucket, ErrorCode::GroupModFailedBadBucket),
            (Structure::QueueProperty, ErrorCode::BadRequestBadLen),
            (
                Structure::TableFeatureProperty,
                ErrorCode::TableFeaturesFailedBadLen,
            ),
        ];
        for (structure, code) in expected {
            assert_eq!(code_of_length(structure), code, "{structure}");
        }
    }

    #[test]
    fn messages_have_the_names_of_their_version() {
        let name = |version, message_type| {
            let body = Structure::Body {
                version,
                message_type,
            };
            body.to_string()
        };
        assert_eq!(name(Version::Of10, 4), "vendor message");
        assert_eq!(name(Version::Of13, 4), "experimenter message");
        assert_eq!(name(Version::Of10, 21), "queue get config reply");
        assert_eq!(name(Version::Of13, 29), "meter mod");
        assert_eq!(name(Version::Of10, 22), "message");
    }

    #[test]
    fn errors_are_sentences() {
        let error = DecodeError::Length {
            what: Structure::Action,
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
