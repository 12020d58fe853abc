//! The interface to the part of the router that answers in the kernel.
//!
//! **What.** The program defines the interface ([`L3Kernel`]), and `urtica-offload` implements it. Whenever the program has
//! forwarded a packet or answered a request, it reports the facts that it used ([`L3Fact`]): they suffice to answer the next
//! packet of that kind. When one of them no longer holds, the program reports that ([`L3Kernel::forget`]).
//!
//! **Thread-safety.** The handler of a switch reports its facts, which are used once its connection is handed over. Any
//! thread may forget facts. A fact that is forgotten while it is being reported is not used.

use std::fmt::Debug;
use std::net::Ipv4Addr;
use urtica_controller::hold::Id;
use urtica_controller::{KernelHalf, ProgramId, SwitchInfo};
use urtica_services::{Hosts, HostsWatcher};
use urtica_topology::PortId;
use urtica_wire::{DatapathId, MacAddr, PortNo};

/// The kernel half of [`L3`](super::L3).
pub trait L3Kernel: Debug + Send + Sync {
    /// Opens a session for a switch, whose packet-outs this program sends; `None` if there is no space for a session.
    fn open(
        &self,
        switch: &SwitchInfo,
        program: ProgramId,
        hosts: &Hosts,
    ) -> Option<Box<dyn L3Session>>;

    /// Resumes an earlier program's session for this switch, whose connection has this id at the holder; `None` if no such
    /// session exists. [Restores](Hosts::restore) its hosts. Its facts must be [checked](L3Session::retain) next.
    fn resume(
        &self,
        _switch: &SwitchInfo,
        _held: Id,
        _program: ProgramId,
        _hosts: &Hosts,
    ) -> Option<Box<dyn L3Session>> {
        None
    }

    /// Discards the facts of this switch, which may no longer hold. Must not wait.
    fn forget(&self, switch: DatapathId);
}

/// One switch's session.
pub trait L3Session: Send {
    /// Drops [forgotten](L3Kernel::forget) facts. Facts reported from now on were determined after this call.
    fn begin(&mut self);

    /// Adds a fact, which holds until the facts of the switch are [forgotten](L3Kernel::forget). If there is no space for it,
    /// the program receives later packets of the kind.
    fn tell(&mut self, fact: L3Fact);

    /// Forgets the facts for which `_is_so` returns `false`.
    fn retain(&mut self, _is_so: &mut dyn FnMut(L3Fact) -> bool) {}

    /// Returns the kernel half that answers on the switch's connection, once; `None` if there is none now.
    fn kernel_half(&mut self) -> Option<Box<dyn KernelHalf>>;
}

/// A fact on which the program's answers depend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum L3Fact {
    /// A gateway has these addresses. Hosts request the IPv4 address, and send packets to forward to the MAC address.
    Gateway {
        /// The gateway's IPv4 address.
        address: Ipv4Addr,
        /// The gateway's MAC address.
        mac: MacAddr,
    },
    /// A host that sends untagged frames is attached to this port.
    Host {
        /// The host's MAC address.
        mac: MacAddr,
        /// The port.
        port: PortNo,
    },
    /// A gateway sends packets for this address to a host at a port of this switch.
    NextHop {
        /// The address.
        address: Ipv4Addr,
        /// The port.
        port: PortNo,
        /// The host's MAC address.
        dst: MacAddr,
        /// The gateway's MAC address.
        src: MacAddr,
        /// Whether the host has the address itself, instead of being a router to it.
        is_owner: bool,
    },
    /// The entries of this flow were sent to the switch, which speaks 1.3.
    Flow {
        /// The sender.
        src: MacAddr,
        /// The gateway to which it sends.
        gateway: MacAddr,
        /// The destination.
        dst: Ipv4Addr,
    },
}

/// A watcher that forgets the facts of a host's switch when the host changes.
pub(super) struct Forgetting(pub std::sync::Arc<dyn L3Kernel>);

impl HostsWatcher for Forgetting {
    fn changed(&self, port: PortId) {
        self.0.forget(port.switch);
    }
}
