//! Human-readable descriptions of a compiled pipeline: each table's template and the reason for it, its fields, its actions,
//! and the machine code.
//!
//! The text depends only on the entries: it contains no addresses and no seeds. Fields and actions have `ovs-ofctl`'s names.

mod brief;
mod plain_way;
mod sub_tables;
mod text;
mod words;

use super::compiler::Compiler;
use super::decompose::DIRECT_MAX;
use super::form::{MergedTuples, TableForm};
use super::match_key::Key;
use super::route::{PrefixObstacle, Route, RouteTable};
use crate::fast::control::translate::BoundProgram;
use crate::fast::datapath::action_program::ActionProgram;
use crate::fast::datapath::key::KeyMask;
use crate::fast::datapath::kinds::Depth;
use crate::fast::datapath::table::{HashPart, LpmPart, MAX_PARTS, Template, block_units};
use crate::{FlowEntry, FlowTable};
pub use plain_way::PlainReason;
use std::collections::HashSet;
use std::fmt;
pub use sub_tables::{ExplainedCut, ExplainedSubTables};

/// A description of the compiled form: see [`Pipeline::explain`](crate::Pipeline::explain). `Display` writes all of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The depth to which frames are parsed before the first table, in words.
    pub parsed_to: &'static str,
    /// Whether machine code was requested but the system refused memory for it, so that the interpreter executes the tables.
    pub is_code_refused: bool,
    /// The tables that have entries.
    pub tables: Vec<ExplainedTable>,
}

/// The compiled form of one table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplainedTable {
    /// The number of the table.
    pub table_id: u8,
    /// How it is searched.
    pub template: TemplateKind,
    /// The reason why no better template is used, as a sentence.
    pub why: String,
    /// The parsing depth that its matches need, in words.
    pub match_depth: &'static str,
    /// The parsing depth that its actions need, in words.
    pub actions_depth: &'static str,
    /// The entries by their sets of bits, in the order of the search; for a cut table, only the entry that matches everything,
    /// if any.
    pub parts: Vec<ExplainedPart>,
    /// The cut of the table, if any.
    pub cut: Option<ExplainedCut>,
    /// The number of entries that no packet reaches, because an entry before them matches everything.
    pub hidden_entries: usize,
    /// The entries by their actions, ordered by the first entry of each.
    pub actions: Vec<ExplainedActions>,
    /// The machine code that searches the table, if requested and available.
    pub code: Option<String>,
}

/// The entries with one set of bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplainedPart {
    /// Fields and masks, as in `ip,nw_src/24`.
    pub looks_at: String,
    /// The number of entries.
    pub entries: usize,
    /// Their lowest and highest priority.
    pub priorities: (u16, u16),
    /// The size of the entries and their search structures in bytes, except for code.
    pub bytes: usize,
    /// Whether memory is prefetched while other frames are processed.
    pub is_fetched_ahead: bool,
    /// Whether an entry found here is final, so that later parts are not searched.
    pub is_final: bool,
}

/// Entries with equal actions, apart from parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplainedActions {
    /// The steps, as in `set_field:*->eth_dst,dec_ttl,output:*`; a `*` is a value that differs between entries.
    pub steps: String,
    /// The headers that every frame has at these steps, as in `ip,tcp`; empty if irrelevant.
    pub headers: String,
    /// The number of entries.
    pub entries: usize,
    /// The machine code, if requested and available. Direct code is in the table's.
    pub code: Option<String>,
}

/// How a table is searched (ESWITCH, SIGCOMM 2016, section 3.1: table templates).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum TemplateKind {
    /// Entry by entry, each compared with constants.
    DirectCode,
    /// With one hash table.
    CompoundHash,
    /// With a trie of prefixes.
    LongestPrefixMatch,
    /// With several hash tables, one for each set of bits.
    TupleSpace,
    /// With hash tables that entries with different sets of bits share, for any number of sets.
    MergedTupleSpace,
    /// With a hash table that leads to a sub-table for each value of a field. Each sub-table is searched with its own
    /// template.
    Decomposition,
    /// Not searched in the compiled form.
    PlainForm,
}

impl fmt::Display for TemplateKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::DirectCode => "direct code",
            Self::CompoundHash => "compound hash",
            Self::LongestPrefixMatch => "longest prefix match",
            Self::TupleSpace => "tuple space",
            Self::MergedTupleSpace => "merged tuple space",
            Self::Decomposition => "decomposition",
            Self::PlainForm => "plain form",
        })
    }
}

