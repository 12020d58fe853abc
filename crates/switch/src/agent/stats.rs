//! Statistics as each version tells them: the pipeline's rows without what 1.0 lacks, and with what it alone has.

use std::time::Duration;
use urtica_pipeline::FlowEntry;
use urtica_wire::{FixedName, FlowModFlags, FlowStats, PortStats, TableStats, Version};

/// OFPFW_ALL: everything that 1.0 matches may be left out.
const OFPFW_ALL: u32 = (1 << 22) - 1;

/// 1.0 does not tell the options that an entry was added with.
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

/// 1.0 tells more of a table than how it is used.
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

/// 1.0 does not tell since when a port is counted.
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
