//! A switch of the network, which can be switched off and on.

use crate::frame::{Frame, Spare};
use crate::port::{PortSpec, SwitchSide};
use crate::{Draw, LinkId};
use std::time::Duration;
use urtica_switch::{Description, Switch, SwitchConfig};
use urtica_wire::{DatapathId, MacAddr, PortNo};

/// A switch, its ports, and the links in them.
pub(crate) struct Node {
    pub name: String,
    pub datapath_id: DatapathId,
    pub ports: Vec<Port>,
    /// Set while the switch is on.
    pub powered: Option<Powered>,
    /// The number of starts; events of earlier starts are stale.
    pub lives: u16,
    /// The offset of the switch's clock from the network's.
    pub ahead: Duration,
    pub draw: Draw,
}

/// A port, and the link connected to it.
#[derive(Clone, Debug)]
pub(crate) struct Port {
    pub port_no: PortNo,
    pub plug: Option<Plug>,
    pub speed_kbps: u32,
}

/// The link of a port, and which of its ends is there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plug {
    pub link: LinkId,
    pub end: usize,
}

/// A switch that is on.
pub(crate) struct Powered {
    pub switch: Switch,
    pub side: SwitchSide,
    /// Whether its processing is scheduled.
    pub is_woken: bool,
}

impl Node {
    /// Creates a switch without ports, switched off.
    pub fn new(name: &str, datapath_id: DatapathId, draw: Draw) -> Self {
        Self {
            name: name.to_owned(),
            datapath_id,
            ports: Vec::new(),
            powered: None,
            lives: 0,
            ahead: Duration::ZERO,
            draw,
        }
    }

    /// Switches the switch on, with empty tables and no links.
    pub fn start(&mut self, config: &SwitchConfig, now: Duration) {
        let config = SwitchConfig {
            datapath_id: self.datapath_id,
            // For reproducible runs.
            hash_seed: config.hash_seed.or(Some(self.datapath_id.0)),
            description: Description {
                datapath: self.name.clone(),
                ..config.description.clone()
            },
            ..config.clone()
        };
        let specs: Vec<_> = self.ports.iter().map(|port| self.spec(port)).collect();
        let (side, back_ends) = SwitchSide::new(&specs);
        let mut switch = Switch::new(config);
        for (port, back_end) in self.ports.iter().zip(back_ends) {
            switch.add_port(port.port_no, back_end, now);
        }
        self.lives = self.lives.wrapping_add(1);
        self.powered = Some(Powered {
            switch,
            side,
            is_woken: false,
        });
    }

    /// Adds a port without a link. The switch may be on or off. Returns the port's index.
    pub fn add_port(&mut self, port: Port, now: Duration) -> usize {
        let spec = self.spec(&port);
        if let Some(powered) = &mut self.powered {
            let back_end = powered.side.add(&spec);
            powered.switch.add_port(port.port_no, back_end, now);
        }
        self.ports.push(port);
        self.ports.len() - 1
    }

    fn spec(&self, port: &Port) -> PortSpec {
        PortSpec {
            name: format!("{}-eth{}", self.name, port.port_no),
            hw_addr: self.hw_addr(port.port_no),
            speed_kbps: port.speed_kbps,
        }
    }

    /// Returns a locally administered address, unique in the network if datapath ids differ in the lower three bytes.
    fn hw_addr(&self, port_no: PortNo) -> MacAddr {
        let [.., a, b, c] = self.datapath_id.0.to_be_bytes();
        let [.., d, e] = port_no.0.to_be_bytes();
        MacAddr::new([0x0e, a, b, c, d, e])
    }
}

impl Powered {
    /// Processes all frames and messages that have arrived.
    pub fn poll(&mut self, now: Duration) {
        self.is_woken = false;
        while self.switch.poll_ports(now) {}
    }

    /// Appends the frames sent since the last call, with each port's index.
    pub fn take_sent(&mut self, frames: &mut Vec<(u32, Frame)>, spare: &mut Spare) {
        self.side.exchange(frames, spare);
    }
}
