//! Restoring the entries, groups and meters of an earlier pipeline, with their counters.
//!
//! They are checked like a controller's. Times continue: an entry that had three seconds left has them again.

use crate::counters::EntryCounters;
use crate::entry::nanoseconds;
use crate::flow_table::Counts;
use crate::group_counters::GroupCounters;
use crate::linked_counters::LinkedCounters;
use crate::meter_mod::check_meter;
use crate::{EntryMatch, FlowEntry, Instructions, METER_MAX, Pipeline};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;
use urtica_wire::{
    BucketCounter, ErrorCode, FlowStats, GroupDesc, GroupMod, GroupModCommand, GroupStats,
    MeterConfig, MeterMod, MeterModCommand, MeterStats, Version,
};

impl Pipeline {
    /// Restores a flow entry from its statistics; its last packet arrived `idle` ago. Its ports may not exist yet. `now` should
    /// be at least its age; otherwise the entry becomes younger.
    ///
    /// # Errors
    /// The specification's error if the table, group or meter does not exist, or the table is full.
    pub fn restore_flow(
        &mut self,
        stats: &FlowStats,
        idle: Duration,
        now: Duration,
    ) -> Result<(), ErrorCode> {
        let match_ = EntryMatch::new(&stats.match_)?;
        self.restore_entry(Version::Of13, match_, stats, idle, now)
    }

    /// Restores a flow entry that 1.0 added: see [`Pipeline::restore_flow`] and [`EntryMatch::pcp_of_untagged`].
    ///
    /// # Errors
    /// The specification's error if the table does not exist or is full.
    pub fn restore_flow_of10(
        &mut self,
        stats: &FlowStats,
        pcp_of_untagged: Option<u8>,
        idle: Duration,
        now: Duration,
    ) -> Result<(), ErrorCode> {
        let match_ = EntryMatch::new(&stats.match_)?.with_pcp_of_untagged(pcp_of_untagged);
        self.restore_entry(Version::Of10, match_, stats, idle, now)
    }

    fn restore_entry(
        &mut self,
        version: Version,
        match_: EntryMatch,
        stats: &FlowStats,
        idle: Duration,
        now: Duration,
    ) -> Result<(), ErrorCode> {
        let index = usize::from(stats.table_id);
        let instructions =
            self.with_ports_to_follow(|pipeline| pipeline.check_restored(stats, &match_))?;
        let max_entries = self.config().max_entries as usize;
        let table = self.tables.get_mut(index);
        let table = table.ok_or(ErrorCode::FlowModFailedBadTableId)?;
        if table.entries().len() >= max_entries {
            return Err(ErrorCode::FlowModFailedTableFull);
        }
        let entry = FlowEntry {
            table_id: stats.table_id,
            priority: stats.priority,
            match_,
            instructions,
            cookie: stats.cookie,
            flags: stats.flags,
            idle_timeout: stats.idle_timeout,
            hard_timeout: stats.hard_timeout,
            added: before(now, stats.duration_sec, stats.duration_nsec),
            version,
            counters: EntryCounters {
                packets: AtomicU64::new(stats.packet_count),
                bytes: AtomicU64::new(stats.byte_count),
                last_used_ns: AtomicU64::new(nanoseconds(now.saturating_sub(idle))),
            },
            linked: LinkedCounters::default(),
        };
        table.insert(entry, Counts::Reset);
        self.note_expiry(index..index + 1);
        self.follow_changes(index..index + 1, &[]);
        Ok(())
    }

    /// Checks the instructions of an entry of either version: 1.0's may have actions that 1.3 refuses for their match.
    fn check_restored(
        &self,
        stats: &FlowStats,
        match_: &EntryMatch,
    ) -> Result<Instructions, ErrorCode> {
        let check =
            |version| self.check_instructions(version, stats.table_id, match_, &stats.instructions);
        check(Version::Of13).or_else(|error| check(Version::Of10).map_err(|_| error))
    }

