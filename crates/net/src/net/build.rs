//! Builds a network from a plan.

use super::{Attached, Control, Interrupt, Net, NetError};
use crate::channel::{Channel, ChannelConfig};
use crate::host::{Host, Outbox};
use crate::kernel::Kernel;
use crate::link::Link;
use crate::node::{Node, Plug, Port};
use crate::{End, HostId, LinkId, SwitchId};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use urtica_switch::SwitchConfig;
use urtica_topology::PortId;
use urtica_topology::spec::{LinkProperties, Plan};
use urtica_wire::DatapathId;

/// The settings of a network that are not in its plan.
#[derive(Clone, Debug)]
pub struct NetConfig {
    /// The seed of all randomness.
    pub seed: u64,
    /// The switches' configuration, except datapath ids and names, which are from the plan.
    pub switch: SwitchConfig,
    /// The time from the first frame that finds a switch idle until the switch processes all frames that have arrived. It is
    /// the switch's share of each hop's latency. At least a nanosecond.
    pub switch_delay: Duration,
    /// The time in which the switches at both ends notice that a link came up or went down.
    pub carrier_delay: Duration,
    /// The queue of a link with limited bandwidth, in bytes; excess frames are dropped.
    pub queue_bytes: u64,
    /// The control channels.
    pub channel: ChannelConfig,
    /// The links to hosts; links between switches are in the plan.
    pub host_links: LinkProperties,
}

impl Default for NetConfig {
    /// Seed 0; a switch delay of 10 microseconds, and a link's state noticed within a millisecond; link queues of half a
    /// megabyte.
    fn default() -> Self {
        Self {
            seed: 0,
            switch: SwitchConfig::default(),
            switch_delay: Duration::from_micros(10),
            carrier_delay: Duration::from_millis(1),
            queue_bytes: 512 << 10,
            channel: ChannelConfig::default(),
            host_links: LinkProperties::default(),
        }
    }
}

impl Net {
    /// Creates the network of this plan, with all switches on, all links up, and without a controller.
    ///
    /// # Errors
    /// [`NetError::Plan`] if the plan contradicts itself.
    pub fn new(plan: &Plan, config: NetConfig) -> Result<Self, NetError> {
        let mut net = Self {
            kernel: Kernel::new(config.seed),
            config,
            links: Vec::new(),
            nodes: Vec::new(),
            hosts: Vec::new(),
            channels: Vec::new(),
            control: Control::none(),
            second: None,
            pings_over_ipv6: false,
            peers: Vec::new(),
            pace: None,
            interrupt: Interrupt::default(),
            outbox: Outbox::default(),
            sent: Vec::new(),
        };
        let switches = net.add_switches(plan)?;
        let mut plugs = Plugs {
            switches,
            used: BTreeSet::new(),
        };
        for link in &plan.links {
            let ends = [plugs.plug(link.a)?, plugs.plug(link.b)?];
            net.add_link(ends, &link.properties);
        }
        for host in &plan.hosts {
            let id = HostId(net.hosts.len() as u32);
            let ends = [End::Host(id), plugs.plug(host.attached)?];
            net.hosts.push(Attached {
                host: Host::new(&host.name, host.mac, host.ipv4),
                link: LinkId(net.links.len() as u32),
                due_ns: u64::MAX,
            });
            net.add_link(ends, &net.config.host_links.clone());
        }
        net.switches().for_each(|switch| net.switch_on(switch));
        net.switches().for_each(|switch| net.check_ports(switch));
        Ok(net)
    }

    fn add_switches(&mut self, plan: &Plan) -> Result<BTreeMap<DatapathId, SwitchId>, NetError> {
        let mut switches = BTreeMap::new();
        for (number, switch) in (0..).zip(&plan.switches) {
            if switches
                .insert(switch.datapath_id, SwitchId(number))
                .is_some()
            {
                let sentence = format!("two switches have the datapath id {}", switch.datapath_id);
                return Err(NetError::Plan(sentence));
            }
            let draw = |kind| self.kernel.draw_of(kind, &switch.name);
            self.channels.push(Channel::new(
                draw("connecting"),
                draw("to switch"),
                draw("to controller"),
            ));
            let (name, draw) = (&switch.name, draw("switch"));
            self.nodes.push(Node::new(name, switch.datapath_id, draw));
        }
        Ok(switches)
    }

    fn add_link(&mut self, ends: [End; 2], properties: &LinkProperties) {
        let id = LinkId(self.links.len() as u32);
        let draws = ends.map(|end| self.kernel.draw_of("link from", &self.end_name(end)));
        let queue_bytes = self.config.queue_bytes;
        let mut link = Link::new(id, ends, properties, queue_bytes, draws);
        for (place, end) in ends.into_iter().enumerate() {
            if let End::Switch(switch, port_no) = end {
                let ports = &mut self.nodes[switch.place()].ports;
                link.slots[place] = ports.len();
                ports.push(Port {
                    port_no,
                    plug: Some(Plug {
                        link: id,
                        end: place,
                    }),
                    speed_kbps: link.speed_kbps(),
                });
            }
        }
        self.links.push(link);
    }

    /// Returns `s1:2` for a port, `h1` for a host.
    fn end_name(&self, end: End) -> String {
        match end {
            End::Switch(switch, port_no) => {
                format!("{}:{port_no}", self.nodes[switch.place()].name)
            }
            End::Host(host) => self.hosts[host.place()].host.name.clone(),
        }
    }
}

/// The ports that have a link already.
struct Plugs {
    switches: BTreeMap<DatapathId, SwitchId>,
    used: BTreeSet<PortId>,
}

impl Plugs {
    fn plug(&mut self, port: PortId) -> Result<End, NetError> {
        let Some(&switch) = self.switches.get(&port.switch) else {
            return Err(NetError::Plan(format!(
                "there is no switch for the port {port}"
            )));
        };
        if port.port_no.0 == 0 || port.port_no.is_reserved() {
            let sentence =
                format!("no port can have the number of {port}; expected 1 to 0xffffff00");
            return Err(NetError::Plan(sentence));
        }
        if !self.used.insert(port) {
            return Err(NetError::Plan(format!("two links use the port {port}")));
        }
        Ok(End::Switch(switch, port.port_no))
    }
}
