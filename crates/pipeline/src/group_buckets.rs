//! The buckets of a group to which a packet is sent, and the liveness of buckets (1.3.5 sections 5.6.1 and 6.5).

use crate::flow_hash::FlowWords;
use crate::group_select::select;
use crate::{Bucket, Group, Packet, Pipeline};
use std::collections::BTreeSet;
use urtica_wire::{GroupType, PortConfig, PortNo, PortState};

impl Pipeline {
    /// Returns the buckets of a group that a packet is sent to. For `all`, every bucket; for `select`, a live one chosen by the
    /// packet's flow and the weights; for `indirect`, the only one; for `fast failover`, the first live one.
    pub fn buckets_for<'a>(&'a self, group: &'a Group, packet: &Packet) -> Vec<&'a Bucket> {
        let mut live = group.buckets.iter().filter(|bucket| self.is_live(bucket));
        match group.group_type {
            GroupType::All | GroupType::Indirect => group.buckets.iter().collect(),
            GroupType::FastFailover => live.next().into_iter().collect(),
            GroupType::Select => select(live, FlowWords::of(packet).hash())
                .into_iter()
                .collect(),
            GroupType::Other(_) => Vec::new(),
        }
    }

    /// Returns `true` if a bucket is live, that is, if the port and group that it watches are.
    pub fn is_live(&self, bucket: &Bucket) -> bool {
        self.is_live_but_for(bucket, &mut BTreeSet::new())
    }

    /// Like `is_live`, but assumes that groups in `dead` are not live, so that each group is checked once.
    fn is_live_but_for(&self, bucket: &Bucket, dead: &mut BTreeSet<u32>) -> bool {
        !bucket.is_watching()
            || self.is_port_live(bucket.watch_port)
            || self.is_group_live(bucket.watch_group, dead)
    }

    fn is_port_live(&self, port_no: PortNo) -> bool {
        self.port(port_no).is_some_and(|port| {
            !port.config.contains(PortConfig::PORT_DOWN)
                && !port.state.contains(PortState::LINK_DOWN)
        })
    }

    fn is_group_live(&self, group_id: u32, dead: &mut BTreeSet<u32>) -> bool {
        let Some(group) = self.groups.get(group_id) else {
            return false;
        };
        if dead.contains(&group_id) {
            return false;
        }
        let mut buckets = group.buckets.iter();
        let is_live = buckets.any(|bucket| self.is_live_but_for(bucket, dead));
        if !is_live {
            dead.insert(group_id);
        }
        is_live
    }
}
