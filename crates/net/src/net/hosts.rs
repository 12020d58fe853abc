//! Hosts: their frames, their timers, and their counters.

use super::{Net, NetError};
use crate::frame::Frame;
use crate::host::HostCounters;
use crate::kernel::{Due, to_ns};
use crate::{HostId, LinkId};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;
use std::time::Duration;
use urtica_wire::MacAddr;

/// The time between the announcements of different hosts.
const STAGGER: Duration = Duration::from_micros(100);

/// The VLANs that hosts can be in.
const VLANS: RangeInclusive<u16> = 1..=4094;

impl Net {
    /// Returns a host's name.
    ///
    /// # Errors
    /// [`NetError::NoSuchId`].
    pub fn host_name(&self, host: HostId) -> Result<&str, NetError> {
        self.check_host(host)?;
        Ok(&self.hosts[host.place()].host.name)
    }

    /// Returns a host's addresses.
    ///
    /// # Errors
    /// [`NetError::NoSuchId`].
    pub fn host_addresses(&self, host: HostId) -> Result<(MacAddr, Ipv4Addr), NetError> {
        self.check_host(host)?;
        let host = &self.hosts[host.place()].host;
        Ok((host.mac(), host.ipv4()))
    }

    /// Returns a host's link-local address.
    ///
    /// # Errors
    /// [`NetError::NoSuchId`].
    pub(crate) fn host_ipv6(&self, host: HostId) -> Result<Ipv6Addr, NetError> {
        self.check_host(host)?;
        Ok(self.hosts[host.place()].host.ipv6())
    }

    /// Returns a host's link.
    ///
    /// # Errors
    /// [`NetError::NoSuchId`].
    pub(crate) fn host_link(&self, host: HostId) -> Result<LinkId, NetError> {
        self.check_host(host)?;
        Ok(self.hosts[host.place()].link)
    }

    /// Stops all pings and flows. Hosts still answer, but send nothing else.
    pub fn stop_flows(&mut self) {
        for attached in &mut self.hosts {
            attached.host.stop_flows();
        }
    }

    /// Returns the counters of a host.
    ///
    /// # Errors
    /// [`NetError::NoSuchId`].
    pub fn host_counters(&self, host: HostId) -> Result<HostCounters, NetError> {
        self.check_host(host)?;
        Ok(self.hosts[host.place()].host.counters)
    }

    /// Returns a host's VLAN; `None` if its frames are untagged.
    ///
    /// # Errors
    /// [`NetError::NoSuchId`].
    pub fn vlan(&self, host: HostId) -> Result<Option<u16>, NetError> {
        self.check_host(host)?;
        Ok(self.hosts[host.place()].host.vlan())
    }

    /// Puts a host into a VLAN, from 1 to 4094: its frames are tagged from then on, and it ignores frames of other VLANs.
    /// Switches forward its frames like any others.
    ///
    /// # Errors
    /// [`NetError::NoSuchId`], [`NetError::NoVlan`].
    pub fn set_vlan(&mut self, host: HostId, vlan: Option<u16>) -> Result<(), NetError> {
        self.check_host(host)?;
        if let Some(vid) = vlan.filter(|vid| !VLANS.contains(vid)) {
            return Err(NetError::NoVlan(vid));
        }
        self.hosts[host.place()].host.set_vlan(vlan);
        Ok(())
    }

    /// Makes a host announce itself, as virtual machines do when they have moved.
    ///
    /// # Errors
    /// [`NetError::NoSuchId`].
    pub fn announce_host(&mut self, host: HostId) -> Result<(), NetError> {
        self.check_host(host)?;
        self.hosts[host.place()].host.announce(&mut self.outbox);
        self.settle_host(host);
        Ok(())
    }

    /// Makes every host announce itself, so that it is known before it is looked up.
    pub fn announce_hosts(&mut self) {
        for host in self.hosts() {
            self.hosts[host.place()].host.announce(&mut self.outbox);
            self.settle_host(host);
            self.run_for(STAGGER);
        }
    }

    /// Makes a host send a frame that starts with its Ethernet header, with any addresses.
    ///
    /// # Errors
    /// [`NetError::NoSuchId`].
    pub fn send_frame(&mut self, host: HostId, bytes: &[u8]) -> Result<(), NetError> {
        self.check_host(host)?;
        self.outbox.send(|frame| frame.extend_from_slice(bytes));
        self.settle_host(host);
        Ok(())
    }

    pub(super) fn check_host(&self, host: HostId) -> Result<(), NetError> {
        match host.place() < self.hosts.len() {
            true => Ok(()),
            false => Err(NetError::NoSuchId {
                kind: "host",
                id: host.0,
            }),
        }
    }

    /// Handles a frame that has reached a host.
    pub(super) fn deliver_to_host(&mut self, host: HostId, frame: Frame) {
        let now = self.now();
        self.hosts[host.place()]
            .host
            .handle(&frame, now, &mut self.outbox);
        self.outbox.spare.put(frame);
        self.settle_host(host);
    }

    /// Handles a host's time-outs.
    pub(super) fn handle_host_timeout(&mut self, host: HostId) {
        let now = self.now();
        let attached = &mut self.hosts[host.place()];
        if attached.due_ns <= self.kernel.now_ns {
            attached.due_ns = u64::MAX;
            attached.host.handle_timeout(now, &mut self.outbox);
            self.settle_host(host);
        }
    }

    /// Schedules a host's next timer.
    pub(super) fn wake_host(&mut self, host: HostId) {
        let attached = &mut self.hosts[host.place()];
        if let Some(next) = attached.host.next_timeout() {
            let next_ns = to_ns(next).max(self.kernel.now_ns);
            if next_ns < attached.due_ns {
                attached.due_ns = next_ns;
                self.kernel.put(next_ns, Due::Host(host));
            }
        }
    }

    /// Sends a host's frames.
    pub(super) fn settle_host(&mut self, host: HostId) {
        if !self.outbox.is_empty() {
            let link = self.hosts[host.place()].link;
            for frame in self.outbox.take() {
                self.send(link, 0, frame);
            }
        }
        self.wake_host(host);
    }
}
