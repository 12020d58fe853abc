//! Pushing and popping the tags of VLAN, MPLS and PBB (1.3.5 sections 5.12 and 5.12.1, 7.2.5).
//!
//! A new tag is the outermost, right after the Ethernet addresses. Its fields are copied from an older header that has them.

use crate::Packet;
use crate::layout::{Layout, Network};
use urtica_wire::OxmField;
use urtica_wire::packet::{ether_type, ethernet, mpls, pbb, vlan};

/// Length of the two Ethernet addresses at the start of every frame.
const ADDRESSES_LEN: usize = 12;
/// The bit between the priority and the id of a VLAN tag, which is not copied to new tags.
const VLAN_CFI: u16 = 0x1000;
/// The bottom-of-stack bit of an MPLS header.
const MPLS_BOS: u32 = 0x100;

/// VLAN.
impl Packet {
    pub(super) fn push_vlan(&mut self, ether_type: u16) {
        let layout = self.layout();
        if !layout.has_ethernet {
            return;
        }
        let outer = layout.vlan.map_or(0, |at| self.u16_at(at) & !VLAN_CFI);
        self.insert(ADDRESSES_LEN, vlan::HEADER_LEN);
        self.write_at(ADDRESSES_LEN, &ether_type.to_be_bytes());
        self.write_at(ADDRESSES_LEN + 2, &outer.to_be_bytes());
    }

    pub(super) fn pop_vlan(&mut self) {
        if self.layout().vlan.is_some() {
            self.remove(ADDRESSES_LEN, vlan::HEADER_LEN);
        }
    }

    /// Executes 1.0's `set_vlan_vid`, which adds a tag with priority 0 if there is none.
    pub(super) fn set_vlan_vid(&mut self, vid: u16) {
        self.push_first_vlan();
        self.set_field(OxmField::VlanVid, vid.into());
    }

    /// Executes 1.0's `set_vlan_pcp`, which adds a tag with VLAN id 0 if there is none.
    pub(super) fn set_vlan_pcp(&mut self, pcp: u8) {
        self.push_first_vlan();
        self.set_field(OxmField::VlanPcp, pcp.into());
    }

    fn push_first_vlan(&mut self) {
        if self.layout().vlan.is_none() {
            self.push_vlan(ether_type::VLAN);
        }
    }
}

/// MPLS.
impl Packet {
    /// Pushes an MPLS header after the Ethernet header and VLAN tags. The EtherType becomes that of MPLS; the pop action later
    /// sets the next one.
    pub(super) fn push_mpls(&mut self, ether_type: u16) {
        if !self.layout().has_ethernet {
            return;
        }
        let header = self.new_mpls_header();
        self.insert(ethernet::HEADER_LEN, mpls::HEADER_LEN);
        self.write_at(ADDRESSES_LEN, &ether_type.to_be_bytes());
        self.write_at(ethernet::HEADER_LEN, &header.to_be_bytes());
    }

    pub(super) fn pop_mpls(&mut self, ether_type: u16) {
        let &Layout {
            network: Network::Mpls(at),
            ether_type_at: Some(ether_type_at),
            ..
        } = self.layout()
        else {
            return;
        };
        self.remove(at, mpls::HEADER_LEN);
        self.write_at(ether_type_at, &ether_type.to_be_bytes());
    }

    /// Returns the outermost MPLS header's label, traffic class and TTL, or 0, 0 and the TTL of IP, if any, without one. The
    /// new header is the bottom of the stack unless an MPLS header follows.
    fn new_mpls_header(&self) -> u32 {
        match self.layout().network {
            Network::Mpls(ethernet::HEADER_LEN) => self.u32_at(ethernet::HEADER_LEN) & !MPLS_BOS,
            Network::Mpls(behind_tags) => self.u32_at(behind_tags) | MPLS_BOS,
            _ => u32::from(self.nw_ttl().unwrap_or(0)) | MPLS_BOS,
        }
    }
}

/// PBB.
impl Packet {
    /// Pushes a PBB header: the whole frame becomes the inner one, after a new Ethernet header with its addresses and an I-TAG.
    /// This has the priority of the outermost VLAN tag and the service of the outermost I-TAG.
    pub(super) fn push_pbb(&mut self, ether_type: u16) {
        if !self.layout().has_ethernet {
            return;
        }
        let pcp = self.field(OxmField::VlanPcp).unwrap_or(0) as u32;
        let isid = self.field(OxmField::PbbIsid).unwrap_or(0) as u32;
        let tag = pcp << 29 | isid;
        let outer_len = ethernet::HEADER_LEN + pbb::HEADER_LEN;
        self.insert(0, outer_len);
        self.frame_mut()
            .copy_within(outer_len..outer_len + ADDRESSES_LEN, 0);
        self.write_at(ADDRESSES_LEN, &ether_type.to_be_bytes());
        self.write_at(ethernet::HEADER_LEN, &tag.to_be_bytes());
    }

    /// Removes everything but the inner frame, including backbone VLAN tags, which belong to the removed Ethernet header.
    pub(super) fn pop_pbb(&mut self) {
        let Network::Pbb(at) = self.layout().network else {
            return;
        };
        let inner = at + pbb::HEADER_LEN;
        if self.frame().len() >= inner + ethernet::HEADER_LEN {
            self.remove(0, inner);
        }
    }
}

