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
    /// All bytes up to the end.
    Rest,
    /// A packet up to the end; what is behind the length in an attribute, if it is given, is padding.
    Packet(Option<Py<PyString>>),
    /// The number of bytes of the list that follows, in 2 bytes.
    SizeOfList,
    /// Structures up to the end. Their classes, by type.
    List(Py<PyDict>),
    Match,
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
            "rest" => Kind::Rest,
            "packet" => Kind::Packet(detail.extract()?),
            "size" => Kind::SizeOfList,
            "list" => Kind::List(detail.cast_into::<PyDict>()?.unbind()),
            "match" => Kind::Match,
            "oxm" => Kind::Oxm,
            _ => return Err(PyValueError::new_err(format!("'{kind}' is no kind of field"))),
        };
        Ok(Self {
            name: PyString::intern(description.py(), &name).unbind(),
            kind,
        })
    }
}

/// A class: what its exact instances have on the wire.
pub(super) struct Plan {
    pub class: Py<PyType>,
    new: Py<PyAny>,
    pub frame: Frame,
    pub fields: Vec<Field>,
}

impl Plan {
    pub fn new(
        class: &Bound<'_, PyType>,
        frame: &str,
        fields: &[Bound<'_, PyAny>],
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
        })
    }

    /// Returns an instance without attributes.
    pub fn instance<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        self.new.bind(py).call1((self.class.bind(py),)).ok()
    }
}
