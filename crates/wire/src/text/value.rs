//! The values of fields: ports, numbers and addresses, each with its mask.

use super::error::{NOT_A_PORT, ParseError};
use super::item::Span;
use crate::{MacAddr, OxmField, PortNo};
use std::fmt::{self, Write};
use std::net::{Ipv4Addr, Ipv6Addr};

/// The form of a field's value in text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// A port's number or name.
    Port,
    Decimal,
    /// `0x` and at least this many digits.
    Hex(usize),
    Mac,
    Ipv4,
    Ipv6,
}

/// Writes `value`, and the mask if it does not include the whole field.
pub(super) fn write(
    out: &mut dyn Write,
    form: Form,
    value: u128,
    mask: u128,
    full: u128,
) -> fmt::Result {
    if mask == full {
        return write_value(out, form, value);
    }
    match form {
        // A masked number is a pattern of bits.
        Form::Decimal | Form::Port => write!(out, "{value:#x}/{mask:#x}"),
        Form::Ipv4 | Form::Ipv6 => {
            write_value(out, form, value)?;
            out.write_char('/')?;
            write_prefix_or_mask(out, form, mask, full)
        }
        Form::Hex(_) | Form::Mac => {
            write_value(out, form, value)?;
            out.write_char('/')?;
            write_value(out, form, mask)
        }
    }
}

fn write_value(out: &mut dyn Write, form: Form, value: u128) -> fmt::Result {
    match form {
        Form::Port => write!(out, "{}", PortNo(value as u32)),
        Form::Decimal => write!(out, "{value}"),
        Form::Hex(digits) => write!(out, "0x{value:0digits$x}"),
        Form::Mac => write!(out, "{}", MacAddr::from_u64(value as u64)),
        Form::Ipv4 => write!(out, "{}", Ipv4Addr::from_bits(value as u32)),
        Form::Ipv6 => write!(out, "{}", Ipv6Addr::from_bits(value)),
    }
}

/// Writes `/24` for a mask of leading ones, otherwise the mask as an address.
fn write_prefix_or_mask(out: &mut dyn Write, form: Form, mask: u128, full: u128) -> fmt::Result {
    let zeros = full & !mask;
    if zeros & zeros.wrapping_add(1) == 0 {
        write!(out, "{}", mask.count_ones())
    } else {
        write_value(out, form, mask)
    }
}

/// Parses a value of `field`.
pub(super) fn parse(text: Span<'_>, field: OxmField, form: Form) -> Result<u128, ParseError> {
    match form {
        Form::Port => parse_port(text).map(|port| port.0.into()),
        Form::Decimal | Form::Hex(_) => text.number(field.bits()),
        Form::Mac => parse_mac(text).map(|address| address.to_u64().into()),
        Form::Ipv4 => parse_ipv4(text).map(|address| address.to_bits().into()),
        Form::Ipv6 => parse_ipv6(text).map(Ipv6Addr::to_bits),
    }
}

/// Parses a mask of `field`: a number of leading ones for an IP address, otherwise in the form of a value.
pub(super) fn parse_mask(text: Span<'_>, field: OxmField, form: Form) -> Result<u128, ParseError> {
    let is_prefix = text.text().bytes().all(|byte| byte.is_ascii_digit()) && !text.is_empty();
    if matches!(form, Form::Ipv4 | Form::Ipv6) && is_prefix {
        return parse_prefix(text, field);
    }
    match form {
        Form::Port => text.number(field.bits()),
        _ => parse(text, field, form),
    }
}

fn parse_prefix(text: Span<'_>, field: OxmField) -> Result<u128, ParseError> {
    let (bits, full) = (field.bits(), field.full_mask());
    match text.number(8)? as u32 {
        0 => Ok(0),
        ones if ones <= bits => Ok(full << (bits - ones) & full),
        _ => Err(text.error("is too long a prefix", format!("at most {bits} bits"))),
    }
}

/// Parses a port's number or name.
pub(super) fn parse_port(text: Span<'_>) -> Result<PortNo, ParseError> {
    let named = text.text().parse().ok();
    let number = || text.u32().ok().map(PortNo);
    named.or_else(number).ok_or_else(|| {
        text.error(
            NOT_A_PORT,
            "a number or one of IN_PORT, TABLE, NORMAL, FLOOD, ALL, CONTROLLER, LOCAL, ANY",
        )
    })
}

/// Parses an Ethernet address.
pub(super) fn parse_mac(text: Span<'_>) -> Result<MacAddr, ParseError> {
    text.parse(
        "is not an Ethernet address",
        "six pairs of hex digits, as in 02:00:00:00:00:01",
    )
}

/// Parses an IPv4 address.
pub(super) fn parse_ipv4(text: Span<'_>) -> Result<Ipv4Addr, ParseError> {
    text.parse("is not an IPv4 address", "four numbers, as in 10.0.0.1")
}

fn parse_ipv6(text: Span<'_>) -> Result<Ipv6Addr, ParseError> {
    text.parse("is not an IPv6 address", "a form such as fe80::1")
}