impl Packet {
    fn u16_at(&self, at: usize) -> u16 {
        let bytes = &self.frame()[at..];
        u16::from_be_bytes([bytes[0], bytes[1]])
    }

    fn u32_at(&self, at: usize) -> u32 {
        let bytes = &self.frame()[at..];
        u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
    }

    fn write_at(&mut self, at: usize, bytes: &[u8]) {
        self.frame_mut()[at..at + bytes.len()].copy_from_slice(bytes);
    }
}

#[cfg(test)]
mod tests {
    use crate::packet::testing::*;
    use urtica_wire::Action;

    /// Creates a frame with fixed addresses and the given rest.
    fn frame(rest: &str) -> String {
        format!("020000000002 020000000001 {rest}")
    }

    #[track_caller]
    fn assert_pushed(before: &str, action: Action, after: &str) {
        assert_applied(&frame(before), action, &frame(after));
    }

    #[test]
    fn a_first_vlan_tag_is_zero() {
        assert_pushed("9000 aa", Action::PushVlan(0x8100), "8100 0000 9000 aa");
    }

    #[test]
    fn a_further_vlan_tag_copies_id_and_priority() {
        let before = "8100 b00a 9000 aa";
        let after = "88a8 a00a 8100 b00a 9000 aa";
        assert_pushed(before, Action::PushVlan(0x88a8), after);
        assert_pushed(after, Action::PopVlan, before);
    }

    #[test]
    fn the_setters_of_1_0_add_a_tag() {
        assert_pushed("9000 aa", Action::SetVlanVid(10), "8100 000a 9000 aa");
        assert_pushed("9000 aa", Action::SetVlanPcp(5), "8100 a000 9000 aa");
        assert_pushed("8100 b00a 9000", Action::SetVlanVid(1), "8100 b001 9000");
        assert_pushed("8100 b00a 9000", Action::SetVlanPcp(1), "8100 300a 9000");
    }

    #[test]
    fn a_first_mpls_header_has_the_ttl_of_ip() {
        let before = "0800 4500 0014 0000 0000 09 00 0000 0a000001 0a000002";
        let after = "8847 00000109 4500 0014 0000 0000 09 00 0000 0a000001 0a000002";
        assert_pushed(before, Action::PushMpls(0x8847), after);
        assert_pushed("9000 aa", Action::PushMpls(0x8848), "8848 00000100 aa");
    }

    #[test]
    fn a_further_mpls_header_copies_all_but_the_bottom() {
        let after = "8848 abcdea3f abcdeb3f";
        assert_pushed("8847 abcdeb3f", Action::PushMpls(0x8848), after);
        assert_pushed(after, Action::PopMpls(0x8847), "8847 abcdeb3f");
    }

    #[test]
    fn an_mpls_header_is_pushed_before_vlan_tags() {
        let before = "8100 600a 0800 4500 0014 0000 0000 09 00 0000 0a000001 0a000002";
        let after = "8847 00000109 600a 0800 4500 0014 0000 0000 09 00 0000 0a000001 0a000002";
        assert_pushed(before, Action::PushMpls(0x8847), after);
        assert_pushed(after, Action::PopMpls(0x8100), before);
        let labelled = "8847 abcdeb3f 600a 8847 abcdeb3f";
        assert_pushed(
            "8100 600a 8847 abcdeb3f",
            Action::PushMpls(0x8847),
            labelled,
        );
    }

    #[test]
    fn a_popped_mpls_header_leaves_vlan_tags() {
        assert_pushed(
            "8100 600a 8847 abcdeb3f 45",
            Action::PopMpls(0x0800),
            "8100 600a 0800 45",
        );
    }

    #[test]
    fn an_i_tag_copies_priority_and_service_of_older_tags() {
        let first = "88e7 00000000 020000000002 020000000001 9000";
        assert_pushed("9000", Action::PushPbb(0x88e7), first);
        assert_pushed(first, Action::PopPbb, "9000");
        let priority = "88e7 a0000000 020000000002 020000000001 8100 b00a 9000";
        assert_pushed("8100 b00a 9000", Action::PushPbb(0x88e7), priority);
        let service = "88e7 00abcdef 020000000002 020000000001 88e7 78abcdef 9000";
        assert_pushed("88e7 78abcdef 9000", Action::PushPbb(0x88e7), service);
    }

    #[test]
    fn popping_an_i_tag_removes_the_backbone_header() {
        let before = frame("88a8 600a 88e7 00000007 060000000004 060000000003 9000 aa");
        assert_applied(&before, Action::PopPbb, "060000000004 060000000003 9000 aa");
    }

    #[test]
    fn missing_tags_are_not_popped() {
        for action in [Action::PopVlan, Action::PopMpls(0x0800), Action::PopPbb] {
            assert_pushed("9000 aa", action, "9000 aa");
        }
        let no_inner_frame = "88e7 00000007 060000000004 060000000003 90";
        assert_pushed(no_inner_frame, Action::PopPbb, no_inner_frame);
    }

    #[test]
    fn no_tag_is_pushed_without_an_ethernet_header() {
        let runt = "020000000002 020000000001 08";
        for action in [
            Action::PushVlan(0x8100),
            Action::PushMpls(0x8847),
            Action::PushPbb(0x88e7),
            Action::SetVlanVid(1),
        ] {
            assert_applied(runt, action, runt);
        }
    }
}
