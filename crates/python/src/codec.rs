//! The bytes of structures that are Python objects: the ones that `urtica-ryu` encodes and decodes most.
//!
//! **Why.** In Python each field costs several calls, and each message has dozens of fields.
//!
//! **How.** `urtica_ryu.structs` describes classes ([`plan`]) and OXM fields ([`oxm`]) once. Only exact instances of
//! these classes with usual values are handled here. For all others the answer is `None`, and the code in Python, which
//! is the reference, determines the result or the error. So this module never raises its own error about a value or a
//! frame.

mod oxm;
mod plan;

use oxm::{Fields, Meaning};
use plan::{Frame, Kind, Plan};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PyInt, PyList, PyString, PyType};
use std::collections::HashMap;

/// The first headers of a packet, the class of the rest, and its bytes.
type Headers<'py> = (
    Bound<'py, PyList>,
    Option<Bound<'py, PyType>>,
    Bound<'py, PyBytes>,
);

/// A header of a packet.
struct Header<'py, 'd> {
    object: Bound<'py, PyAny>,
    /// The class of the next header; `None` for bytes.
    next: Option<Bound<'py, PyType>>,
    /// The bytes after the header.
    rest: &'d [u8],
}

/// Encodes and decodes structures of the classes that it was given.
#[pyclass(module = "urtica._native")]
pub struct Codec {
    /// The classes by their addresses, which the plans keep alive.
    plans: HashMap<usize, Plan>,
    /// The class of matches.
    match_plan: Option<Plan>,
    fields: Fields,
}

#[pymethods]
impl Codec {
    #[new]
    fn new() -> Self {
        Self {
            plans: HashMap::new(),
            match_plan: None,
            fields: Fields::default(),
        }
    }

    /// Adds a class: its frame ("", "type_and_length" or "length"), its fields, and for headers of packets the attributes that
    /// lead to the next one.
    #[pyo3(signature = (cls, frame, fields, next=None))]
    fn add(
        &mut self,
        cls: &Bound<'_, PyType>,
        frame: &str,
        fields: Vec<Bound<'_, PyAny>>,
        next: Option<plan::NextDescription>,
    ) -> PyResult<()> {
        let plan = Plan::new(cls, frame, &fields, next)?;
        self.plans.insert(cls.as_ptr() as usize, plan);
        Ok(())
    }

    /// Sets the class of matches and the OXM fields: name, class, number, size and kind of each.
    fn set_match(
        &mut self,
        cls: &Bound<'_, PyType>,
        fields: Vec<oxm::Description>,
    ) -> PyResult<()> {
        self.fields = Fields::new(cls.py(), fields)?;
        self.match_plan = Some(Plan::new(cls, "", &[], None)?);
        Ok(())
    }

    /// Returns a structure's bytes; None if Python has to encode it.
    fn encode<'py>(&self, structure: &Bound<'py, PyAny>) -> Option<Bound<'py, PyBytes>> {
        let mut out = Vec::with_capacity(128);
        self.append(self.plan_of(&structure.get_type())?, structure, &mut out)?;
        Some(PyBytes::new(structure.py(), &out))
    }

    /// Returns the frame of a message; None if Python has to encode it.
    fn encode_message<'py>(
        &self,
        message: &Bound<'py, PyAny>,
        version: &Bound<'py, PyAny>,
        msg_type: &Bound<'py, PyAny>,
        xid: &Bound<'py, PyAny>,
    ) -> Option<Bound<'py, PyByteArray>> {
        let mut out = Vec::with_capacity(128);
        Meaning::Int.encode(version, 1, &mut out)?;
        Meaning::Int.encode(msg_type, 1, &mut out)?;
        out.extend([0; 2]);
        Meaning::Int.encode(xid, 4, &mut out)?;
        self.append(self.plan_of(&message.get_type())?, message, &mut out)?;
        set_length(&mut out, 0)?;
        Some(PyByteArray::new(message.py(), &out))
    }

    /// Returns the structure of a class at an offset, and the offset after it; None if Python has to decode it.
    fn decode<'py>(
        &self,
        cls: &Bound<'py, PyType>,
        data: &Bound<'py, PyAny>,
        offset: &Bound<'py, PyAny>,
        end: &Bound<'py, PyAny>,
    ) -> Option<(Bound<'py, PyAny>, usize)> {
        let data = data.cast_exact::<PyBytes>().ok()?.as_bytes();
        let (offset, end): (usize, usize) = (offset.extract().ok()?, end.extract().ok()?);
        self.read(cls.py(), self.plan_of(cls)?, data.get(..end)?, offset)
    }

    /// Returns the first headers of a packet that starts with one of a class, the class of what follows, and its bytes.
    fn headers<'py>(
        &self,
        cls: &Bound<'py, PyType>,
        packet: &Bound<'py, PyBytes>,
    ) -> PyResult<Headers<'py>> {
        let py = cls.py();
        let headers = PyList::empty(py);
        let mut class = Some(cls.clone());
        let mut rest = packet.as_bytes();
        while let Some(header) = class.as_ref().and_then(|cls| self.header(cls, rest)) {
            headers.append(header.object)?;
            class = header.next;
            rest = header.rest;
        }
        Ok((headers, class, PyBytes::new(py, rest)))
    }

    /// Returns the normalized fields of a match, in the order of the wire; None if Python has to normalize them.
    fn match_fields<'py>(&self, fields: &Bound<'py, PyDict>) -> Option<Bound<'py, PyList>> {
        self.fields.normalized(fields)
    }
}

