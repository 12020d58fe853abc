//! What can happen at a time, and how it is told.

use crate::names::Names;
use crate::{CableId, HostId, SwitchId};
use std::time::Duration;

/// Something that happens at a time.
#[derive(Clone, Debug)]
pub(in crate::simulate) enum Act {
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
