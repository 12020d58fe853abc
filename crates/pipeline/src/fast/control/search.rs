//! The look for the best way to search a large table, in a thread of its own.
//!
//! **Why.** It takes some 10 µs for each entry. Whoever changes the table, or another one, must not wait so long.
//!
//! **How.** The thread looks at a copy of the table's list of entries, which is made some entries at a time; the entries
//! themselves do not change. Meanwhile the table may change, also while the list is copied: what comes of the search is a
//! [`Choice`](super::choice::Choice), which can be carried out for other entries, too.

use super::choice::Effort;
use super::plan::Plan;
use crate::classifier::Rank;
use crate::{FlowEntry, FlowTable};
use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

/// How many entries are copied at a time.
const COPIED_AT_ONCE: usize = 8192;

/// A search that has begun.
#[derive(Debug)]
pub(super) struct Search {
    /// The table's number.
    pub index: usize,
    /// How many changes the table's form had followed when the search began.
    pub since: usize,
    effort: Effort,
    stage: Stage,
}

/// The entries of a table, in their order.
type Ranked = Vec<(Rank, Arc<FlowEntry>)>;

/// What comes of a search: a plan, or why the table is left to the plain form.
pub(super) type Found = Result<Plan, &'static str>;

#[derive(Debug)]
enum Stage {
    Copying(Ranked),
    Looking(JoinHandle<Found>),
}

/// How far a search has come.
#[derive(Debug)]
pub(super) enum Progress {
    Goes(Search),
    Ends(Found),
    /// There was no thread for it, or it has failed.
    Fails,
}

impl Search {
    /// One for a table, whose form has followed so many changes.
    pub fn new(index: usize, since: usize, effort: Effort) -> Self {
        Self {
            index,
            since,
            effort,
            stage: Stage::Copying(Vec::new()),
        }
    }

    /// Goes on, for about a millisecond at most.
    pub fn go_on(self, table: &FlowTable) -> Progress {
        let stage = match self.stage {
            Stage::Copying(mut ranked) => {
                let last = ranked.last().map(|&(rank, _)| rank);
                let behind = table.ranked_behind(last).take(COPIED_AT_ONCE);
                let known = ranked.len();
                ranked.extend(behind.map(|(rank, entry)| (rank, entry.clone())));
                match ranked.len() - known == COPIED_AT_ONCE {
                    true => Stage::Copying(ranked),
                    false => match look(ranked, self.effort) {
                        Ok(thread) => Stage::Looking(thread),
                        Err(_) => return Progress::Fails,
                    },
                }
            }
            Stage::Looking(thread) if thread.is_finished() => {
                let found = thread.join();
                return found.map_or(Progress::Fails, Progress::Ends);
            }
            looking @ Stage::Looking(_) => looking,
        };
        Progress::Goes(Self { stage, ..self })
    }
}

/// Has a thread look at entries. It ends by itself, also where nobody asks for what it finds.
fn look(ranked: Ranked, effort: Effort) -> io::Result<JoinHandle<Found>> {
    let look = move || {
        let ranked = ranked.iter().map(|(rank, entry)| (*rank, entry));
        Plan::new(ranked, effort)
    };
    let thread = thread::Builder::new().name("urtica-plan".to_owned());
    thread.spawn(look)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Pipeline, PipelineConfig};
    use std::time::Duration;
    use urtica_wire::{FlowMod, FlowModCommand};

    fn change(pipeline: &mut Pipeline, command: FlowModCommand, number: usize) {
        let text = format!(
            "dl_dst=02:00:00:00:{:02x}:{:02x}",
            number / 256,
            number % 256
        );
        let text = match command {
            FlowModCommand::Add => format!("{text},actions=drop"),
            _ => text,
        };
        let flow_mod = FlowMod::parse(command, &text).expect("a flow mod");
        let changed = pipeline.flow_mod(&flow_mod, Duration::ZERO, &mut Vec::new());
        changed.expect("the flow mod is right");
    }

    /// What is copied already, or not yet, may go, and others come: what is found is carried out for the entries that there are.
    #[test]
    fn a_table_that_changes_is_copied_some_entries_at_a_time() {
        let mut pipeline = Pipeline::new(PipelineConfig::default());
        let count = 2 * COPIED_AT_ONCE + 100;
        (0..count).for_each(|number| change(&mut pipeline, FlowModCommand::Add, number));
        let mut search = Search::new(0, 0, Effort::All);
        let mut parts = 0;
        let found = loop {
            let is_copying = matches!(search.stage, Stage::Copying(_));
            parts += usize::from(is_copying);
            search = match search.go_on(&pipeline.tables()[0]) {
                Progress::Goes(search) => search,
                Progress::Ends(found) => break found,
                Progress::Fails => panic!("there was no thread"),
            };
            if is_copying {
                change(&mut pipeline, FlowModCommand::Delete, parts);
                change(&mut pipeline, FlowModCommand::Delete, count - parts);
                change(&mut pipeline, FlowModCommand::Add, count + parts);
            }
            thread::yield_now();
        };
        assert_eq!(parts, 3);
        let table = &pipeline.tables()[0];
        let plan = found.and_then(|plan| plan.for_present(table));
        let plan = plan.expect("all fields are known");
        let planned = plan.entries.iter().map(|planned| planned.rank);
        assert!(planned.eq(table.ranked().map(|(rank, _)| rank)));
        assert!(plan.choice.fits(&plan.entries));
    }
}
