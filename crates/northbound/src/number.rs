//! Numbers as Ryu's scripts write them: `5`, `"5"`, `"0x5"`, and names of reserved numbers, `"LOCAL"` or
//! `"OFPP_LOCAL"`.

use serde_json::Value;

/// Reads a number, or text that Python's `int(text, 0)` accepts.
pub(crate) fn integer(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => number.as_u64(),
        Value::String(text) => parse_integer(text),
        _ => None,
    }
}

/// Parses the forms that Python's `int(text, 0)` accepts, except negative numbers.
pub(crate) fn parse_integer(text: &str) -> Option<u64> {
    let text = text.trim();
    let radix = match text.get(..2).map(str::to_ascii_lowercase).as_deref() {
        Some("0x") => 16,
        Some("0o") => 8,
        Some("0b") => 2,
        _ => 10,
    };
    let digits = if radix == 10 { text } else { &text[2..] };
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_alphanumeric());
    u64::from_str_radix(digits, radix).ok().filter(|_| is_plain)
}

/// Kinds of number of which some have names, such as ports, tables and groups.
pub(crate) struct Names {
    /// A prefix that names may have in scripts.
    prefix: &'static str,
    names: &'static [(&'static str, u32)],
}

impl Names {
    /// Reads a number, a text with a number, or a name.
    pub fn number(&self, value: &Value) -> Option<u32> {
        if let Some(number) = integer(value) {
            return number.try_into().ok();
        }
        let name = value.as_str()?.to_ascii_uppercase();
        let name = name.strip_prefix(self.prefix).unwrap_or(&name);
        let mut names = self.names.iter();
        names.find_map(|(known, number)| (*known == name).then_some(*number))
    }

    /// Returns the name of a number, or the number if it has no name.
    pub fn value(&self, number: u32) -> Value {
        match self.name(number) {
            Some(name) => name.into(),
            None => number.into(),
        }
    }

    /// Returns the name of a number as text, or the number if it has no name.
    pub fn text(&self, number: u32) -> String {
        self.name(number)
            .map_or_else(|| number.to_string(), str::to_owned)
    }

    fn name(&self, number: u32) -> Option<&'static str> {
        let mut names = self.names.iter();
        names.find_map(|(name, known)| (*known == number).then_some(*name))
    }

    /// Returns the expected values, for error messages.
    pub fn expected(&self) -> String {
        let names: Vec<_> = self.names.iter().map(|(name, _)| *name).collect();
        format!("a number or one of {}", names.join(", "))
    }
}

/// Ports of OpenFlow 1.3 (section 7.2.1).
pub(crate) const PORTS_13: Names = Names {
    prefix: "OFPP_",
    names: &[
        ("MAX", 0xffff_ff00),
        ("IN_PORT", 0xffff_fff8),
        ("TABLE", 0xffff_fff9),
        ("NORMAL", 0xffff_fffa),
        ("FLOOD", 0xffff_fffb),
        ("ALL", 0xffff_fffc),
        ("CONTROLLER", 0xffff_fffd),
        ("LOCAL", 0xffff_fffe),
        ("ANY", 0xffff_ffff),
    ],
};

/// Ports of OpenFlow 1.0 (section 5.2.1), with the numbers of 1.3, which the codec translates.
pub(crate) const PORTS_10: Names = Names {
    prefix: "OFPP_",
    names: &[
        ("MAX", 0xffff_ff00),
        ("IN_PORT", 0xffff_fff8),
        ("TABLE", 0xffff_fff9),
        ("NORMAL", 0xffff_fffa),
        ("FLOOD", 0xffff_fffb),
        ("ALL", 0xffff_fffc),
        ("CONTROLLER", 0xffff_fffd),
        ("LOCAL", 0xffff_fffe),
        ("NONE", 0xffff_ffff),
    ],
};

/// Tables (1.3.5 section 7.3.3).
pub(crate) const TABLES: Names = Names {
    prefix: "OFPTT_",
    names: &[("MAX", 0xfe), ("ALL", 0xff)],
};

/// Groups (1.3.5 section 7.3.4.2).
pub(crate) const GROUPS: Names = Names {
    prefix: "OFPG_",
    names: &[
        ("MAX", 0xffff_ff00),
        ("ALL", 0xffff_fffc),
        ("ANY", 0xffff_ffff),
    ],
};

/// Meters (1.3.5 section 7.3.4.4).
pub(crate) const METERS: Names = Names {
    prefix: "OFPM_",
    names: &[
        ("MAX", 0xffff_0000),
        ("SLOWPATH", 0xffff_fffd),
        ("CONTROLLER", 0xffff_fffe),
        ("ALL", 0xffff_ffff),
    ],
};

/// Queues (1.3.5 section 7.2.2).
pub(crate) const QUEUES: Names = Names {
    prefix: "OFPQ_",
    names: &[("ALL", 0xffff_ffff)],
};

/// The number of bytes of a packet that are sent to the controller (1.3.5 section 7.2.5).
pub(crate) const MAX_LENS: Names = Names {
    prefix: "OFPCML_",
    names: &[("MAX", 0xffe5), ("NO_BUFFER", 0xffff)],
};

/// The ids of buffers, and the reserved id for no buffer.
pub(crate) const BUFFERS: Names = Names {
    prefix: "OFP_",
    names: &[("NO_BUFFER", 0xffff_ffff)],
};

/// Roles (1.3.5 section 7.3.9).
pub(crate) const ROLES: Names = Names {
    prefix: "OFPCR_ROLE_",
    names: &[("NOCHANGE", 0), ("EQUAL", 1), ("MASTER", 2), ("SLAVE", 3)],
};

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_are_read_as_python_reads_them() {
        for (value, number) in [
            (json!(5), Some(5)),
            (json!("5"), Some(5)),
            (json!("0x1F"), Some(31)),
            (json!("0X1f"), Some(31)),
            (json!("0b101"), Some(5)),
            (json!("0o17"), Some(15)),
            (json!(" 7 "), Some(7)),
            (json!(u64::MAX), Some(u64::MAX)),
            (json!(""), None),
            (json!("0x"), None),
            (json!("0x+5"), None),
            (json!("+5"), None),
            (json!("-1"), None),
            (json!(-1), None),
            (json!(1.5), None),
            (json!("é5"), None),
            (json!(null), None),
            (json!(true), None),
            (json!("18446744073709551616"), None),
        ] {
            assert_eq!(integer(&value), number, "{value}");
        }
    }

    #[test]
    fn reserved_numbers_have_names_with_and_without_their_prefix() {
        for (value, number) in [
            (json!("LOCAL"), Some(0xffff_fffe)),
            (json!("local"), Some(0xffff_fffe)),
            (json!("OFPP_LOCAL"), Some(0xffff_fffe)),
            (json!("3"), Some(3)),
            (json!(0x1_0000_0000_u64), None),
            (json!("eth1"), None),
            (json!([]), None),
        ] {
            assert_eq!(PORTS_13.number(&value), number, "{value}");
        }
        assert_eq!(PORTS_13.value(7), json!(7));
        assert_eq!(PORTS_10.value(u32::MAX), json!("NONE"));
        assert_eq!(TABLES.text(0xff), "ALL");
    }
}
