//! A search for a large table's best structure, in a separate thread.
//!
//! **Why.** Planning needs about 10 µs per entry. Changes of this and other tables must not wait for it.
//!
//! **How.** The thread uses a copy of the table's list of entries, which is made in steps; the entries themselves do not
//! change. The table may change at any time: the result is a [`Choice`](super::choice::Choice), which can also be applied to
//! other entries.

use super::choice::Effort;
use super::plan::Plan;
use crate::classifier::Rank;
use crate::{FlowEntry, FlowTable};
use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

/// The number of entries to copy per step.
const COPIED_AT_ONCE: usize = 8192;

/// A search in progress.
#[derive(Debug)]
pub(super) struct Search {
    /// The index of the table.
    pub index: usize,
    /// The number of changes that the table's form had followed when the search started.
    pub since: usize,
    effort: Effort,
    stage: Stage,
}

/// The ordered entries of a table.
type Ranked = Vec<(Rank, Arc<FlowEntry>)>;

/// The result of a search: a plan, or the reason for leaving the table to the plain form.
pub(super) type Found = Result<Plan, &'static str>;

#[derive(Debug)]
enum Stage {
    Copying(Ranked),
    Looking(JoinHandle<Found>),
}

/// The progress of a search.
#[derive(Debug)]
pub(super) enum Progress {
    Goes(Search),
    Ends(Found),
    /// The thread could not be created, or has failed.
    Fails,
}

impl Search {
    /// Creates a search for a table whose form has followed `since` changes.
    pub fn new(index: usize, since: usize, effort: Effort) -> Self {
        Self {
            index,
            since,
            effort,
            stage: Stage::Copying(Vec::new()),
        }
    }

    /// Continues for about a millisecond at most.
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

/// Starts a thread that plans for these entries. It ends even if its result is never used.
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

    /// Entries may be removed and added before and after they are copied: the result is applied to the current entries.
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
