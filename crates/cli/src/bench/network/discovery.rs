//! Measures the time in which discovery finds a large network of real switches, all in this process and on one thread.

use super::{Effort, Reading, config, failed};
use std::time::{Duration, Instant};
use urtica_bench::Error;
use urtica_controller::Controller;
use urtica_net::Net;
use urtica_services::{Discovery, DiscoveryConfig};
use urtica_topology::PortId;
use urtica_topology::spec::{LinkPlan, LinkProperties, Plan, SwitchPlan};
use urtica_wire::{DatapathId, PortNo};

/// The maximum duration of discovery, by the network's clock.
const BOUND: Duration = Duration::from_secs(60);

/// Measures from the first switch's hello to the last link. Bytes arrive at once, so the result is the work of switches
/// and controller.
pub fn measure(effort: Effort) -> Result<Vec<Reading>, Error> {
    let switches = effort.either(1000, 20);
    let plan = circles(switches);
    let mut net = Net::new(&plan, config()).map_err(failed)?;
    let discovery = Discovery::new(DiscoveryConfig::default());
    let links = 2 * plan.links.len();
    let started = Instant::now();
    net.start_controller(Controller::new().program(discovery.clone()))
        .map_err(failed)?;
    let is_known = |_: &mut Net| discovery.topology().load().directed_links().len() == links;
    if !net.run_until(is_known, BOUND) {
        let found = discovery.topology().load().directed_links().len();
        return Err(Error::invalid(format!(
            "{found} of {links} links were found"
        )));
    }
    let what = format!(
        "topology discovery in process, {switches} switches and {} links ({links} directed), from the first hello",
        plan.links.len()
    );
    Ok(vec![Reading::new(
        "discovery-1000",
        what,
        "s",
        started.elapsed().as_secs_f64(),
    )])
}

/// Links each switch to three that follow it, near and far.
fn circles(switches: u64) -> Plan {
    let distances = [1, switches / 7, switches / 3];
    let link = |switch: u64, place: usize| {
        let other = (switch - 1 + distances[place]) % switches + 1;
        let port = |switch, number: usize| PortId::new(DatapathId(switch), PortNo(number as u32));
        LinkPlan {
            a: port(switch, place + 1),
            b: port(other, place + 1 + distances.len()),
            properties: LinkProperties::default(),
        }
    };
    let link = &link;
    Plan {
        switches: (1..=switches)
            .map(|number| SwitchPlan {
                name: format!("s{number}"),
                datapath_id: DatapathId(number),
            })
            .collect(),
        links: (1..=switches)
            .flat_map(|switch| (0..distances.len()).map(move |place| link(switch, place)))
            .collect(),
        hosts: Vec::new(),
    }
}
