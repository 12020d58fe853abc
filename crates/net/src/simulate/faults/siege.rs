//! Hosts that harm others by way of the programs: these are to keep serving the others.

use super::forgery::Forgery;
use super::{Act, Drawing, KNOWN_AFTER};
use crate::{HostId, LinkId};
use std::time::Duration;

/// The time that these faults need, so that they end before the others are over.
const NEEDED: Duration = Duration::from_secs(3);

/// How long the newcomer's link is cut: long enough for its switch to notice.
const CUT_FOR: Duration = Duration::from_millis(300);

/// The time after the cut when the newcomer's port is known to lead to a host, and the programs are ready for it.
const READY_AFTER: Duration = Duration::from_millis(900);

/// The time of the sweep when another host resolves the newcomer.
const AMID: Duration = Duration::from_millis(450);

impl Drawing<'_> {
    /// The owner is known, and then another host claims its address to somebody who talks with both.
    pub(super) fn forge(&mut self, at: Duration) {
        let at = self.in_time(at);
        let (liar, victim, owner) = (self.host(), self.host(), self.host());
        let form = Forgery::draw(&mut self.draw, self.net);
        let are_three = liar != victim && victim != owner && owner != liar;
        if !are_three
            || !self.are_neighbours(&[liar, victim, owner])
            || Some(owner) == self.newcomer
        {
            return;
        }
        let announce = Act::Forge {
            liar: owner,
            victim,
            owner,
            form: form.of_owner(),
        };
        self.put(at, announce);
        self.put(at, Act::Ping(victim, owner, 1));
        self.put(at, Act::Ping(liar, victim, 1));
        for number in 1..=3 {
            let forge = Act::Forge {
                liar,
                victim,
                owner,
                form,
            };
            self.put(at + number * KNOWN_AFTER, forge);
        }
        self.put(at + 4 * KNOWN_AFTER, Act::Ping(victim, owner, 1));
    }

    /// The target requests the address of each made-up sender.
    pub(super) fn provoke(&mut self, at: Duration) {
        let at = self.in_time(at);
        let (host, target) = (self.host(), self.host());
        let count = self.draw.within(150..=400) as u32;
        if host == target || !self.are_neighbours(&[host, target]) {
            return;
        }
        self.put(at, Act::Announce(target));
        self.put_batches(at + KNOWN_AFTER, count, |numbers| {
            Act::Provoke(host, target, numbers)
        });
    }

    /// While a host pings absent addresses, another one resolves a host that is not known.
    pub(super) fn sweep_against_others(&mut self, at: Duration) {
        let at = self.in_time(at);
        let (sweeper, asker) = (self.host(), self.host());
        let count = self.draw.within(1_500..=2_000) as u32;
        let Some(newcomer) = self.newcomer() else {
            return;
        };
        let are_three = sweeper != asker && asker != newcomer && newcomer != sweeper;
        if !are_three || !self.are_neighbours(&[asker, newcomer]) {
            return;
        }
        let Some(link) = self.claim_newcomer(newcomer) else {
            return;
        };
        self.put(at, Act::Cut(link));
        self.put(at + CUT_FOR, Act::Repair(link));
        let at = at + READY_AFTER;
        self.put_batches(at, count, |numbers| Act::PingNobody(sweeper, numbers));
        self.put(at + AMID, Act::Resolve(asker, newcomer));
    }

    /// Made-up hosts appear at one port, and then one elsewhere that is not known.
    pub(super) fn crowd(&mut self, at: Duration) {
        let at = self.in_time(at);
        let (host, to) = (self.host(), self.host());
        let count = self.draw.within(4_200..=5_000) as u32;
        let Some(newcomer) = self.newcomer() else {
            return;
        };
        let are_three = host != to && newcomer != host && newcomer != to;
        if !are_three || !self.are_neighbours(&[host, to]) {
            return;
        }
        let Some(link) = self.claim_newcomer(newcomer) else {
            return;
        };
        self.put(at, Act::Announce(to));
        self.put(at, Act::Cut(link));
        self.put(at + CUT_FOR, Act::Repair(link));
        self.put_batches(at + CUT_FOR, count, |numbers| Act::Crowd(host, to, numbers));
        self.put(at + CUT_FOR + READY_AFTER, Act::Announce(newcomer));
    }

    /// A time that leaves enough until the end of the faults.
    fn in_time(&self, at: Duration) -> Duration {
        at.min(self.to.saturating_sub(NEEDED)).max(self.from)
    }

    /// Whether hosts are in one VLAN.
    fn are_neighbours(&self, hosts: &[HostId]) -> bool {
        let vlan = |host: &HostId| self.net.vlan(*host).ok();
        hosts.windows(2).all(|two| vlan(&two[0]) == vlan(&two[1]))
    }

    /// The host that appears, unless it does so in another fault.
    fn newcomer(&self) -> Option<HostId> {
        self.newcomer.filter(|_| self.schedule.newcomer.is_none())
    }

    /// Returns its link, which is cut in this fault alone.
    fn claim_newcomer(&mut self, newcomer: HostId) -> Option<LinkId> {
        self.schedule.newcomer = Some(self.item);
        self.net.host_link(newcomer).ok()
    }
}
