//! Actions that change a packet's bytes (1.3.5 sections 5.12 and 7.2.5), and their checksums.

mod checksum;
mod set_field;
mod tags;
mod ttl;

use crate::Packet;
use urtica_wire::{Action, Field};

impl Packet {
    /// Executes an action that changes the packet: set-field, push, pop, TTL, set-queue and 1.0's setters. Output, group and
    /// experimenter actions have no effect here.
    ///
    /// Actions for missing headers have no effect. Returns `false` for an invalid TTL (0 or 1, to be decremented); then the
    /// packet is unchanged, and must not be processed further (1.3.5 section 5.12).
    pub fn apply(&mut self, action: &Action) -> bool {
        match *action {
            Action::SetField(Field::Basic { field, value, .. }) => self.set_field(field, value),
            Action::PushVlan(ether_type) => self.push_vlan(ether_type),
            Action::PopVlan => self.pop_vlan(),
            Action::PushMpls(ether_type) => self.push_mpls(ether_type),
            Action::PopMpls(ether_type) => self.pop_mpls(ether_type),
            Action::PushPbb(ether_type) => self.push_pbb(ether_type),
            Action::PopPbb => self.pop_pbb(),
            Action::SetVlanVid(vid) => self.set_vlan_vid(vid),
            Action::SetVlanPcp(pcp) => self.set_vlan_pcp(pcp),
            Action::SetTpSrc(port) => self.set_tp_src(port),
            Action::SetTpDst(port) => self.set_tp_dst(port),
            Action::SetMplsTtl(ttl) => self.set_mpls_ttl(ttl),
            Action::SetNwTtl(ttl) => self.set_nw_ttl(ttl),
            Action::CopyTtlOut => self.copy_ttl_out(),
            Action::CopyTtlIn => self.copy_ttl_in(),
            Action::DecMplsTtl => return self.dec_mpls_ttl(),
            Action::DecNwTtl => return self.dec_nw_ttl(),
            Action::SetQueue(queue_id) => self.queue_id = queue_id,
            Action::SetField(Field::Raw(_))
            | Action::Output { .. }
            | Action::Enqueue { .. }
            | Action::Group(_)
            | Action::Experimenter { .. } => {}
        }
        true
    }
}

#[cfg(test)]
mod tests;
