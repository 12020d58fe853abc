//! A form for a table as it is: built whole, before any packet sees it.

use super::part::hash_parts;
use super::pieces::{Common, Pieces};
use super::routes::Routes;
use super::{DefaultEntry, Form, Member, NEAR_BYTES, NO_ROOM, make_cell};
use crate::FlowEntry;
use crate::fast::control::plan::Plan;
use crate::fast::control::planned::Planned;
use crate::fast::control::store::{CellPlace, OwnedBody, Store};
use std::ptr::null;
use std::sync::Arc;

/// New cells, and whose they are. That of what matches everything is the last.
pub(super) type NewCells = Vec<(Arc<FlowEntry>, CellPlace)>;

/// A form for a plan, what packets are to see of it, and what matches everything. All cells made are appended to `cells`,
/// also where it fails.
///
/// # Errors
/// Why the table is left to the plain form.
pub(super) fn build(
    store: &mut Store,
    plan: Plan,
    cells: &mut NewCells,
) -> Result<(Form, OwnedBody, DefaultEntry), &'static str> {
    let room = plan.room();
    let (entries, default) = plan.entries();
    for planned in entries {
        let words = room.unwrap_or(planned.key.values.len());
        cells.push((planned.entry.clone(), new_cell(store, planned, words)?));
    }
    if let Some(planned) = default {
        cells.push((planned.entry.clone(), new_cell(store, planned, 0)?));
    }
    let members = entries.iter().zip(&*cells);
    let members: Vec<_> = members
        .map(|(planned, &(_, place))| Member { planned, place })
        .collect();
    let default_cell = default
        .and(cells.last())
        .map_or(null(), |(_, place)| place.cell.cast_const());
    let form = match &plan {
        Plan::Plain(reason) => return Err(reason),
        Plan::Direct(_) => Form::Direct,
        Plan::Hash(..) => Form::Hash(hash_parts(store, &members)),
        Plan::Lpm(..) => Form::Lpm(Box::new(Routes::new(store, &members, &[])?)),
        Plan::Cut(cut, ..) => {
            let common = Common {
                cuts: vec![*cut],
                depth: 1,
                room: room.unwrap_or_default(),
                default: default_cell,
            };
            Form::Cut(Box::new(Pieces::new(store, &members, common)?))
        }
    };
    let (form, body) = form.with_body(store, &members, default_cell, NEAR_BYTES)?;
    let default = default.map(|planned| (planned.rank, planned.entry.clone()));
    Ok((form, body, default))
}

fn new_cell(store: &mut Store, planned: &Planned, words: usize) -> Result<CellPlace, &'static str> {
    make_cell(store, planned, words).map_err(|_| NO_ROOM)
}
