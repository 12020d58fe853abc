//! Hosts that harm others by way of the programs, which must keep serving the others.

use super::forgery::Forgery;
use super::{Act, Drawing, KNOWN_AFTER};
use crate::{HostId, LinkId};
use std::time::Duration;

/// The time that these faults need, which must pass before the end of all faults.
const NEEDED: Duration = Duration::from_secs(3);

/// The time for which the newcomer's link is cut: long enough for its switch to notice.
const CUT_FOR: Duration = Duration::from_millis(300);

/// The time after the cut at which the newcomer's port has been classified as a host port, and the programs are ready for it.
const READY_AFTER: Duration = Duration::from_millis(900);

/// The time within the sweep at which another host resolves the newcomer.
const AMID: Duration = Duration::from_millis(450);

impl Drawing<'_> {
    /// Makes the owner known, and then another host claim its address to a host that talks with both.
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

    /// Makes the target request the address of each made-up sender.
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

    /// While a host pings absent addresses, another one resolves an unknown host.
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

    /// Makes made-up hosts appear at one port, and then an unknown host elsewhere.
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

    /// Returns a time that leaves enough until the end of the faults.
    fn in_time(&self, at: Duration) -> Duration {
        at.min(self.to.saturating_sub(NEEDED)).max(self.from)
    }

    /// Returns `true` if hosts are in one VLAN.
    fn are_neighbours(&self, hosts: &[HostId]) -> bool {
        let vlan = |host: &HostId| self.net.vlan(*host).ok();
        hosts.windows(2).all(|two| vlan(&two[0]) == vlan(&two[1]))
    }

    /// Returns the host that appears, unless it already does so in another fault.
    fn newcomer(&self) -> Option<HostId> {
        self.newcomer.filter(|_| self.schedule.newcomer.is_none())
    }

    /// Returns the host's link, which no other fault cuts.
    fn claim_newcomer(&mut self, newcomer: HostId) -> Option<LinkId> {
        self.schedule.newcomer = Some(self.item);
        self.net.host_link(newcomer).ok()
    }
}
