//! Actions of a schedule, and their descriptions.

use super::forgery::Forgery;
use crate::names::Names;
use crate::{HostId, LinkId, LostEnd, SwitchId};
use std::ops::Range;
use std::time::Duration;

/// An action at a time.
#[derive(Clone, Debug)]
pub(in crate::simulate) enum Act {
    Cut(LinkId),
    Repair(LinkId),
    SetLoss(LinkId, f64),
    StopSwitch(SwitchId),
    StartSwitch(SwitchId),
    StopController,
    StartController,
    Move(HostId, SwitchId),
    MoveSilently(HostId, SwitchId),
    Announce(HostId),
    ConnectImpostor(SwitchId),
    ConnectStranger(Vec<u8>),
    StartSecondController,
    StopSecondController,
    SetLossFrom(LinkId, usize, f64),
    LoseEnd(SwitchId, LostEnd),
    SetReadRate(SwitchId, Option<u64>),
    /// Limits the number of further entries, or removes the limit.
    LeaveRoom(SwitchId, Option<u32>),
    RefuseFlowMods(SwitchId, bool),
    /// The switch's clock, or the controller's if `None`.
    JumpClock(Option<SwitchId>, Duration),
    Break(SwitchId),
    Stall(SwitchId, Duration),
    Ping(HostId, HostId, u32),
    Datagrams(HostId, HostId, u64),
    Stream(HostId, HostId, u64),
    /// The host sends packets to the hosts with these numbers, which do not exist.
    SendToNobody(HostId, Range<u32>),
    /// The host requests the unused addresses with these numbers.
    Sweep(HostId, Range<u32>),
    /// The first host sends packets to the second, with source addresses that have these numbers.
    MakeUpSenders(HostId, HostId, Range<u32>),
    SpoofReply {
        liar: HostId,
        victim: HostId,
        owner: HostId,
    },
    /// The first host claims an address; if it is the owner, it announces the address.
    Forge {
        liar: HostId,
        victim: HostId,
        owner: HostId,
        form: Forgery,
    },
    /// The first host pings the second, with source IP addresses that have these numbers.
    Provoke(HostId, HostId, Range<u32>),
    /// The host pings the addresses with these numbers, which no host has.
    PingNobody(HostId, Range<u32>),
    /// The first host pings the second, whose address must be resolved first.
    Resolve(HostId, HostId),
    /// Hosts with these numbers appear at the first host's port, and send packets to the second.
    Crowd(HostId, HostId, Range<u32>),
}

impl Act {
    /// Returns the host whose action a network may block.
    pub fn offender(&self) -> Option<HostId> {
        match *self {
            Self::Forge { liar, owner, .. } => (liar != owner).then_some(liar),
            Self::SpoofReply { liar, .. } => Some(liar),
            Self::SendToNobody(host, _)
            | Self::Sweep(host, _)
            | Self::MakeUpSenders(host, ..)
            | Self::Provoke(host, ..)
            | Self::PingNobody(host, _)
            | Self::Crowd(host, ..) => Some(host),
            _ => None,
        }
    }

    /// Returns the host that is made to request many addresses.
    pub fn provoked(&self) -> Option<HostId> {
        match *self {
            Self::Provoke(_, target, _) => Some(target),
            _ => None,
        }
    }

    /// Returns the host whose address is claimed by another.
    pub fn defender(&self) -> Option<HostId> {
        match *self {
            Self::Forge { owner, .. } | Self::SpoofReply { owner, .. } => Some(owner),
            _ => None,
        }
    }

