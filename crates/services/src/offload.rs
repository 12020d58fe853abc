//! The interface between services and an offload, which settles packets on their behalf before these reach the program.
//!
//! **What.** Services receive many packets whose answer stays constant until something changes: a probe confirms a known link,
//! a host is seen at its known port, a request for an address finds its known owner. A [`ServiceOffload`] settles these packets
//! by means of tables that the services keep up to date. A packet with news reaches the services' handlers as usual, or by
//! [`SwitchHandler::settled`](urtica_controller::SwitchHandler::settled) if its answer does not depend on the news.
//!
//! **How.** Services update the offload's tables together with their own, under the same locks. They query when a host or link
//! was last heard only when they would remove it otherwise. So a constant state costs the program nothing.
//!
//! **Cost.** Without an offload, each change checks an empty cell.

use crate::Host;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;
use urtica_controller::ProgramId;
use urtica_topology::PortId;
use urtica_wire::{DatapathId, MacAddr};

#[cfg(doc)]
use crate::{Discovery, NeighbourProxy};

/// Settles packets on behalf of services. This crate defines the interface; `urtica-offload` implements it.
///
/// These functions never fail: if a table is full, the packets that it would settle reach the program.
///
/// **Laws.** A settled packet has the effect that it would have in the program, and packets of a switch that are not
/// settled reach the program in order, after the events of the packets before them. Only the following may be settled:
/// - frames that are equal to the probe expected at their port;
/// - well-formed probes, which are events;
/// - requests for the addresses of hosts, at host ports, whose sender contradicts nothing: answered as by
///   [`NeighbourProxy`], and events if they have news about their sender;
/// - replies to the probes of [`Hosts`](crate::Hosts) without news;
/// - IPv4 packets from one known host to another that arrive at the sender's port: forwarded by the next hop, and
///   events.
pub trait ServiceOffload: Send + Sync {
    /// Sets the probe expected at `at`: the port `probe.from` is about to send this frame, which confirms a link if it arrives
    /// there. Replaces the earlier one.
    fn expect_probe(&self, at: PortId, probe: LinkProbe, frame: &[u8]);

    /// Removes the probe expected at this port.
    fn forget_probe(&self, at: PortId);

    /// Returns the last expected probe that was settled at this port, and when; `None` before the first.
    fn settled_probe(&self, at: PortId) -> Option<(LinkProbe, Instant)>;

    /// Sets all ports that may have hosts. Requests from other ports are not answered.
    fn set_host_ports(&self, ports: &[PortId]);

    /// Sets the address from which hosts are probed.
    fn set_our_mac(&self, mac: MacAddr);

    /// Sets the location and addresses of a known host. Its other addresses have been [removed](Self::remove_address). Replaces
    /// earlier information on the host.
    fn set_host(&self, host: &Host);

    /// Removes a host.
    fn remove_host(&self, vlan: Option<u16>, mac: MacAddr);

    /// Removes an address of this VLAN that no host has any longer, or that will get another owner.
    fn remove_address(&self, vlan: Option<u16>, address: IpAddr);

    /// Returns the number of a host's packets that were settled since it became known, and when the last was; `None` if
    /// there were none.
    fn settled_of(&self, vlan: Option<u16>, mac: MacAddr) -> Option<(u64, Instant)>;

    /// Answers requests for addresses on behalf of this program from now on.
    fn answer_as(&self, program: ProgramId);

    /// Sets the next hops: for each pair of switches whose shortest paths all start with one link, that link's port and
    /// the other switch. Replaces earlier ones.
    fn set_next_hops(&self, next_hops: &[(PortId, DatapathId)]);

    /// Forwards first packets of flows on behalf of this program from now on. The program installs their paths when it receives
    /// the events.
    fn forward_as(&self, program: ProgramId);

    /// Returns the numbers of settled packets so far, on all switches.
    fn counts(&self) -> SettledCounts;

    /// Returns, once, the hosts of this switch that an earlier program had set, if the switch's connection continues in this
    /// program. The caller sets or removes each of them. The default is none.
    fn take_kept_hosts(&self, _switch: DatapathId) -> Vec<KeptHost> {
        Vec::new()
    }
}

/// A host that an earlier program had [set](ServiceOffload::set_host).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptHost {
    /// Its VLAN, if any.
    pub vlan: Option<u16>,
    /// Its MAC address.
    pub mac: MacAddr,
    /// Its port.
    pub attached: PortId,
    /// Its addresses.
    pub addresses: Vec<IpAddr>,
    /// Whether it is a router.
    pub is_router: bool,
}

/// The identity of a probe of [`Discovery`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkProbe {
    /// The port that sends it.
    pub from: PortId,
    /// Increases with each probe.
    pub stamp: u64,
}

/// Numbers of settled packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SettledCounts {
    /// Expected probes. Other probes are events, and are counted as such.
    pub probes: u64,
    /// Requests for addresses that were answered.
    pub requests: u64,
}

/// The offload of a service, once it is set.
pub(crate) type Offload = std::sync::OnceLock<Arc<dyn ServiceOffload>>;

#[cfg(test)]
pub(crate) mod fake;
