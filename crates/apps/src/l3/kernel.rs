//! The interface to the part of the router that answers in the kernel.
//!
//! **What.** The program defines the interface ([`L3Kernel`]), and `urtica-offload` implements it. Whenever the program has forwarded a
//! packet or answered a request, it reports the facts that it used ([`L3Fact`]): they suffice to answer the next packet of that kind.
//! When one of them no longer holds, the program reports that ([`L3Kernel::forget`]).
//!
//! **Thread-safety.** The handler of a switch reports its facts, which are used once its connection is handed over. Any thread may
//! forget. A fact that is forgotten while it is being reported is not used.

use std::fmt::Debug;
use std::net::Ipv4Addr;
use urtica_controller::hold::Id;
use urtica_controller::{KernelHalf, ProgramId, SwitchInfo};
use urtica_services::{Hosts, HostsWatcher};
use urtica_topology::PortId;
use urtica_wire::{DatapathId, MacAddr, PortNo};

/// The kernel half of [`L3`](super::L3).
pub trait L3Kernel: Debug + Send + Sync {
    /// Opens a session for a switch, whose packet-outs this program sends; `None` if there is no space for one.
    fn open(
        &self,
        switch: &SwitchInfo,
        program: ProgramId,
        hosts: &Hosts,
    ) -> Option<Box<dyn L3Session>>;

    /// Resumes the session that an earlier program left for this switch, whose connection has this id at the holder; `None` if there is
    /// none. Its hosts are [restored](Hosts::restore). Its facts must be [checked](L3Session::retain) next.
    fn resume(
        &self,
        _switch: &SwitchInfo,
        _held: Id,
        _program: ProgramId,
        _hosts: &Hosts,
    ) -> Option<Box<dyn L3Session>> {
        None
    }

    /// Discards the facts of this switch, which may be wrong from now on. Must not wait.
    fn forget(&self, switch: DatapathId);
}

/// One switch's session.
pub trait L3Session: Send {
    /// Drops [forgotten](L3Kernel::forget) facts. Facts reported from now on were determined after this call.
    fn begin(&mut self);

    /// Adds a fact, which holds until the facts of the switch are [forgotten](L3Kernel::forget). If there is no space, later packets of the kind reach the program.
    fn tell(&mut self, fact: L3Fact);

    /// Forgets what is not so.
    fn retain(&mut self, _is_so: &mut dyn FnMut(L3Fact) -> bool) {}

    /// What answers on the switch's connection; `None` if nothing does now. Returns it once.
    fn kernel_half(&mut self) -> Option<Box<dyn KernelHalf>>;
}

/// What the program goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum L3Fact {
    /// A gateway's addresses: it is asked for the one, and packets to forward are sent to the other.
    Gateway {
        /// Its IPv4 address.
        address: Ipv4Addr,
        /// Its MAC address.
        mac: MacAddr,
    },
    /// A host that sends untagged frames is attached to this port.
    Host {
        /// Its MAC address.
        mac: MacAddr,
        /// The port.
        port: PortNo,
    },
    /// Packets for this address go to a host at a port of this switch, from a gateway.
    NextHop {
        /// The address.
        address: Ipv4Addr,
        /// The port.
        port: PortNo,
        /// The host's MAC address.
        dst: MacAddr,
        /// The gateway's.
        src: MacAddr,
        /// Whether the host has the address, and is no router to it.
        is_owner: bool,
    },
    /// The entries of this flow were sent to the switch, which speaks 1.3.
    Flow {
        /// The sender.
        src: MacAddr,
        /// The gateway that it sends to.
        gateway: MacAddr,
        /// Where to.
        dst: Ipv4Addr,
    },
}

/// Has what was told of a host's switch forgotten when something of it changes.
pub(super) struct Forgetting(pub std::sync::Arc<dyn L3Kernel>);

impl HostsWatcher for Forgetting {
    fn changed(&self, port: PortId) {
        self.0.forget(port.switch);
    }
}
