//! Nicira's extensions to OpenFlow 1.0 for several controllers, as in Open vSwitch: roles, and filters of asynchronous
//! messages. 1.3 has its own messages for both ([`Message::RoleRequest`], [`Message::SetAsync`]).
//!
//! ```
//! use urtica_wire::{ControllerRole, Message, NiciraMessage, Version};
//!
//! let mut out = Vec::new();
//! NiciraMessage::RoleRequest(ControllerRole::Master).write(Version::Of10, 7, &mut out)?;
//! let (_, message) = Message::decode(&out)?;
//! let Message::Experimenter(vendor) = message else {
//!     panic!("{message:?}");
//! };
//! let read = NiciraMessage::decode(&vendor)?;
//! assert_eq!(read, Some(NiciraMessage::RoleRequest(ControllerRole::Master)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::of13::role::{decode_async, encode_async};
use crate::{
    AsyncConfig, ControllerRole, DecodeError, EncodeError, ErrorCode, ErrorMessage, Experimenter,
    Message, Put, Reader, Structure, Version,
};

/// Nicira's vendor id (`NX_VENDOR_ID`).
pub const NICIRA: u32 = 0x2320;

const NXT_ROLE_REQUEST: u32 = 10;
const NXT_ROLE_REPLY: u32 = 11;
const NXT_SET_ASYNC_CONFIG: u32 = 19;

/// The numbers of roles differ from 1.3: 1.3's "equal" is "other" here, and "no change" does not exist.
const NX_ROLE_OTHER: u32 = 0;
const NX_ROLE_MASTER: u32 = 1;
const NX_ROLE_SLAVE: u32 = 2;

/// The type of errors that 1.0 lacks. The code is `NXVC_VENDOR_ERROR`, and the data start with the vendor and the vendor's
/// type and code.
const NXET_VENDOR: u16 = 0xb0c2;
const NXVC_VENDOR_ERROR: u16 = 0;

/// The start of such data when a slave is refused: Nicira's (1, 514).
const IS_SLAVE: [u8; 8] = [0, 0, 0x23, 0x20, 0, 1, 2, 2];

/// The bytes after the vendor id.
const BODY: Structure = Structure::Body {
    version: Version::Of10,
    message_type: 4,
};

/// A vendor message of Nicira.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NiciraMessage {
    /// Requests a role.
    RoleRequest(ControllerRole),
    /// The role that the switch has granted.
    RoleReply(ControllerRole),
    /// Sets the asynchronous configuration.
    SetAsync(AsyncConfig),
}

impl NiciraMessage {
    /// Decodes a vendor message; returns `None` if it is another vendor's, or another one of Nicira's.
    ///
    /// # Errors
    /// [`DecodeError`] if it is one of these but has another length.
    pub fn decode(vendor: &Experimenter) -> Result<Option<Self>, DecodeError> {
        if vendor.experimenter != NICIRA {
            return Ok(None);
        }
        let mut body = Reader::new(vendor.data, BODY);
        let message = match body.u32()? {
            NXT_ROLE_REQUEST => Self::RoleRequest(decode_role(body.u32()?)),
            NXT_ROLE_REPLY => Self::RoleReply(decode_role(body.u32()?)),
            NXT_SET_ASYNC_CONFIG => Self::SetAsync(decode_async(&mut body)?),
            _ => return Ok(None),
        };
        body.finish()?;
        Ok(Some(message))
    }

    /// Appends the message to `out`.
    ///
    /// # Errors
    /// [`EncodeError`] if it requests [`ControllerRole::NoChange`], which Nicira's messages lack; then `out` is unchanged.
    pub fn write(&self, version: Version, xid: u32, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let mut data = Vec::new();
        match self {
            Self::RoleRequest(role) => {
                data.put_u32(NXT_ROLE_REQUEST);
                data.put_u32(encode_role(*role)?);
            }
            Self::RoleReply(role) => {
                data.put_u32(NXT_ROLE_REPLY);
                data.put_u32(encode_role(*role)?);
            }
            Self::SetAsync(config) => {
                data.put_u32(NXT_SET_ASYNC_CONFIG);
                encode_async(config, &mut data);
            }
        }
        let vendor = Experimenter {
            experimenter: NICIRA,
            data: &data,
        };
        Message::Experimenter(vendor).encode(version, xid, out)
    }
}

fn decode_role(number: u32) -> ControllerRole {
    match number {
        NX_ROLE_OTHER => ControllerRole::Equal,
        NX_ROLE_MASTER => ControllerRole::Master,
        NX_ROLE_SLAVE => ControllerRole::Slave,
        // This number may be another role in 1.3.
        _ => ControllerRole::Other(number | 1 << 31),
    }
}

fn encode_role(role: ControllerRole) -> Result<u32, EncodeError> {
    match role {
        ControllerRole::Equal => Ok(NX_ROLE_OTHER),
        ControllerRole::Master => Ok(NX_ROLE_MASTER),
        ControllerRole::Slave => Ok(NX_ROLE_SLAVE),
        ControllerRole::NoChange | ControllerRole::Other(_) => Err(EncodeError::Unsupported {
            version: Version::Of10,
            what: "a role other than equal, master and slave",
        }),
    }
}

