//! A form for a table as it is: built whole, before any packet sees it.

use super::part::Part;
use super::routes::Routes;
use super::{DefaultEntry, Form, NO_ROOM, make_cell};
use crate::FlowEntry;
use crate::fast::plan::{Plan, Planned};
use crate::fast::store::{CellPlace, Store};
use std::sync::Arc;

/// New cells, and whose they are. That of what matches everything is the last.
pub(super) type NewCells = Vec<(Arc<FlowEntry>, CellPlace)>;

/// A form for a plan, and what matches everything. All cells made are appended to `cells`, also where it fails.
///
/// # Errors
/// Why the table is left to the plain form.
pub(super) fn build(
    store: &mut Store,
    plan: Plan,
    cells: &mut NewCells,
) -> Result<(Form, DefaultEntry), &'static str> {
    let mut builder = Builder { store, cells };
    let (form, default) = match plan {
        Plan::Plain(reason) => return Err(reason),
        Plan::Direct(entries) => (builder.direct(&entries)?, None),
        Plan::Hash(entries, default) => (builder.hash(&entries)?, default),
        Plan::Lpm(entries, default) => (builder.routes(&entries)?, default),
    };
    if let Some(default) = &default
        && let Err(reason) = builder.cell(default, 0)
    {
        form.forget(store);
        return Err(reason);
    }
    Ok((form, default.map(|planned| (planned.rank, planned.entry))))
}

struct Builder<'a> {
    store: &'a mut Store,
    cells: &'a mut NewCells,
}

impl Builder<'_> {
    /// A cell behind so many words of the key.
    fn cell(&mut self, planned: &Planned, words: usize) -> Result<CellPlace, &'static str> {
        let place = make_cell(
            self.store,
            planned.rank,
            &planned.entry,
            &planned.key,
            words,
        );
        let place = place.map_err(|_| NO_ROOM)?;
        self.cells.push((planned.entry.clone(), place));
        Ok(place)
    }

    fn direct(&mut self, entries: &[Planned]) -> Result<Form, &'static str> {
        for planned in entries {
            self.cell(planned, 0)?;
        }
        Ok(Form::Direct)
    }

    fn hash(&mut self, entries: &[Planned]) -> Result<Form, &'static str> {
        let mut parts: Vec<Part> = Vec::new();
        for planned in entries {
            let shape = &planned.key.shape;
            let known = parts.iter().position(|part| part.shape == *shape);
            let index = known.unwrap_or_else(|| {
                parts.push(Part::new(shape));
                parts.len() - 1
            });
            self.put(&mut parts[index], planned)?;
        }
        Ok(Form::Hash(parts))
    }

    /// Entries come in their order: one with a key that is there already is hidden.
    fn put(&mut self, part: &mut Part, planned: &Planned) -> Result<(), &'static str> {
        let values = &planned.key.values;
        part.count(planned.rank);
        if part.table.find(&self.store.arena, values).is_none() {
            let place = self.cell(planned, values.len())?;
            // No packet has seen the array that it may have outgrown.
            drop(part.table.insert(&self.store.arena, values, place.block));
        }
        Ok(())
    }

    fn routes(&mut self, entries: &[Planned]) -> Result<Form, &'static str> {
        let mut routes = Routes::new(entries).ok_or("its entries are no routes")?;
        let mut entries = entries.iter();
        let built = entries.try_for_each(|planned| {
            let place = self.cell(planned, 0)?;
            let put = routes.put(self.store, &planned.entry, &planned.key, place);
            put.map_err(|_| NO_ROOM)
        });
        let form = Form::Lpm(Box::new(routes));
        match built {
            Ok(()) => Ok(form),
            Err(reason) => {
                form.forget(self.store);
                Err(reason)
            }
        }
    }
}
