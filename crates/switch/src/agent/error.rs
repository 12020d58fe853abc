//! Error codes, translated for a version.

use urtica_wire::{ErrorCode, Version};

/// Returns the error if the version has it, otherwise the closest one: 1.0 lacks many of 1.3's.
pub(super) fn for_version(version: Version, code: ErrorCode) -> ErrorCode {
    if code.to_wire(version).is_some() {
        return code;
    }
    match code
        .to_wire(Version::Of13)
        .map(|(error_type, _)| error_type)
    {
        Some(OFPET_BAD_ACTION) => ErrorCode::BadActionBadArgument,
        Some(OFPET_BAD_INSTRUCTION | OFPET_BAD_MATCH | OFPET_FLOW_MOD_FAILED) => {
            ErrorCode::FlowModFailedUnsupported
        }
        Some(OFPET_PORT_MOD_FAILED) => ErrorCode::PortModFailedBadPort,
        _ if code == ErrorCode::BadRequestBadPacket => ErrorCode::BadRequestBadLen,
        _ => ErrorCode::BadRequestEperm,
    }
}

const OFPET_BAD_ACTION: u16 = 2;
const OFPET_BAD_INSTRUCTION: u16 = 3;
const OFPET_BAD_MATCH: u16 = 4;
const OFPET_FLOW_MOD_FAILED: u16 = 5;
const OFPET_PORT_MOD_FAILED: u16 = 7;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_has_a_code_in_every_version() {
        for version in Version::ALL {
            for &code in ErrorCode::ALL {
                let said = for_version(version, code);
                assert!(said.to_wire(version).is_some(), "{code} in {version}");
            }
        }
    }

    #[test]
    fn codes_of_a_version_are_kept() {
        let code = ErrorCode::BadMatchBadType;
        assert_eq!(for_version(Version::Of13, code), code);
        assert_eq!(
            for_version(Version::Of10, code),
            ErrorCode::FlowModFailedUnsupported
        );
    }
}