impl ErrorMessage<'_> {
    /// Returns `true` if a switch refused a slave's message: OFPBRC_IS_SLAVE, or in 1.0 Open vSwitch's equivalent.
    pub fn is_slave(&self) -> bool {
        match self.code {
            ErrorCode::BadRequestIsSlave => true,
            ErrorCode::Other { error_type, code } => {
                (error_type, code) == (NXET_VENDOR, NXVC_VENDOR_ERROR)
                    && self.data.starts_with(&IS_SLAVE)
            }
            _ => false,
        }
    }

    /// Appends OFPBRC_IS_SLAVE about `request`, or about its quoted start, to `out`.
    ///
    /// # Errors
    /// [`EncodeError`] if the message is too long; then `out` is unchanged.
    pub fn write_is_slave(
        version: Version,
        xid: u32,
        request: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        let vendor_data = [&IS_SLAVE, request].concat();
        let error = match version {
            Version::Of10 => ErrorMessage {
                code: ErrorCode::Other {
                    error_type: NXET_VENDOR,
                    code: NXVC_VENDOR_ERROR,
                },
                data: &vendor_data,
            },
            Version::Of13 => ErrorMessage {
                code: ErrorCode::BadRequestIsSlave,
                data: request,
            },
        };
        Message::Error(error).encode(version, xid, out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decodes the message in these bytes, and checks that it encodes to them.
    fn read(bytes: &[u8]) -> NiciraMessage {
        let (header, message) = Message::decode(bytes).expect("a message");
        let Message::Experimenter(vendor) = message else {
            panic!("{message:?}");
        };
        let read = NiciraMessage::decode(&vendor).expect("well-formed");
        let read = read.expect("a message of these");
        let mut written = Vec::new();
        read.write(Version::Of10, header.xid, &mut written)
            .expect("it can be written");
        assert_eq!(written, bytes);
        read
    }

    #[test]
    fn roles_both_ways() {
        let frame = |subtype, role| {
            [
                1, 4, 0, 20, 0, 0, 0, 9, 0, 0, 0x23, 0x20, 0, 0, 0, subtype, 0, 0, 0, role,
            ]
        };
        for (number, role) in [
            (0, ControllerRole::Equal),
            (1, ControllerRole::Master),
            (2, ControllerRole::Slave),
        ] {
            assert_eq!(read(&frame(10, number)), NiciraMessage::RoleRequest(role));
            assert_eq!(read(&frame(11, number)), NiciraMessage::RoleReply(role));
        }
    }

    #[test]
    fn asynchronous_configuration_both_ways() {
        let mut bytes = vec![
            1, 4, 0, 40, 0, 0, 0, 9, 0, 0, 0x23, 0x20, 0, 0, 0, 19, 0, 0, 0, 7, 0, 0, 0, 0,
        ];
        bytes.extend([0, 0, 0, 7, 0, 0, 0, 6, 0, 0, 0, 15, 0, 0, 0, 1]);
        let config = AsyncConfig {
            packet_in_mask: [7, 0],
            port_status_mask: [7, 6],
            flow_removed_mask: [15, 1],
        };
        assert_eq!(read(&bytes), NiciraMessage::SetAsync(config));
    }

    #[test]
    fn ignores_other_vendors_and_refuses_wrong_lengths() {
        let decode =
            |experimenter, data| NiciraMessage::decode(&Experimenter { experimenter, data });
        assert_eq!(decode(0x1234, &[0, 0, 0, 10]), Ok(None));
        assert_eq!(decode(NICIRA, &[0, 0, 0, 12, 1]), Ok(None));
        for short in [&[][..], &[0, 0, 0], &[0, 0, 0, 10, 0, 0, 0]] {
            assert!(decode(NICIRA, short).is_err(), "{short:?}");
        }
        assert!(decode(NICIRA, &[0, 0, 0, 11, 0, 0, 0, 1, 0]).is_err());
    }

    #[test]
    fn unknown_roles_are_not_mistaken_for_those_of_1_3() {
        let data = [0, 0, 0, 11, 0, 0, 0, 3];
        let vendor = Experimenter {
            experimenter: NICIRA,
            data: &data,
        };
        let Ok(Some(NiciraMessage::RoleReply(ControllerRole::Other(_)))) =
            NiciraMessage::decode(&vendor)
        else {
            panic!("role 3 is none");
        };
        let mut out = vec![1];
        let unchanged = NiciraMessage::RoleRequest(ControllerRole::NoChange);
        assert!(unchanged.write(Version::Of10, 0, &mut out).is_err());
        assert_eq!(out, [1]);
    }

    #[test]
    fn refusals_of_slaves_are_read_in_both_versions() {
        for version in Version::ALL {
            let mut bytes = Vec::new();
            ErrorMessage::write_is_slave(version, 5, &[1, 14, 0, 72], &mut bytes).expect("it fits");
            let (header, message) = Message::decode(&bytes).expect("an error");
            let Message::Error(error) = message else {
                panic!("{message:?}");
            };
            assert_eq!(header.xid, 5);
            assert!(error.is_slave(), "{version}");
            let other = ErrorMessage { data: &[], ..error };
            assert_eq!(other.is_slave(), version == Version::Of13);
        }
    }
}