impl Codec {
    fn plan_of(&self, class: &Bound<'_, PyType>) -> Option<&Plan> {
        self.plans.get(&(class.as_ptr() as usize))
    }

    // Encoding

    fn append(&self, plan: &Plan, object: &Bound<'_, PyAny>, out: &mut Vec<u8>) -> Option<()> {
        let start = out.len();
        match plan.frame {
            Frame::Plain => self.append_fields(plan, object, out),
            Frame::Length => None,
            Frame::TypeAndLength => {
                append_type(object, out)?;
                self.append_fields(plan, object, out)?;
                pad(out, start);
                let len = set_length(out, start)?;
                object.setattr(intern!(object.py(), "len"), len).ok()
            }
        }
    }

    fn append_fields(
        &self,
        plan: &Plan,
        object: &Bound<'_, PyAny>,
        out: &mut Vec<u8>,
    ) -> Option<()> {
        let py = object.py();
        // The position of the size of the next list.
        let mut size_at = None;
        for field in &plan.fields {
            let name = field.name.bind(py);
            match &field.kind {
                Kind::Pad(size) => out.resize(out.len() + size, 0),
                Kind::Value(meaning, size) => {
                    meaning.encode(&object.getattr(name).ok()?, *size, out)?;
                }
                Kind::Bits(parts, size) => append_bits(object, parts, *size, out)?,
                Kind::Rest | Kind::Packet(_) => append_bytes(&object.getattr(name).ok()?, out)?,
                Kind::SizeOfList => {
                    size_at = Some((name, out.len()));
                    out.extend([0; 2]);
                }
                Kind::List(_) => {
                    let start = out.len();
                    self.append_list(&object.getattr(name).ok()?, out)?;
                    if let Some((size_name, at)) = size_at.take() {
                        let size = u16::try_from(out.len() - start).ok()?;
                        out[at..at + 2].copy_from_slice(&size.to_be_bytes());
                        object.setattr(size_name, size).ok()?;
                    }
                }
                Kind::Ipv4Options(_) => {}
                Kind::Match => self.append_match(&object.getattr(name).ok()?, out)?,
                Kind::Oxm => {
                    let key = object.getattr(intern!(py, "key")).ok()?;
                    let value = object.getattr(intern!(py, "value")).ok()?;
                    self.fields.encode(&key, &value, out)?;
                }
            }
        }
        Some(())
    }

    fn append_list(&self, list: &Bound<'_, PyAny>, out: &mut Vec<u8>) -> Option<()> {
        if list.is_none() {
            return Some(());
        }
        for object in list.cast_exact::<PyList>().ok()? {
            self.append(self.plan_of(&object.get_type())?, &object, out)?;
        }
        Some(())
    }

