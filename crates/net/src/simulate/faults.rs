//! What befalls a network, and what goes on in it meanwhile, drawn beforehand.

use super::Faults;
use crate::names::Names;
use crate::{CableId, Draw, End, HostId, Net, SwitchId};
use std::time::Duration;

/// Something that happens at a time.
#[derive(Clone, Debug)]
pub(super) enum Act {
    Cut(CableId),
    Repair(CableId),
    SetLoss(CableId, f64),
    StopSwitch(SwitchId),
    StartSwitch(SwitchId),
    StopController,
    StartController,
    Move(HostId, SwitchId),
    Break(SwitchId),
    Stall(SwitchId, Duration),
    Ping(HostId, HostId, u32),
    Datagrams(HostId, HostId, u64),
    Stream(HostId, HostId, u64),
}

/// All that happens, in order of time.
pub(super) struct Schedule {
    pub acts: Vec<(Duration, Act)>,
    /// How many faults there are.
    pub faults: usize,
    /// The cables that stay cut.
    pub lasting: Vec<CableId>,
}

/// A kind of fault.
#[derive(Clone, Copy)]
enum Kind {
    Cut,
    Flap,
    Loss,
    SwitchRestart,
    ControllerRestart,
    Break,
    Stall,
    HostMove,
}

impl Act {
    /// In words.
    pub fn tell(&self, names: &Names) -> String {
        match *self {
            Self::Cut(cable) => format!("cut {}", names.cable(cable)),
            Self::Repair(cable) => format!("repair {}", names.cable(cable)),
            Self::SetLoss(cable, probability) => {
                format!(
                    "{} loses {:.0} in 100",
                    names.cable(cable),
                    100.0 * probability
                )
            }
            Self::StopSwitch(switch) => format!("switch {} off", names.switch(switch)),
            Self::StartSwitch(switch) => format!("switch {} on", names.switch(switch)),
            Self::StopController => "stop the controller".to_owned(),
            Self::StartController => "start a controller".to_owned(),
            Self::Move(host, to) => {
                format!("{} moves to {}", names.host(host), names.switch(to))
            }
            Self::Break(switch) => format!("break the connection of {}", names.switch(switch)),
            Self::Stall(switch, time) => format!(
                "stall the connection of {} for {time:?}",
                names.switch(switch)
            ),
            Self::Ping(from, to, count) => format!(
                "{} pings {} {count} times",
                names.host(from),
                names.host(to)
            ),
            Self::Datagrams(from, to, count) => {
                format!(
                    "{} sends {} {count} datagrams",
                    names.host(from),
                    names.host(to)
                )
            }
            Self::Stream(from, to, bytes) => {
                format!(
                    "{} sends {} a stream of {bytes} bytes",
                    names.host(from),
                    names.host(to)
                )
            }
        }
    }
}

impl Schedule {
    /// Draws what happens between two times.
    pub fn draw(
        net: &Net,
        faults: &Faults,
        flows: usize,
        from: Duration,
        to: Duration,
        draw: &mut Draw,
    ) -> Self {
        let mut drawing = Drawing {
            net,
            draw,
            from,
            to,
            schedule: Self {
                acts: Vec::new(),
                faults: 0,
                lasting: Vec::new(),
            },
        };
        let kinds = kinds(faults);
        let count = drawing.draw.within(0..=faults.most as u64);
        for _ in 0..count {
            if let Some(&kind) = drawing.draw.choose(&kinds) {
                drawing.fault(kind, faults.lasting_cuts);
            }
        }
        (0..flows).for_each(|_| drawing.flow());
        let mut schedule = drawing.schedule;
        schedule.acts.sort_by_key(|(at, _)| *at);
        schedule
    }
}

