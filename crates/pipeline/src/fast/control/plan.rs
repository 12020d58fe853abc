//! Choosing a table's template: the fastest whose prerequisites its entries meet (ESWITCH section 3.1).

use super::choice::{Choice, Effort};
use super::decompose::DIRECT_MAX;
use super::match_key::Key;
use super::planned::Planned;
use crate::classifier::Rank;
use crate::{FlowEntry, FlowTable};
use std::sync::Arc;

/// The reason for leaving a table with an unsupported field to the plain form.
const UNKNOWN_FIELD: &str = "an entry looks at a field that only the plain form knows";

/// How a table will be searched.
#[derive(Debug)]
pub(super) struct Plan {
    /// The ordered entries that packets may reach, except for the default.
    pub entries: Vec<Planned>,
    /// The entry that matches everything, if any, unless it is searched with the others.
    pub default: Option<Planned>,
    pub choice: Choice,
}

impl Plan {
    /// Creates the plan for a table's ordered entries.
    ///
    /// # Errors
    /// The reason for leaving the table to the plain form.
    pub fn new<'a>(
        ranked: impl Iterator<Item = (Rank, &'a Arc<FlowEntry>)>,
        effort: Effort,
    ) -> Result<Self, &'static str> {
        let entries = reached(ranked, |_, entry| Key::new(&entry.match_))?;
        Ok(Self::of(entries, |entries| Choice::new(entries, effort)))
    }

    /// Adapts the plan to the table's current entries, if it still fits.
    ///
    /// # Errors
    /// The reason for leaving the table to the plain form.
    pub fn for_present(self, table: &FlowTable) -> Result<Self, &'static str> {
        let mut known = self.entries.into_iter().chain(self.default).peekable();
        let entries = reached(table.ranked(), |rank, entry| {
            while known.next_if(|planned| planned.rank < rank).is_some() {}
            // While a rank exists, its entry keeps its match.
            let same = known.next_if(|planned| planned.rank == rank);
            same.map_or_else(|| Key::new(&entry.match_), |planned| Some(planned.key))
        })?;
        Ok(Self::of(entries, |entries| {
            match self.choice.fits(entries) {
                true => self.choice,
                false => Choice::new(entries, Effort::Least),
            }
        }))
    }

    /// Returns `true` if looking for a cut may help for these entries.
    pub fn is_planned(&self) -> bool {
        matches!(
            self.choice,
            Choice::Hash | Choice::Cut(_) | Choice::Merged(_)
        )
    }

    /// Returns `true` if it uses sub-tables.
    pub fn is_cut(&self) -> bool {
        matches!(self.choice, Choice::Cut(_))
    }

    /// Returns the number of words before each flow record; `None` for the number of words of its key.
    pub fn room(&self) -> Option<usize> {
        match self.choice {
            Choice::Hash => None,
            // Sub-tables find a flow record by different keys.
            Choice::Cut(_) => {
                let entries = self.entries.iter();
                entries.map(|planned| planned.key.values.len()).max()
            }
            Choice::Direct | Choice::Lpm | Choice::Merged(_) => Some(0),
        }
    }

    fn of(mut entries: Vec<Planned>, choose: impl FnOnce(&[Planned]) -> Choice) -> Self {
        if entries.len() <= DIRECT_MAX {
            return Self {
                entries,
                default: None,
                choice: Choice::Direct,
            };
        }
        let default = match entries.last() {
            Some(last) if last.key.mask.is_everything() => entries.pop(),
            _ => None,
        };
        Self {
            choice: choose(&entries),
            entries,
            default,
        }
    }
}

/// Returns the entries up to the first one that matches everything: no packet reaches later ones.
fn reached<'a>(
    ranked: impl Iterator<Item = (Rank, &'a Arc<FlowEntry>)>,
    mut key_of: impl FnMut(Rank, &FlowEntry) -> Option<Key>,
) -> Result<Vec<Planned>, &'static str> {
    let mut entries = Vec::with_capacity(ranked.size_hint().0);
    for (rank, entry) in ranked {
        let key = key_of(rank, entry).ok_or(UNKNOWN_FIELD)?;
        let is_everything = key.mask.is_everything();
        entries.push(Planned {
            rank,
            entry: entry.clone(),
            key,
        });
        if is_everything {
            break;
        }
    }
    Ok(entries)
}
