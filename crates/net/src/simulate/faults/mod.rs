//! The faults and the traffic of a run, drawn in advance.
//!
//! Each fault and each flow is drawn from its own stream, by its number. So one of them can be left out without changing the
//! others.

mod act;
mod forgery;
mod hostile;
mod item;
mod kind;
mod malformed;
mod siege;
mod tagged;

pub(super) use act::Act;
pub(super) use hostile::send;
pub use item::{NoSuchItem, ScheduleItem};
pub use kind::{FaultKind, NoSuchKind};
pub use malformed::malformed_input;

use super::Faults;
use crate::{Draw, End, HostId, LinkId, LostEnd, Net, SwitchId};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::time::Duration;

/// The longest stall of a control channel.
pub(super) const LONGEST_SILENCE: Duration = Duration::from_secs(20);

/// The longest time that a switch needs to connect to a running controller: the longest back-off, and the handshake.
const LONGEST_RETURN: Duration = Duration::from_secs(11);

/// The number of batches in which a hostile host sends its packets, and their interval.
const BATCHES: u32 = 10;
const BATCH_INTERVAL: Duration = Duration::from_millis(50);

/// The time after which programs know a host that has announced itself.
const KNOWN_AFTER: Duration = Duration::from_millis(300);

/// An action and its time.
pub(super) struct Happening {
    pub at: Duration,
    pub item: ScheduleItem,
    pub act: Act,
}

/// All actions, in order of time.
pub(super) struct Schedule {
    pub happenings: Vec<Happening>,
    /// The faults, with their kinds, and the flows.
    pub items: BTreeMap<ScheduleItem, Option<FaultKind>>,
    /// The links that stay cut, each by one fault.
    pub lasting: Vec<(ScheduleItem, LinkId)>,
    /// The time when all faults are over.
    pub end: Duration,
    /// The fault in which an unknown host appears: only one, since the host's link is cut for it.
    newcomer: Option<ScheduleItem>,
}

impl Schedule {
    /// Draws the schedule between two times.
    pub fn draw(
        net: &Net,
        seed: u64,
        faults: &Faults,
        flows: usize,
        from: Duration,
        to: Duration,
    ) -> Self {
        let mut schedule = Self {
            happenings: Vec::new(),
            items: BTreeMap::new(),
            lasting: Vec::new(),
            end: to,
            newcomer: None,
        };
        let kinds = swarm(seed, &faults.kinds);
        let has_newcomer = kinds.iter().any(|kind| kind.has_newcomer());
        let newcomer = has_newcomer.then(|| draw_newcomer(net, seed));
        let count = Draw::of(seed, "faults").within(0..=faults.most as u64);
        let faults = (0..count as usize).filter_map(|number| {
            let kind = kind_of(seed, number, &kinds)?;
            Some((ScheduleItem::Fault(number), Some(kind)))
        });
        let flows = (0..flows).map(|number| (ScheduleItem::Flow(number), None));
        for (item, kind) in faults.chain(flows) {
            schedule.items.insert(item, kind);
            let mut drawing = Drawing {
                net,
                draw: Draw::of(seed, &item.to_string()),
                from,
                to,
                item,
                newcomer,
                schedule: &mut schedule,
            };
            match kind {
                Some(kind) => drawing.fault(kind),
                None => drawing.flow(),
            }
        }
        schedule.announce_moved_hosts();
        schedule.happenings.sort_by_key(|happening| happening.at);
        schedule
    }

    /// Makes hosts that have moved silently announce themselves again when all switches are back: entries of an earlier
    /// controller may forward their packets, so that their new locations are not learnt.
    fn announce_moved_hosts(&mut self) {
        let happenings = self.happenings.iter();
        let moved: Vec<_> = happenings
            .filter_map(|happening| match happening.act {
                Act::MoveSilently(host, _) => Some((happening.item, host)),
                _ => None,
            })
            .collect();
        if !moved.is_empty() {
            self.end += LONGEST_RETURN;
        }
        for (item, host) in moved {
            self.happenings.push(Happening {
                at: self.end,
                item,
                act: Act::Announce(host),
            });
        }
    }

    /// Returns the hosts whose actions a network may block.
    pub fn offenders(&self) -> BTreeSet<HostId> {
        let happenings = self.happenings.iter();
        happenings
            .filter_map(|happening| happening.act.offender())
            .collect()
    }

    /// Returns the hosts that are made to request many addresses.
    pub fn provoked(&self) -> BTreeSet<HostId> {
        let happenings = self.happenings.iter();
        happenings
            .filter_map(|happening| happening.act.provoked())
            .collect()
    }