    /// Restores a group. Its ports may not exist yet.
    ///
    /// # Errors
    /// The specification's error, for example if the group refers to one that does not exist yet.
    pub fn restore_group(
        &mut self,
        desc: &GroupDesc,
        stats: &GroupStats,
        now: Duration,
    ) -> Result<(), ErrorCode> {
        let group_mod = GroupMod {
            command: GroupModCommand::Add,
            group_type: desc.group_type,
            group_id: desc.group_id,
            buckets: desc.buckets.clone(),
        };
        self.check_new_group(&group_mod)?;
        let mut group =
            self.with_ports_to_follow(|pipeline| pipeline.check_group(&group_mod, now))?;
        group.added = before(now, stats.duration_sec, stats.duration_nsec);
        group.counters = GroupCounters::beginning_with(&BucketCounter {
            packet_count: stats.packet_count,
            byte_count: stats.byte_count,
        });
        for (bucket, counter) in group.buckets.iter_mut().zip(&stats.buckets) {
            bucket.counters = GroupCounters::beginning_with(&counter);
        }
        self.insert_group(desc.group_id, group)
    }

    /// Runs a check that accepts ports that do not exist yet, or no longer exist.
    fn with_ports_to_follow<T>(&mut self, check: impl FnOnce(&Self) -> T) -> T {
        self.ports_may_follow = true;
        let checked = check(self);
        self.ports_may_follow = false;
        checked
    }

    /// Restores a meter. Its bands start with full bursts.
    ///
    /// # Errors
    /// The specification's error.
    pub fn restore_meter(
        &mut self,
        config: &MeterConfig,
        stats: &MeterStats,
        now: Duration,
    ) -> Result<(), ErrorCode> {
        let id = config.meter_id;
        let is_full = self.meters.meters.len() >= self.config().max_meters as usize;
        match id {
            0 => return Err(ErrorCode::MeterModFailedInvalidMeter),
            _ if id > METER_MAX => return Err(ErrorCode::MeterModFailedInvalidMeter),
            _ if is_full => return Err(ErrorCode::MeterModFailedOutOfMeters),
            _ => {}
        }
        let meter_mod = MeterMod {
            command: MeterModCommand::Add,
            flags: config.flags,
            meter_id: id,
            bands: config.bands.clone(),
        };
        let mut meter = check_meter(&meter_mod, now)?;
        meter.added = before(now, stats.duration_sec, stats.duration_nsec);
        meter.packets = AtomicU64::new(stats.packet_in_count);
        meter.bytes = AtomicU64::new(stats.byte_in_count);
        for (band, counter) in meter.bands.iter_mut().zip(&stats.bands) {
            (band.packets, band.bytes) = counters(&counter);
        }
        self.meters.meters.insert(id, Arc::new(meter));
        self.follow_meter_changes(std::iter::once(id));
        Ok(())
    }
}

/// Returns the time when something of this age was added.
fn before(now: Duration, seconds: u32, nanoseconds: u32) -> Duration {
    let age = Duration::from_secs(seconds.into()) + Duration::from_nanos(nanoseconds.into());
    now.saturating_sub(age)
}

