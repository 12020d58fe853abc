//! All error types and codes of both versions, in one table.

use crate::Version;
use std::fmt;

/// Defines [`ErrorCode`]. Columns: variant, the specification's name, (type, code) in 1.0 and in 1.3 if they exist.
macro_rules! error_codes {
    ($($(#[$meta:meta])* $variant:ident = $name:literal, $of10:expr, $of13:expr;)+) => {
        /// An error's type and code (1.3.5 section 7.4.4, 1.0 section 5.4.4). The name consists of the type and the code:
        /// OFPET_BAD_REQUEST and OFPBRC_BAD_TYPE make `BadRequestBadType`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
        pub enum ErrorCode {
            $(#[doc = $name] $(#[$meta])* $variant,)+
            /// A type and code that the version does not define.
            Other {
                /// The error's type.
                error_type: u16,
                /// Its code within that type.
                code: u16,
            },
        }

        impl ErrorCode {
            /// Every code that a version defines.
            pub const ALL: &'static [ErrorCode] = &[$(ErrorCode::$variant,)+];

            /// Returns the specification's name of the code, as in `OFPBRC_BAD_TYPE`, or `unknown`; 1.3's if versions differ.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                    Self::Other { .. } => "unknown",
                }
            }

            /// Returns the type and code on the wire; `None` if the version lacks the error.
            pub const fn to_wire(self, version: Version) -> Option<(u16, u16)> {
                match (self, version) {
                    $((Self::$variant, Version::Of10) => $of10, (Self::$variant, Version::Of13) => $of13,)+
                    (Self::Other { error_type, code }, _) => Some((error_type, code)),
                }
            }
        }
    };
}

error_codes! {
    HelloFailedIncompatible = "OFPHFC_INCOMPATIBLE", Some((0, 0)), Some((0, 0));
    HelloFailedEperm = "OFPHFC_EPERM", Some((0, 1)), Some((0, 1));
    BadRequestBadVersion = "OFPBRC_BAD_VERSION", Some((1, 0)), Some((1, 0));
    BadRequestBadType = "OFPBRC_BAD_TYPE", Some((1, 1)), Some((1, 1));
    BadRequestBadMultipart = "OFPBRC_BAD_MULTIPART", Some((1, 2)), Some((1, 2));
    BadRequestBadExperimenter = "OFPBRC_BAD_EXPERIMENTER", Some((1, 3)), Some((1, 3));
    BadRequestBadExpType = "OFPBRC_BAD_EXP_TYPE", Some((1, 4)), Some((1, 4));
    BadRequestEperm = "OFPBRC_EPERM", Some((1, 5)), Some((1, 5));
    BadRequestBadLen = "OFPBRC_BAD_LEN", Some((1, 6)), Some((1, 6));
    BadRequestBufferEmpty = "OFPBRC_BUFFER_EMPTY", Some((1, 7)), Some((1, 7));
    BadRequestBufferUnknown = "OFPBRC_BUFFER_UNKNOWN", Some((1, 8)), Some((1, 8));
    BadRequestBadTableId = "OFPBRC_BAD_TABLE_ID", None, Some((1, 9));
    BadRequestIsSlave = "OFPBRC_IS_SLAVE", None, Some((1, 10));
    BadRequestBadPort = "OFPBRC_BAD_PORT", None, Some((1, 11));
    BadRequestBadPacket = "OFPBRC_BAD_PACKET", None, Some((1, 12));
    BadRequestMultipartBufferOverflow = "OFPBRC_MULTIPART_BUFFER_OVERFLOW", None, Some((1, 13));
    BadActionBadType = "OFPBAC_BAD_TYPE", Some((2, 0)), Some((2, 0));
    BadActionBadLen = "OFPBAC_BAD_LEN", Some((2, 1)), Some((2, 1));
    BadActionBadExperimenter = "OFPBAC_BAD_EXPERIMENTER", Some((2, 2)), Some((2, 2));
    BadActionBadExpType = "OFPBAC_BAD_EXP_TYPE", Some((2, 3)), Some((2, 3));
    BadActionBadOutPort = "OFPBAC_BAD_OUT_PORT", Some((2, 4)), Some((2, 4));
    BadActionBadArgument = "OFPBAC_BAD_ARGUMENT", Some((2, 5)), Some((2, 5));
    BadActionEperm = "OFPBAC_EPERM", Some((2, 6)), Some((2, 6));
    BadActionTooMany = "OFPBAC_TOO_MANY", Some((2, 7)), Some((2, 7));
    BadActionBadQueue = "OFPBAC_BAD_QUEUE", Some((2, 8)), Some((2, 8));
    BadActionBadOutGroup = "OFPBAC_BAD_OUT_GROUP", None, Some((2, 9));
    BadActionMatchInconsistent = "OFPBAC_MATCH_INCONSISTENT", None, Some((2, 10));
    BadActionUnsupportedOrder = "OFPBAC_UNSUPPORTED_ORDER", None, Some((2, 11));
    BadActionBadTag = "OFPBAC_BAD_TAG", None, Some((2, 12));
    BadActionBadSetType = "OFPBAC_BAD_SET_TYPE", None, Some((2, 13));
    BadActionBadSetLen = "OFPBAC_BAD_SET_LEN", None, Some((2, 14));
    BadActionBadSetArgument = "OFPBAC_BAD_SET_ARGUMENT", None, Some((2, 15));
    BadInstructionUnknownInst = "OFPBIC_UNKNOWN_INST", None, Some((3, 0));
    BadInstructionUnsupInst = "OFPBIC_UNSUP_INST", None, Some((3, 1));
    BadInstructionBadTableId = "OFPBIC_BAD_TABLE_ID", None, Some((3, 2));
    BadInstructionUnsupMetadata = "OFPBIC_UNSUP_METADATA", None, Some((3, 3));
    BadInstructionUnsupMetadataMask = "OFPBIC_UNSUP_METADATA_MASK", None, Some((3, 4));
    BadInstructionBadExperimenter = "OFPBIC_BAD_EXPERIMENTER", None, Some((3, 5));
    BadInstructionBadExpType = "OFPBIC_BAD_EXP_TYPE", None, Some((3, 6));
    BadInstructionBadLen = "OFPBIC_BAD_LEN", None, Some((3, 7));
    BadInstructionEperm = "OFPBIC_EPERM", None, Some((3, 8));
    BadMatchBadType = "OFPBMC_BAD_TYPE", None, Some((4, 0));
    BadMatchBadLen = "OFPBMC_BAD_LEN", None, Some((4, 1));
    BadMatchBadTag = "OFPBMC_BAD_TAG", None, Some((4, 2));
    BadMatchBadDlAddrMask = "OFPBMC_BAD_DL_ADDR_MASK", None, Some((4, 3));
    BadMatchBadNwAddrMask = "OFPBMC_BAD_NW_ADDR_MASK", None, Some((4, 4));
    BadMatchBadWildcards = "OFPBMC_BAD_WILDCARDS", None, Some((4, 5));
    BadMatchBadField = "OFPBMC_BAD_FIELD", None, Some((4, 6));
    BadMatchBadValue = "OFPBMC_BAD_VALUE", None, Some((4, 7));
    BadMatchBadMask = "OFPBMC_BAD_MASK", None, Some((4, 8));
    BadMatchBadPrereq = "OFPBMC_BAD_PREREQ", None, Some((4, 9));
    BadMatchDupField = "OFPBMC_DUP_FIELD", None, Some((4, 10));
    BadMatchEperm = "OFPBMC_EPERM", None, Some((4, 11));
    FlowModFailedUnknown = "OFPFMFC_UNKNOWN", None, Some((5, 0));
    FlowModFailedTableFull = "OFPFMFC_TABLE_FULL", Some((3, 0)), Some((5, 1));
    FlowModFailedBadTableId = "OFPFMFC_BAD_TABLE_ID", None, Some((5, 2));
    FlowModFailedOverlap = "OFPFMFC_OVERLAP", Some((3, 1)), Some((5, 3));
    FlowModFailedEperm = "OFPFMFC_EPERM", Some((3, 2)), Some((5, 4));
    FlowModFailedBadTimeout = "OFPFMFC_BAD_TIMEOUT", Some((3, 3)), Some((5, 5));
    FlowModFailedBadCommand = "OFPFMFC_BAD_COMMAND", Some((3, 4)), Some((5, 6));
    FlowModFailedBadFlags = "OFPFMFC_BAD_FLAGS", None, Some((5, 7));
    FlowModFailedUnsupported = "OFPFMFC_UNSUPPORTED", Some((3, 5)), None;
    GroupModFailedGroupExists = "OFPGMFC_GROUP_EXISTS", None, Some((6, 0));
    GroupModFailedInvalidGroup = "OFPGMFC_INVALID_GROUP", None, Some((6, 1));
    GroupModFailedWeightUnsupported = "OFPGMFC_WEIGHT_UNSUPPORTED", None, Some((6, 2));
    GroupModFailedOutOfGroups = "OFPGMFC_OUT_OF_GROUPS", None, Some((6, 3));
    GroupModFailedOutOfBuckets = "OFPGMFC_OUT_OF_BUCKETS", None, Some((6, 4));
    GroupModFailedChainingUnsupported = "OFPGMFC_CHAINING_UNSUPPORTED", None, Some((6, 5));
    GroupModFailedWatchUnsupported = "OFPGMFC_WATCH_UNSUPPORTED", None, Some((6, 6));
    GroupModFailedLoop = "OFPGMFC_LOOP", None, Some((6, 7));
    GroupModFailedUnknownGroup = "OFPGMFC_UNKNOWN_GROUP", None, Some((6, 8));
    GroupModFailedChainedGroup = "OFPGMFC_CHAINED_GROUP", None, Some((6, 9));
    GroupModFailedBadType = "OFPGMFC_BAD_TYPE", None, Some((6, 10));
    GroupModFailedBadCommand = "OFPGMFC_BAD_COMMAND", None, Some((6, 11));
    GroupModFailedBadBucket = "OFPGMFC_BAD_BUCKET", None, Some((6, 12));
    GroupModFailedBadWatch = "OFPGMFC_BAD_WATCH", None, Some((6, 13));
    GroupModFailedEperm = "OFPGMFC_EPERM", None, Some((6, 14));
    PortModFailedBadPort = "OFPPMFC_BAD_PORT", Some((4, 0)), Some((7, 0));
    PortModFailedBadHwAddr = "OFPPMFC_BAD_HW_ADDR", Some((4, 1)), Some((7, 1));
    PortModFailedBadConfig = "OFPPMFC_BAD_CONFIG", None, Some((7, 2));
    PortModFailedBadAdvertise = "OFPPMFC_BAD_ADVERTISE", None, Some((7, 3));
    PortModFailedEperm = "OFPPMFC_EPERM", None, Some((7, 4));
    TableModFailedBadTable = "OFPTMFC_BAD_TABLE", None, Some((8, 0));
    TableModFailedBadConfig = "OFPTMFC_BAD_CONFIG", None, Some((8, 1));
    TableModFailedEperm = "OFPTMFC_EPERM", None, Some((8, 2));
    QueueOpFailedBadPort = "OFPQOFC_BAD_PORT", Some((5, 0)), Some((9, 0));
    QueueOpFailedBadQueue = "OFPQOFC_BAD_QUEUE", Some((5, 1)), Some((9, 1));
    QueueOpFailedEperm = "OFPQOFC_EPERM", Some((5, 2)), Some((9, 2));
    SwitchConfigFailedBadFlags = "OFPSCFC_BAD_FLAGS", None, Some((10, 0));
    SwitchConfigFailedBadLen = "OFPSCFC_BAD_LEN", None, Some((10, 1));
    SwitchConfigFailedEperm = "OFPSCFC_EPERM", None, Some((10, 2));
    RoleRequestFailedStale = "OFPRRFC_STALE", None, Some((11, 0));
    RoleRequestFailedUnsup = "OFPRRFC_UNSUP", None, Some((11, 1));
    RoleRequestFailedBadRole = "OFPRRFC_BAD_ROLE", None, Some((11, 2));
    MeterModFailedUnknown = "OFPMMFC_UNKNOWN", None, Some((12, 0));
    MeterModFailedMeterExists = "OFPMMFC_METER_EXISTS", None, Some((12, 1));
    MeterModFailedInvalidMeter = "OFPMMFC_INVALID_METER", None, Some((12, 2));
    MeterModFailedUnknownMeter = "OFPMMFC_UNKNOWN_METER", None, Some((12, 3));
    MeterModFailedBadCommand = "OFPMMFC_BAD_COMMAND", None, Some((12, 4));
    MeterModFailedBadFlags = "OFPMMFC_BAD_FLAGS", None, Some((12, 5));
    MeterModFailedBadRate = "OFPMMFC_BAD_RATE", None, Some((12, 6));
    MeterModFailedBadBurst = "OFPMMFC_BAD_BURST", None, Some((12, 7));
    MeterModFailedBadBand = "OFPMMFC_BAD_BAND", None, Some((12, 8));
    MeterModFailedBadBandValue = "OFPMMFC_BAD_BAND_VALUE", None, Some((12, 9));
    MeterModFailedOutOfMeters = "OFPMMFC_OUT_OF_METERS", None, Some((12, 10));
    MeterModFailedOutOfBands = "OFPMMFC_OUT_OF_BANDS", None, Some((12, 11));
    TableFeaturesFailedBadTable = "OFPTFFC_BAD_TABLE", None, Some((13, 0));
    TableFeaturesFailedBadMetadata = "OFPTFFC_BAD_METADATA", None, Some((13, 1));
    TableFeaturesFailedBadType = "OFPTFFC_BAD_TYPE", None, Some((13, 2));
    TableFeaturesFailedBadLen = "OFPTFFC_BAD_LEN", None, Some((13, 3));
    TableFeaturesFailedBadArgument = "OFPTFFC_BAD_ARGUMENT", None, Some((13, 4));
    TableFeaturesFailedEperm = "OFPTFFC_EPERM", None, Some((13, 5));
}

impl ErrorCode {
    /// Returns the code with this type and number in `version`.
    pub fn from_wire(version: Version, error_type: u16, code: u16) -> Self {
        let known = Self::ALL
            .iter()
            .find(|known| known.to_wire(version) == Some((error_type, code)));
        known.copied().unwrap_or(Self::Other { error_type, code })
    }

    /// Returns the code's name in `version`: [`ErrorCode::name`], except for six codes with other names in 1.0.
    pub const fn name_in(self, version: Version) -> &'static str {
        match (version, self) {
            (Version::Of10, Self::BadRequestBadMultipart) => "OFPBRC_BAD_STAT",
            (Version::Of10, Self::BadRequestBadExperimenter) => "OFPBRC_BAD_VENDOR",
            (Version::Of10, Self::BadRequestBadExpType) => "OFPBRC_BAD_SUBTYPE",
            (Version::Of10, Self::BadActionBadExperimenter) => "OFPBAC_BAD_VENDOR",
            (Version::Of10, Self::BadActionBadExpType) => "OFPBAC_BAD_VENDOR_TYPE",
            (Version::Of10, Self::FlowModFailedBadTimeout) => "OFPFMFC_BAD_EMERG_TIMEOUT",
            _ => self.name(),
        }
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Other { error_type, code } => write!(f, "error type {error_type} code {code}"),
            known => f.write_str(known.name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_found_by_its_numbers() {
        for version in Version::ALL {
            for &code in ErrorCode::ALL {
                if let Some((error_type, number)) = code.to_wire(version) {
                    assert_eq!(ErrorCode::from_wire(version, error_type, number), code);
                }
            }
        }
    }

    #[test]
    fn a_pair_without_a_name_is_kept() {
        let code = ErrorCode::from_wire(Version::Of13, 0xffff, 7);
        assert_eq!(code.to_wire(Version::Of13), Some((0xffff, 7)));
        assert_eq!(code.to_string(), "error type 65535 code 7");
    }

    #[test]
    fn numbers_differ_between_versions() {
        let code = ErrorCode::FlowModFailedTableFull;
        assert_eq!(code.to_wire(Version::Of10), Some((3, 0)));
        assert_eq!(code.to_wire(Version::Of13), Some((5, 1)));
        assert_eq!(ErrorCode::BadMatchBadType.to_wire(Version::Of10), None);
    }
}
