//! Building a complete form for the current table, before any packet sees it.

use super::part::hash_parts;
use super::records::NewRecords;
use super::routes::Routes;
use super::sub_tables::{Common, SubTables};
use super::{DefaultEntry, Form, Member, MergedTuples, NEAR_BYTES, NO_ROOM, make_record};
use crate::fast::control::choice::Choice;
use crate::fast::control::plan::Plan;
use crate::fast::control::planned::Planned;
use crate::fast::control::record_place::RecordPlace;
use crate::fast::control::store::{OwnedBody, Store};
use std::ptr::null;

/// Builds the form of a plan, its body, and the default entry. Appends all created flow records to `records`, even after an
/// error.
///
/// # Errors
/// The reason for leaving the table to the plain form.
pub(super) fn build(
    store: &mut Store,
    plan: Plan,
    records: &mut NewRecords,
) -> Result<(Form, OwnedBody, DefaultEntry), &'static str> {
    let room = plan.room();
    let Plan {
        entries,
        default,
        choice,
    } = plan;
    for planned in &entries {
        let words = room.unwrap_or(planned.key.values.len());
        records.push((planned.entry.clone(), new_record(store, planned, words)?));
    }
    if let Some(planned) = &default {
        records.push((planned.entry.clone(), new_record(store, planned, 0)?));
    }
    let members = entries.iter().zip(&*records);
    let members: Vec<_> = members
        .map(|(planned, &(_, place))| Member { planned, place })
        .collect();
    let default_record = default
        .as_ref()
        .and(records.last())
        .map_or(null(), |(_, place)| place.record.cast_const());
    let form = match choice {
        Choice::Direct => Form::Direct,
        Choice::Hash => Form::Hash(hash_parts(store, &members)),
        Choice::Lpm => Form::Lpm(Box::new(Routes::new(store, &members, &[])?)),
        Choice::Merged(tuples) => {
            Form::Merged(Box::new(MergedTuples::new(store, &members, &tuples)?))
        }
        Choice::Cut(cut) => {
            let common = Common {
                cuts: vec![cut.cut],
                depth: 1,
                room: room.unwrap_or_default(),
                default: default_record,
            };
            Form::Cut(Box::new(SubTables::new(store, &members, common, &cut)?))
        }
    };
    let (form, body) = form.with_body(store, &members, default_record, NEAR_BYTES)?;
    let default = default.map(|planned| (planned.rank, planned.entry.clone()));
    Ok((form, body, default))
}

fn new_record(
    store: &mut Store,
    planned: &Planned,
    words: usize,
) -> Result<RecordPlace, &'static str> {
    make_record(store, planned, words).map_err(|_| NO_ROOM)
}
