//! The entries that a request or a change is for, some at a time.
//!
//! **Why.** A table may have a million entries: whoever must not keep packets waiting looks at some, lets packets pass, and goes
//! on.
//!
//! **What is consistent.** Entries may change between two steps. One that is there from the first step to the last, and
//! is wanted all the time, is found exactly once, whether it is modified meanwhile or not. One that goes may be found
//! or not. One that is added after the first step is not found: so nothing is found twice, and a walk ends however
//! fast others add.
//!
//! **Cost.** A step costs what it is told to look at. In a table in which few entries can be wanted, only these are looked
//! at, together.

use crate::classifier::Rank;
use crate::selection::Selection;
use crate::{FlowEntry, FlowTable};
use std::ops::Range;
use std::sync::Arc;

/// A walk over entries.
#[derive(Debug)]
pub(crate) struct EntryWalk {
    wanted: Wanted,
    order: Order,
    /// In a table where no more entries than this can be wanted, only these are looked at.
    few: usize,
    /// The tables that are left.
    tables: Range<usize>,
    /// The last place that was looked at in the first of them.
    last: Option<Rank>,
    /// How many entries had ever been added to each table when the walk began, the first of these tables first.
    added: Box<[u64]>,
}

/// Which entries are looked for.
#[derive(Debug)]
pub(crate) enum Wanted {
    /// Those that a flow mod or a request is for.
    Selected(Selection),
    /// Those that use this group; with none, any.
    GroupUsers(Option<u32>),
    /// Those that use this meter; with none, any.
    MeterUsers(Option<u32>),
}

/// In which order the entries of a table are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// From the highest priority down.
    Down,
    /// From the lowest priority up.
    Up,
}

impl EntryWalk {
    /// A walk over those of these tables.
    pub fn new(
        tables: &[FlowTable],
        range: Range<usize>,
        wanted: Wanted,
        order: Order,
        few: usize,
    ) -> Self {
        let added = tables[range.clone()].iter();
        Self {
            wanted,
            order,
            few,
            added: added.map(FlowTable::added_count).collect(),
            tables: range,
            last: None,
        }
    }

    /// Whether it looks for an entry.
    pub fn wants(&self, entry: &FlowEntry) -> bool {
        self.wanted.wants(entry)
    }

    /// Whether all have been found.
    pub fn is_over(&self) -> bool {
        self.tables.is_empty()
    }

    /// Looks at about `looks` entries more, and takes off how many it has looked at. Returns what it finds, and the places of
    /// these entries; maybe nothing although the walk is not over.
    pub fn go_on(
        &mut self,
        tables: &[FlowTable],
        looks: &mut usize,
    ) -> Vec<(Rank, Arc<FlowEntry>)> {
        let mut found = Vec::new();
        while *looks > 0 && !self.is_over() {
            let is_done = self.go_on_in(&tables[self.tables.start], looks, &mut found);
            if is_done {
                self.tables.start += 1;
                self.last = None;
            }
        }
        found
    }

    /// Looks at the next entries of a table; whether these were its last.
    fn go_on_in(
        &mut self,
        table: &FlowTable,
        looks: &mut usize,
        found: &mut Vec<(Rank, Arc<FlowEntry>)>,
    ) -> bool {
        let added = self.added[self.added.len() - self.tables.len()];
        if self.last.is_none() {
            if let Some(few) = self.few_of(table) {
                *looks = looks.saturating_sub(few.len());
                let few = few.into_iter().filter(|(rank, _)| rank.sequence() < added);
                match self.order {
                    Order::Down => found.extend(few),
                    Order::Up => found.extend(few.rev()),
                }
                return true;
            }
        }
        let (mut down, mut up);
        let ranked: &mut dyn Iterator<Item = _> = match self.order {
            Order::Down => {
                down = table.ranked_behind(self.last);
                &mut down
            }
            Order::Up => {
                up = table.ranked_before(self.last);
                &mut up
            }
        };
        for (rank, entry) in ranked {
            if *looks == 0 {
                return false;
            }
            *looks -= 1;
            self.last = Some(rank);
            if rank.sequence() < added && self.wanted.wants(entry) {
                found.push((rank, Arc::clone(entry)));
            }
        }
        true
    }

    /// Those of a table, from the highest priority down, if few can be.
    fn few_of(&self, table: &FlowTable) -> Option<Vec<(Rank, Arc<FlowEntry>)>> {
        let few = match &self.wanted {
            Wanted::Selected(selection) => selection.select_few(table, self.few)?,
            Wanted::GroupUsers(group) => table.at(table.group_users().few(*group, self.few)?),
            Wanted::MeterUsers(meter) => table.at(table.meter_users().few(*meter, self.few)?),
        };
        Some(few)
    }
}

impl Wanted {
    fn wants(&self, entry: &FlowEntry) -> bool {
        let mut groups = entry.instructions.groups();
        match *self {
            Self::Selected(ref selection) => selection.is_for(entry),
            Self::GroupUsers(Some(wanted)) => groups.any(|group| group == wanted),
            Self::GroupUsers(None) => groups.next().is_some(),
            Self::MeterUsers(Some(wanted)) => entry.instructions.meter == Some(wanted),
            Self::MeterUsers(None) => entry.instructions.meter.is_some(),
        }
    }
}
