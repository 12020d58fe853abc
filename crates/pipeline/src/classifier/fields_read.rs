//! A packet's fields, each read on first use.

use crate::Packet;
use urtica_wire::OxmField;

const FIELDS: usize = OxmField::ALL.len();

/// The fields of a packet that one search has read.
pub(super) struct FieldsRead<'a> {
    packet: &'a Packet,
    /// A bit for each field that has been read.
    read: u64,
    /// A bit for each of these that the packet has.
    present: u64,
    values: [u128; FIELDS],
}

impl<'a> FieldsRead<'a> {
    pub fn new(packet: &'a Packet) -> Self {
        const { assert!(FIELDS <= u64::BITS as usize) };
        Self {
            packet,
            read: 0,
            present: 0,
            values: [0; FIELDS],
        }
    }

    /// Returns the packet.
    pub fn packet(&self) -> &'a Packet {
        self.packet
    }

    /// Returns the result of [`Packet::field`].
    #[inline]
    pub fn get(&mut self, field: OxmField) -> Option<u128> {
        if self.read & bit(field) == 0 {
            self.read(field);
        }
        (self.present & bit(field) != 0).then(|| self.values[field as usize])
    }

    fn read(&mut self, field: OxmField) {
        self.read |= bit(field);
        if let Some(value) = self.packet.field(field) {
            self.present |= bit(field);
            self.values[field as usize] = value;
        }
    }
}

#[inline]
fn bit(field: OxmField) -> u64 {
    1 << field as u32
}
