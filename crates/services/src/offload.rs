//! Where services meet what settles packets on their behalf before these reach the program.
//!
//! **What.** What services are asked over and over has the same answer until something changes: a probe says that a known link is
//! still there, a host that it is where it was, a request for an address that its owner still has it. A [`ServiceOffload`] settles
//! these by tables that the services keep up to date. A packet that tells something new reaches the services' handlers as ever, or
//! by [`SwitchHandler::settled`](urtica_controller::SwitchHandler::settled) where its answer does not depend on it.
//!
//! **How.** Services write the tables as they change their own, under the same locks, and ask when a host or link was heard only
//! where that matters: before it would be given up. So what stays the same costs the program nothing.
//!
//! **Cost.** Without one, a look at an empty cell for each change.

use crate::Host;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;
use urtica_controller::ProgramId;
use urtica_topology::PortId;
use urtica_wire::{DatapathId, MacAddr};

#[cfg(doc)]
use crate::{Discovery, NeighbourProxy};

/// Settles packets on behalf of services. This crate states what it needs; `urtica-offload` has one.
///
/// A table that is full takes no more, and the packets that it would settle reach the program: none of these functions fails.
///
/// **Laws.** What is settled has the effect that it would have in the program, and packets of a switch that are not settled reach the
/// program in order, after the events of those before them. Settled are at most
/// - frames that are equal to the probe expected at their port;
/// - well-formed probes, which are events;
/// - requests for the addresses of hosts, at host ports, whose sender contradicts nothing: answered as [`NeighbourProxy`] does, and
///   events where they tell something new about their sender;
/// - replies to the probes of [`Hosts`](crate::Hosts) that tell nothing new;
/// - IPv4 packets from one known host to another that come in where their sender is: sent on by the next hop, and events.
pub trait ServiceOffload: Send + Sync {
    /// This frame is about to be sent out of the port `probe.from`, and confirms a link if it arrives at `at`. Replaces what was
    /// expected there.
    fn expect_probe(&self, at: PortId, probe: LinkProbe, frame: &[u8]);

    /// Nothing is expected at this port any more.
    fn forget_probe(&self, at: PortId);

    /// The last expected probe that was settled at this port, and when; `None` before the first.
    fn settled_probe(&self, at: PortId) -> Option<(LinkProbe, Instant)>;

    /// These are all ports that may have hosts. To other ports nothing is answered.
    fn set_host_ports(&self, ports: &[PortId]);

    /// Hosts are probed from this address.
    fn set_our_mac(&self, mac: MacAddr);

    /// A host is known and at this port, with these addresses and no others that were not [taken away](Self::remove_address).
    /// Replaces what was known of it.
    fn set_host(&self, host: &Host);

    /// A host is not known any more.
    fn remove_host(&self, vlan: Option<u16>, mac: MacAddr);

    /// An address in this VLAN belongs to nobody, or is about to get another owner.
    fn remove_address(&self, vlan: Option<u16>, address: IpAddr);

    /// How many packets of a host were settled since it became known, and when the last was; `None` if none was.
    fn settled_of(&self, vlan: Option<u16>, mac: MacAddr) -> Option<(u64, Instant)>;

    /// Requests for addresses are answered from now on, on behalf of this program.
    fn answer_as(&self, program: ProgramId);

    /// For each pair of switches between which all shortest paths begin with the same link, that link's port and the other
    /// switch. Replaces what was set before.
    fn set_next_hops(&self, next_hops: &[(PortId, DatapathId)]);

    /// First packets of flows are sent on from now on, on behalf of this program, which installs their paths when it hears of them.
    fn forward_as(&self, program: ProgramId);

    /// What was settled so far, on all switches.
    fn counts(&self) -> SettledCounts;
}

/// What identifies a probe of [`Discovery`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkProbe {
    /// The port that sends it.
    pub from: PortId,
    /// Higher in each probe.
    pub stamp: u64,
}

/// How many packets were settled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SettledCounts {
    /// Expected probes. Those that were not expected are events, and count there.
    pub probes: u64,
    /// Requests for addresses that were answered.
    pub requests: u64,
}

/// What settles packets for a service, once it is set.
pub(crate) type Offload = std::sync::OnceLock<Arc<dyn ServiceOffload>>;

#[cfg(test)]
pub(crate) mod fake;
