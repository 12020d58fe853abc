//! Compares random flow mods with the simplest possible model: rows of a list, and one function for "does it include".

use crate::support::Bed;
use proptest::collection::vec;
use proptest::prelude::*;
use urtica_wire::{
    Action, Field, FlowMod, FlowModCommand, FlowModFlags, Instruction, Match, OxmField, PortNo,
    TABLE_ALL,
};

/// A match on two bits of metadata: value and mask.
type Bits = (u64, u64);

#[derive(Clone, Debug)]
struct Change {
    command: FlowModCommand,
    table_id: u8,
    priority: u16,
    bits: Bits,
    port: u32,
    cookie: u64,
    cookie_mask: u64,
    out_port: Option<u32>,
    check_overlap: bool,
}

/// An entry of the model.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Row {
    table_id: u8,
    priority: u16,
    bits: Bits,
    port: u32,
    cookie: u64,
}

fn any_change() -> impl Strategy<Value = Change> {
    let command = prop_oneof![
        4 => Just(FlowModCommand::Add),
        1 => Just(FlowModCommand::Modify),
        1 => Just(FlowModCommand::ModifyStrict),
        1 => Just(FlowModCommand::Delete),
        1 => Just(FlowModCommand::DeleteStrict),
    ];
    let table_id = prop_oneof![4 => 0_u8..3, 1 => Just(3), 1 => Just(TABLE_ALL)];
    let bits = (0_u64..4, 0_u64..4).prop_map(|(value, mask)| (value & mask, mask));
    let out_port = proptest::option::weighted(0.3, 1_u32..4);
    let rest = (1_u32..5, 0_u64..4, 0_u64..4, out_port, proptest::bool::ANY);
    (command, table_id, 0_u16..3, bits, rest).prop_map(
        |(
            command,
            table_id,
            priority,
            bits,
            (port, cookie, cookie_mask, out_port, check_overlap),
        )| {
            Change {
                command,
                table_id,
                priority,
                bits,
                port,
                cookie,
                cookie_mask,
                out_port,
                check_overlap,
            }
        },
    )
}

impl Change {
    fn to_flow_mod(&self) -> FlowMod<'static> {
        let (value, mask) = self.bits;
        let output = Action::output(PortNo(self.port));
        FlowMod {
            command: self.command,
            table_id: self.table_id,
            priority: self.priority,
            match_: Match::from(vec![Field::masked(
                OxmField::Metadata,
                value.into(),
                mask.into(),
            )]),
            instructions: vec![Instruction::apply(vec![output])].into(),
            cookie: self.cookie,
            cookie_mask: self.cookie_mask,
            out_port: self.out_port.map_or(PortNo::ANY, PortNo),
            flags: match self.check_overlap {
                true => FlowModFlags::CHECK_OVERLAP,
                false => FlowModFlags::empty(),
            },
            ..FlowMod::default()
        }
    }
}

const MAX_ROWS: usize = 8;

/// Applies a change to the rows; returns whether it is valid.
fn apply(rows: &mut Vec<Row>, change: &Change) -> bool {
    use FlowModCommand::*;
    let is_delete = matches!(change.command, Delete | DeleteStrict);
    if change.table_id >= 3 && !(is_delete && change.table_id == TABLE_ALL) {
        return false;
    }
    match change.command {
        Add => add(rows, change),
        Modify | ModifyStrict => {
            let changed = rows.iter_mut().filter(|row| selects(change, row));
            changed.for_each(|row| row.port = change.port);
            true
        }
        _ => {
            let goes = |row: &Row| {
                selects(change, row) && change.out_port.is_none_or(|port| port == row.port)
            };
            rows.retain(|row| !goes(row));
            true
        }
    }
}

fn add(rows: &mut Vec<Row>, change: &Change) -> bool {
    let new = Row {
        table_id: change.table_id,
        priority: change.priority,
        bits: change.bits,
        port: change.port,
        cookie: change.cookie,
    };
    let beside = |row: &&Row| row.table_id == new.table_id && row.priority == new.priority;
    let shares_a_packet = |row: &Row| {
        (0..4).any(|bits: u64| bits & row.bits.1 == row.bits.0 && bits & new.bits.1 == new.bits.0)
    };
    if change.check_overlap && rows.iter().filter(beside).any(shares_a_packet) {
        return false;
    }
    let twin = rows
        .iter()
        .position(|row| beside(&row) && row.bits == new.bits);
    let in_table = rows.iter().filter(|row| row.table_id == new.table_id);
    match twin {
        Some(at) => rows[at] = new,
        None if in_table.count() >= MAX_ROWS => return false,
        None => rows.push(new),
    }
    true
}

fn selects(change: &Change, row: &Row) -> bool {
    use FlowModCommand::*;
    let is_strict = matches!(change.command, ModifyStrict | DeleteStrict);
    let includes = (0..4)
        .filter(|bits: &u64| bits & row.bits.1 == row.bits.0)
        .all(|bits| bits & change.bits.1 == change.bits.0);
    let fits = match is_strict {
        true => row.bits == change.bits && row.priority == change.priority,
        false => includes,
    };
    fits && (change.table_id == row.table_id || change.table_id == TABLE_ALL)
        && row.cookie & change.cookie_mask == change.cookie & change.cookie_mask
}

fn rows_of(bed: &Bed) -> Vec<Row> {
    let tables = bed.pipeline.tables().iter();
    let entries = tables.flat_map(|table| table.entries());
    let mut rows: Vec<_> = entries
        .map(|entry| {
            let bits = entry.match_.fields().first();
            let bits = bits.map_or((0, 0), |&(_, value, mask)| (value as u64, mask as u64));
            let mut actions = entry.instructions.actions();
            let Some(&Action::Output { port, .. }) = actions.next() else {
                panic!("an output");
            };
            Row {
                table_id: entry.table_id,
                priority: entry.priority,
                bits,
                port: port.0,
                cookie: entry.cookie,
            }
        })
        .collect();
    rows.sort();
    rows
}

proptest! {
    #[test]
    fn flow_mods_equal_the_model(changes in vec(any_change(), 0..60)) {
        let mut bed = Bed::new();
        let mut rows = Vec::new();
        for change in &changes {
            let taken = bed.try_flow_mod(&change.to_flow_mod()).is_ok();
            prop_assert_eq!(taken, apply(&mut rows, change), "{:?}", change);
            rows.sort();
            prop_assert_eq!(rows_of(&bed), &rows[..], "after {:?}", change);
        }
    }

    #[test]
    fn tables_stay_in_the_order_of_priorities(changes in vec(any_change(), 0..60)) {
        let mut bed = Bed::new();
        for change in &changes {
            let _ = bed.try_flow_mod(&change.to_flow_mod());
        }
        for table in bed.pipeline.tables() {
            prop_assert!(table.entries().is_sorted_by(|a, b| a.priority >= b.priority));
        }
    }
}