    /// Leaves out claims to the addresses of hosts that are hostile in other faults: a host that is blocked for that does not
    /// defend its addresses.
    pub fn spare_blocked(&mut self) {
        let offenders = self.offenders();
        self.happenings.retain(|happening| {
            let defender = happening.act.defender();
            defender.is_none_or(|defender| !offenders.contains(&defender))
        });
    }

    /// Returns `true` if any fault interrupts hosts' traffic.
    pub fn has_accidents(&self) -> bool {
        let mut kinds = self.items.values().flatten();
        kinds.any(|kind| kind.is_accident() && *kind != FaultKind::FullTable)
    }

    /// Keeps only these items. The end stays unchanged: later draws must not depend on the items left out.
    pub fn keep(&mut self, only: &BTreeSet<ScheduleItem>) {
        self.items.retain(|item, _| only.contains(item));
        self.happenings
            .retain(|happening| only.contains(&happening.item));
        self.lasting.retain(|(item, _)| only.contains(item));
    }
}

/// Returns the kinds of faults of a run, each included by a coin toss. A few kinds reveal failures that many together hide.
fn swarm(seed: u64, kinds: &[FaultKind]) -> Vec<FaultKind> {
    let has = |kind: &&FaultKind| Draw::of(seed, &format!("has {kind}")).below(2) == 0;
    kinds.iter().filter(has).copied().collect()
}

/// Returns the kind of a fault: the one that draws highest, so that a new kind replaces some faults and changes no others.
fn kind_of(seed: u64, number: usize, kinds: &[FaultKind]) -> Option<FaultKind> {
    let height = |kind: &&FaultKind| Draw::of(seed, &format!("fault {number} as {kind}")).number();
    kinds.iter().max_by_key(height).copied()
}

/// Returns the host that appears in faults with an unknown host. No other host claims its address: while its link is cut, it
/// cannot defend it.
fn draw_newcomer(net: &Net, seed: u64) -> HostId {
    let mut draw = Draw::of(seed, "newcomer");
    HostId(draw.below(net.hosts().len() as u64) as u32)
}

/// A fault or flow being drawn.
struct Drawing<'a> {
    net: &'a Net,
    draw: Draw,
    from: Duration,
    to: Duration,
    item: ScheduleItem,
    newcomer: Option<HostId>,
    schedule: &'a mut Schedule,
}

