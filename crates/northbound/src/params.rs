//! The parameters of a path.

use crate::error::ApiError;
use crate::number::parse_integer;
use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::StatusCode;
use axum::http::request::Parts;
use urtica_wire::DatapathId;

/// The decoded parameters of a path.
pub(crate) struct Params(Vec<(String, String)>);

impl<S: Send + Sync> FromRequestParts<S> for Params {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let raw = RawPathParams::from_request_parts(parts, state).await;
        let raw = raw.map_err(|_| {
            ApiError::new(
                StatusCode::BAD_REQUEST,
                "the path is not text: expected UTF-8 after each %",
            )
        })?;
        let owned = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
        Ok(Self(raw.iter().map(owned).collect()))
    }
}

impl Params {
    /// Returns a parameter; `None` if the path ends before it.
    pub fn get(&self, key: &str) -> Option<&str> {
        let mut params = self.0.iter();
        params.find_map(|(name, value)| (name == key).then_some(value.as_str()))
    }

    /// Returns the switch in the path.
    pub fn switch(&self) -> Result<DatapathId, ApiError> {
        parse_switch(self.get("dpid").unwrap_or_default())
    }

    /// Returns the switch in a path of Ryu's, which has 16 hexadecimal digits. The other forms are also accepted.
    pub fn ryu_switch(&self) -> Result<DatapathId, ApiError> {
        self.hex_switch("switch_id")
    }

    /// Like `ryu_switch`, for another parameter.
    pub fn hex_switch(&self, key: &str) -> Result<DatapathId, ApiError> {
        let text = self.get(key).unwrap_or_default();
        let is_hex = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        match u64::from_str_radix(text, 16) {
            Ok(id) if is_hex => Ok(DatapathId(id)),
            _ => parse_switch(text),
        }
    }

    /// Returns a number; `None` if the path ends before it.
    pub fn number(&self, key: &str) -> Result<Option<u32>, ApiError> {
        let Some(text) = self.get(key) else {
            return Ok(None);
        };
        let number = parse_integer(text).and_then(|number| number.try_into().ok());
        let wrong = || ApiError::field(key, text, "a number from 0 to 4294967295").example("1");
        number.map(Some).ok_or_else(wrong)
    }
}

/// Parses a datapath id: decimal as in Ryu, or `0x…`, or 16 hexadecimal digits, or pairs of digits separated by colons.
pub(crate) fn parse_switch(text: &str) -> Result<DatapathId, ApiError> {
    // Sixteen digits are decimal unless they start with a zero, which no decimal number does.
    let is_decimal = text.bytes().all(|byte| byte.is_ascii_digit())
        && !(text.len() == 16 && text.starts_with('0'));
    let parsed = match is_decimal {
        true => text.parse().ok().map(DatapathId),
        false => text.parse().ok(),
    };
    // Rust's numbers may have a sign.
    let parsed = parsed.filter(|_| !text.contains('+'));
    parsed.ok_or_else(|| {
        let expected = "a datapath id: a decimal number, 0x and hex digits, 16 hex digits, or eight pairs of them with colons";
        ApiError::field("dpid", text, expected).example("1")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixteen_digits_are_hexadecimal_as_in_ryu() {
        for (text, id) in [
            ("1000000000000001", Some(0x1000_0000_0000_0001)),
            ("0000000000000010", Some(0x10)),
            ("12", Some(12)),
            ("+000000000000001", None),
            ("all", None),
        ] {
            let params = Params(vec![("switch_id".to_owned(), text.to_owned())]);
            assert_eq!(params.ryu_switch().ok().map(|id| id.0), id, "{text}");
            let params = Params(vec![("dpid".to_owned(), text.to_owned())]);
            assert_eq!(params.hex_switch("dpid").ok().map(|id| id.0), id, "{text}");
        }
    }

    #[test]
    fn switches_are_named_in_each_form_that_users_know() {
        for (text, id) in [
            ("1", Some(1)),
            ("0x1f", Some(0x1f)),
            ("0000000000000010", Some(0x10)),
            ("00:00:00:00:00:00:00:0a", Some(10)),
            ("1152921504606846", Some(1_152_921_504_606_846)),
            ("00000000000000ab", Some(0xab)),
            ("18446744073709551615", Some(u64::MAX)),
            ("18446744073709551616", None),
            ("", None),
            ("-1", None),
            ("s1", None),
            ("+1", None),
            ("0x", None),
        ] {
            assert_eq!(parse_switch(text).ok().map(|id| id.0), id, "{text}");
        }
    }
}
