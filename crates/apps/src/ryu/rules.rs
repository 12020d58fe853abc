//! The rules of one switch, numbered as in Ryu: from 1 for each VLAN.

use std::collections::BTreeMap;
use urtica_controller::{EntryOptions, ProgramId};
use urtica_wire::{FlowMod, FlowModCommand, Match};

/// The maximum number of rules of one switch.
pub const MAX_RULES_PER_SWITCH: usize = 10_000;

/// The position of the VLAN in a cookie; the rule's number is below it.
const VLAN_SHIFT: u32 = 32;

/// A rule of a switch, which has one flow entry.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RyuRule<A> {
    /// Its number among the rules of its VLAN.
    pub id: u32,
    /// The VLAN of the request, which the match includes as well; 0 if the request had none.
    pub vlan_id: u16,
    /// Higher numbers match first.
    pub priority: u16,
    /// The packets to which the rule applies.
    pub match_: Match<'static>,
    /// The action on these packets.
    pub action: A,
}

impl<A> RyuRule<A> {
    /// Returns the options of the rule's entry, with Ryu's cookie and a priority `raised_by` above the rule's.
    pub(super) fn options(&self, raised_by: u16) -> EntryOptions {
        EntryOptions {
            cookie: u64::from(self.vlan_id) << VLAN_SHIFT | u64::from(self.id),
            ..EntryOptions::PERMANENT.priority(self.priority + raised_by)
        }
    }

    fn is_at(&self, priority: u16, match_: &Match) -> bool {
        self.priority == priority && self.match_ == *match_
    }
}

/// Builds a delete of one entry of a program.
pub(super) fn deletion(program: ProgramId, priority: u16, match_: Match<'_>) -> FlowMod<'_> {
    FlowMod {
        command: FlowModCommand::DeleteStrict,
        cookie: program.cookie(0),
        cookie_mask: !urtica_controller::OWN_COOKIE_BITS,
        priority,
        match_,
        ..FlowMod::default()
    }
}

/// The error if the switch has too many rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the switch has {MAX_RULES_PER_SWITCH} rules already: expected fewer, so delete some first"
)]
pub struct Full;

/// The rules of one switch, in the order in which they were added.
pub(super) struct Rules<A> {
    rules: Vec<RyuRule<A>>,
    /// The last number used for each VLAN that has rules, and for rules without a VLAN.
    last_ids: BTreeMap<u16, u32>,
}

impl<A> Default for Rules<A> {
    fn default() -> Self {
        Self {
            rules: Vec::new(),
            last_ids: BTreeMap::from([(0, 0)]),
        }
    }
}

impl<A: Clone> Rules<A> {
    pub fn iter(&self) -> impl Iterator<Item = &RyuRule<A>> {
        self.rules.iter()
    }

    /// Returns the VLANs to which a rule for all VLANs is added: VLANs with rules, and 0.
    pub fn vlans(&self) -> Vec<u16> {
        self.last_ids.keys().copied().collect()
    }

    /// Adds a rule. It replaces a rule with an equal match and priority, since a switch has one entry for both. Returns the
    /// new rule, and the replaced one.
    pub fn add(
        &mut self,
        vlan_id: u16,
        priority: u16,
        match_: Match<'static>,
        action: A,
    ) -> Result<(RyuRule<A>, Option<RyuRule<A>>), Full> {
        let same = self.rules.iter().position(|it| it.is_at(priority, &match_));
        if same.is_none() && self.rules.len() == MAX_RULES_PER_SWITCH {
            return Err(Full);
        }
        let replaced = same.map(|index| self.rules.remove(index));
        let last = self.last_ids.entry(vlan_id).or_default();
        *last = last.wrapping_add(1);
        let rule = RyuRule {
            id: *last,
            vlan_id,
            priority,
            match_,
            action,
        };
        self.rules.push(rule.clone());
        Ok((rule, replaced))
    }

    /// Removes a rule that could not be installed. Restores the rule that it replaced, unless another has taken its place
    /// since.
    pub fn take_back(&mut self, rule: &RyuRule<A>, replaced: Option<RyuRule<A>>) {
        let is_same = |it: &RyuRule<A>| (it.vlan_id, it.id) == (rule.vlan_id, rule.id);
        self.rules.retain(|it| !is_same(it));
        let is_free = |old: &RyuRule<A>| {
            !self
                .rules
                .iter()
                .any(|it| it.is_at(old.priority, &old.match_))
        };
        if let Some(old) = replaced.filter(is_free) {
            self.rules.push(old);
        }
    }

