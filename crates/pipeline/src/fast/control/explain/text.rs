//! Explanations as text.

use super::{
    ExplainedActions, ExplainedCut, ExplainedPart, ExplainedSubTables, ExplainedTable, Explanation,
    TemplateKind, words,
};
use std::collections::HashMap;
use std::fmt::{self, Display, Formatter, Write};

/// The maximum number of sets of bits to list.
const SETS_TOLD: usize = 3;

/// The width at which sentences are wrapped, in columns.
const WIDTH: usize = 90;

impl Display for Explanation {
    /// Writes all tables, with their code if requested. Code that tables share is written once.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "frames are parsed as far as {}", self.parsed_to)?;
        if self.is_code_refused {
            writeln!(
                f,
                "tables are interpreted: the system refused memory for machine code"
            )?;
        }
        if self.tables.is_empty() {
            return writeln!(f, "no table has entries");
        }
        let mut written = Written::default();
        for table in &self.tables {
            writeln!(f)?;
            table.write(f, &mut written)?;
        }
        Ok(())
    }
}

/// The code that has been written, with its owner.
#[derive(Default)]
struct Written<'e>(HashMap<&'e str, String>);

impl<'e> Written<'e> {
    /// Writes code, or a reference to it.
    fn write(&mut self, f: &mut Formatter<'_>, code: &'e str, whose: String) -> fmt::Result {
        if let Some(first) = self.0.get(code) {
            return writeln!(f, "  code of {whose}: that of {first}");
        }
        writeln!(f, "  code of {whose}:")?;
        for line in code.lines() {
            writeln!(f, "    {line}")?;
        }
        self.0.insert(code, whose);
        Ok(())
    }
}

impl ExplainedTable {
    fn write<'e>(&'e self, f: &mut Formatter<'_>, written: &mut Written<'e>) -> fmt::Result {
        let Self {
            table_id, template, ..
        } = self;
        writeln!(f, "table {table_id}: {template}")?;
        writeln!(f, "  why: {}", wrapped(&self.why))?;
        if self.template == TemplateKind::PlainForm {
            return Ok(());
        }
        match (self.match_depth, self.actions_depth) {
            (matched, acted) if matched == acted => writeln!(f, "  parsed: as far as {matched}")?,
            (matched, acted) => {
                writeln!(f, "  parsed: as far as {matched} to match, {acted} to act")?
            }
        }
        if let Some(cut) = &self.cut {
            cut.write(f)?;
        }
        for part in &self.parts {
            writeln!(f, "  part: {}", part.text(self.template, self.parts.len()))?;
        }
        if self.hidden_entries > 0 {
            let hidden = words::entries(self.hidden_entries);
            writeln!(
                f,
                "  omitted: {hidden} behind the one that matches everything"
            )?;
        }
        for actions in &self.actions {
            let ExplainedActions {
                steps,
                headers,
                entries,
                ..
            } = actions;
            let on = if headers.is_empty() { "" } else { ", on " };
            writeln!(
                f,
                "  actions: {steps} ({}{on}{headers})",
                words::entries(*entries)
            )?;
        }
        if let Some(code) = &self.code {
            written.write(f, code, format!("table {table_id}"))?;
        }
        let sub_tables = self.cut.iter().flat_map(|cut| &cut.sub_tables);
        for (sub_tables, code) in
            sub_tables.filter_map(|sub_tables| Some((sub_tables, sub_tables.code.as_ref()?)))
        {
            let whose = match sub_tables.count {
                Some(_) => format!("the first sub-table that is {}", sub_tables.template),
                None => "the rest".to_owned(),
            };
            written.write(f, code, format!("{whose}, of table {table_id}"))?;
        }
        for actions in &self.actions {
            if let Some(code) = &actions.code {
                written.write(f, code, format!("{} in table {table_id}", actions.steps))?;
            }
        }
        Ok(())
    }
}

impl ExplainedCut {
    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self {
            by, values, bytes, ..
        } = self;
        writeln!(
            f,
            "  cut: by {by}, {values} values, places for {} ({bytes} bytes)",
            words::entries(self.places)
        )?;
        for sub_tables in &self.sub_tables {
            writeln!(f, "  {}", wrapped(&sub_tables.text()))?;
        }
        Ok(())
    }
}

impl ExplainedSubTables {
    fn text(&self) -> String {
        let Self {
            template, entries, ..
        } = self;
        let mut text = match self.count {
            None if entries.1 == 0 => return "rest: no entries".to_owned(),
            None => format!("rest: {template}"),
            Some(1) => format!("1 sub-table: {template}"),
            Some(count) => format!("{count} sub-tables: {template}"),
        };
        if !self.cut_by.is_empty() {
            let _ = write!(text, " by {}", self.cut_by.join(" or "));
        }
        let _ = match entries {
            (few, many) if few == many => write!(text, " ({}", words::entries(*many)),
            (few, many) => write!(text, " ({few} to {}", words::entries(*many)),
        };
        match self.looks_at.len() {
            0 => {}
            1..=SETS_TOLD => {
                let _ = write!(text, ", {}", self.looks_at.join(" or "));
            }
            sets => {
                let _ = write!(text, ", {sets} different sets of bits");
            }
        }
        let _ = write!(text, ", {} bytes)", self.bytes);
        text
    }
}

impl ExplainedPart {
    /// Returns the line for one of `parts` parts.
    fn text(&self, template: TemplateKind, parts: usize) -> String {
        let mut text = format!("{} ({}", self.looks_at, words::entries(self.entries));
        let (low, high) = self.priorities;
        let _ = match low == high {
            true => write!(text, ", priority {low}"),
            false => write!(text, ", priorities {low} to {high}"),
        };
        let _ = write!(text, ", {} bytes", self.bytes);
        if template != TemplateKind::DirectCode && self.looks_at != "everything" {
            let is_ahead = if self.is_fetched_ahead { "" } else { "not " };
            let _ = write!(text, ", {is_ahead}fetched ahead");
        }
        if template == TemplateKind::TupleSpace && parts > 1 && self.is_final {
            text.push_str(", a match here ends the search");
        }
        text.push(')');
        text
    }
}

/// Wraps a sentence, and indents the lines after the first.
fn wrapped(sentence: &str) -> String {
    let mut text = String::new();
    let mut column = 0;
    for word in sentence.split(' ') {
        if column > 0 && column + word.len() >= WIDTH {
            text.push_str("\n      ");
            column = 0;
        }
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(word);
        column += word.len() + 1;
    }
    text
}
