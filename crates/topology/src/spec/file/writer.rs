//! Conversion of a plan to a file's contents.

use super::quantity;
use super::sections::{DirectedLink, Host, Loss, Number, Sections, Switch};
use crate::PortId;
use crate::spec::plan::{HostPlan, LinkPlan, LinkProperties, Plan, SwitchPlan};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;
use toml::Spanned;
use urtica_wire::DatapathId;

/// Converts a plan to a file's contents.
pub(super) struct Writer<'a> {
    plan: &'a Plan,
    names: BTreeMap<DatapathId, &'a str>,
}

impl<'a> Writer<'a> {
    pub fn new(plan: &'a Plan) -> Self {
        let names = plan
            .switches
            .iter()
            .map(|switch| (switch.datapath_id, switch.name.as_str()));
        Self {
            plan,
            names: names.collect(),
        }
    }

    pub fn sections(&self) -> Sections {
        Sections {
            switches: self.plan.switches.iter().map(switch_section).collect(),
            hosts: self.plan.hosts.iter().map(|host| self.host(host)).collect(),
            links: self.plan.links.iter().map(|link| self.link(link)).collect(),
        }
    }

    fn host(&self, host: &HostPlan) -> Host {
        Host {
            name: written(&host.name),
            mac: Some(written(host.mac)),
            ipv4: Some(written(host.ipv4)),
            attached: self.port(host.attached),
        }
    }

    fn link(&self, link: &LinkPlan) -> DirectedLink {
        let LinkProperties {
            delay,
            jitter,
            loss,
            bandwidth_bps,
        } = link.properties;
        let text = |duration: Duration| {
            (!duration.is_zero()).then(|| written(quantity::duration_text(duration)))
        };
        DirectedLink {
            a: self.port(link.a),
            b: self.port(link.b),
            delay: text(delay),
            jitter: text(jitter),
            loss: (loss != 0.0).then(|| Spanned::new(0..0, Loss(loss))),
            bandwidth: bandwidth_bps.map(|bps| written(quantity::bandwidth_text(bps))),
        }
    }

    fn port(&self, port: PortId) -> Spanned<String> {
        match self.names.get(&port.switch) {
            Some(name) => written(format!("{name}:{}", port.port_no)),
            None => written(port),
        }
    }
}

fn switch_section(switch: &SwitchPlan) -> Switch {
    Switch {
        name: written(&switch.name),
        datapath_id: Some(Spanned::new(0..0, Number(switch.datapath_id.to_string()))),
    }
}

fn written(value: impl fmt::Display) -> Spanned<String> {
    Spanned::new(0..0, value.to_string())
}
