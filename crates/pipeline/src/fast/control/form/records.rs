//! The flow records of entries, in which the compiled form counts.

use super::NeedsRebuild;
use crate::FlowEntry;
use crate::fast::control::planned::Planned;
use crate::fast::control::record_place::RecordPlace;
use crate::fast::control::store::Store;
use crate::flow_table::Change;
use std::sync::Arc;

/// New flow records, with their entries. The last is that of the entry that matches everything.
pub(super) type NewRecords = Vec<(Arc<FlowEntry>, RecordPlace)>;

/// Creates a flow record for an entry, after `words` words: the key, and zeros.
pub(super) fn make_record(
    store: &mut Store,
    planned: &Planned,
    words: usize,
) -> Result<RecordPlace, NeedsRebuild> {
    let Planned { rank, entry, key } = planned;
    let (rank, require) = (rank.to_bits(), key.mask.require);
    let place = match key.values.get(..words) {
        Some(values) => store.make_record(entry, rank, require, values),
        None => {
            let mut values = key.values.clone();
            values.resize(words, 0);
            store.make_record(entry, rank, require, &values)
        }
    };
    place.ok_or(NeedsRebuild)
}

/// Frees flow records that packets have never seen.
pub(super) fn forget_records(store: &mut Store, records: &mut NewRecords) {
    for (_, place) in records.drain(..) {
        store.forget_record(place);
    }
}

/// Makes new entries continue the counts of the entries that they replace.
pub(super) fn inherit(store: &mut Store, changes: &[Change]) {
    for change in changes {
        if let Change::Replaced {
            old,
            new,
            kept: Some(kept),
            ..
        } = change
        {
            store.inherit(old, new, *kept);
        }
    }
}

/// Retires the flow record of the entry that a change has removed.
pub(super) fn retire(store: &mut Store, change: &Change, words: usize) {
    match change {
        Change::Replaced { old, new, kept, .. } => {
            let last_used_ns = old.linked.counts().last_used_ns;
            new.counters.use_at(last_used_ns);
            store.retire_record(old, words, kept.map(|_| new.clone()));
        }
        Change::Removed(_, entry) => store.retire_record(entry, words, Some(entry.clone())),
        Change::Added(..) => {}
    }
}