impl TemplateKind {
    fn of(template: &Template) -> Self {
        match template {
            Template::Direct(_) => Self::DirectCode,
            Template::Hash(parts) if parts.len() == 1 => Self::CompoundHash,
            Template::Hash(_) => Self::TupleSpace,
            Template::Lpm(_) => Self::LongestPrefixMatch,
            Template::Cut(_) => Self::Decomposition,
            Template::Merged(_) => Self::MergedTupleSpace,
            Template::Plain => Self::PlainForm,
        }
    }
}

impl Compiler {
    /// Describes each of these tables that has entries, with its machine code if `with_code`.
    pub fn explain(&self, tables: &[FlowTable], with_code: bool) -> Explanation {
        let tables = (0_u8..).zip(tables);
        let used = tables.filter(|(_, table)| table.entries().len() > 0);
        Explanation {
            parsed_to: words::depth(self.store.compiled.depth()),
            is_code_refused: self.is_code_refused,
            tables: used
                .map(|(table_id, table)| explain_table(self, table_id, table, with_code))
                .collect(),
        }
    }

    /// Returns the template of a table; `None` if the table does not exist.
    pub fn template(&self, table_id: u8) -> Option<TemplateKind> {
        let template = self.forms.get(usize::from(table_id))?.template();
        Some(template.map_or(TemplateKind::PlainForm, TemplateKind::of))
    }
}

/// An entry that packets may reach, with its compiled form.
struct Row<'a> {
    entry: &'a FlowEntry,
    key: Key,
    bound: BoundProgram,
}

impl<'a> Row<'a> {
    fn new(entry: &'a FlowEntry, brings_state: bool) -> Option<Self> {
        let key = Key::new(&entry.match_)?;
        let bound = BoundProgram::new(entry, key.mask.require, brings_state);
        Some(Self { entry, key, bound })
    }

    /// Returns the size of its block in bytes, after a key of this number of words.
    fn bytes(&self, words: usize) -> usize {
        block_units(words, self.bound.params.len()) * crate::fast::memory::arena::UNIT_BYTES
    }

    fn is_everything(&self) -> bool {
        self.key.mask.is_everything()
    }
}

fn explain_table(
    compiler: &Compiler,
    table_id: u8,
    table: &FlowTable,
    with_code: bool,
) -> ExplainedTable {
    let form = &compiler.forms[usize::from(table_id)];
    let template = match form.template() {
        Ok(template) => template,
        Err(reason) => return explain_plain(table_id, table, reason),
    };
    let rows = reachable(table, compiler.store.brings_state_to(table_id));
    let programs = programs(&rows);
    let mut explained = ExplainedTable {
        table_id,
        template: TemplateKind::of(template),
        why: why(template, form, table, &rows),
        match_depth: deepest(rows.iter().map(|row| row.key.mask.depth)),
        actions_depth: deepest(programs.iter().map(|alike| alike.program.depth())),
        parts: parts(template, &form.part_bytes(), &rows),
        cut: form
            .sub_tables()
            .map(|cut| sub_tables::explain_cut(cut, with_code)),
        hidden_entries: table.entries().len() - rows.len(),
        actions: programs.iter().map(Alike::explained).collect(),
        code: None,
    };
    if with_code {
        explained.code = form.listing();
        let is_apart = explained.template != TemplateKind::DirectCode;
        for (actions, alike) in explained.actions.iter_mut().zip(&programs) {
            let code = compiler.store.listing(alike.program);
            actions.code = code.filter(|_| is_apart);
        }
    }
    explained
}

/// Describes a table that is left to the plain form for this reason.
fn explain_plain(table_id: u8, table: &FlowTable, reason: &'static str) -> ExplainedTable {
    ExplainedTable {
        table_id,
        template: TemplateKind::PlainForm,
        why: why_plain(reason, table),
        match_depth: words::depth(Depth::default()),
        actions_depth: words::depth(Depth::default()),
        parts: Vec::new(),
        cut: None,
        hidden_entries: 0,
        actions: Vec::new(),
        code: None,
    }
}

fn deepest(depths: impl Iterator<Item = Depth>) -> &'static str {
    words::depth(depths.max().unwrap_or_default())
}

