//! Writing the features of tables: each property as text, on a separate line.

use super::matching::write_hex;
use super::outline::write_foreign;
use crate::{FixedName, OxmField, TableFeatureKind, TableFeatureProperty, TableFeatures};
use std::fmt::{self, Write};

/// Instructions by their numbers, from 1 on (1.3.5 section 7.2.4).
const INSTRUCTIONS: &[(u16, &str)] = &[
    (1, "goto_table"),
    (2, "write_metadata"),
    (3, "write_actions"),
    (4, "apply_actions"),
    (5, "clear_actions"),
    (6, "meter"),
];

/// Actions by their numbers (1.3.5 section 7.2.5), with their names in flow entries.
const ACTIONS: &[(u16, &str)] = &[
    (0, "output"),
    (11, "copy_ttl_out"),
    (12, "copy_ttl_in"),
    (15, "set_mpls_ttl"),
    (16, "dec_mpls_ttl"),
    (17, "push_vlan"),
    (18, "pop_vlan"),
    (19, "push_mpls"),
    (20, "pop_mpls"),
    (21, "set_queue"),
    (22, "group"),
    (23, "mod_nw_ttl"),
    (24, "dec_ttl"),
    (25, "set_field"),
    (26, "push_pbb"),
    (27, "pop_pbb"),
];

/// The type of an experimenter's instruction or action, whose id follows.
const EXPERIMENTER: u16 = 0xffff;

/// The OXM class of the specification's fields.
const OPENFLOW_BASIC: u16 = 0x8000;

/// Writes a table's name after its number.
pub(super) fn write_table_name(out: &mut dyn Write, name: &FixedName<32>) -> fmt::Result {
    out.write_str(" (\"")?;
    write_foreign(out, &name.to_str_lossy())?;
    out.write_str("\")")
}

/// Writes the features of one table.
pub(super) fn write_table_features(out: &mut dyn Write, table: &TableFeatures<'_>) -> fmt::Result {
    write!(out, "  table {}", table.table_id)?;
    write_table_name(out, &table.name)?;
    out.write_char(':')?;
    write!(out, "\n    metadata: match={:#x}", table.metadata_match)?;
    write!(out, " write={:#x}", table.metadata_write)?;
    write!(out, "\n    config={:#x}", table.config)?;
    write!(out, "\n    max_entries={}", table.max_entries)?;
    table.properties.iter().try_for_each(|property| {
        out.write_str("\n    ")?;
        write_property(out, &property)
    })
}

fn write_property(out: &mut dyn Write, property: &TableFeatureProperty<'_>) -> fmt::Result {
    use TableFeatureKind as Kind;
    let ids = property.ids;
    let (name, write_ids): (_, WriteIds) = match property.kind {
        Kind::Instructions => ("instructions", write_instructions),
        Kind::InstructionsMiss => ("instructions of table miss", write_instructions),
        Kind::NextTables => ("next tables", write_tables),
        Kind::NextTablesMiss => ("next tables of table miss", write_tables),
        Kind::WriteActions => ("write_actions", write_actions),
        Kind::WriteActionsMiss => ("write_actions of table miss", write_actions),
        Kind::ApplyActions => ("apply_actions", write_actions),
        Kind::ApplyActionsMiss => ("apply_actions of table miss", write_actions),
        Kind::Match => ("match", write_fields),
        Kind::Wildcards => ("wildcards", write_fields),
        Kind::WriteSetfield => ("write_actions set_field", write_fields),
        Kind::WriteSetfieldMiss => ("write_actions set_field of table miss", write_fields),
        Kind::ApplySetfield => ("apply_actions set_field", write_fields),
        Kind::ApplySetfieldMiss => ("apply_actions set_field of table miss", write_fields),
        Kind::Experimenter => ("experimenter", write_hex),
        Kind::ExperimenterMiss => ("experimenter of table miss", write_hex),
        Kind::Other(number) => {
            write!(out, "property {number}:")?;
            return write_value(out, ids, write_hex);
        }
    };
    write!(out, "{name}:")?;
    write_value(out, ids, write_ids)
}

/// Writes the content of a property.
type WriteIds = fn(&mut dyn Write, &[u8]) -> fmt::Result;

fn write_value(out: &mut dyn Write, ids: &[u8], write_ids: WriteIds) -> fmt::Result {
    out.write_char(' ')?;
    match ids {
        [] => out.write_str("none"),
        ids => write_ids(out, ids),
    }
}

/// Writes the separator after an item of a list, if `rest` contains another item.
fn write_comma(out: &mut dyn Write, rest: &[u8]) -> fmt::Result {
    match rest {
        [] => Ok(()),
        _ => out.write_char(','),
    }
}

fn write_instructions(out: &mut dyn Write, ids: &[u8]) -> fmt::Result {
    write_types(out, ids, INSTRUCTIONS)
}

fn write_actions(out: &mut dyn Write, ids: &[u8]) -> fmt::Result {
    write_types(out, ids, ACTIONS)
}

