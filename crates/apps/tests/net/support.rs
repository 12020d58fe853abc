//! Networks that run bundled programs.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;
use urtica_apps::Options;
use urtica_controller::Controller;
use urtica_net::simulate::{Scenario, simulate};
use urtica_net::watch::{Event, Violation, Watcher};
use urtica_net::{LinkId, Net, NetConfig};
use urtica_switch::{Forwarding, SwitchConfig};
use urtica_topology::spec::{Plan, TopologySpec};
use urtica_wire::packet::{Ethernet, ether_type};
use urtica_wire::{Action, BufferId, MacAddr, Message, PacketOut, PortNo, Version};

/// The usual programs for routing.
pub const APPS: &[&str] = &["discovery", "hosts", "routing"];

pub const fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// Returns options for deterministic runs.
pub fn options() -> Options {
    let mut options = Options::default();
    options.discovery.secret = Some([7; 32]);
    options
}

/// Starts a network of this topology with these apps, and runs it for a second, so that its links are known.
pub fn net_with(spec: &str, apps: &[&str], options: &Options) -> Net {
    let controller = urtica_apps::add_all(Controller::new(), apps, options).unwrap();
    net_with_controller(spec, controller)
}

/// Like [`net_with`], with this controller.
pub fn net_with_controller(spec: &str, controller: Controller) -> Net {
    let spec: TopologySpec = spec.parse().unwrap();
    net_of_plan(&spec.plan().unwrap(), controller)
}

/// Like [`net_with_controller`], with switches of these versions.
pub fn net_speaking(versions: &[Version], spec: &str, controller: Controller) -> Net {
    let spec: TopologySpec = spec.parse().unwrap();
    net_of_switches(&spec.plan().unwrap(), versions, controller)
}

/// Like [`net_with_controller`], for this plan.
pub fn net_of_plan(plan: &Plan, controller: Controller) -> Net {
    net_of_switches(plan, &Version::ALL, controller)
}

fn net_of_switches(plan: &Plan, versions: &[Version], controller: Controller) -> Net {
    // The set-up of machine code is slow in a test.
    let switch = SwitchConfig {
        forwarding: Forwarding::Plain,
        versions: versions.to_vec(),
        ..SwitchConfig::default()
    };
    let config = NetConfig {
        switch,
        ..NetConfig::default()
    };
    let mut net = Net::new(plan, config).unwrap();
    net.start_controller(controller).unwrap();
    net.run_for(ms(1_000));
    net
}

/// Runs a scenario with these seeds, and fails the test at the first that fails.
pub fn hold(scenario: &Scenario, seeds: impl IntoIterator<Item = u64>) {
    for seed in seeds {
        if let Err(failure) = simulate(scenario, seed) {
            panic!("{failure}");
        }
    }
}

/// Makes all switches refuse flow mods, or accept them again.
pub fn refuse_flow_mods(net: &mut Net, refuse: bool) {
    for switch in net.switches() {
        let switch = net.switch_mut(switch).unwrap().unwrap();
        switch.refuse_flow_mods(refuse);
    }
}

/// Returns the number of frames that a link has carried, in both directions.
pub fn frames_carried(net: &Net, link: LinkId) -> u64 {
    let links = net.link_counters(link).unwrap();
    links.iter().map(|link| link.arrived).sum()
}

/// Makes a switch process frames as if one of its ports had received them.
pub fn inject(net: &Net, switch: &str, port_no: u32, frames: impl IntoIterator<Item = Vec<u8>>) {
    let datapath_id = net.datapath_id(net.switch(switch).unwrap()).unwrap();
    for frame in frames {
        let message = Message::PacketOut(PacketOut {
            buffer_id: BufferId::NONE,
            in_port: PortNo(port_no),
            actions: vec![Action::output(PortNo::TABLE)].into(),
            data: &frame,
        });
        net.controller()
            .unwrap()
            .send(datapath_id, &message)
            .unwrap();
    }
}

/// Adds a tag of 802.1Q or 802.1ad after a frame's addresses.
pub fn tagged(tpid: u16, vid: u16, mut frame: Vec<u8>) -> Vec<u8> {
    let tag = [tpid.to_be_bytes(), vid.to_be_bytes()].concat();
    frame.splice(12..12, tag);
    frame
}

/// A counter of the packet-ins that the controller receives, except LLDP's.
#[derive(Clone, Default)]
pub struct PacketIns(Rc<Cell<usize>>);

impl PacketIns {
    /// Returns the number since the last call.
    pub fn take(&self) -> usize {
        self.0.take()
    }
}

impl Watcher for PacketIns {
    fn see(&mut self, _now: Duration, event: &Event<'_>) -> Result<(), Violation> {
        if let Event::ToController(_, mut bytes) = *event {
            while let Ok(Some((frame, rest))) = urtica_wire::split_frame(bytes) {
                if let Ok((_, Message::PacketIn(packet))) = Message::decode(frame) {
                    if packet.eth_type() != ether_type::LLDP {
                        self.0.set(self.0.get() + 1);
                    }
                }
                bytes = rest;
            }
        }
        Ok(())
    }
}

/// Builds a frame of at least 60 bytes.
pub fn frame(src: u64, dst: u64, ether_type: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    let header = Ethernet {
        dst: MacAddr::from_u64(dst),
        src: MacAddr::from_u64(src),
        ether_type,
    };
    header.write(&mut frame);
    frame.extend_from_slice(payload);
    frame.resize(frame.len().max(60), 0);
    frame
}