/// Returns the entries that packets may reach, if they can all be compiled.
fn reachable(table: &FlowTable, brings_state: bool) -> Vec<Row<'_>> {
    let mut rows = Vec::with_capacity(table.entries().len());
    for row in table
        .entries()
        .filter_map(|entry| Row::new(entry, brings_state))
    {
        let is_last = row.is_everything();
        rows.push(row);
        if is_last {
            break;
        }
    }
    rows
}

/// Returns the reason for a table's template.
fn why(template: &Template, form: &TableForm, table: &FlowTable, rows: &[Row]) -> String {
    let count = words::entries(rows.len());
    let too_many = if rows.len() > DIRECT_MAX {
        format!("{count}, more than the {DIRECT_MAX} that direct code is for")
    } else {
        let few = DIRECT_MAX / 2;
        format!(
            "{count} left of more than {DIRECT_MAX}; it becomes direct code when there are {few}"
        )
    };
    match template {
        Template::Direct(_) => format!(
            "{count}; up to {DIRECT_MAX} are compared with constants sooner than a key is hashed"
        ),
        Template::Hash(parts) if parts.len() == 1 => {
            format!("{too_many}; all look at the same bits, so one probe finds a packet's entry")
        }
        Template::Hash(parts) => format!(
            "{too_many}; they look at {} different sets of bits, each of which takes a hash table of its own; no \
             longest prefix match, since {}",
            parts.len(),
            why_no_routes(rows)
        ),
        Template::Lpm(_) => format!(
            "{too_many}; all are prefixes of one address, and the longer ones have the higher priorities"
        ),
        Template::Cut(_) => {
            let why = form
                .sub_tables()
                .map(|cut| sub_tables::why_cut(cut, table, rows));
            format!(
                "{too_many}; they look at {} different sets of bits; {}; no longest prefix match of the whole, since {}",
                masks_len(rows),
                why.unwrap_or_default(),
                why_no_routes(rows)
            )
        }
        Template::Merged(_) => {
            let counts = form.merged().map(MergedTuples::counts);
            let (tables, masks) = counts.unwrap_or_default();
            format!(
                "{too_many}; they look at {masks} different sets of bits, more than the {MAX_PARTS} for which there may be \
                 a hash table each: they share {tables}; no cut costs less; no longest prefix match, since {}",
                why_no_routes(rows)
            )
        }
        Template::Plain => String::new(),
    }
}

/// Returns the number of different sets of bits, without that of the entry that matches everything.
fn masks_len(rows: &[Row]) -> usize {
    let rows = rows.iter().filter(|row| !row.is_everything());
    let masks: HashSet<&KeyMask> = rows.map(|row| &row.key.mask).collect();
    masks.len()
}

fn why_no_routes(rows: &[Row]) -> &'static str {
    let mut table = RouteTable::default();
    for row in rows.iter().filter(|row| !row.is_everything()) {
        let Some(route) = Route::new(&row.entry.match_, row.key.mask.require) else {
            return "not every entry is a prefix of one address alone";
        };
        match table.obstacle(&route, row.entry.priority) {
            None => table.count(&route, row.entry.priority),
            Some(PrefixObstacle::Address) => return "the prefixes are not of one address",
            Some(PrefixObstacle::Priority) => {
                return "the longer of two prefixes does not always have the higher priority";
            }
        }
    }
    "the table had other entries when it was last built"
}

fn why_plain(reason: &'static str, table: &FlowTable) -> String {
    let unknown = table
        .entries()
        .find(|entry| Key::new(&entry.match_).is_none());
    match unknown {
        Some(entry) => format!("{reason}: {}", words::looks_at(&entry.match_)),
        None => reason.to_owned(),
    }
}

/// Returns the entries by their sets of bits; `bytes` are the sizes of each part's search structure.
fn parts(template: &Template, bytes: &[usize], rows: &[Row]) -> Vec<ExplainedPart> {
    match template {
        Template::Direct(_) => direct_parts(rows),
        Template::Hash(parts) => hash_parts(parts, bytes, rows),
        Template::Lpm(part) => lpm_parts(part, bytes, rows),
        Template::Cut(_) => default_part(rows).into_iter().collect(),
        Template::Merged(_) => merged_parts(bytes, rows),
        Template::Plain => Vec::new(),
    }
}

