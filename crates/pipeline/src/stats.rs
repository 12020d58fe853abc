//! Counters and configuration for multipart replies (1.3.5 section 7.3.5).

use crate::counters::EntryCounts;
use crate::entry::seconds_and_nanoseconds;
use crate::{Bucket, Group, Meter, Pipeline};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use urtica_wire::{
    AggregateStats, BucketCounter, ErrorCode, FixedName, FlowStatsRequest, GROUP_ALL, GroupDesc,
    GroupStats, METER_ALL, MeterConfig, MeterStats, TableStats,
};

impl Pipeline {
    /// Returns the totals of the entries that a request selects.
    ///
    /// # Errors
    /// The specification's error if the request's match or table is invalid.
    pub fn aggregate_stats(&self, request: &FlowStatsRequest) -> Result<AggregateStats, ErrorCode> {
        let entries = self.flow_stats(request)?;
        let counted = entries.iter().map(|entry| entry.counted());
        let sum = counted.fold(EntryCounts::default(), EntryCounts::plus);
        Ok(AggregateStats {
            packet_count: sum.packets,
            byte_count: sum.bytes,
            flow_count: entries.len() as u32,
        })
    }

    /// Returns the counters of all tables, without the fields that only 1.0 has.
    pub fn table_stats(&self) -> impl Iterator<Item = TableStats> {
        (0..).zip(&self.tables).map(|(table_id, table)| TableStats {
            table_id,
            name: FixedName([0; 32]),
            wildcards: 0,
            max_entries: 0,
            active_count: table.entries().len() as u32,
            lookup_count: table.lookups.load(Relaxed) + self.compiled_totals(table_id).lookups(),
            matched_count: table.matches.load(Relaxed) + self.compiled_totals(table_id).matches,
        })
    }

    /// Returns the counters of a group, or of all groups with [`GROUP_ALL`]; empty if the group does not exist.
    pub fn group_stats(&self, group_id: u32, now: Duration) -> Vec<GroupStats<'static>> {
        let ids = match group_id {
            GROUP_ALL => 0..=u32::MAX,
            id => id..=id,
        };
        self.group_stats_of(ids, now).collect()
    }

    /// Returns the counters of the groups with these numbers, in order.
    pub fn group_stats_of(
        &self,
        ids: RangeInclusive<u32>,
        now: Duration,
    ) -> impl Iterator<Item = GroupStats<'static>> {
        let groups = self.groups.range(ids);
        groups.map(move |(id, group)| self.group_row(id, group, now))
    }

    /// Returns the counters of a group, which may have been removed or replaced since [`Pipeline::list_groups`] listed it.
    pub fn group_row(&self, group_id: u32, group: &Group, now: Duration) -> GroupStats<'static> {
        group.to_stats(group_id, self.group_ref_count(group_id), now)
    }

    /// Lists the groups with these numbers, in order. Later changes do not affect the list.
    pub fn list_groups(&self, ids: RangeInclusive<u32>) -> Vec<(u32, Arc<Group>)> {
        let groups = self.groups.range(ids);
        groups.map(|(id, group)| (id, Arc::clone(group))).collect()
    }

    /// Returns the types and buckets of all groups.
    pub fn group_descs(&self) -> Vec<GroupDesc<'static>> {
        self.group_descs_of(0..=u32::MAX).collect()
    }

    /// Returns the types and buckets of the groups with these numbers, in order.
    pub fn group_descs_of(
        &self,
        ids: RangeInclusive<u32>,
    ) -> impl Iterator<Item = GroupDesc<'static>> {
        let groups = self.groups.range(ids);
        groups.map(|(id, group)| group.to_desc(id))
    }

    /// Returns the counters of a meter, or of all meters with [`METER_ALL`].
    ///
    /// # Errors
    /// [`ErrorCode::MeterModFailedUnknownMeter`] if the meter does not exist.
    pub fn meter_stats(
        &self,
        meter_id: u32,
        now: Duration,
    ) -> Result<Vec<MeterStats<'static>>, ErrorCode> {
        let ids = self.meter_ids(meter_id)?;
        Ok(self.meter_stats_of(ids, now).collect())
    }

    /// Returns the counters of the meters with these numbers, in order.
    pub fn meter_stats_of(
        &self,
        ids: RangeInclusive<u32>,
        now: Duration,
    ) -> impl Iterator<Item = MeterStats<'static>> {
        let meters = self.meters.meters.range(ids);
        meters.map(move |(&id, meter)| self.meter_row(id, meter, now))
    }

    /// Returns the counters of a meter, which may have been removed or replaced since [`Pipeline::list_meters`] listed it.
    pub fn meter_row(&self, meter_id: u32, meter: &Meter, now: Duration) -> MeterStats<'static> {
        meter.to_stats(meter_id, self.meter_flow_count(meter_id), now)
    }

    /// Lists the meters with these numbers, in order. Later changes do not affect the list.
    pub fn list_meters(&self, ids: RangeInclusive<u32>) -> Vec<(u32, Arc<Meter>)> {
        let meters = self.meters.meters.range(ids);
        meters.map(|(&id, meter)| (id, Arc::clone(meter))).collect()
    }

    /// Returns the configuration of a meter, or of all meters with [`METER_ALL`].
    ///
    /// # Errors
    /// [`ErrorCode::MeterModFailedUnknownMeter`] if the meter does not exist.
    pub fn meter_configs(&self, meter_id: u32) -> Result<Vec<MeterConfig<'static>>, ErrorCode> {
        let ids = self.meter_ids(meter_id)?;
        Ok(self.meter_configs_of(ids).collect())
    }

    /// Returns the configurations of the meters with these numbers, in order.
    pub fn meter_configs_of(
        &self,
        ids: RangeInclusive<u32>,
    ) -> impl Iterator<Item = MeterConfig<'static>> {
        let meters = self.meters.meters.range(ids);
        meters.map(|(&id, meter)| meter.to_config(id))
    }

    /// Returns the range of numbers that a request for a meter, or for all with [`METER_ALL`], covers.
    ///
    /// # Errors
    /// [`ErrorCode::MeterModFailedUnknownMeter`] if the meter does not exist.
    pub fn meter_ids(&self, meter_id: u32) -> Result<RangeInclusive<u32>, ErrorCode> {
        match meter_id {
            METER_ALL => Ok(0..=u32::MAX),
            id if self.meters.get(id).is_some() => Ok(id..=id),
            _ => Err(ErrorCode::MeterModFailedUnknownMeter),
        }
    }
}