    fn append_match(&self, object: &Bound<'_, PyAny>, out: &mut Vec<u8>) -> Option<()> {
        let plan = self.match_plan.as_ref()?;
        if !object.get_type().is(&plan.class) {
            return None;
        }
        let py = object.py();
        let start = out.len();
        append_type(object, out)?;
        let fields = object.getattr(intern!(py, "_fields2")).ok()?;
        for field in fields.cast_exact::<PyList>().ok()? {
            let (name, value) = oxm::pair(&field)?;
            self.fields.encode(&name, &value, out)?;
        }
        let len = set_length(out, start)?;
        object.setattr(intern!(py, "length"), len).ok()?;
        pad(out, start);
        Some(())
    }

    // Decoding

    /// Returns the first header of a packet. Data of zeros only is padding.
    fn header<'py, 'd>(
        &self,
        class: &Bound<'py, PyType>,
        data: &'d [u8],
    ) -> Option<Header<'py, 'd>> {
        let plan = self.plan_of(class)?;
        let next = plan.next.as_ref()?;
        if data.iter().all(|&byte| byte == 0) {
            return None;
        }
        let (object, after) = self.read(class.py(), plan, data, 0)?;
        Some(Header {
            rest: &data[after..next.end(&object, after, data.len())?],
            next: next.class(&object),
            object,
        })
    }

    /// Returns the structure at an offset, in data up to its required end, and the offset after it.
    fn read<'py>(
        &self,
        py: Python<'py>,
        plan: &Plan,
        data: &[u8],
        offset: usize,
    ) -> Option<(Bound<'py, PyAny>, usize)> {
        let object = plan.instance(py)?;
        let after = match plan.frame {
            Frame::Plain => self.read_fields(plan, &object, data, offset)?,
            Frame::Length => {
                let after = end_of(data, offset, 0)?;
                self.read_fields(plan, &object, &data[..after], offset)?;
                after
            }
            Frame::TypeAndLength => {
                let after = end_of(data, offset, 2)?;
                let kind = number(data, offset)?;
                object.setattr(intern!(py, "type"), kind).ok()?;
                self.read_fields(plan, &object, &data[..after], offset + 4)?;
                object.setattr(intern!(py, "len"), after - offset).ok()?;
                after
            }
        };
        Some((object, after))
    }

    /// Sets the attributes; returns the offset after the fields.
    fn read_fields(
        &self,
        plan: &Plan,
        object: &Bound<'_, PyAny>,
        data: &[u8],
        mut offset: usize,
    ) -> Option<usize> {
        let py = object.py();
        for field in &plan.fields {
            let left = data.get(offset..)?;
            let (value, size) = match &field.kind {
                Kind::Pad(size) => {
                    left.get(..*size)?;
                    offset += size;
                    continue;
                }
                Kind::Bits(parts, size) => {
                    read_bits(object, parts, left.get(..*size)?)?;
                    offset += size;
                    continue;
                }
                Kind::Ipv4Options(length) => {
                    let length: u8 = object.getattr(length).ok()?.extract().ok()?;
                    if length != 5 {
                        return None;
                    }
                    object.setattr(&field.name, py.None()).ok()?;
                    continue;
                }
                Kind::Oxm => {
                    self.read_oxm(object, left)?;
                    continue;
                }
                Kind::Value(meaning, size) => (meaning.decode(py, left.get(..*size)?)?, *size),
                Kind::Rest => (PyBytes::new(py, left).into_any(), left.len()),
                Kind::Packet(limit) => {
                    let limit: usize = object.getattr(limit.as_ref()?).ok()?.extract().ok()?;
                    let packet = &left[..limit.min(left.len())];
                    (PyBytes::new(py, packet).into_any(), left.len())
                }
                Kind::SizeOfList => return None,
                Kind::List(kinds) => {
                    let list = self.read_list(kinds.bind(py), data, offset)?;
                    (list.into_any(), left.len())
                }
                Kind::Match => self.read_match(py, left)?,
            };
            object.setattr(&field.name, value).ok()?;
            offset += size;
        }
        Some(offset)
    }

    fn read_list<'py>(
        &self,
        kinds: &Bound<'py, PyDict>,
        data: &[u8],
        mut offset: usize,
    ) -> Option<Bound<'py, PyList>> {
        let py = kinds.py();
        let list = PyList::empty(py);
        while offset < data.len() {
            let class = kinds.get_item(number(data, offset)?).ok()??;
            let plan = self.plan_of(class.cast::<PyType>().ok()?)?;
            let (object, after) = self.read(py, plan, data, offset)?;
            list.append(object).ok()?;
            offset = after;
        }
        Some(list)
    }

    /// Returns the match, and the number of bytes that it has with padding.
    fn read_match<'py>(&self, py: Python<'py>, data: &[u8]) -> Option<(Bound<'py, PyAny>, usize)> {
        let len = end_of(data, 0, 2)?;
        let fields = PyList::empty(py);
        let mut offset = 4;
        while offset < len {
            let (name, value, size) = self.fields.decode(py, &data[offset..len])?;
            fields.append((name, value)).ok()?;
            offset += size;
        }
        let object = self.match_plan.as_ref()?.instance(py)?;
        object.setattr(intern!(py, "type"), 1).ok()?;
        object.setattr(intern!(py, "length"), len).ok()?;
        object.setattr(intern!(py, "_fields2"), fields).ok()?;
        Some((object, len.next_multiple_of(8).min(data.len())))
    }

    /// Sets `key` and `value`. Python normalises a masked field.
    fn read_oxm(&self, object: &Bound<'_, PyAny>, data: &[u8]) -> Option<()> {
        let py = object.py();
        if data.get(2)? & 1 != 0 {
            return None;
        }
        let (key, value, _) = self.fields.decode(py, data)?;
        object.setattr(intern!(py, "key"), key).ok()?;
        object.setattr(intern!(py, "value"), value).ok()
    }
}

