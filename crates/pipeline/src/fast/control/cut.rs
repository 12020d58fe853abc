//! By what a table is cut into sub-tables, and which sub-tables an entry belongs to.

use super::match_key::Key;
use crate::EntryMatch;
use crate::fast::datapath::kinds::Kinds;
use urtica_wire::OxmField;

/// By what a table is cut: the value of a field under a mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    pub field: OxmField,
    pub mask: u128,
    /// The headers of packets that have the field.
    pub require: Kinds,
}

/// Where an entry of a table that was cut belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// Into the sub-table of this value.
    One(u128),
    /// Into the rest, and into all sub-tables whose value is this one under this mask.
    Several { value: u128, mask: u128 },
}

impl Cut {
    /// A cut by a field; `None` by one that packets have no single place for.
    pub fn new(field: OxmField, mask: u128) -> Option<Self> {
        let key = Key::of_field(field, 0, mask)?;
        Some(Self {
            field,
            mask,
            require: key.mask.require,
        })
    }

    /// What packets have that belong to the sub-table of this value. There is a key for each value, as there is one for 0: see
    /// [`Cut::new`].
    pub fn key(&self, value: u128) -> Option<Key> {
        Key::of_field(self.field, value, self.mask)
    }

    /// Where an entry with this match belongs.
    pub fn side(&self, match_: &EntryMatch) -> Side {
        let (value, mask) = match_.get(self.field).unwrap_or_default();
        match self.mask & !mask == 0 {
            true => Side::One(value & self.mask),
            false => Side::Several {
                value: value & self.mask,
                mask: mask & self.mask,
            },
        }
    }

    /// Whether each packet of a sub-table has what an entry of it asks for in this field.
    pub fn implies(&self, field: OxmField, mask: u128) -> bool {
        self.field == field && mask & !self.mask == 0
    }
}

impl Side {
    /// Whether an entry of this side belongs into the sub-table of a value.
    pub fn is_in(self, sub_table: u128) -> bool {
        match self {
            Self::One(value) => value == sub_table,
            Self::Several { value, mask } => (value ^ sub_table) & mask == 0,
        }
    }
}

/// Whether all packets of a sub-table match.
pub(super) fn is_everything(match_: &EntryMatch, key: &Key, cuts: &[Cut]) -> bool {
    let have = cuts
        .iter()
        .fold(Kinds::empty(), |have, cut| have | cut.require);
    let mut fields = match_.fields().iter();
    have.contains(key.mask.require)
        && fields.all(|&(field, _, mask)| {
            cuts.iter().any(|cut| cut.implies(field, mask)) || key.is_header(field)
        })
}
