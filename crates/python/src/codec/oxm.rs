//! OXM fields and matches: their bytes, and the values that programs see.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyList, PyString, PyTuple};
use std::collections::HashMap;
use std::net::{Ipv4Addr, Ipv6Addr};

/// The largest value: an IPv6 address.
const MAX_SIZE: usize = 16;

/// A field as `urtica_ryu.oxm` describes it: name, class, number, size and kind.
pub(super) type Description = (Py<PyString>, u16, u8, usize, String);

/// The meaning of a value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    Int,
    Mac,
    Ip,
}

impl Meaning {
    fn named(name: &str) -> Option<Self> {
        match name {
            "int" => Some(Self::Int),
            "mac" => Some(Self::Mac),
            "ip" => Some(Self::Ip),
            _ => None,
        }
    }

    /// Appends a value's bytes; `None` for values in an unusual form.
    pub fn encode(self, value: &Bound<'_, PyAny>, size: usize, out: &mut Vec<u8>) -> Option<()> {
        if self == Self::Int {
            return encode_int(value, size, out);
        }
        let text = value.cast_exact::<PyString>().ok()?.to_str().ok()?;
        match (self, size) {
            (Self::Mac, 6) => out.extend(parse_mac(text)?),
            (Self::Ip, 4) => out.extend(text.parse::<Ipv4Addr>().ok()?.octets()),
            (Self::Ip, 16) => out.extend(text.parse::<Ipv6Addr>().ok()?.octets()),
            _ => return None,
        }
        Some(())
    }

    /// Returns `true` if an encodable value is known to equal the value decoded from its bytes.
    fn is_normal(self, value: &Bound<'_, PyAny>) -> bool {
        match self {
            Self::Int => value.is_exact_instance_of::<PyInt>(),
            Self::Mac => value
                .cast::<PyString>()
                .is_ok_and(|text| text.to_str().is_ok_and(is_lower_case)),
            Self::Ip => false,
        }
    }

    /// Returns the value of bytes; `None` if its text form differs between Python's versions.
    pub fn decode<'py>(self, py: Python<'py>, bytes: &[u8]) -> Option<Bound<'py, PyAny>> {
        Some(match self {
            Self::Int => decode_int(py, bytes)?,
            Self::Mac => mac_text(py, bytes.try_into().ok()?),
            Self::Ip => PyString::new(py, &ip_text(bytes)?).into_any(),
        })
    }
}

fn encode_int(value: &Bound<'_, PyAny>, size: usize, out: &mut Vec<u8>) -> Option<()> {
    let number: u64 = value.cast::<PyInt>().ok()?.extract().ok()?;
    let bytes = number.to_be_bytes();
    let (above, kept) = bytes.split_at(8usize.checked_sub(size)?);
    if above.iter().any(|&byte| byte != 0) {
        return None;
    }
    out.extend_from_slice(kept);
    Some(())
}

fn decode_int<'py>(py: Python<'py>, bytes: &[u8]) -> Option<Bound<'py, PyAny>> {
    let mut number = [0; 8];
    number[8usize.checked_sub(bytes.len())?..].copy_from_slice(bytes);
    let number = u64::from_be_bytes(number).into_pyobject(py).ok()?;
    Some(number.into_any())
}

/// Parses only the usual form: two digits between colons.
fn parse_mac(text: &str) -> Option<[u8; 6]> {
    let text: &[u8; 17] = text.as_bytes().try_into().ok()?;
    let mut bytes = [0; 6];
    for (byte, digits) in bytes.iter_mut().zip(text.chunks(3)) {
        if digits.get(2).is_some_and(|&separator| separator != b':') {
            return None;
        }
        *byte = hex_value(digits[0])? << 4 | hex_value(digits[1])?;
    }
    Some(bytes)
}

fn is_lower_case(text: &str) -> bool {
    !text.bytes().any(|byte| byte.is_ascii_uppercase())
}

fn hex_value(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

fn mac_text<'py>(py: Python<'py>, bytes: [u8; 6]) -> Bound<'py, PyAny> {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = [b':'; 17];
    for (digits, byte) in text.chunks_mut(3).zip(bytes) {
        digits[0] = DIGITS[usize::from(byte >> 4)];
        digits[1] = DIGITS[usize::from(byte & 0xf)];
    }
    PyString::new(py, std::str::from_utf8(&text).unwrap_or_default()).into_any()
}

fn ip_text(bytes: &[u8]) -> Option<String> {
    if let Ok(octets) = <[u8; 4]>::try_from(bytes) {
        return Some(Ipv4Addr::from(octets).to_string());
    }
    let address = Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?);
    // Since 3.13, Python formats embedded IPv4 addresses differently.
    address.to_ipv4().is_none().then(|| address.to_string())
}