    /// Describes the action.
    pub fn description(&self, names: &Names) -> String {
        match *self {
            Self::ConnectStranger(ref bytes) => {
                format!("a peer connects to the controller and sends {bytes:02x?}")
            }
            Self::ConnectImpostor(switch) => format!(
                "another switch connects with the datapath id of {}",
                names.switch(switch)
            ),
            Self::Cut(link) => format!("cut {}", names.link(link)),
            Self::Repair(link) => format!("repair {}", names.link(link)),
            Self::SetLoss(link, probability) => {
                format!(
                    "{} loses {:.0} in 100",
                    names.link(link),
                    100.0 * probability
                )
            }
            Self::StopSwitch(switch) => format!("switch {} off", names.switch(switch)),
            Self::StartSwitch(switch) => format!("switch {} on", names.switch(switch)),
            Self::StartSecondController => "start a second controller".to_owned(),
            Self::StopSecondController => "stop the second controller".to_owned(),
            Self::StopController => "stop the controller".to_owned(),
            Self::StartController => "start a controller".to_owned(),
            Self::Move(host, to) => {
                format!("{} moves to {}", names.host(host), names.switch(to))
            }
            Self::MoveSilently(host, to) => {
                let (host, to) = (names.host(host), names.switch(to));
                format!("{host} moves to {to}, and its port keeps its link")
            }
            Self::Announce(host) => format!("{} announces itself", names.host(host)),
            Self::SetLossFrom(link, end, probability) => format!(
                "{} loses {:.0} in 100 of the frames sent at its {} end",
                names.link(link),
                100.0 * probability,
                if end == 0 { "first" } else { "second" }
            ),
            Self::LoseEnd(switch, LostEnd::OfSwitch) => format!(
                "{} loses its end of its connection, unnoticed by the controller",
                names.switch(switch)
            ),
            Self::LoseEnd(switch, LostEnd::OfController) => format!(
                "the controller loses its end of the connection of {}, which does not notice",
                names.switch(switch)
            ),
            Self::SetReadRate(switch, Some(rate)) => {
                format!("{} reads {rate} bytes a second", names.switch(switch))
            }
            Self::SetReadRate(switch, None) => {
                format!("{} reads at full speed again", names.switch(switch))
            }
            Self::LeaveRoom(switch, Some(entries)) => format!(
                "the tables of {} have space for {entries} more entries",
                names.switch(switch)
            ),
            Self::LeaveRoom(switch, None) => {
                format!("the tables of {} have space again", names.switch(switch))
            }
            Self::RefuseFlowMods(switch, true) => {
                format!("{} refuses flow mods", names.switch(switch))
            }
            Self::RefuseFlowMods(switch, false) => {
                format!("{} accepts flow mods again", names.switch(switch))
            }
            Self::JumpClock(Some(switch), by) => {
                format!(
                    "the clock of {} jumps ahead by {by:?}",
                    names.switch(switch)
                )
            }
            Self::JumpClock(None, by) => {
                format!("the clock of the controller jumps ahead by {by:?}")
            }
            Self::Break(switch) => format!("break the connection of {}", names.switch(switch)),
            Self::Stall(switch, time) => format!(
                "stall the connection of {} for {time:?}",
                names.switch(switch)
            ),
            Self::SendToNobody(host, ref numbers) => format!(
                "{} sends {} packets to hosts that do not exist",
                names.host(host),
                numbers.len()
            ),
            Self::Sweep(host, ref numbers) => format!(
                "{} requests {} addresses that nobody has",
                names.host(host),
                numbers.len()
            ),
            Self::MakeUpSenders(from, to, ref numbers) => format!(
                "{} sends {} packets from {} addresses",
                names.host(from),
                names.host(to),
                numbers.len()
            ),
            Self::SpoofReply {
                liar,
                victim,
                owner,
            } => format!(
                "{} claims to {} that it has the address of {}",
                names.host(liar),
                names.host(victim),
                names.host(owner)
            ),
            Self::Forge {
                liar,
                victim,
                owner,
                form,
            } => format!(
                "{} claims to {} by {form} that it has the address of {}",
                names.host(liar),
                if form.is_for_all() {
                    "all"
                } else {
                    names.host(victim)
                },
                names.host(owner)
            ),
            Self::Provoke(from, to, ref numbers) => format!(
                "{} pings {} from {} made-up addresses",
                names.host(from),
                names.host(to),
                numbers.len()
            ),
            Self::PingNobody(host, ref numbers) => format!(
                "{} pings {} addresses that nobody has",
                names.host(host),
                numbers.len()
            ),
            Self::Resolve(from, to) => {
                format!(
                    "{} pings {} for the first time",
                    names.host(from),
                    names.host(to)
                )
            }
            Self::Crowd(host, to, ref numbers) => format!(
                "{} hosts appear at the port of {} and send something to {}",
                numbers.len(),
                names.host(host),
                names.host(to)
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
