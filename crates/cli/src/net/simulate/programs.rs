//! The options of simulated programs, and the properties that they guarantee.
//!
//! Networks have loops if discovery runs, whether named or added by a program. Programs that need a file get one: a firewall
//! that denies the hosts' datagrams, and three subnets for the hosts.

use super::super::with_services;
use super::reservations::Reservations;
use std::error::Error;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};
use tempfile::TempDir;
use urtica_apps::Options;
use urtica_controller::Controller;
use urtica_net::simulate::{FloodBound, PlantedBug, Programs, Scenario};
use urtica_topology::spec::Plan;
use urtica_wire::packet::{Headers, ip_proto};

/// Rules that deny hosts' datagrams, which go to this port, and allow everything else.
const FIREWALL_RULES: &str = "deny udp,tp_dst=5001\ndefault allow\n";

/// Three subnets, and a large one without hosts. Hosts of these networks treat all addresses as neighbours', so the gateways
/// answer for all remote addresses.
const L3_CONFIG: &str = r#"proxy_arp = true

[[interface]]
address = "10.0.1.254/24"
mac = "02:00:00:00:01:fe"

[[interface]]
address = "10.0.2.254/24"
mac = "02:00:00:00:02:fe"

[[interface]]
address = "10.0.3.254/24"
mac = "02:00:00:00:03:fe"

[[interface]]
address = "10.16.255.254/16"
mac = "02:00:00:00:04:fe"
"#;

/// The demand of hosts' datagrams.
const BANDWIDTH_DEMAND: &str = "1M udp,tp_dst=5001";

/// The time within which routing recovers from a reported change.
const ROUTED_WITHIN: Duration = Duration::from_secs(2);

/// The time within which a host is found: the requests of `l3`, and the round trip.
const RESOLVED_WITHIN: Duration = Duration::from_millis(1_500);

/// The default limit of packets to unknown hosts from a port.
const UNKNOWN_FLOOD: FloodBound = FloodBound {
    per_second: 1_000,
    burst: 2_000,
};

/// The neighbour proxy's limit of relayed requests from a port.
const SWEEP: FloodBound = FloodBound {
    per_second: 20,
    burst: 40,
};

/// Returns the scenario for these programs, in networks with or without loops; by default with loops if discovery runs, which
/// handles them.
///
/// # Errors
/// If the programs cannot run with these options.
pub(super) fn scenario(
    apps: &[String],
    options: &Options,
    has_loops: Option<bool>,
    bug: Option<PlantedBug>,
) -> Result<Scenario, Box<dyn Error>> {
    let has = |name: &str| apps.iter().any(|app| app == name);
    let mut options = options.clone();
    let files = Files::new()?;
    let is_given = options.l3.l3_config.is_some();
    let is_default_firewall = options.firewall.firewall_rules.is_none();
    if has("firewall") && is_default_firewall {
        options.firewall.firewall_rules = Some(files.write("rules", FIREWALL_RULES)?);
    }
    if has("l3") && !is_given {
        options.l3.l3_config = Some(files.write("subnets.toml", L3_CONFIG)?);
    }
    if has("bandwidth") && options.bandwidth.bandwidth_demand.is_empty() {
        options.bandwidth.bandwidth_demand = vec![BANDWIDTH_DEMAND.parse()?];
    }
    let unknown_flood = unknown_flood(apps, &options);
    // Report programs that cannot run before the first run.
    let (_, services) = with_services(Controller::new(), apps, &options)?;
    let has_loops = has_loops.unwrap_or(services.discovery.is_some());
    let names = apps.to_vec();
    let reservations = Reservations::default();
    let refused = has("bandwidth").then(|| reservations.refused());
    let programs = move || {
        // Keep the files as long as controllers are created.
        let Files(_folder) = &files;
        let controller = match bug {
            Some(bug) => Controller::new().program(bug.plant()),
            None => Controller::new(),
        };
        let (controller, services) =
            with_services(controller, &names, &options).expect("they were put together before");
        Programs {
            controller,
            reservations: reservations.of(&services),
        }
    };
    let mut scenario = match has_loops {
        true => Scenario::on_loops(programs),
        false => Scenario::on_trees(programs),
    };
    if has("firewall") && is_default_firewall {
        scenario.denied = Some(is_datagram);
    }
    // A path along a spanning tree may be longer than the shortest.
    scenario.shortest_paths = has("routing") || has("l2") && !has_loops;
    if has("routing") {
        scenario.quickly_restored_within = Some(ROUTED_WITHIN);
    }
    scenario.unknown_flood = unknown_flood;
    let has_proxy = has("routing") && services.neighbour_proxy.is_some();
    scenario.sweep = has_proxy.then_some(SWEEP);
    scenario.drops_spoofed_replies = has("routing");
    scenario.refused = refused;
    // Between subnets, hosts are not reached by floods: a port with forged packets may keep its own host unknown.
    scenario.blocks_offenders = has("security") || has("l3");
    scenario.resolved_within = has("routing").then_some(RESOLVED_WITHIN);
    scenario.keeps_hosts = !has("hub");
    scenario.entries_when_quiescent += standing_entries(apps);
    if has("l3") && !is_given {
        scenario.arrange = Some(put_into_subnets);
        // The subnets are IPv4, and no router interface has a VLAN.
        (scenario.ipv6, scenario.vlans) = (false, false);
    }
    Ok(scenario)
}

/// Returns the bound of packets to unknown hosts, if these programs have their default limits.
fn unknown_flood(apps: &[String], options: &Options) -> Option<FloodBound> {
    let is_limited = apps.iter().any(|app| match &**app {
        "l2" => options.l2.l2_flood_limit.is_none(),
        "global" | "global-mutex" | "global-stm" => options.global.global_flood_limit.is_none(),
        "routing" => options.routing.routing_flood_limit.is_none(),
        _ => false,
    });
    is_limited.then_some(UNKNOWN_FLOOD)
}

/// Returns `true` if [`FIREWALL_RULES`] deny a frame.
fn is_datagram(frame: &[u8]) -> bool {
    let headers = Headers::parse(frame);
    (headers.ip_proto, headers.dst_port) == (Some(ip_proto::UDP), Some(5001))
}

/// Returns the number of entries that programs keep in a switch permanently, besides those that every scenario permits.
fn standing_entries(apps: &[String]) -> usize {
    let entries = apps.iter().map(|app| match &**app {
        // Packets that always pass, the rules, and the default.
        "firewall" => 8,
        // Packets at edge ports are examined first.
        "security" => 6,
        // ARP, and five kinds of neighbour discovery.
        "routing" => 6,
        // One per demand.
        "bandwidth" => 1,
        _ => 0,
    });
    entries.sum()
}

/// Gives host n the address 10.0.N.n, where N cycles from 1 to 3.
fn put_into_subnets(plan: &mut Plan) {
    for (number, host) in (1..=u8::MAX).zip(&mut plan.hosts) {
        host.ipv4 = Ipv4Addr::new(10, 0, (number - 1) % 3 + 1, number);
    }
}

/// Temporary files for programs.
struct Files(TempDir);

impl Files {
    fn new() -> io::Result<Self> {
        tempfile::tempdir().map(Self)
    }

    fn write(&self, name: &str, text: &str) -> io::Result<PathBuf> {
        let file = Path::join(self.0.path(), name);
        fs::write(&file, text)?;
        Ok(file)
    }
}