/// A field whose values this module handles.
struct Field {
    name: Py<PyString>,
    /// The header, without mask bit and length.
    header: u32,
    size: usize,
    meaning: Meaning,
}

/// The fields, by name and by header.
#[derive(Default)]
pub(super) struct Fields {
    all: Vec<Field>,
    by_name: HashMap<String, usize>,
    by_header: HashMap<u32, usize>,
}

impl Fields {
    pub fn new(py: Python<'_>, descriptions: Vec<Description>) -> PyResult<Self> {
        let mut fields = Self::default();
        for (name, class, number, size, kind) in descriptions {
            let Some(meaning) = Meaning::named(&kind).filter(|_| size <= MAX_SIZE) else {
                continue;
            };
            let header = u32::from(class) << 16 | u32::from(number) << 9;
            let index = fields.all.len();
            fields
                .by_name
                .insert(name.bind(py).to_str()?.to_owned(), index);
            fields.by_header.insert(header, index);
            fields.all.push(Field {
                name,
                header,
                size,
                meaning,
            });
        }
        Ok(fields)
    }

    fn named(&self, name: &Bound<'_, PyAny>) -> Option<&Field> {
        let name = name.cast_exact::<PyString>().ok()?.to_str().ok()?;
        Some(&self.all[*self.by_name.get(name)?])
    }

    /// Appends a field: header, value and mask.
    pub fn encode(
        &self,
        name: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        out: &mut Vec<u8>,
    ) -> Option<()> {
        let field = self.named(name)?;
        let start = out.len();
        out.extend(field.header.to_be_bytes());
        match pair(value) {
            None => field.meaning.encode(value, field.size, out)?,
            Some((value, mask)) => {
                out[start + 2] |= 1;
                field.meaning.encode(&value, field.size, out)?;
                field.meaning.encode(&mask, field.size, out)?;
            }
        }
        out[start + 3] = u8::try_from(out.len() - start - 4).ok()?;
        Some(())
    }

    /// Returns the name and value of a field, and the number of its bytes.
    pub fn decode<'py>(
        &self,
        py: Python<'py>,
        bytes: &[u8],
    ) -> Option<(&Py<PyString>, Bound<'py, PyAny>, usize)> {
        let header = u32::from_be_bytes(*bytes.first_chunk()?);
        let (has_mask, len) = (header >> 8 & 1 != 0, (header & 0xff) as usize);
        let field = &self.all[*self.by_header.get(&(header & 0xffff_fe00))?];
        let payload = bytes.get(4..4 + len)?;
        if len != field.size << usize::from(has_mask) {
            return None;
        }
        let (value, mask) = payload.split_at(field.size);
        let mut value = field.meaning.decode(py, value)?;
        if has_mask {
            let mask = field.meaning.decode(py, mask)?;
            value = (value, mask).into_pyobject(py).ok()?.into_any();
        }
        Some((&field.name, value, 4 + len))
    }

    /// Returns the pairs of name and value of a match as in `OFPMatch`: normalised, in wire order.
    pub fn normalized<'py>(&self, given: &Bound<'py, PyDict>) -> Option<Bound<'py, PyList>> {
        let mut pairs = Vec::with_capacity(given.len());
        for (name, value) in given {
            let field = self.named(&name)?;
            let value = field.normalized(value)?;
            pairs.push((field.header, (name, value)));
        }
        pairs.sort_by_key(|(header, _)| *header);
        PyList::new(given.py(), pairs.into_iter().map(|(_, pair)| pair)).ok()
    }
}

impl Field {
    fn normalized<'py>(&self, value: Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
        let py = value.py();
        let mut bytes = Vec::with_capacity(2 * MAX_SIZE);
        let Some((plain, mask)) = pair(&value) else {
            self.meaning.encode(&value, self.size, &mut bytes)?;
            return match self.meaning.is_normal(&value) {
                true => Some(value),
                false => self.meaning.decode(py, &bytes),
            };
        };
        self.meaning.encode(&plain, self.size, &mut bytes)?;
        self.meaning.encode(&mask, self.size, &mut bytes)?;
        let (plain, mask) = bytes.split_at_mut(self.size);
        for (byte, bits) in plain.iter_mut().zip(&*mask) {
            *byte &= bits;
        }
        let pair = (
            self.meaning.decode(py, plain)?,
            self.meaning.decode(py, mask)?,
        );
        Some(pair.into_pyobject(py).ok()?.into_any())
    }
}

/// Returns both elements of a pair.
pub(super) fn pair<'py>(
    value: &Bound<'py, PyAny>,
) -> Option<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    let tuple = value.cast_exact::<PyTuple>().ok()?;
    if tuple.len() != 2 {
        return None;
    }
    Some((tuple.get_item(0).ok()?, tuple.get_item(1).ok()?))
}
