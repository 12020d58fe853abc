//! Features of tables, groups and meters, as controllers request them (1.3.5 sections 7.3.5.5, 7.3.5.8 and 7.3.5.11).

use crate::check::is_settable;
use crate::meter::{MAX_BANDS, METER_FLAGS};
use crate::{Pipeline, PipelineConfig};
use urtica_wire::{
    FixedName, GroupCapabilities, GroupFeatures, MeterFeatures, OxmField, TableFeatureKind,
    TableFeatureProperty, TableFeatures,
};

/// `OFPIT_GOTO_TABLE`.
const GOTO_TABLE: u16 = 1;
/// The other instructions, `OFPIT_WRITE_METADATA` to `OFPIT_METER`.
const INSTRUCTIONS: [u16; 5] = [2, 3, 4, 5, 6];
/// All of `OFPAT_*` except experimenters': output; the TTL actions 11, 12, 15, 16; tags, queue, group and fields, 17 to 27.
const ACTIONS: [u16; 16] = [
    0, 11, 12, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27,
];
/// `OFPMBT_DROP` and `OFPMBT_DSCP_REMARK`.
const BAND_TYPES: [u16; 2] = [1, 2];

/// The class of the specification's match fields, OFPXMC_OPENFLOW_BASIC.
const OXM_CLASS: u16 = 0x8000;

/// The features of a pipeline's tables: the bytes that [`TableFeatures`] borrow.
///
/// All tables have equal features, except for goto, which leads only to later tables. Table-miss entries have no separate
/// properties, since they have no restrictions (1.3.5 section 7.3.5.5.2: they "can be omitted").
#[derive(Clone, Debug)]
pub struct TableFeatureIds {
    config: PipelineConfig,
    /// All instructions, goto first.
    instructions: Vec<u8>,
    actions: Vec<u8>,
    match_fields: Vec<u8>,
    any_fields: Vec<u8>,
    set_fields: Vec<u8>,
    table_ids: Vec<u8>,
}

impl TableFeatureIds {
    fn new(config: PipelineConfig) -> Self {
        let fields = || OxmField::ALL.iter().copied();
        Self {
            config,
            instructions: ids([GOTO_TABLE].into_iter().chain(INSTRUCTIONS)),
            actions: ids(ACTIONS),
            match_fields: fields()
                .flat_map(|field| oxm_id(field, field.maskable()))
                .collect(),
            any_fields: fields().flat_map(|field| oxm_id(field, false)).collect(),
            set_fields: fields()
                .filter(|&field| is_settable(field))
                .flat_map(|field| oxm_id(field, false))
                .collect(),
            table_ids: (0..config.n_tables).collect(),
        }
    }

    /// Returns the features of each table.
    pub fn tables(&self) -> impl Iterator<Item = TableFeatures<'_>> {
        self.table_ids.iter().map(|&table_id| self.table(table_id))
    }

    fn table(&self, table_id: u8) -> TableFeatures<'_> {
        TableFeatures {
            table_id,
            name: FixedName::truncated(&format!("table {table_id}")),
            metadata_match: u64::MAX,
            metadata_write: u64::MAX,
            config: 0,
            max_entries: self.config.max_entries,
            properties: self.properties(table_id).into_iter().collect(),
        }
    }

    fn properties(&self, table_id: u8) -> [TableFeatureProperty<'_>; 8] {
        let next_tables = &self.table_ids[usize::from(table_id) + 1..];
        let instructions = match next_tables {
            [] => &self.instructions[ID_SIZE..],
            _ => &self.instructions,
        };
        [
            (TableFeatureKind::Instructions, instructions),
            (TableFeatureKind::NextTables, next_tables),
            (TableFeatureKind::WriteActions, &self.actions),
            (TableFeatureKind::ApplyActions, &self.actions),
            (TableFeatureKind::Match, &self.match_fields),
            (TableFeatureKind::Wildcards, &self.any_fields),
            (TableFeatureKind::WriteSetfield, &self.set_fields),
            (TableFeatureKind::ApplySetfield, &self.set_fields),
        ]
        .map(|(kind, ids)| TableFeatureProperty { kind, ids })
    }
}

/// The size of the id of an instruction or action.
const ID_SIZE: usize = 4;

/// Encodes types of instructions or actions, each with the length of the id.
fn ids(types: impl IntoIterator<Item = u16>) -> Vec<u8> {
    let types = types.into_iter();
    types
        .flat_map(|number| {
            let [high, low] = number.to_be_bytes();
            [high, low, 0, ID_SIZE as u8]
        })
        .collect()
}

/// Returns the header of a field's TLV, with the field's length.
fn oxm_id(field: OxmField, has_mask: bool) -> [u8; ID_SIZE] {
    let [high, low] = OXM_CLASS.to_be_bytes();
    let length = field.bytes() << u8::from(has_mask);
    let field_and_mask = (field as u8) << 1 | u8::from(has_mask);
    [high, low, field_and_mask, length as u8]
}

/// Returns a bitmap with these bits set.
fn bitmap(bits: impl IntoIterator<Item = u16>) -> u32 {
    bits.into_iter().fold(0, |bitmap, bit| bitmap | 1 << bit)
}

