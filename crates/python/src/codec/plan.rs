//! Classes of structures: which attributes they have, and how these are laid out.

use super::oxm::Meaning;
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyType};

/// What stands before and around the fields.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Frame {
    /// Nothing: the structure ends with its fields.
    Plain,
    /// The type and the length, in 2 bytes each, which are the attributes `type` and `len`; padding to 8 bytes at the end.
    TypeAndLength,
    /// The first field is the length of the structure.
    Length,
}

/// How a field is laid out.
pub(super) enum Kind {
    Value(Meaning, usize),
    Pad(usize),
    /// Attributes that share a number: their names and bits, highest first, and the number's bytes.
    Bits(Vec<(Py<PyString>, u32)>, usize),
    /// All bytes up to the end.
    Rest,
    /// A packet up to the end; what is behind the length in an attribute, if it is given, is padding.
    Packet(Option<Py<PyString>>),
    /// The number of bytes of the list that follows, in 2 bytes.
    SizeOfList,
    /// Structures up to the end. Their classes, by type.
    List(Py<PyDict>),
    Match,
    /// The options of an IPv4 header, none, if the length in an attribute says so.
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
    /// Returns the field that `structs.py` describes by its name, the name of its kind, and what belongs to it.
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
                    "'{kind}' is no kind of field"
                )));
            }
        };
        Ok(Self {
            name: PyString::intern(description.py(), &name).unbind(),
            kind,
        })
    }
}

/// Returns the kind of attributes that share a number.
fn bits(parts: Vec<(Py<PyString>, u32)>) -> PyResult<Kind> {
    let count: u32 = parts.iter().map(|(_, bits)| bits).sum();
    match count {
        8 | 16 | 32 => Ok(Kind::Bits(parts, count as usize / 8)),
        _ => Err(PyValueError::new_err(format!(
            "the parts of a number have {count} bits: expected 8, 16 or 32"
        ))),
    }
}

/// A class: what its exact instances have on the wire.
pub(super) struct Plan {
    pub class: Py<PyType>,
    new: Py<PyAny>,
    pub frame: Frame,
    pub fields: Vec<Field>,
    pub next: Option<Next>,
}

/// What `structs.py` says about the next header: see [`Next`].
pub(super) type NextDescription = (
    Py<PyString>,
    u16,
    Option<Py<PyString>>,
    Option<Py<PyString>>,
);

/// Which attributes of a packet's header lead to the next one.
pub(super) struct Next {
    /// The number of the next header's class.
    number: Py<PyString>,
    /// What smaller numbers count as.
    least: u16,
    /// If it is not 0, bytes follow.
    offset: Option<Py<PyString>>,
    /// The length with the header, behind which padding stands; 0 if it is not known.
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

    /// Returns the end of what follows, from the start of the header.
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
            _ => return Err(PyValueError::new_err(format!("'{frame}' is no frame"))),
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
