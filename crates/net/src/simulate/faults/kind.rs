//! Kinds of faults.

use std::fmt;
use std::str::FromStr;

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum FaultKind {
    /// A link is cut, and repaired later.
    Cut,
    /// A link is cut for good.
    LastingCut,
    /// A link is cut and repaired repeatedly, within a short time.
    Flap,
    /// A link loses frames for a while.
    Loss,
    /// A switch is switched off and, later, on.
    SwitchRestart,
    /// The controller ends, and another one starts later.
    ControllerRestart,
    /// A control channel's connection breaks.
    Break,
    /// A control channel stalls for less than the keep-alive time-out.
    Stall,
    /// A host moves to another switch.
    HostMove,
    /// A link loses frames in one direction, up to all of them, and no port reports it.
    OneWayLoss,
    /// One end of a control connection is lost, and the other does not notice.
    HalfOpen,
    /// A control channel stalls for longer than the keep-alive time-out.
    Silence,
    /// A switch reads its control channel slowly for a while.
    SlowSwitch,
    /// A switch's tables have space for only a few more entries, for a while.
    FullTable,
    /// A switch refuses all flow mods for a while.
    Refusal,
    /// The clock of a switch or of the controller jumps ahead.
    ClockJump,
    /// A host moves to another switch while its old port keeps carrier. The host announces itself.
    SilentMove,
    /// Another switch connects, repeatedly, with the datapath id of one of the network's switches.
    DuplicateId,
    /// A peer connects to the controller that does not speak OpenFlow, or disconnects in the middle of a message.
    MalformedPeer,
    /// A second controller, without programs, has sessions with all switches for a while.
    SecondController,
    /// A host sends thousands of packets to hosts that do not exist.
    UnknownFlood,
    /// A host requests hundreds of unused addresses.
    Sweep,
    /// A host sends packets with thousands of source addresses to another.
    MadeUpSenders,
    /// A host sends another ARP replies with a third one's address.
    SpoofedReplies,
    /// A host claims another's address, by ARP replies or neighbour advertisements, to one host or to all.
    ForgedNeighbours,
    /// A host pings another with hundreds of made-up source addresses, so that the other requests them.
    Provocation,
    /// A host pings thousands of addresses that no host has, while another host pings one that is not known yet.
    ContendedSweep,
    /// Thousands of made-up hosts appear at one port, and then a new host elsewhere.
    CrowdedPort,
}

/// The error for an unknown kind of fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown kind of fault '{name}'; expected one of: {}", names().join(", "))]
pub struct NoSuchKind {
    /// The unknown name.
    pub name: String,
}

impl FaultKind {
    /// All accidents, that is, all kinds except [`FaultKind::HOSTILE`].
    pub const ALL: &[Self] = &[
        Self::Cut,
        Self::LastingCut,
        Self::Flap,
        Self::Loss,
        Self::SwitchRestart,
        Self::ControllerRestart,
        Self::Break,
        Self::Stall,
        Self::HostMove,
        Self::OneWayLoss,
        Self::HalfOpen,
        Self::Silence,
        Self::SlowSwitch,
        Self::FullTable,
        Self::Refusal,
        Self::ClockJump,
        Self::SilentMove,
        Self::DuplicateId,
        Self::MalformedPeer,
        Self::SecondController,
    ];

    /// The kinds in which a host is hostile. They are separate because some programs do not protect hosts from each other, and
    /// because these runs take longer.
    pub const HOSTILE: &[Self] = &[
        Self::UnknownFlood,
        Self::Sweep,
        Self::MadeUpSenders,
        Self::SpoofedReplies,
        Self::ForgedNeighbours,
        Self::Provocation,
        Self::ContendedSweep,
        Self::CrowdedPort,
    ];

    fn accidents_and_hostile() -> impl Iterator<Item = Self> {
        Self::ALL.iter().chain(Self::HOSTILE).copied()
    }

    /// Returns `true` if this is an accident, which may interrupt hosts' traffic while it lasts.
    pub(in crate::simulate) fn is_accident(self) -> bool {
        !Self::HOSTILE.contains(&self)
    }

    /// Returns `true` if a host appears that the programs do not know.
    pub(super) fn has_newcomer(self) -> bool {
        matches!(self, Self::ContendedSweep | Self::CrowdedPort)
    }

    /// Returns `true` if the network is notified of the fault's end, so that it can recover at once. After other faults,
    /// switches back off before they reconnect, or a time-out has to expire.
    pub fn is_quick(self) -> bool {
        matches!(
            self,
            Self::Cut
                | Self::LastingCut
                | Self::Flap
                | Self::Loss
                | Self::HostMove
                | Self::MalformedPeer
                | Self::SecondController
        )
    }

    /// Returns the name on the command line, which also seeds its draws.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cut => "cut",
            Self::LastingCut => "lasting-cut",
            Self::Flap => "flap",
            Self::Loss => "loss",
            Self::SwitchRestart => "switch-restart",
            Self::ControllerRestart => "controller-restart",
            Self::Break => "break",
            Self::Stall => "stall",
            Self::HostMove => "host-move",
            Self::OneWayLoss => "one-way-loss",
            Self::HalfOpen => "half-open",
            Self::Silence => "silence",
            Self::SlowSwitch => "slow-switch",
            Self::FullTable => "full-table",
            Self::Refusal => "refusal",
            Self::ClockJump => "clock-jump",
            Self::SilentMove => "silent-move",
            Self::DuplicateId => "duplicate-id",
            Self::MalformedPeer => "malformed-peer",
            Self::SecondController => "second-controller",
            Self::UnknownFlood => "unknown-flood",
            Self::Sweep => "sweep",
            Self::MadeUpSenders => "made-up-senders",
            Self::SpoofedReplies => "spoofed-replies",
            Self::ForgedNeighbours => "forged-neighbours",
            Self::Provocation => "provocation",
            Self::ContendedSweep => "contended-sweep",
            Self::CrowdedPort => "crowded-port",
        }
    }
}

fn names() -> Vec<&'static str> {
    FaultKind::accidents_and_hostile()
        .map(FaultKind::name)
        .collect()
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for FaultKind {
    type Err = NoSuchKind;

    fn from_str(name: &str) -> Result<Self, NoSuchKind> {
        Self::accidents_and_hostile()
            .find(|kind| kind.name() == name)
            .ok_or_else(|| NoSuchKind {
                name: name.to_owned(),
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_names_and_lists_them_for_unknown_ones() {
        for kind in FaultKind::accidents_and_hostile() {
            assert_eq!(kind.to_string().parse(), Ok(kind));
        }
        let error = "moths".parse::<FaultKind>().unwrap_err().to_string();
        assert!(
            error.starts_with("unknown kind of fault 'moths'; expected one of: cut, "),
            "{error}"
        );
    }
}
