//! A controller in each mode of `--offload`, and a switch of its that behaves.

use crate::packets::Packet;
use crate::peers::ask;
use crate::switch::{connect, join, silent_controller};
use std::net::TcpStream;
use std::time::Duration;
use urtica_apps::L2;
use urtica_controller::{Controller, Running, SwitchInfo};
use urtica_offload::ring::RingKernel;
use urtica_offload::{Driven, Kernel, LearningSwitch, Mode, Unavailable};
use urtica_services::{Discovery, DiscoveryConfig, Hosts, HostsConfig};
use urtica_wire::{DatapathId, Version};

/// All modes; the default first.
pub const MODES: [&str; 5] = ["none", "auto", "kernel", "ring", "driven"];

/// Starts a controller in this mode; if the machine does not accept the programs, prints a line, or fails with CI=true.
pub fn controller(mode: &str) -> Option<Running> {
    let prepared = prepare(mode);
    let reason = match prepared {
        Ok(controller) => {
            let address = "ptcp:0:127.0.0.1".parse().unwrap();
            let controller = controller.listen(address).shards(1);
            return Some(controller.start().unwrap());
        }
        Err(reason) => reason,
    };
    let is_ci = std::env::var("CI").is_ok_and(|ci| ci == "true");
    assert!(!is_ci, "{mode} cannot be tested here: {reason}");
    println!("skipped: {mode} cannot be tested here: {reason}");
    None
}

/// With the learning switch, and a kernel half at once for every switch.
fn prepare(mode: &str) -> Result<Controller, Unavailable> {
    let controller = silent_controller().kernel_half_after(Duration::ZERO, 0);
    let in_kernel = |mode| Ok::<_, Unavailable>(LearningSwitch::new(Kernel::start()?).mode(mode));
    Ok(match mode {
        "auto" => controller.program(in_kernel(Mode::Auto)?),
        "kernel" => controller.program(in_kernel(Mode::Kernel)?),
        "ring" => controller.input_rings(RingKernel::start()?).program(l2),
        "driven" => {
            let driven = Driven::start()?;
            let discovery = Discovery::new(DiscoveryConfig::default());
            let hosts = Hosts::new(&discovery, HostsConfig::default());
            discovery.offload(driven.offload());
            hosts.offload(driven.offload());
            let controller = controller.kernel_halves(driven).program(discovery);
            controller.program(hosts).program(l2)
        }
        _ => controller.program(l2),
    })
}

fn l2(_: &SwitchInfo) -> L2 {
    L2::default()
}

/// A switch that behaves.
pub struct Neighbour {
    socket: TcpStream,
}

impl Neighbour {
    pub fn join(controller: &Running, id: u64) -> Self {
        let mut socket = connect(controller);
        join(&mut socket, Version::Of13, id);
        assert!(controller.network().info(DatapathId(id)).is_some());
        Self { socket }
    }

    /// Each of its packets is flooded, or has a flow entry sent for it.
    pub fn is_served(&mut self, mode: &str) {
        for round in 0..20 {
            let packet = Packet::udp(1, 2 + round % 2);
            assert!(ask(&mut self.socket, &packet), "{mode}");
        }
    }
}
