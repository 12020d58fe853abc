//! Networks that run apps.

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

/// Routing as it is run.
pub const APPS: &[&str] = &["discovery", "hosts", "routing"];

pub const fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// Options under which a run can be repeated exactly.
pub fn options() -> Options {
    let mut options = Options::default();
    options.discovery.secret = Some([7; 32]);
    options
}

/// A network of this topology with these apps, after a second: its links are known.
pub fn net_with(spec: &str, apps: &[&str], options: &Options) -> Net {
    let controller = urtica_apps::add_all(Controller::new(), apps, options).unwrap();
    net_with_controller(spec, controller)
}

/// The same with a controller that was put together by hand.
pub fn net_with_controller(spec: &str, controller: Controller) -> Net {
    let spec: TopologySpec = spec.parse().unwrap();
    net_of_plan(&spec.plan().unwrap(), controller)
}

/// The same with switches that speak these versions.
pub fn net_speaking(versions: &[Version], spec: &str, controller: Controller) -> Net {
    let spec: TopologySpec = spec.parse().unwrap();
    net_of_switches(&spec.plan().unwrap(), versions, controller)
}

/// The same for a network that was planned by hand.
pub fn net_of_plan(plan: &Plan, controller: Controller) -> Net {
    net_of_switches(plan, &Version::ALL, controller)
}

fn net_of_switches(plan: &Plan, versions: &[Version], controller: Controller) -> Net {
    // Machine code takes long to set up in a test.
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

/// Runs what is drawn from these seeds, and ends the test with the first that fails.
pub fn hold(scenario: &Scenario, seeds: impl IntoIterator<Item = u64>) {
    for seed in seeds {
        if let Err(failure) = simulate(scenario, seed) {
            panic!("{failure}");
        }
    }
}

/// Has all switches refuse flow mods, or carry them out again.
pub fn refuse_flow_mods(net: &mut Net, refuse: bool) {
    for switch in net.switches() {
        let switch = net.switch_mut(switch).unwrap().unwrap();
        switch.refuse_flow_mods(refuse);
    }
}

/// How many frames a link has carried, both ways.
pub fn frames_carried(net: &Net, link: LinkId) -> u64 {
    let links = net.link_counters(link).unwrap();
    links.iter().map(|link| link.arrived).sum()
}

/// Has a switch treat frames as if they had come in by one of its ports.
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

/// The same frame with a tag after its addresses: 802.1Q's or 802.1ad's.
pub fn tagged(tpid: u16, vid: u16, mut frame: Vec<u8>) -> Vec<u8> {
    let tag = [tpid.to_be_bytes(), vid.to_be_bytes()].concat();
    frame.splice(12..12, tag);
    frame
}

/// How many packet-ins come to the controller, but for those of LLDP.
#[derive(Clone, Default)]
pub struct PacketIns(Rc<Cell<usize>>);

impl PacketIns {
    /// How many came since this was asked last.
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

/// A frame of at least 60 bytes.
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
