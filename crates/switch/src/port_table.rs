//! The switch's ports: their back ends, and what went through them.

use crate::PortIo;
use std::collections::BTreeMap;
use std::io;
use std::time::Duration;
use urtica_pipeline::Packet;
use urtica_wire::packet::ethernet;
use urtica_wire::{Port, PortConfig, PortFeatures, PortNo, PortState, PortStats};

/// The shortest frame that Ethernet carries, without the check sequence.
const SHORTEST: usize = 60;

/// How many frames are taken from a port at a time.
pub(crate) const BURST: usize = 32;

/// What a counter that is not kept reads (1.3.5 section 7.3.5.6).
const NOT_KEPT: u64 = u64::MAX;

/// All ports, by their numbers.
#[derive(Default)]
pub(crate) struct PortTable {
    ports: BTreeMap<PortNo, SwitchPort>,
}

/// One port.
pub(crate) struct SwitchPort {
    pub io: Box<dyn PortIo>,
    counters: Counters,
    added: Duration,
    /// The back end returned an error; it is asked again once it has a link.
    failed: bool,
    /// Something was sent since the last flush.
    unflushed: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    rx_packets: u64,
    rx_bytes: u64,
    rx_dropped: u64,
    rx_errors: u64,
    tx_packets: u64,
    tx_bytes: u64,
    tx_dropped: u64,
}

impl PortTable {
    /// Adds a port; returns the back end that had its number before.
    pub fn insert(
        &mut self,
        port_no: PortNo,
        io: Box<dyn PortIo>,
        now: Duration,
    ) -> Option<Box<dyn PortIo>> {
        let port = SwitchPort {
            io,
            counters: Counters::default(),
            added: now,
            failed: false,
            unflushed: false,
        };
        self.ports.insert(port_no, port).map(|before| before.io)
    }

    /// Takes a port away.
    pub fn remove(&mut self, port_no: PortNo) -> Option<Box<dyn PortIo>> {
        self.ports.remove(&port_no).map(|port| port.io)
    }

    /// The ports, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (PortNo, &SwitchPort)> {
        self.ports.iter().map(|(&port_no, port)| (port_no, port))
    }

    /// The same, to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (PortNo, &mut SwitchPort)> {
        self.ports
            .iter_mut()
            .map(|(&port_no, port)| (port_no, port))
    }

    /// The port with this number.
    pub fn get(&self, port_no: PortNo) -> Option<&SwitchPort> {
        self.ports.get(&port_no)
    }

    /// The same, to be changed.
    pub fn get_mut(&mut self, port_no: PortNo) -> Option<&mut SwitchPort> {
        self.ports.get_mut(&port_no)
    }

    /// Sends a frame out of a port; nowhere where there is none. A frame that a popped tag has left shorter than Ethernet
    /// allows is padded with zeros (IEEE 802.3 section 4.2.3.3).
    pub fn send(&mut self, port_no: PortNo, frame: &[u8]) {
        let Some(port) = self.ports.get_mut(&port_no) else {
            return;
        };
        match frame.len() {
            SHORTEST.. => port.send(frame),
            length => {
                let mut padded = [0; SHORTEST];
                padded[..length].copy_from_slice(frame);
                port.send(&padded);
            }
        }
    }

    /// Sees to it that everything sent leaves.
    pub fn flush(&mut self) {
        for port in self.ports.values_mut().filter(|port| port.unflushed) {
            port.unflushed = false;
            port.io.flush();
        }
    }
}

impl SwitchPort {
    /// Takes in at most a burst of frames, as packets of `port_no`, or drops them unless `is_receiving`. Returns how
    /// many came.
    ///
    /// # Errors
    /// Where the back end does not work any more; it is then not asked again until [`SwitchPort::look`] finds a link.
    pub fn receive(
        &mut self,
        port_no: PortNo,
        is_receiving: bool,
        packets: &mut Vec<Packet>,
    ) -> io::Result<usize> {
        if self.failed {
            return Ok(0);
        }
        let counters = &mut self.counters;
        let received = self.io.receive(BURST, &mut |frame| {
            counters.rx_packets += 1;
            counters.rx_bytes += frame.len() as u64;
            if frame.len() < ethernet::HEADER_LEN {
                counters.rx_errors += 1;
            } else if is_receiving {
                packets.push(Packet::new(port_no, frame));
            } else {
                counters.rx_dropped += 1;
            }
        });
        if received.is_err() {
            counters.rx_errors += 1;
            self.failed = true;
        }
        received
    }

    fn send(&mut self, frame: &[u8]) {
        self.unflushed = true;
        if self.io.send(frame) {
            self.counters.tx_packets += 1;
            self.counters.tx_bytes += frame.len() as u64;
        } else {
            self.counters.tx_dropped += 1;
        }
    }

    /// Brings a description up to date with the back end; returns whether anything changed.
    pub fn look(&mut self, port: &mut Port) -> bool {
        let before = *port;
        let is_up = self.io.is_up();
        self.failed &= !is_up;
        port.state.set(PortState::LINK_DOWN, !is_up);
        set_liveness(port);
        set_speed(port, self.io.speed_kbps());
        *port != before
    }

    /// The port's description as it is when it is added.
    pub fn describe(&mut self, port_no: PortNo) -> Port {
        let mut port = Port::new(port_no, self.io.hw_addr(), self.io.name());
        self.look(&mut port);
        port
    }

    /// What went through the port.
    pub fn stats(&self, port_no: PortNo, now: Duration) -> PortStats {
        let age = now.saturating_sub(self.added);
        PortStats {
            port_no,
            rx_packets: self.counters.rx_packets,
            tx_packets: self.counters.tx_packets,
            rx_bytes: self.counters.rx_bytes,
            tx_bytes: self.counters.tx_bytes,
            rx_dropped: self.counters.rx_dropped,
            tx_dropped: self.counters.tx_dropped,
            rx_errors: self.counters.rx_errors,
            tx_errors: NOT_KEPT,
            rx_frame_err: NOT_KEPT,
            rx_over_err: NOT_KEPT,
            rx_crc_err: NOT_KEPT,
            collisions: NOT_KEPT,
            duration_sec: age.as_secs() as u32,
            duration_nsec: age.subsec_nanos(),
        }
    }
}

/// A port can take packets over from another (fast failover) while it has a link and is not switched off.
pub(crate) fn set_liveness(port: &mut Port) {
    let is_live =
        !port.state.contains(PortState::LINK_DOWN) && !port.config.contains(PortConfig::PORT_DOWN);
    port.state.set(PortState::LIVE, is_live);
}

fn set_speed(port: &mut Port, speed_kbps: u32) {
    port.curr_speed = speed_kbps;
    port.max_speed = port.max_speed.max(speed_kbps);
    port.curr = match speed_kbps {
        0 => PortFeatures::empty(),
        10_000 => PortFeatures::FD_10MB,
        100_000 => PortFeatures::FD_100MB,
        1_000_000 => PortFeatures::FD_1GB,
        10_000_000 => PortFeatures::FD_10GB,
        40_000_000 => PortFeatures::FD_40GB,
        100_000_000 => PortFeatures::FD_100GB,
        1_000_000_000 => PortFeatures::FD_1TB,
        _ => PortFeatures::OTHER,
    };
}
