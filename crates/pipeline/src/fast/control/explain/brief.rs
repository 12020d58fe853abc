//! A brief description of how a table is searched, which inspects no entries, so that it can be requested every second.

use super::{TemplateKind, words};
use crate::fast::control::compiler::Compiler;
use crate::fast::control::form::{MergedTuples, SubTable, SubTables, TableForm};
use crate::fast::datapath::table::Template;
use std::collections::BTreeMap;

impl Compiler {
    /// Describes how a table is searched; returns `None` if the table does not exist.
    pub fn brief(&self, table_id: u8) -> Option<String> {
        let form = self.forms.get(usize::from(table_id))?;
        Some(match form.template() {
            Ok(template) => describe(template, form),
            Err(reason) => format!("{}: {reason}", TemplateKind::PlainForm),
        })
    }
}

fn describe(template: &Template, form: &TableForm) -> String {
    let kind = TemplateKind::of(template);
    match template {
        Template::Hash(parts) if parts.len() > 1 => format!("{kind}: {} hash tables", parts.len()),
        Template::Merged(_) => {
            let (tables, masks) = form.merged().map(MergedTuples::counts).unwrap_or_default();
            format!("{kind}: {tables} hash tables for {masks} sets of bits")
        }
        Template::Cut(_) => match form.sub_tables() {
            Some(sub_tables) => format!("{kind} by {}", describe_cut(sub_tables)),
            None => kind.to_string(),
        },
        _ => kind.to_string(),
    }
}

/// Describes a cut: its field, and the number of sub-tables for each template.
fn describe_cut(sub_tables: &SubTables) -> String {
    let mut counts: BTreeMap<TemplateKind, usize> = BTreeMap::new();
    for sub_table in sub_tables.sub_tables() {
        *counts.entry(kind_of(sub_table)).or_default() += 1;
    }
    let counts = counts.iter().map(|(kind, count)| format!("{count} {kind}"));
    let counts = counts.collect::<Vec<_>>().join(", ");
    let rest = kind_of(sub_tables.rest());
    format!(
        "{}: sub-tables: {counts}; for other values: {rest}",
        words::cut(sub_tables.cut())
    )
}

fn kind_of(sub_table: &SubTable) -> TemplateKind {
    TemplateKind::of(sub_table.template())
}
