//! Human-readable descriptions of cuts.

use super::{Row, TemplateKind, words};
use crate::fast::control::compiler::Compiler;
use crate::fast::control::form::{SubTable, SubTables};
use crate::fast::control::planned::Planned;
use crate::{FlowEntry, FlowTable, Packet};
use std::collections::BTreeMap;

/// A table's cut (ESWITCH, SIGCOMM 2016, slide 12: flow table decomposition).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplainedCut {
    /// The field of the cut, with its mask, as in `in_port` or `nw_dst/255.255.255.0`.
    pub by: String,
    /// The number of values that have a sub-table. Packets with other values use the rest.
    pub values: usize,
    /// The number of slots that entries have in all sub-tables.
    pub places: usize,
    /// The size in bytes of the structure that finds sub-tables.
    pub bytes: usize,
    /// The sub-tables, grouped by how they are searched; the rest is the last.
    pub sub_tables: Vec<ExplainedSubTables>,
}

/// Sub-tables that are searched alike, or the rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplainedSubTables {
    /// The number of sub-tables; `None` for the rest.
    pub count: Option<usize>,
    /// How they are searched.
    pub template: TemplateKind,
    /// The numbers of entries in the smallest and the largest.
    pub entries: (usize, usize),
    /// The entries' sets of bits, without duplicates.
    pub looks_at: Vec<String>,
    /// The further cuts, if any.
    pub cut_by: Vec<String>,
    /// The size of the search structures in bytes, without entries and code.
    pub bytes: usize,
    /// The machine code of the first of them, if requested and available.
    pub code: Option<String>,
}

impl Compiler {
    /// Returns the templates that find a packet's entry in a table: the table's, then the one of the packet's sub-table, and so
    /// on. Empty if the table does not exist.
    pub fn templates(&self, table_id: u8, packet: &Packet) -> Vec<TemplateKind> {
        let mut kinds: Vec<_> = self.template(table_id).into_iter().collect();
        let form = self.forms.get(usize::from(table_id));
        let mut sub_tables = form.and_then(|form| form.sub_tables());
        while let Some(cut) = sub_tables {
            let value = packet.field(cut.cut().field);
            let sub_table = cut.sub_table_of(value.map(|value| value & cut.cut().mask));
            kinds.push(TemplateKind::of(sub_table.template()));
            sub_tables = sub_table.sub_tables();
        }
        kinds
    }
}

/// Describes the cut of a table.
pub fn explain_cut(sub_tables: &SubTables, with_code: bool) -> ExplainedCut {
    let mut alike: BTreeMap<TemplateKind, Vec<&SubTable>> = BTreeMap::new();
    for sub_table in sub_tables.sub_tables() {
        let kind = TemplateKind::of(sub_table.template());
        alike.entry(kind).or_default().push(sub_table);
    }
    let explained = alike.values().map(|alike| {
        let count = Some(alike.len());
        explain_alike(count, alike, with_code)
    });
    let rest = explain_alike(None, &[sub_tables.rest()], with_code);
    ExplainedCut {
        by: words::cut(sub_tables.cut()),
        values: sub_tables.sub_tables().count(),
        places: sub_tables.places(),
        bytes: sub_tables.sub_pointer_bytes(),
        sub_tables: explained.chain([rest]).collect(),
    }
}

/// Returns the reason for the cut, with the saving if it can be computed from the entries.
pub fn why_cut(sub_tables: &SubTables, table: &FlowTable, rows: &[Row]) -> String {
    let cut = sub_tables.cut();
    let planned = table.ranked().zip(rows);
    let planned = planned.filter(|(_, row)| !row.is_everything());
    let planned: Vec<_> = planned
        .map(|((rank, entry), row)| Planned {
            rank,
            entry: entry.clone(),
            key: row.key.clone(),
        })
        .collect();
    let planned: Vec<_> = planned.iter().collect();
    let gain = match cut.costs(&planned) {
        Some((whole, cut)) => format!(
            "a search costs as much as {} probes of a hash table on average, where one of the whole would cost as much as \
             {}",
            tenths(cut),
            tenths(whole)
        ),
        None => "it was worth it when last checked".to_owned(),
    };
    format!("cut by {}: {gain}", words::cut(cut))
}

fn tenths(number: u64) -> String {
    format!("{}.{}", number / 10, number % 10)
}

fn explain_alike(count: Option<usize>, alike: &[&SubTable], with_code: bool) -> ExplainedSubTables {
    let sizes = || alike.iter().map(|sub_table| sub_table.entries().count());
    let mut looks_at: Vec<String> = Vec::new();
    let mut cut_by: Vec<String> = Vec::new();
    let entries = alike.iter().flat_map(|sub_table| sub_table.entries());
    for text in entries.map(|entry: &FlowEntry| words::looks_at(&entry.match_)) {
        add(&mut looks_at, text);
    }
    for cut in alike.iter().filter_map(|sub_table| sub_table.sub_tables()) {
        add(&mut cut_by, words::cut(cut.cut()));
    }
    let first = alike.first();
    ExplainedSubTables {
        count,
        template: first.map_or(TemplateKind::PlainForm, |sub_table| {
            TemplateKind::of(sub_table.template())
        }),
        entries: (
            sizes().min().unwrap_or_default(),
            sizes().max().unwrap_or_default(),
        ),
        looks_at,
        cut_by,
        bytes: alike.iter().map(|sub_table| sub_table.bytes()).sum(),
        code: first
            .filter(|_| with_code)
            .and_then(|sub_table| sub_table.listing()),
    }
}

fn add(texts: &mut Vec<String>, text: String) {
    if !texts.contains(&text) {
        texts.push(text);
    }
}