impl Drawing<'_> {
    fn fault(&mut self, kind: FaultKind) {
        let at = self.time();
        let back = self.later(at);
        match kind {
            FaultKind::Cut => {
                let link = self.link();
                self.put(at, Act::Cut(link));
                self.put(back, Act::Repair(link));
            }
            FaultKind::LastingCut => {
                let link = self.link();
                self.put(at, Act::Cut(link));
                self.schedule.lasting.push((self.item, link));
            }
            FaultKind::Flap => self.flap(at),
            FaultKind::Loss => {
                let link = self.link();
                let percent = self.draw.within(1..=50);
                self.put(at, Act::SetLoss(link, percent as f64 / 100.0));
                self.put(back, Act::SetLoss(link, 0.0));
            }
            FaultKind::SwitchRestart => {
                let switch = self.switch();
                self.put(at, Act::StopSwitch(switch));
                self.put(back, Act::StartSwitch(switch));
            }
            FaultKind::ControllerRestart => {
                self.put(at, Act::StopController);
                self.put(back, Act::StartController);
            }
            FaultKind::Break => {
                let switch = self.switch();
                self.put(at, Act::Break(switch));
            }
            FaultKind::Stall => {
                let switch = self.switch();
                let time = self.lasting(Duration::from_millis(1), Duration::from_secs(3));
                self.put(at, Act::Stall(switch, time));
            }
            FaultKind::HostMove => {
                let (host, to) = (self.host(), self.switch());
                self.put(at, Act::Move(host, to));
            }
            FaultKind::SilentMove => {
                let (host, to) = (self.host(), self.switch());
                self.put(at, Act::MoveSilently(host, to));
                self.put(at, Act::Announce(host));
            }
            FaultKind::DuplicateId => {
                let switch = self.switch();
                let mut at = at;
                for _ in 0..self.draw.within(1..=3) {
                    self.put(at, Act::ConnectImpostor(switch));
                    at += self.lasting(Duration::from_millis(10), Duration::from_secs(3));
                }
            }
            FaultKind::MalformedPeer => {
                let bytes = malformed::bytes(&mut self.draw);
                self.put(at, Act::ConnectStranger(bytes));
            }
            FaultKind::SecondController => {
                self.put(at, Act::StartSecondController);
                self.put(back, Act::StopSecondController);
            }
            FaultKind::OneWayLoss => {
                let (link, end) = (self.link(), self.draw.place(2));
                let lost = self.one_way_loss();
                self.put(at, Act::SetLossFrom(link, end, lost));
                self.put(back, Act::SetLossFrom(link, end, 0.0));
            }
            FaultKind::HalfOpen => {
                let switch = self.switch();
                let end = match self.draw.below(2) {
                    0 => LostEnd::OfSwitch,
                    _ => LostEnd::OfController,
                };
                self.put(at, Act::LoseEnd(switch, end));
            }
            FaultKind::Silence => {
                let switch = self.switch();
                let time = self.lasting(Duration::from_secs(16), LONGEST_SILENCE);
                self.put(at, Act::Stall(switch, time));
                self.schedule.end = self.schedule.end.max(at + time);
            }
            FaultKind::SlowSwitch => {
                let (switch, rate) = (self.switch(), self.draw.within(100..=20_000));
                self.put(at, Act::SetReadRate(switch, Some(rate)));
                self.put(back, Act::SetReadRate(switch, None));
            }
            FaultKind::FullTable => {
                let (switch, room) = (self.switch(), self.draw.below(4) as u32);
                self.put(at, Act::LeaveRoom(switch, Some(room)));
                self.put(back, Act::LeaveRoom(switch, None));
            }
            FaultKind::Refusal => {
                let switch = self.switch();
                self.put(at, Act::RefuseFlowMods(switch, true));
                self.put(back, Act::RefuseFlowMods(switch, false));
            }
            FaultKind::UnknownFlood => {
                let host = self.host();
                let count = self.draw.within(6_000..=7_000) as u32;
                self.put_batches(at, count, |numbers| Act::SendToNobody(host, numbers));
            }
            FaultKind::Sweep => {
                let host = self.host();
                let count = self.draw.within(300..=600) as u32;
                self.put_batches(at, count, |numbers| Act::Sweep(host, numbers));
            }
            FaultKind::MadeUpSenders => {
                let (from, to) = (self.host(), self.host());
                let count = self.draw.within(1_500..=3_000) as u32;
                if from != to {
                    self.put(at, Act::Announce(to));
                    let at = at + KNOWN_AFTER;
                    self.put_batches(at, count, |numbers| Act::MakeUpSenders(from, to, numbers));
                }
            }
            FaultKind::SpoofedReplies => self.spoof(at),
            FaultKind::ForgedNeighbours => self.forge(at),
            FaultKind::Provocation => self.provoke(at),
            FaultKind::ContendedSweep => self.sweep_against_others(at),
            FaultKind::CrowdedPort => self.crowd(at),
            FaultKind::ClockJump => {
                let whose = self.draw.below(2).eq(&0).then(|| self.switch());
                let by = self.lasting(Duration::from_millis(10), Duration::from_secs(60));
                self.put(at, Act::JumpClock(whose, by));
            }
        }
    }

    /// Adds several actions, each for some of the numbers, before the end of the faults.
    fn put_batches(&mut self, at: Duration, count: u32, act: impl Fn(Range<u32>) -> Act) {
        for batch in 0..BATCHES {
            let numbers = batch * count / BATCHES..(batch + 1) * count / BATCHES;
            self.put(at + batch * BATCH_INTERVAL, act(numbers));
        }
    }

    /// Makes the owner known, and then another host claim its address.
    fn spoof(&mut self, at: Duration) {
        let (liar, victim, owner) = (self.host(), self.host(), self.host());
        if liar == victim || victim == owner || owner == liar || Some(owner) == self.newcomer {
            return;
        }
        self.put(at, Act::Announce(owner));
        self.put(at, Act::Ping(victim, owner, 1));
        for number in 1..=3 {
            let spoof = Act::SpoofReply {
                liar,
                victim,
                owner,
            };
            self.put(at + number * KNOWN_AFTER, spoof);
        }
    }

    /// Cuts and repairs a link in quick succession: some cuts are too short for any switch to notice, others are not.
    fn flap(&mut self, mut at: Duration) {
        let link = self.link();
        for _ in 0..self.draw.within(2..=5) {
            let [down, up] = [(); 2]
                .map(|()| self.lasting(Duration::from_millis(1), Duration::from_millis(300)));
            self.put(at, Act::Cut(link));
            self.put(at + down, Act::Repair(link));
            at += down + up;
        }
    }

    /// Draws the loss in one direction: all frames in half of the cases, otherwise some.
    fn one_way_loss(&mut self) -> f64 {
        match self.draw.below(2) {
            0 => 1.0,
            _ => self.draw.within(1..=50) as f64 / 100.0,
        }
    }

    fn flow(&mut self) {
        let at = self.time();
        let (from, to) = (self.host(), self.host());
        if from == to {
            return;
        }
        let act = match self.draw.below(4) {
            0 => Act::Datagrams(from, to, self.draw.within(1..=50)),
            1 => Act::Stream(from, to, self.draw.within(1..=40_000)),
            _ => Act::Ping(from, to, self.draw.within(1..=3) as u32),
        };
        self.put(at, act);
    }

    fn put(&mut self, at: Duration, act: Act) {
        self.schedule.happenings.push(Happening {
            at: at.min(self.to),
            item: self.item,
            act,
        });
    }

    fn time(&mut self) -> Duration {
        self.draw.duration(self.from..=self.to)
    }

    fn later(&mut self, at: Duration) -> Duration {
        self.draw.duration(at..=self.to)
    }

    fn lasting(&mut self, shortest: Duration, longest: Duration) -> Duration {
        self.draw.duration(shortest..=longest)
    }

    /// Draws a link between switches; a host's link if there is none.
    fn link(&mut self) -> LinkId {
        let all: Vec<_> = self.net.links().collect();
        let joins_switches = |link: &&LinkId| {
            let ends = self.net.ends(**link);
            ends.is_ok_and(|ends| ends.iter().all(|end| matches!(end, End::Switch(..))))
        };
        let between: Vec<_> = all.iter().filter(joins_switches).copied().collect();
        let is_hosts = between.is_empty() || self.draw.below(5) == 0;
        let from = if is_hosts { &all } else { &between };
        self.draw.choose(from).copied().unwrap_or(LinkId(0))
    }

    fn switch(&mut self) -> SwitchId {
        SwitchId(self.draw.below(self.net.switches().len() as u64) as u32)
    }

    fn host(&mut self) -> HostId {
        HostId(self.draw.below(self.net.hosts().len() as u64) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NetConfig;
    use urtica_topology::spec::TopologySpec;

    fn schedule(seed: u64, faults: &Faults) -> Schedule {
        let spec = TopologySpec::Ring { switches: 5 };
        let net = Net::new(&spec.plan().unwrap(), NetConfig::default()).unwrap();
        let [from, to] = [11, 21].map(Duration::from_secs);
        Schedule::draw(&net, seed, faults, 3, from, to)
    }

    /// Returns the descriptions of an item's actions in a schedule.
    fn told(schedule: &Schedule, item: ScheduleItem) -> Vec<String> {
        let happenings = schedule.happenings.iter();
        let of_item = happenings.filter(|happening| happening.item == item);
        of_item
            .map(|happening| format!("{:?} {:?}", happening.at, happening.act))
            .collect()
    }

    #[test]
    fn removing_a_fault_does_not_change_the_others() {
        for seed in 0..50 {
            let kinds = FaultKind::ALL.to_vec();
            let some = schedule(seed, &Faults { most: 4, kinds });
            let without_kind: Vec<_> = FaultKind::ALL[1..].to_vec();
            let fewer_kinds = schedule(
                seed,
                &Faults {
                    most: 4,
                    kinds: without_kind,
                },
            );
            for number in 0..4 {
                let fault = ScheduleItem::Fault(number);
                let is_cut =
                    kind_of(seed, number, &swarm(seed, FaultKind::ALL)) == Some(FaultKind::ALL[0]);
                assert!(is_cut || told(&some, fault) == told(&fewer_kinds, fault));
            }
            for number in 0..3 {
                let flow = ScheduleItem::Flow(number);
                assert_eq!(told(&some, flow), told(&fewer_kinds, flow));
                assert_eq!(
                    told(&some, flow),
                    told(&schedule(seed, &Faults::NONE), flow)
                );
            }
        }
    }

    #[test]
    fn runs_have_different_kinds_of_faults() {
        let swarms: Vec<_> = (0..200).map(|seed| swarm(seed, FaultKind::ALL)).collect();
        for kind in FaultKind::ALL {
            let having = swarms.iter().filter(|swarm| swarm.contains(kind)).count();
            assert!(
                (70..130).contains(&having),
                "{kind} is in {having} of 200 runs"
            );
        }
        let alone = |swarm: &&Vec<FaultKind>| swarm.len() <= FaultKind::ALL.len() / 3;
        assert!(
            swarms.iter().any(|swarm| alone(&swarm)),
            "few kinds come together, too"
        );
    }

    #[test]
    fn every_kind_occurs_in_some_run() {
        for &kind in FaultKind::ALL.iter().chain(FaultKind::HOSTILE) {
            let only = Faults {
                most: 4,
                kinds: vec![kind],
            };
            let happens = |seed| !schedule(seed, &only).happenings.is_empty();
            assert!((0..20).any(happens), "{kind}");
        }
    }
}