/// Returns the groups of consecutive entries with one key mask. Headers and first word are compared once for each group.
fn direct_parts(rows: &[Row]) -> Vec<ExplainedPart> {
    let groups = rows.chunk_by(|one, other| one.key.mask == other.key.mask);
    groups
        .map(|group| part(&group.iter().collect::<Vec<_>>(), 0))
        .collect()
}

fn hash_parts(parts: &[HashPart], bytes: &[usize], rows: &[Row]) -> Vec<ExplainedPart> {
    let explained = parts.iter().zip(bytes).map(|(described, bytes)| {
        let members = rows.iter().filter(|row| row.key.mask == described.mask);
        ExplainedPart {
            is_fetched_ahead: described.is_far,
            is_final: described.is_final,
            ..part(&members.collect::<Vec<_>>(), described.mask.words.len()).plus(*bytes)
        }
    });
    explained.chain(default_part(rows)).collect()
}

fn lpm_parts(described: &LpmPart, bytes: &[usize], rows: &[Row]) -> Vec<ExplainedPart> {
    let routes: Vec<_> = rows.iter().filter(|row| !row.is_everything()).collect();
    let explained = ExplainedPart {
        looks_at: words::prefixes(&routes),
        is_fetched_ahead: described.is_far,
        ..part(&routes, 0).plus(bytes.iter().sum())
    };
    std::iter::once(explained)
        .chain(default_part(rows))
        .collect()
}

fn merged_parts(bytes: &[usize], rows: &[Row]) -> Vec<ExplainedPart> {
    let members: Vec<_> = rows.iter().filter(|row| !row.is_everything()).collect();
    let explained = ExplainedPart {
        looks_at: format!("{} different sets of bits", masks_len(rows)),
        ..part(&members, 0).plus(bytes.iter().sum())
    };
    std::iter::once(explained)
        .chain(default_part(rows))
        .collect()
}

/// Returns the entry that matches everything, which is used if no other entry is found.
fn default_part(rows: &[Row]) -> Option<ExplainedPart> {
    let last = rows.last().filter(|row| row.is_everything())?;
    Some(part(&[last], 0))
}

/// Returns these entries as a part, in which `words` words precede each flow record.
fn part(members: &[&Row], words: usize) -> ExplainedPart {
    let mut texts: Vec<String> = Vec::new();
    for text in members.iter().map(|row| words::looks_at(&row.entry.match_)) {
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    let priorities = || members.iter().map(|row| row.entry.priority);
    ExplainedPart {
        looks_at: texts.join(" or "),
        entries: members.len(),
        priorities: (
            priorities().min().unwrap_or_default(),
            priorities().max().unwrap_or_default(),
        ),
        bytes: members.iter().map(|row| row.bytes(words)).sum(),
        is_fetched_ahead: false,
        is_final: true,
    }
}

impl ExplainedPart {
    fn plus(mut self, bytes: usize) -> Self {
        self.bytes += bytes;
        self
    }
}

/// Entries with equal actions.
struct Alike<'r> {
    program: &'r ActionProgram,
    entries: usize,
}

impl Alike<'_> {
    /// Returns `true` if both have equal code: without steps, headers are irrelevant.
    fn is_like(&self, other: &ActionProgram) -> bool {
        let Self { program, .. } = self;
        let is_same =
            program.ops == other.ops && program.sent == other.sent && program.end == other.end;
        let is_same = is_same && program.set == other.set;
        is_same && (program.ops.is_empty() || program.require == other.require)
    }

    fn explained(&self) -> ExplainedActions {
        let Self { program, entries } = self;
        ExplainedActions {
            steps: words::actions(program),
            headers: match program.ops.is_empty() {
                true => String::new(),
                false => words::headers(program.require),
            },
            entries: *entries,
            code: None,
        }
    }
}

/// Returns the action programs of the entries, ordered by the first entry of each.
fn programs<'r>(rows: &'r [Row]) -> Vec<Alike<'r>> {
    let mut programs: Vec<Alike> = Vec::new();
    for program in rows.iter().map(|row| &row.bound.program) {
        match programs.iter_mut().find(|alike| alike.is_like(program)) {
            Some(alike) => alike.entries += 1,
            None => programs.push(Alike {
                program,
                entries: 1,
            }),
        }
    }
    programs
}