fn counters(counter: &BucketCounter) -> (AtomicU64, AtomicU64) {
    (
        AtomicU64::new(counter.packet_count),
        AtomicU64::new(counter.byte_count),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PipelineConfig;
    use urtica_wire::{
        FlowMod, FlowModCommand, FlowStatsRequest, GROUP_ALL, METER_ALL, MacAddr, Port, PortNo,
    };

    const NOW: Duration = Duration::from_secs(1000);

    fn filled() -> Pipeline {
        let mut pipeline = Pipeline::new(PipelineConfig::default());
        for number in [1, 9] {
            pipeline.set_port(Port::new(PortNo(number), MacAddr::from_u64(1), "port"));
        }
        let removed = &mut Vec::new();
        let at = NOW - Duration::from_secs(30);
        let meter = MeterMod::parse(MeterModCommand::Add, "meter=4,kbps,band=type=drop,rate=100");
        pipeline.meter_mod(&meter.unwrap(), at, removed).unwrap();
        let group = "group_id=2,type=all,bucket=output:1,bucket=output:9";
        let group = GroupMod::parse(GroupModCommand::Add, group).unwrap();
        pipeline.group_mod(&group, at, removed).unwrap();
        let chained = "group_id=1,type=indirect,bucket=group:2";
        let chained = GroupMod::parse(GroupModCommand::Add, chained).unwrap();
        pipeline.group_mod(&chained, at, removed).unwrap();
        for text in [
            "table=1,cookie=0x7,priority=5,idle_timeout=10,hard_timeout=60,send_flow_rem,in_port=1,actions=meter:4,group:1",
            "priority=9,tcp,tcp_dst=80,actions=set_field:1.2.3.4->ip_dst,goto_table:1",
        ] {
            let flow_mod = FlowMod::parse(FlowModCommand::Add, text).unwrap();
            pipeline.flow_mod(&flow_mod, at, removed).unwrap();
        }
        pipeline
    }

    fn restored(from: &Pipeline) -> Pipeline {
        let mut pipeline = Pipeline::new(PipelineConfig::default());
        for config in from.meter_configs(METER_ALL).unwrap() {
            let stats = from.meter_stats(config.meter_id, NOW).unwrap();
            pipeline.restore_meter(&config, &stats[0], NOW).unwrap();
        }
        for desc in from.group_descs().iter().rev() {
            let stats = &from.group_stats(desc.group_id, NOW)[0];
            pipeline.restore_group(desc, stats, NOW).unwrap();
        }
        for entry in from.flow_stats(&FlowStatsRequest::default()).unwrap() {
            let idle = NOW - Duration::from_nanos(entry.counted().last_used_ns);
            pipeline
                .restore_flow(&entry.to_stats(NOW), idle, NOW)
                .unwrap();
        }
        pipeline
    }

    #[test]
    fn restored_objects_equal_the_saved_ones() {
        let before = filled();
        let entries = before.flow_stats(&FlowStatsRequest::default()).unwrap();
        entries
            .iter()
            .for_each(|entry| entry.count(100, NOW - Duration::from_secs(4)));
        let after = restored(&before);
        let told = |pipeline: &Pipeline| {
            let entries = pipeline.flow_stats(&FlowStatsRequest::default()).unwrap();
            let entries: Vec<_> = entries.iter().map(|entry| entry.to_stats(NOW)).collect();
            let groups = pipeline.group_stats(GROUP_ALL, NOW);
            let meters = pipeline.meter_stats(METER_ALL, NOW).unwrap();
            (entries, groups, pipeline.group_descs(), meters)
        };
        assert_eq!(told(&after), told(&before));
        assert_eq!(
            told(&after)
                .0
                .iter()
                .map(|one| one.packet_count)
                .sum::<u64>(),
            2
        );
    }

    #[test]
    fn timeouts_keep_their_remaining_time() {
        let before = filled();
        let entries = before.flow_stats(&FlowStatsRequest::default()).unwrap();
        entries
            .iter()
            .for_each(|entry| entry.count(100, NOW - Duration::from_secs(4)));
        let mut after = restored(&before);
        let mut removed = Vec::new();
        after.expire(NOW + Duration::from_secs(5), &mut removed);
        assert!(removed.is_empty());
        after.expire(NOW + Duration::from_secs(6), &mut removed);
        assert_eq!(removed.len(), 1);
    }

    #[test]
    fn invalid_objects_are_refused() {
        let before = filled();
        let mut empty = Pipeline::new(PipelineConfig {
            n_tables: 1,
            ..PipelineConfig::default()
        });
        let entries = before.flow_stats(&FlowStatsRequest::default()).unwrap();
        for entry in entries {
            let refused = empty.restore_flow(&entry.to_stats(NOW), Duration::ZERO, NOW);
            assert!(refused.is_err());
        }
        let chained = &before.group_descs()[0];
        let stats = &before.group_stats(chained.group_id, NOW)[0];
        assert!(empty.restore_group(chained, stats, NOW).is_err());
        assert_eq!(
            empty
                .flow_stats(&FlowStatsRequest::default())
                .unwrap()
                .len(),
            0
        );
    }

    /// Fast failover checks the port's link once the port exists.
    #[test]
    fn a_watched_port_may_be_added_later() {
        let mut before = Pipeline::new(PipelineConfig::default());
        before.set_port(Port::new(PortNo(3), MacAddr::from_u64(3), "p3"));
        let group = "group_id=1,type=fast_failover,bucket=watch_port:3,output:3";
        let group = GroupMod::parse(GroupModCommand::Add, group).unwrap();
        before.group_mod(&group, NOW, &mut Vec::new()).unwrap();
        let mut after = restored(&before);
        assert_eq!(after.group_descs(), before.group_descs());
        // Controllers still get errors for missing ports.
        let flow_mod = FlowMod::parse(FlowModCommand::Add, "actions=output:3").unwrap();
        let refused = after.flow_mod(&flow_mod, NOW, &mut Vec::new());
        assert_eq!(refused, Err(ErrorCode::BadActionBadOutPort));
    }
}
