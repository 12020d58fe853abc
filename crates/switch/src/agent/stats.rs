//! Statistics for each version: the pipeline's rows, without fields that 1.0 lacks, and with fields that only 1.0 has.

use std::time::Duration;
use urtica_pipeline::FlowEntry;
use urtica_wire::{FixedName, FlowModFlags, FlowStats, PortStats, TableStats, Version};

/// OFPFW_ALL: all fields that 1.0 matches may be wildcarded.
const OFPFW_ALL: u32 = (1 << 22) - 1;

/// Converts an entry. 1.0 does not report the flags with which an entry was added.
pub(super) fn flow(version: Version, entry: &FlowEntry, now: Duration) -> FlowStats<'static> {
    let stats = entry.to_stats(now);
    match version {
        Version::Of13 => stats,
        Version::Of10 => FlowStats {
            flags: FlowModFlags::empty(),
            match_: entry.match_.to_of10(),
            ..stats
        },
    }
}

/// Converts a table. 1.0 reports a name, wildcards and a maximum in addition to counters.
pub(super) fn table(version: Version, stats: TableStats, max_entries: u32) -> TableStats {
    match version {
        Version::Of13 => stats,
        Version::Of10 => TableStats {
            name: FixedName::truncated(&format!("table {}", stats.table_id)),
            wildcards: OFPFW_ALL,
            max_entries,
            ..stats
        },
    }
}

/// Converts a port. 1.0 does not report the age of a port's counters.
pub(super) fn port(version: Version, stats: PortStats) -> PortStats {
    match version {
        Version::Of13 => stats,
        Version::Of10 => PortStats {
            duration_sec: 0,
            duration_nsec: 0,
            ..stats
        },
    }
}