impl Group {
    /// Returns the group's counters.
    pub fn to_stats(&self, group_id: u32, ref_count: u32, now: Duration) -> GroupStats<'static> {
        let (duration_sec, duration_nsec) = seconds_and_nanoseconds(now.saturating_sub(self.added));
        let counted = self.counted();
        GroupStats {
            group_id,
            ref_count,
            packet_count: counted.packet_count,
            byte_count: counted.byte_count,
            duration_sec,
            duration_nsec,
            buckets: self.buckets.iter().map(Bucket::counted).collect(),
        }
    }

    /// Returns the group's type and buckets.
    pub fn to_desc(&self, group_id: u32) -> GroupDesc<'static> {
        GroupDesc {
            group_type: self.group_type,
            group_id,
            buckets: self.buckets.iter().map(Bucket::to_wire).collect(),
        }
    }
}

impl Bucket {
    fn to_wire(&self) -> urtica_wire::Bucket<'static> {
        urtica_wire::Bucket {
            weight: self.weight,
            watch_port: self.watch_port,
            watch_group: self.watch_group,
            actions: self.actions.clone().into(),
        }
    }
}

impl Meter {
    /// Returns the meter's counters.
    pub fn to_stats(&self, meter_id: u32, flow_count: u32, now: Duration) -> MeterStats<'static> {
        let (duration_sec, duration_nsec) = seconds_and_nanoseconds(now.saturating_sub(self.added));
        let bands = self.bands.iter();
        MeterStats {
            meter_id,
            flow_count,
            packet_in_count: self.packets.load(Relaxed),
            byte_in_count: self.bytes.load(Relaxed),
            duration_sec,
            duration_nsec,
            bands: bands
                .map(|band| counter(&band.packets, &band.bytes))
                .collect(),
        }
    }

    /// Returns the meter's flags and bands.
    pub fn to_config(&self, meter_id: u32) -> MeterConfig<'static> {
        MeterConfig {
            flags: self.flags,
            meter_id,
            bands: self.bands.iter().map(|band| band.band).collect(),
        }
    }
}

fn counter(packets: &AtomicU64, bytes: &AtomicU64) -> BucketCounter {
    BucketCounter {
        packet_count: packets.load(Relaxed),
        byte_count: bytes.load(Relaxed),
    }
}
