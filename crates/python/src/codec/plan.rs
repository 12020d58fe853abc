//! Classes of structures: their attributes, and how these are laid out.

use super::oxm::Meaning;
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyType};

/// The bytes before and around the fields.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Frame {
    /// Nothing: the structure ends with its fields.
    Plain,
    /// The type and the length, of 2 bytes each, which are the attributes `type` and `len`; padding to 8 bytes at the end.
    TypeAndLength,
    /// The first field, which is the length of the structure.
    Length,
}

/// The layout of a field.
pub(super) enum Kind {
    Value(Meaning, usize),
    Pad(usize),
    /// Attributes that are packed into a number: their names and bits, highest first, and the number's bytes.
    Bits(Vec<(Py<PyString>, u32)>, usize),
    /// All bytes up to the end.
    Rest,
    /// A packet up to the end. If an attribute with its length is given, the bytes after this length are padding.
    Packet(Option<Py<PyString>>),
    /// The number of bytes of the next list, in 2 bytes.
    SizeOfList,
    /// Structures up to the end, whose classes are found by type.
    List(Py<PyDict>),
    Match,
    /// The options of an IPv4 header, or none, depending on the length in an attribute.
    Ipv4Options(Py<PyString>),
    /// One OXM field, in the attributes `key` and `value`.
    Oxm,
}

/// A field of a structure; padding has no name.
pub(super) struct Field {
    pub name: Py<PyString>,
    pub kind: Kind,
}

impl Field {
    /// Returns the field described in `structs.py` by its name, the name of its kind, and the kind's details.
    fn new(description: &Bound<'_, PyAny>) -> PyResult<Self> {
        let (name, kind, detail): (String, String, Bound<'_, PyAny>) = description.extract()?;
        let kind = match kind.as_str() {
            "int" => Kind::Value(Meaning::Int, detail.extract()?),
            "mac" => Kind::Value(Meaning::Mac, 6),
            "ip" => Kind::Value(Meaning::Ip, detail.extract()?),
            "pad" => Kind::Pad(detail.extract()?),
            "bits" => bits(detail.extract()?)?,
            "rest" => Kind::Rest,
            "packet" => Kind::Packet(detail.extract()?),
            "size" => Kind::SizeOfList,
            "list" => Kind::List(detail.cast_into::<PyDict>()?.unbind()),
            "match" => Kind::Match,
            "ipv4_options" => Kind::Ipv4Options(detail.extract()?),
            "oxm" => Kind::Oxm,
            _ => {
                return Err(PyValueError::new_err(format!(
                    "'{kind}' is not a kind of field"
                )));
            }
        };
        Ok(Self {
            name: PyString::intern(description.py(), &name).unbind(),
            kind,
        })
    }
}

/// Returns the kind of attributes that are packed into a number.
fn bits(parts: Vec<(Py<PyString>, u32)>) -> PyResult<Kind> {
    let count: u32 = parts.iter().map(|(_, bits)| bits).sum();
    match count {
        8 | 16 | 32 => Ok(Kind::Bits(parts, count as usize / 8)),
        _ => Err(PyValueError::new_err(format!(
            "the parts of a number have {count} bits: expected 8, 16 or 32"
        ))),
    }
}

/// A class, with the layout of its exact instances.
pub(super) struct Plan {
    pub class: Py<PyType>,
    new: Py<PyAny>,
    pub frame: Frame,
    pub fields: Vec<Field>,
    pub next: Option<Next>,
}

/// The description of the next header in `structs.py`: see [`Next`].
pub(super) type NextDescription = (
    Py<PyString>,
    u16,
    Option<Py<PyString>>,
    Option<Py<PyString>>,
);

/// The attributes of a packet's header that lead to the next header.
pub(super) struct Next {
    /// The attribute with the number of the next header's class.
    number: Py<PyString>,
    /// The minimum number: smaller numbers count as this one.
    least: u16,
    /// The attribute with an offset; unless it is 0, bytes follow.
    offset: Option<Py<PyString>>,
    /// The attribute with the length including the header, after which padding follows; 0 if it is not known.
    total_length: Option<Py<PyString>>,
}

impl Next {
    /// Returns the class of the next header; `None` for bytes.
    pub fn class<'py>(&self, header: &Bound<'py, PyAny>) -> Option<Bound<'py, PyType>> {
        let py = header.py();
        if let Some(offset) = &self.offset {
            let offset: u16 = header.getattr(offset).ok()?.extract().ok()?;
            if offset != 0 {
                return None;
            }
        }
        let number: u16 = header.getattr(&self.number).ok()?.extract().ok()?;
        let types = header.getattr(intern!(py, "_TYPES")).ok()?;
        let types = types.cast_into::<PyDict>().ok()?;
        let class = types.get_item(number.max(self.least)).ok()??;
        class.cast_into().ok()
    }

    /// Returns the end of the data after the header, relative to the header's start.
    pub fn end(&self, header: &Bound<'_, PyAny>, header_len: usize, len: usize) -> Option<usize> {
        let Some(total_length) = &self.total_length else {
            return Some(len);
        };
        let total_length: usize = header.getattr(total_length).ok()?.extract().ok()?;
        Some(match total_length {
            0 => len,
            _ => total_length.max(header_len).min(len),
        })
    }
}

impl Plan {
    pub fn new(
        class: &Bound<'_, PyType>,
        frame: &str,
        fields: &[Bound<'_, PyAny>],
        next: Option<NextDescription>,
    ) -> PyResult<Self> {
        let frame = match frame {
            "" => Frame::Plain,
            "type_and_length" => Frame::TypeAndLength,
            "length" => Frame::Length,
            _ => return Err(PyValueError::new_err(format!("'{frame}' is not a frame"))),
        };
        Ok(Self {
            class: class.clone().unbind(),
            new: class.getattr(intern!(class.py(), "__new__"))?.unbind(),
            frame,
            fields: fields.iter().map(Field::new).collect::<PyResult<_>>()?,
            next: next.map(|(number, least, offset, total_length)| Next {
                number,
                least,
                offset,
                total_length,
            }),
        })
    }

    /// Returns an instance without attributes.
    pub fn instance<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        self.new.bind(py).call1((self.class.bind(py),)).ok()
    }
}
