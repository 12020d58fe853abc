//! The configuration and features of a switch's tables. 1.3 only.

use crate::List;
use crate::codec::wire_enum;
use crate::port::FixedName;

/// A message that configures a table (1.3.5 section 7.3.3). In 1.3, no bits of `config` are defined any longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableMod {
    /// The table; [`crate::TABLE_ALL`] for all tables.
    pub table_id: u8,
    /// `OFPTC_*`.
    pub config: u32,
}

/// The features of a table (1.3.5 section 7.3.5.5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableFeatures<'a> {
    /// The number of the table.
    pub table_id: u8,
    /// Its name.
    pub name: FixedName<32>,
    /// The metadata bits that it can match.
    pub metadata_match: u64,
    /// The metadata bits that it can write.
    pub metadata_write: u64,
    /// `OFPTC_*`.
    pub config: u32,
    /// Its maximum number of entries.
    pub max_entries: u32,
    /// Instructions, actions, fields and next tables.
    pub properties: List<'a, TableFeatureProperty<'a>>,
}

wire_enum! {
    /// The kind of a [`TableFeatureProperty`], by its number on the wire (`ofp_table_feature_prop_type`). Each `Miss` kind
    /// applies to the table-miss entry, and the kind before it to all other entries.
    TableFeatureKind: u16 {
        /// Instructions.
        Instructions = 0,
        /// Instructions of the table-miss entry.
        InstructionsMiss = 1,
        /// Tables to which goto may lead.
        NextTables = 2,
        /// Tables to which goto in the table-miss entry may lead.
        NextTablesMiss = 3,
        /// Actions in write-actions.
        WriteActions = 4,
        /// Actions in write-actions of the table-miss entry.
        WriteActionsMiss = 5,
        /// Actions in apply-actions.
        ApplyActions = 6,
        /// Actions in apply-actions of the table-miss entry.
        ApplyActionsMiss = 7,
        /// Fields that may be matched.
        Match = 8,
        /// Fields that may be omitted from a match.
        Wildcards = 10,
        /// Fields that write-actions may set.
        WriteSetfield = 12,
        /// Fields that write-actions of the table-miss entry may set.
        WriteSetfieldMiss = 13,
        /// Fields that apply-actions may set.
        ApplySetfield = 14,
        /// Fields that apply-actions of the table-miss entry may set.
        ApplySetfieldMiss = 15,
        /// An experimenter's property.
        Experimenter = 0xfffe,
        /// An experimenter's property for the table-miss entry.
        ExperimenterMiss = 0xffff,
    }
}

/// A property of a table.
///
/// `ids` is the property's content without padding: four bytes (type, length) per plain instruction or action, more for an
/// experimenter's; one byte per table; four bytes (an OXM header) per field, eight for an experimenter's; for an
/// experimenter's property, everything after the length. Content from the wire has been checked to consist of such ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableFeatureProperty<'a> {
    /// The kind.
    pub kind: TableFeatureKind,
    /// The ids in the list.
    pub ids: &'a [u8],
}