    /// Deletes the rules with this number in this VLAN; `None` selects all. Returns them.
    pub fn delete(&mut self, vlan_id: Option<u16>, id: Option<u32>) -> Vec<RyuRule<A>> {
        let is_meant = |it: &RyuRule<A>| {
            vlan_id.is_none_or(|vlan_id| it.vlan_id == vlan_id) && id.is_none_or(|id| it.id == id)
        };
        let all = std::mem::take(&mut self.rules);
        let (deleted, kept) = all.into_iter().partition(is_meant);
        self.rules = kept;
        deleted
    }

    /// Keeps the rules for which `is_kept` returns `true`.
    pub fn retain(&mut self, is_kept: impl FnMut(&RyuRule<A>) -> bool) {
        self.rules.retain(is_kept);
    }

    /// Restores deleted rules whose entries could not be deleted.
    pub fn restore(&mut self, rules: Vec<RyuRule<A>>) {
        self.rules.extend(rules);
    }

    /// Restarts the numbers of VLANs without rules at 1, as Ryu does after a delete.
    pub fn forget_vlans(&mut self) {
        let rules = &self.rules;
        let is_used = |vlan_id: u16| vlan_id == 0 || rules.iter().any(|it| it.vlan_id == vlan_id);
        self.last_ids.retain(|vlan_id, _| is_used(*vlan_id));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use urtica_wire::PortNo;

    fn from_port(port: u32) -> Match<'static> {
        Match::any().in_port(PortNo(port))
    }

    fn ids(rules: &Rules<()>) -> Vec<(u16, u32)> {
        rules.iter().map(|rule| (rule.vlan_id, rule.id)).collect()
    }

    #[test]
    fn rules_are_numbered_for_each_vlan() {
        let mut rules = Rules::default();
        for (vlan_id, port) in [(0, 1), (2, 2), (2, 3), (0, 4)] {
            rules.add(vlan_id, 1, from_port(port), ()).unwrap();
        }
        assert_eq!(ids(&rules), [(0, 1), (2, 1), (2, 2), (0, 2)]);
        assert_eq!(rules.vlans(), [0, 2]);
        let (rule, _) = rules.add(2, 1, from_port(5), ()).unwrap();
        assert_eq!(rule.options(0).cookie, 0x2_0000_0003);

        assert_eq!(rules.delete(Some(2), None).len(), 3);
        rules.forget_vlans();
        assert_eq!(rules.vlans(), [0]);
        // Numbers of a VLAN without rules restart; numbers of rules without a VLAN continue.
        assert_eq!(rules.add(2, 1, from_port(2), ()).unwrap().0.id, 1);
        assert_eq!(rules.add(0, 1, from_port(9), ()).unwrap().0.id, 3);
    }

    #[test]
    fn rules_replace_rules_with_equal_matches() {
        let mut rules = Rules::default();
        rules.add(0, 1, from_port(1), ()).unwrap();
        rules.add(0, 2, from_port(1), ()).unwrap();
        let (rule, replaced) = rules.add(0, 1, from_port(1), ()).unwrap();
        assert_eq!(ids(&rules), [(0, 2), (0, 3)]);
        rules.take_back(&rule, replaced);
        assert_eq!(ids(&rules), [(0, 2), (0, 1)]);
    }

    #[test]
    fn rules_of_a_switch_are_bounded() {
        let mut rules = Rules::default();
        let wide = |number: usize| Match::any().eth_type(number as u16);
        for number in 0..MAX_RULES_PER_SWITCH {
            // Priorities differ, so that no rule is compared with all others.
            let added = rules.add(0, number as u16, wide(number), ());
            assert!(added.is_ok());
        }
        let one_more = rules.add(0, u16::MAX, wide(0), ());
        assert_eq!(one_more.map(|_| ()), Err(Full));
        assert!(rules.add(0, 7, wide(7), ()).is_ok(), "it replaces one");
    }
}
