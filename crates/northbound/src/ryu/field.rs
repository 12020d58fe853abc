//! Values of match fields, as text and numbers.

use serde_json::Value;
use std::net::{Ipv4Addr, Ipv6Addr};
use urtica_wire::{Field, MacAddr, OxmField, VLAN_PRESENT};

use crate::error::ApiError;
use crate::number::{PORTS_13, integer, parse_integer};
use crate::object::{Object, did_you_mean};

/// The notation of a field's value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Port,
    Vlan,
    Mac,
    Ipv4,
    Ipv6,
    Number,
}

impl Kind {
    pub fn of(field: OxmField) -> Self {
        match field {
            OxmField::InPort => Self::Port,
            OxmField::VlanVid => Self::Vlan,
            OxmField::EthDst
            | OxmField::EthSrc
            | OxmField::ArpSha
            | OxmField::ArpTha
            | OxmField::Ipv6NdSll
            | OxmField::Ipv6NdTll => Self::Mac,
            OxmField::Ipv4Src | OxmField::Ipv4Dst | OxmField::ArpSpa | OxmField::ArpTpa => {
                Self::Ipv4
            }
            OxmField::Ipv6Src | OxmField::Ipv6Dst | OxmField::Ipv6NdTarget => Self::Ipv6,
            _ => Self::Number,
        }
    }

    /// Returns the expected value and an example, for error messages.
    pub fn expected(self) -> (&'static str, &'static str) {
        match self {
            Self::Port => ("a port's number or name", "1"),
            Self::Vlan => (
                "a VLAN id, or with OFPVID_PRESENT (0x1000) in hexadecimal",
                "5",
            ),
            Self::Mac => ("a MAC address, maybe with a mask", "\"02:00:00:00:00:01\""),
            Self::Ipv4 => ("an IPv4 address, maybe with a mask", "\"10.0.0.0/24\""),
            Self::Ipv6 => ("an IPv6 address, maybe with a mask", "\"2001:db8::/32\""),
            Self::Number => ("a number, maybe with a mask", "\"0x1/0xff\""),
        }
    }

    /// Returns the field with this value. Returns `None` if the value is invalid.
    pub fn parse(self, field: OxmField, value: &Value) -> Option<Field<'static>> {
        let (value, mask) = match (self, value) {
            (Self::Port, value) => (PORTS_13.number(value)?.into(), None),
            (Self::Vlan, value) => parse_vlan(value)?,
            (_, Value::String(text)) => match text.split_once('/') {
                Some((value, mask)) => (self.part(value)?, Some(self.mask(mask)?)),
                None => (self.part(text)?, None),
            },
            (Self::Number, value) => (integer(value)?.into(), None),
            _ => return None,
        };
        let full = field.full_mask();
        let mask = mask.unwrap_or(full);
        let is_mask_right = mask <= full && (mask == full || field.maskable());
        (value <= full && is_mask_right).then(|| Field::masked(field, value, mask))
    }

    fn part(self, text: &str) -> Option<u128> {
        match self {
            Self::Mac => text.parse().ok().map(|mac: MacAddr| mac.to_u64().into()),
            Self::Ipv4 => text.parse().ok().map(|ip: Ipv4Addr| ip.to_bits().into()),
            Self::Ipv6 => text.parse().ok().map(|ip: Ipv6Addr| ip.to_bits()),
            _ => parse_integer(text).map(u128::from),
        }
    }

    /// Reads a mask, or a prefix length.
    fn mask(self, text: &str) -> Option<u128> {
        let bits = match self {
            Self::Ipv4 => 32,
            Self::Ipv6 => 128,
            _ => return self.part(text),
        };
        let Ok(length) = text.parse::<u32>() else {
            return self.part(text);
        };
        let full = u128::MAX >> (128 - bits);
        (length <= bits).then(|| full & !full.checked_shr(length).unwrap_or(0))
    }

    /// Returns the value of a field for a response: a number, or a text.
    pub fn print(self, value: u128, mask: Option<u128>) -> Value {
        match (self, mask) {
            (Self::Port, _) => PORTS_13.value(value as u32),
            (Self::Vlan, Some(mask)) => format!("0x{value:04x}/0x{mask:04x}").into(),
            (Self::Vlan, None) if value as u16 & VLAN_PRESENT == 0 => {
                format!("0x{value:04x}").into()
            }
            (Self::Vlan, None) => (value as u16 & !VLAN_PRESENT).to_string().into(),
            (Self::Number, None) => (value as u64).into(),
            (kind, None) => kind.text(value).into(),
            (kind, Some(mask)) => format!("{}/{}", kind.text(value), kind.text(mask)).into(),
        }
    }

    /// Returns the value of a field, or its mask, as text.
    pub fn text(self, bits: u128) -> String {
        match self {
            Self::Mac => MacAddr::from_u64(bits as u64).to_string(),
            Self::Ipv4 => Ipv4Addr::from_bits(bits as u32).to_string(),
            Self::Ipv6 => Ipv6Addr::from_bits(bits).to_string(),
            _ => bits.to_string(),
        }
    }
}

/// Creates the error for a match field that does not exist; `version` continues the sentence after "OpenFlow".
pub(super) fn unknown_field(
    object: &Object,
    name: &str,
    known: &[&str],
    version: &str,
) -> ApiError {
    let meant = did_you_mean(name, known);
    let expected = format!("a field of OpenFlow {version}{meant}");
    ApiError::field(object.path(name), "not a match field", &expected).example("\"in_port\": 1")
}

/// Reads a VLAN id. A decimal id is that of tagged packets; a hexadecimal one includes OFPVID_PRESENT, or is for untagged
/// packets.
fn parse_vlan(value: &Value) -> Option<(u128, Option<u128>)> {
    let text = match value {
        Value::String(text) => text.trim(),
        number => return Some((u128::from(integer(number)? | u64::from(VLAN_PRESENT)), None)),
    };
    if let Some((value, mask)) = text.split_once('/') {
        return Some((
            parse_integer(value)?.into(),
            Some(parse_integer(mask)?.into()),
        ));
    }
    let number = parse_integer(text)?;
    let is_decimal = text.bytes().all(|byte| byte.is_ascii_digit());
    let present = if is_decimal { VLAN_PRESENT.into() } else { 0 };
    Some((u128::from(number | present), None))
}