fn kinds(faults: &Faults) -> Vec<Kind> {
    let all = [
        (faults.cuts, Kind::Cut),
        (faults.cuts, Kind::Flap),
        (faults.losses, Kind::Loss),
        (faults.switch_restarts, Kind::SwitchRestart),
        (faults.controller_restarts, Kind::ControllerRestart),
        (faults.channel_failures, Kind::Break),
        (faults.channel_failures, Kind::Stall),
        (faults.host_moves, Kind::HostMove),
    ];
    let wanted = all.into_iter().filter(|(is_wanted, _)| *is_wanted);
    wanted.map(|(_, kind)| kind).collect()
}

struct Drawing<'a> {
    net: &'a Net,
    draw: &'a mut Draw,
    from: Duration,
    to: Duration,
    schedule: Schedule,
}

impl Drawing<'_> {
    fn fault(&mut self, kind: Kind, may_last: bool) {
        self.schedule.faults += 1;
        let at = self.time();
        let back = self.later(at);
        match kind {
            Kind::Cut => self.cut(at, back, may_last),
            Kind::Flap => self.flap(at),
            Kind::Loss => {
                let cable = self.cable();
                let percent = self.draw.within(1..=50);
                self.put(at, Act::SetLoss(cable, percent as f64 / 100.0));
                self.put(back, Act::SetLoss(cable, 0.0));
            }
            Kind::SwitchRestart => {
                let switch = self.switch();
                self.put(at, Act::StopSwitch(switch));
                self.put(back, Act::StartSwitch(switch));
            }
            Kind::ControllerRestart => {
                self.put(at, Act::StopController);
                self.put(back, Act::StartController);
            }
            Kind::Break => {
                let switch = self.switch();
                self.put(at, Act::Break(switch));
            }
            Kind::Stall => {
                let switch = self.switch();
                let time = self
                    .draw
                    .duration(Duration::from_millis(1)..=Duration::from_secs(3));
                self.put(at, Act::Stall(switch, time));
            }
            Kind::HostMove => {
                let (host, to) = (self.host(), self.switch());
                self.put(at, Act::Move(host, to));
            }
        }
    }

    /// One cut in four lasts.
    fn cut(&mut self, at: Duration, back: Duration, may_last: bool) {
        let cable = self.cable();
        self.put(at, Act::Cut(cable));
        match may_last && self.draw.below(4) == 0 {
            true => self.schedule.lasting.push(cable),
            false => self.put(back, Act::Repair(cable)),
        }
    }

    /// Cuts and repairs in short order: some last for no switch's look at its links, some do.
    fn flap(&mut self, mut at: Duration) {
        let cable = self.cable();
        for _ in 0..self.draw.within(2..=5) {
            let mut step = || {
                self.draw
                    .duration(Duration::from_millis(1)..=Duration::from_millis(300))
            };
            let (down, up) = (step(), step());
            self.put(at, Act::Cut(cable));
            self.put(at + down, Act::Repair(cable));
            at += down + up;
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
        self.schedule.acts.push((at.min(self.to), act));
    }

    fn time(&mut self) -> Duration {
        self.draw.duration(self.from..=self.to)
    }

    fn later(&mut self, at: Duration) -> Duration {
        self.draw.duration(at..=self.to)
    }

    /// One between switches, mostly; where there is none, a host's.
    fn cable(&mut self) -> CableId {
        let all: Vec<_> = self.net.cables().collect();
        let joins_switches = |cable: &&CableId| {
            let ends = self.net.ends(**cable);
            ends.is_ok_and(|ends| ends.iter().all(|end| matches!(end, End::Switch(..))))
        };
        let between: Vec<_> = all.iter().filter(joins_switches).copied().collect();
        let is_hosts = between.is_empty() || self.draw.below(5) == 0;
        let from = if is_hosts { &all } else { &between };
        self.draw.choose(from).copied().unwrap_or(CableId(0))
    }

    fn switch(&mut self) -> SwitchId {
        SwitchId(self.draw.below(self.net.switches().len() as u64) as u32)
    }

    fn host(&mut self) -> HostId {
        HostId(self.draw.below(self.net.hosts().len() as u64) as u32)
    }
}
