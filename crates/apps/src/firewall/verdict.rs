//! The rules' verdict on one packet, with which the switches' entries must agree.

use super::fragments;
use super::rules::{FirewallRules, Rule, Verdict, always_allowed};
use urtica_wire::{Field, Match, PacketIn};

impl FirewallRules {
    /// Returns the verdict on a packet, which the switch's entries would give, too.
    ///
    /// Cost: a scan of the rules.
    pub fn verdict(&self, packet: &PacketIn) -> Verdict {
        let mut fields: Vec<_> = Match::exact(packet).fields().collect();
        let hides = fragments::add_hidden(&mut fields);
        let matches = |match_: &Match| match_.fields().all(|wanted| includes(&wanted, &fields));
        if always_allowed().iter().any(matches) {
            return Verdict::Allow;
        }
        let applies = |rule: &&Rule| {
            matches(&rule.match_) || hides && fragments::hidden_from(rule).iter().any(matches)
        };
        let first = self.rules.iter().find(applies);
        first.map_or(self.default, |rule| rule.verdict)
    }
}

/// Returns `true` if the packet has a field with the wanted value.
pub(crate) fn includes(wanted: &Field, packet: &[Field]) -> bool {
    let Field::Basic { field, value, mask } = *wanted else {
        return false;
    };
    packet.iter().any(|has| match *has {
        Field::Basic {
            field: has,
            value: found,
            ..
        } => has == field && found & mask == value,
        Field::Raw(_) => false,
    })
}