impl Pipeline {
    /// Returns the features of the tables.
    pub fn table_features(&self) -> TableFeatureIds {
        TableFeatureIds::new(*self.config())
    }

    /// Returns the features of the groups, which are all of 1.3's.
    pub fn group_features(&self) -> GroupFeatures {
        GroupFeatures {
            types: 0b1111,
            capabilities: GroupCapabilities::SELECT_WEIGHT
                | GroupCapabilities::SELECT_LIVENESS
                | GroupCapabilities::CHAINING
                | GroupCapabilities::CHAINING_CHECKS,
            max_groups: [self.config().max_groups; 4],
            actions: [bitmap(ACTIONS); 4],
        }
    }

    /// Returns the features of the meters, which do not colour packets.
    pub fn meter_features(&self) -> MeterFeatures {
        MeterFeatures {
            max_meter: self.config().max_meters,
            band_types: bitmap(BAND_TYPES),
            capabilities: METER_FLAGS.bits().into(),
            max_bands: MAX_BANDS as u8,
            max_color: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use urtica_wire::{
        Action, Element, Field, Instruction, List, Message, MultipartFlags, MultipartReply,
        MultipartReplyBody, Version,
    };

    fn pipeline() -> Pipeline {
        Pipeline::new(PipelineConfig {
            n_tables: 3,
            ..PipelineConfig::default()
        })
    }

    fn ids_of<'a>(table: &TableFeatures<'a>, kind: TableFeatureKind) -> &'a [u8] {
        let mut properties = table.properties.iter();
        let property = properties.find(|property| property.kind == kind);
        property.expect("the property").ids
    }

    #[test]
    fn goto_leads_only_to_later_tables() {
        let features = pipeline().table_features();
        let tables: Vec<_> = features.tables().collect();
        assert_eq!(ids_of(&tables[0], TableFeatureKind::NextTables), [1, 2]);
        assert_eq!(ids_of(&tables[1], TableFeatureKind::NextTables), [2]);
        assert!(ids_of(&tables[2], TableFeatureKind::NextTables).is_empty());
        let instructions = |table| ids_of(table, TableFeatureKind::Instructions);
        assert!(instructions(&tables[1]).starts_with(&[0, 1, 0, 4]));
        assert!(!instructions(&tables[2]).starts_with(&[0, 1, 0, 4]));
    }

    #[test]
    fn all_fields_can_be_matched_and_all_but_the_pipelines_set() {
        let features = pipeline().table_features();
        let table = features.tables().next().expect("a table");
        let of = |kind| {
            ids_of(&table, kind)
                .chunks(4)
                .map(|id| id[2] >> 1)
                .collect::<Vec<_>>()
        };
        assert_eq!(of(TableFeatureKind::Match).len(), OxmField::ALL.len());
        assert_eq!(of(TableFeatureKind::Wildcards).len(), OxmField::ALL.len());
        let settable = of(TableFeatureKind::ApplySetfield);
        assert!(!settable.contains(&(OxmField::InPort as u8)));
        assert!(settable.contains(&(OxmField::Ipv6NdTll as u8)));
    }

    #[test]
    fn ids_have_the_numbers_of_the_wire() {
        let mut out = Vec::new();
        let instructions = [
            Instruction::WriteMetadata {
                metadata: 0,
                mask: 0,
            },
            Instruction::WriteActions(Vec::new().into()),
            Instruction::apply(Vec::new()),
            Instruction::ClearActions,
            Instruction::Meter(1),
        ];
        for (instruction, number) in instructions.iter().zip(INSTRUCTIONS) {
            out.clear();
            instruction.encode(Version::Of13, &mut out).unwrap();
            assert_eq!(out[..2], number.to_be_bytes());
        }
        for number in ACTIONS {
            let mut bytes = [0; 16];
            bytes[..2].copy_from_slice(&number.to_be_bytes());
            bytes[3] = if number == 0 || number == 25 { 16 } else { 8 };
            let vid = [0x80, 0, 12, 2, 0x10, 1];
            if number == 25 {
                bytes[4..10].copy_from_slice(&vid);
            }
            let bytes = &bytes[..usize::from(bytes[3])];
            let actions = List::<Action>::from_wire(Version::Of13, bytes).unwrap();
            let action = actions.iter().next().unwrap();
            assert!(!matches!(action, Action::Experimenter { .. }));
        }
    }

    #[test]
    fn field_ids_are_the_headers_that_the_wire_has() {
        for &field in OxmField::ALL {
            let mut out = Vec::new();
            let masked = Field::masked(field, 0, 1);
            let exact = Field::exact(field, 0);
            let written = if field.maskable() { masked } else { exact };
            written.encode(Version::Of13, &mut out).unwrap();
            assert_eq!(out[..4], oxm_id(field, field.maskable()));
        }
    }

    #[test]
    fn a_reply_can_be_encoded_and_decoded() {
        let features = pipeline().table_features();
        let reply = MultipartReply {
            flags: MultipartFlags::empty(),
            body: MultipartReplyBody::TableFeatures(features.tables().collect()),
        };
        let message = Message::MultipartReply(reply);
        let mut out = Vec::new();
        message.encode(Version::Of13, 1, &mut out).unwrap();
        let (_, decoded) = Message::decode(&out).unwrap();
        assert_eq!(decoded, message);
    }
}