/// Writes instructions or actions by name. Each has a type, a length, and for an experimenter's further bytes.
fn write_types(out: &mut dyn Write, mut ids: &[u8], names: &[(u16, &str)]) -> fmt::Result {
    while let [t0, t1, l0, l1, ref rest @ ..] = *ids {
        let (number, length) = (u16::from_be_bytes([t0, t1]), u16::from_be_bytes([l0, l1]));
        let more = usize::from(length).saturating_sub(4).min(rest.len());
        let (more, rest) = rest.split_at(more);
        match names.iter().find(|(known, _)| *known == number) {
            Some((_, name)) => out.write_str(name)?,
            None if number == EXPERIMENTER => write_experimenter(out, more)?,
            None => write!(out, "type {number}")?,
        }
        write_comma(out, rest)?;
        ids = rest;
    }
    write_hex(out, ids)
}

fn write_experimenter(out: &mut dyn Write, id: &[u8]) -> fmt::Result {
    out.write_str("experimenter(0x")?;
    write_hex(out, id)?;
    out.write_char(')')
}

/// Writes tables by number, and runs of them as `1-5`.
fn write_tables(out: &mut dyn Write, ids: &[u8]) -> fmt::Result {
    let is_next = |pair: &[u8]| pair[0].checked_add(1) == Some(pair[1]);
    let mut rest = ids;
    while let [first, ..] = *rest {
        let steps = rest.windows(2).take_while(|pair| is_next(pair)).count();
        let last = rest[steps];
        rest = &rest[steps + 1..];
        match steps {
            0 => write!(out, "{first}")?,
            _ => write!(out, "{first}-{last}")?,
        }
        write_comma(out, rest)?;
    }
    Ok(())
}

/// Writes fields by the specification's names, with `/mask` if bits may be masked (1.3.5 section 7.2.3.2).
fn write_fields(out: &mut dyn Write, mut ids: &[u8]) -> fmt::Result {
    while let [c0, c1, field, _, ref rest @ ..] = *ids {
        let (class, number) = (u16::from_be_bytes([c0, c1]), field >> 1);
        let known = match class {
            OPENFLOW_BASIC => OxmField::from_wire(number),
            _ => None,
        };
        match known {
            Some(field) => out.write_str(field.name())?,
            None => write!(out, "oxm({class:#x},{number})")?,
        }
        if field & 1 != 0 {
            out.write_str("/mask")?;
        }
        // An experimenter's id follows.
        let skipped = if class == 0xffff { 4 } else { 0 };
        let rest = rest.get(skipped..).unwrap_or_default();
        write_comma(out, rest)?;
        ids = rest;
    }
    write_hex(out, ids)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(kind: TableFeatureKind, ids: &[u8]) -> String {
        let mut out = String::new();
        let property = TableFeatureProperty { kind, ids };
        write_property(&mut out, &property).expect("a String takes all");
        out
    }

    #[test]
    fn properties_are_written_in_words() {
        use TableFeatureKind as Kind;
        for (kind, ids, text) in [
            (
                Kind::Instructions,
                &[0, 1, 0, 4, 0, 6, 0, 4][..],
                "instructions: goto_table,meter",
            ),
            (
                Kind::ApplyActionsMiss,
                &[
                    0, 0, 0, 4, 0, 25, 0, 4, 0xff, 0xff, 0, 8, 0, 0, 0x23, 0x20, 0, 99, 0, 4,
                ],
                "apply_actions of table miss: output,set_field,experimenter(0x00002320),type 99",
            ),
            (
                Kind::NextTables,
                &[1, 2, 3, 7, 9, 10],
                "next tables: 1-3,7,9-10",
            ),
            (
                Kind::NextTablesMiss,
                &[254, 255],
                "next tables of table miss: 254-255",
            ),
            (
                Kind::Match,
                &[0x80, 0, 7, 0, 0x80, 0, 26, 0, 0, 1, 4, 0],
                "match: eth_dst/mask,tcp_src,oxm(0x1,2)",
            ),
            (
                Kind::Wildcards,
                &[0xff, 0xff, 2, 0, 0, 0, 0x23, 0x20, 0x80, 0, 0, 0],
                "wildcards: oxm(0xffff,1),in_port",
            ),
            (Kind::WriteSetfield, &[], "write_actions set_field: none"),
            (Kind::Experimenter, &[0xab, 0xcd], "experimenter: abcd"),
            (Kind::Other(77), &[1], "property 77: 01"),
        ] {
            assert_eq!(written(kind, ids), text);
        }
    }

    #[test]
    fn every_action_and_field_has_its_name() {
        // The specification's numbers have gaps; undefined numbers have no name here.
        for (number, name) in ACTIONS {
            let ids = [number.to_be_bytes(), [0, 4]].concat();
            let text = written(TableFeatureKind::WriteActions, &ids);
            assert_eq!(text, format!("write_actions: {name}"));
        }
        for number in 0..40 {
            let text = written(TableFeatureKind::Match, &[0x80, 0, number << 1, 0]);
            assert!(!text.contains("oxm"), "{number}: {text}");
        }
    }
}
