//! Substitutes for the tables if the programs were not built; they are never instantiated.

use crate::kernel::Kernel;
use std::convert::Infallible;
use std::io;
use std::net::IpAddr;
use std::time::Instant;
use urtica_controller::ProgramId;
use urtica_services::{Host, LinkProbe, ServiceOffload, SettledCounts};
use urtica_topology::PortId;
use urtica_wire::{DatapathId, MacAddr};

/// A type without values.
pub(super) struct Tables(Infallible);

impl Tables {
    /// Fails, since the programs were not built.
    pub fn open(_: &Kernel) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub fn keep_hosts(&self) {
        match self.0 {}
    }

    pub fn resume(&self, _: DatapathId) {
        match self.0 {}
    }
}

impl ServiceOffload for Tables {
    fn expect_probe(&self, _: PortId, _: LinkProbe, _: &[u8]) {
        match self.0 {}
    }

    fn forget_probe(&self, _: PortId) {
        match self.0 {}
    }

    fn settled_probe(&self, _: PortId) -> Option<(LinkProbe, Instant)> {
        match self.0 {}
    }

    fn set_host_ports(&self, _: &[PortId]) {
        match self.0 {}
    }

    fn set_our_mac(&self, _: MacAddr) {
        match self.0 {}
    }

    fn set_host(&self, _: &Host) {
        match self.0 {}
    }

    fn remove_host(&self, _: Option<u16>, _: MacAddr) {
        match self.0 {}
    }

    fn remove_address(&self, _: Option<u16>, _: IpAddr) {
        match self.0 {}
    }

    fn settled_of(&self, _: Option<u16>, _: MacAddr) -> Option<(u64, Instant)> {
        match self.0 {}
    }

    fn answer_as(&self, _: ProgramId) {
        match self.0 {}
    }

    fn set_next_hops(&self, _: &[(PortId, DatapathId)]) {
        match self.0 {}
    }

    fn forward_as(&self, _: ProgramId) {
        match self.0 {}
    }

    fn counts(&self) -> SettledCounts {
        match self.0 {}
    }
}
