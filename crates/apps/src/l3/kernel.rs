//! What a part of the router that answers in the kernel is told, and is asked for.
//!
//! **What.** The program knows nothing of the kernel: it states what it needs ([`L3Kernel`]), and `urtica-offload` has it. Whenever the
//! program has forwarded a packet or answered a question, it tells what it went by ([`L3Fact`]): the next of its kind can be answered
//! by that alone, and change nothing. When some of it is not so any more, the program says so ([`L3Kernel::forget`]).
//!
//! **Thread-safety.** Facts are told by the handler of their switch, and are used from when its connection is handed over. Any thread
//! forgets. A fact that was forgotten about while it was being told is not used.

use std::fmt::Debug;
use std::net::Ipv4Addr;
use urtica_controller::hold::Id;
use urtica_controller::{KernelHalf, ProgramId, SwitchInfo};
use urtica_services::{Hosts, HostsWatcher};
use urtica_topology::PortId;
use urtica_wire::{DatapathId, MacAddr, PortNo};

/// What answers in the kernel for [`L3`](super::L3).
pub trait L3Kernel: Debug + Send + Sync {
    /// A session for a switch, whose packet-outs this program sends; `None` where there is no room for one.
    fn open(
        &self,
        switch: &SwitchInfo,
        program: ProgramId,
        hosts: &Hosts,
    ) -> Option<Box<dyn L3Session>>;

    /// The session that an earlier program left for this switch, whose connection has this id at the holder; `None` where there is none
    /// to go on with. Hosts that it was told of are [restored](Hosts::restore). What was told must be [checked](L3Session::retain) next.
    fn resume(
        &self,
        _switch: &SwitchInfo,
        _held: Id,
        _program: ProgramId,
        _hosts: &Hosts,
    ) -> Option<Box<dyn L3Session>> {
        None
    }

    /// What was told of this switch may be wrong from now on. Must not wait.
    fn forget(&self, switch: DatapathId);
}

/// One switch's session.
pub trait L3Session: Send {
    /// Drops what was [forgotten](L3Kernel::forget) about. What is told from now on was looked up after this call.
    fn begin(&mut self);

    /// Something is so until the switch is [forgotten](L3Kernel::forget) about. Where there is no room for it, the program is asked again.
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