/// Appends the number that several attributes are packed into.
fn append_bits(
    object: &Bound<'_, PyAny>,
    parts: &[(Py<PyString>, u32)],
    size: usize,
    out: &mut Vec<u8>,
) -> Option<()> {
    let mut number = 0;
    for (name, bits) in parts {
        let part = object.getattr(name).ok()?;
        let part: u64 = part.cast_exact::<PyInt>().ok()?.extract().ok()?;
        if part >> bits != 0 {
            return None;
        }
        number = number << bits | part;
    }
    out.extend_from_slice(&number.to_be_bytes()[8 - size..]);
    Some(())
}

/// Sets the attributes that are packed into a number.
fn read_bits(object: &Bound<'_, PyAny>, parts: &[(Py<PyString>, u32)], bytes: &[u8]) -> Option<()> {
    let number = bytes
        .iter()
        .fold(0, |number, &byte| number << 8 | u64::from(byte));
    let mut below = 8 * bytes.len() as u32;
    for (name, bits) in parts {
        below -= bits;
        let part = number >> below & ((1 << bits) - 1);
        object.setattr(name, part).ok()?;
    }
    Some(())
}

/// Appends the attribute `type`, and a length of 0.
fn append_type(object: &Bound<'_, PyAny>, out: &mut Vec<u8>) -> Option<()> {
    let kind = object.getattr(intern!(object.py(), "type")).ok()?;
    Meaning::Int.encode(&kind, 2, out)?;
    out.extend([0; 2]);
    Some(())
}

/// Writes the length of the structure that starts at an offset, after its type; returns it.
fn set_length(out: &mut [u8], start: usize) -> Option<u16> {
    let len = u16::try_from(out.len() - start).ok()?;
    out[start + 2..start + 4].copy_from_slice(&len.to_be_bytes());
    Some(len)
}

/// Appends zeros up to a multiple of 8 bytes.
fn pad(out: &mut Vec<u8>, start: usize) {
    out.resize(start + (out.len() - start).next_multiple_of(8), 0);
}

fn append_bytes(value: &Bound<'_, PyAny>, out: &mut Vec<u8>) -> Option<()> {
    if !value.is_none() {
        out.extend_from_slice(value.cast_exact::<PyBytes>().ok()?.as_bytes());
    }
    Some(())
}

fn number(data: &[u8], offset: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*data.get(offset..)?.first_chunk()?))
}

/// Returns the end of the structure at an offset; its length is stored `at` bytes after the offset.
fn end_of(data: &[u8], offset: usize, at: usize) -> Option<usize> {
    let len = usize::from(number(data, offset + at)?);
    let end = offset + len;
    (len >= 4 && end <= data.len()).then_some(end)
}
