//! Programs by name, as `urtica run` takes them.
//!
//! **What.** [`add_all`] adds programs to a controller by name. A program that needs a service which was not named adds it
//! before itself, and the log says so.
//!
//! **How.** Each program has a row in [`ROWS`]: its name, a one-line description, and how it joins a [`Setup`]. It asks the
//! set-up for the services that it needs, which are created on first use, so dependencies are written down nowhere else
//! (`registry/setup.rs`). [`Apps`] compares what runs with what is to run (`registry/apps.rs`). To
//! add a program: its file, its row, and a field in [`Options`] if it has options.

mod apps;
mod setup;

pub use apps::{AppChange, Apps, NextApps};
pub use setup::Services;
pub(crate) use setup::Setup;

use crate::bandwidth::{self, BandwidthArgs};
use crate::elephants::{self, ElephantsArgs};
use crate::firewall::{self, FirewallArgs};
use crate::global::{self, GlobalArgs};
use crate::l3::{self, L3Args, L3Kernel};
use crate::security::{self, SecurityArgs};
use crate::{Hub, LockFree, Locked, Transactional, l2, routing, ryu};
use std::sync::Arc;
use urtica_controller::{Controller, SwitchInfo};
use urtica_services::{DiscoveryConfig, HostsConfig};

/// Options of all bundled programs; each has its own, named after it.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Options of programs")]
pub struct Options {
    /// Of `bandwidth`.
    #[command(flatten)]
    pub bandwidth: BandwidthArgs,
    /// Of `firewall`.
    #[command(flatten)]
    pub firewall: FirewallArgs,
    /// Of `elephants`.
    #[command(flatten)]
    pub elephants: ElephantsArgs,
    /// Of `global`, `global-mutex` and `global-stm`.
    #[command(flatten)]
    pub global: GlobalArgs,
    /// Of `l3`.
    #[command(flatten)]
    pub l3: L3Args,
    /// Of `security`.
    #[command(flatten)]
    pub security: SecurityArgs,
    /// What answers in the kernel for `l3`; not on the command line. Where it is set, [`is_l3_first`] has to hold.
    #[arg(skip)]
    pub l3_kernel: Option<Arc<dyn L3Kernel>>,
    /// Of `discovery`; not on the command line.
    #[arg(skip)]
    pub discovery: DiscoveryConfig,
    /// Of `hosts`; not on the command line.
    #[arg(skip)]
    pub hosts: HostsConfig,
}

/// A program that can be run by name.
struct Row {
    name: &'static str,
    about: &'static str,
    forwards: Forwards,
    add: fn(&mut Setup) -> Result<(), String>,
}

/// What a program forwards.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Forwards {
    Nothing,
    /// These packets; others are left to later programs.
    Only(&'static str),
    /// Everything: later programs see no packet-in.
    All,
}

/// Services first.
const ROWS: &[Row] = &[
    Row {
        name: "discovery",
        about: "finds links between switches, and keeps flooded packets from circling",
        forwards: Forwards::Nothing,
        add: |setup| {
            setup.discovery();
            Ok(())
        },
    },
    Row {
        name: "hosts",
        about: "finds hosts and their addresses, and follows them",
        forwards: Forwards::Nothing,
        add: |setup| {
            setup.hosts();
            Ok(())
        },
    },
    Row {
        name: "neighbour-proxy",
        about: "answers who asks for a host's address (ARP, IPv6 neighbour discovery)",
        forwards: Forwards::Nothing,
        add: |setup| {
            setup.neighbour_proxy();
            Ok(())
        },
    },
    Row {
        name: "routes",
        about: "keeps shortest paths between all switches",
        forwards: Forwards::Nothing,
        add: |setup| {
            setup.routes();
            Ok(())
        },
    },
    Row {
        name: "provisioner",
        about: "sets up paths across switches, all or nothing",
        forwards: Forwards::Nothing,
        add: |setup| {
            setup.provisioner();
            Ok(())
        },
    },
    Row {
        name: "hub",
        about: "floods every packet",
        forwards: Forwards::All,
        add: |setup| {
            setup.add(|_: &SwitchInfo| Hub);
            Ok(())
        },
    },
    Row {
        name: "l2",
        about: "learns where hosts are, switch by switch, and installs exact-match entries",
        forwards: Forwards::All,
        add: l2::add,
    },
    Row {
        name: "global",
        about: "as l2, but all switches share one table of hosts, without locks",
        forwards: Forwards::All,
        add: global::add::<LockFree>,
    },
    Row {
        name: "global-mutex",
        about: "the same with mutexes",
        forwards: Forwards::All,
        add: global::add::<Locked>,
    },
    Row {
        name: "global-stm",
        about: "the same with transactions",
        forwards: Forwards::All,
        add: global::add::<Transactional>,
    },
    Row {
        name: "routing",
        about: "sends packets over shortest paths, and repairs them; on any topology",
        forwards: Forwards::All,
        add: routing::add,
    },
    Row {
        name: "firewall",
        about: "drops what its rules deny, before others forward it; needs --firewall-rules",
        forwards: Forwards::Nothing,
        add: firewall::add,
    },
    Row {
        name: "bandwidth",
        about: "reserves bandwidth for flows on each link of a path; name it before what forwards",
        forwards: Forwards::Only("flows with a demand"),
        add: bandwidth::add,
    },
    Row {
        name: "l3",
        about: "routes between subnets; needs --l3-config; name it before what forwards",
        forwards: Forwards::Only("packets from one subnet to another"),
        add: l3::add,
    },
    Row {
        name: "security",
        about: "drops who scans, sweeps or floods, for a while, at the port where it comes in",
        forwards: Forwards::Nothing,
        add: security::add,
    },
    Row {
        name: "elephants",
        about: "moves large flows that share a link by bad luck; needs routing",
        forwards: Forwards::Nothing,
        add: elephants::add,
    },
    Row {
        name: "rest_firewall",
        about: "lets pass what requests to --northbound allow, as Ryu's did",
        forwards: Forwards::All,
        add: ryu::add_firewall,
    },
    Row {
        name: "rest_router",
        about: "routes between the subnets that requests to --northbound name, as Ryu's did",
        forwards: Forwards::All,
        add: ryu::add_router,
    },
    Row {
        name: "rest_qos",
        about: "marks, meters and queues packets as requests to --northbound say, as Ryu's did",
        forwards: Forwards::Nothing,
        add: ryu::add_qos,
    },
];

/// Why programs cannot run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SetupError {
    /// The name is not that of a bundled program.
    #[error("there is no control program '{name}'; expected one of: {}", names().collect::<Vec<_>>().join(", "))]
    Unknown {
        /// The name that was given.
        name: String,
    },
    /// A name was given more than once.
    #[error("the control program '{name}' was named twice; expected each once")]
    Twice {
        /// That name.
        name: &'static str,
    },
    /// Options were given for a program that does not run.
    #[error(
        "options of the control program '{name}' (--{name}-…) were given, but it does not run; expected {name} among the programs, or none of its options"
    )]
    UnusedOptions {
        /// Its name.
        name: &'static str,
    },
    /// The program cannot run with the options that were given.
    #[error("the control program '{name}' cannot run: {problem}")]
    Refused {
        /// Its name.
        name: &'static str,
        /// What is wrong, and what was expected.
        problem: String,
    },
}

/// Adds the programs with these names to a controller, in this order, and the services that they need.
///
/// # Errors
/// [`SetupError`], which says what was expected.
pub fn add_all(
    controller: Controller,
    names: &[impl AsRef<str>],
    options: &Options,
) -> Result<Controller, SetupError> {
    add_all_with_services(controller, names, options).map(|(controller, _)| controller)
}

/// The same; returns the services as well that are there then.
///
/// # Errors
/// As [`add_all`].
pub fn add_all_with_services(
    controller: Controller,
    names: &[impl AsRef<str>],
    options: &Options,
) -> Result<(Controller, Services), SetupError> {
    let apps = Apps::new(names, options)?;
    Ok((apps.add_to(controller), apps.services().clone()))
}

/// Adds the program with this name to a controller, without options, and the services that it needs.
///
/// # Errors
/// [`SetupError`], which says what was expected.
pub fn add_by_name(controller: Controller, name: &str) -> Result<Controller, SetupError> {
    add_all(controller, &[name], &Options::default())
}

/// Whether `l3` is among these programs, with its services and programs that forward what it leaves to them, alone: then nobody else
/// has to see the packets that it handles, and it can be answered for in the kernel ([`Options::l3_kernel`]).
pub fn is_l3_first(names: &[impl AsRef<str>]) -> bool {
    const SERVICES: [&str; 4] = ["discovery", "hosts", "routes", "provisioner"];
    let mut names = names.iter().map(AsRef::as_ref);
    let first = names.find(|name| !SERVICES.contains(name));
    first == Some("l3") && names.all(|name| SERVICES.contains(&name) || is_forwarder(name))
}

/// Checks names and options, and warns of what cannot be meant. Returns the rows with these names, in the order in which they are added.
fn checked_rows(
    names: &[impl AsRef<str>],
    options: &Options,
) -> Result<Vec<&'static Row>, SetupError> {
    let mut rows = find_rows(names)?;
    options.check_used_by(&rows)?;
    if let Some(warning) = warn_of_no_forwarder(&rows) {
        tracing::warn!("{warning}");
    }
    // It must see everything unanswered: before all that others add.
    rows.sort_by_key(|row| row.name != "security");
    Ok(rows)
}

/// The rows with these names, in this order.
fn find_rows(names: &[impl AsRef<str>]) -> Result<Vec<&'static Row>, SetupError> {
    let mut rows: Vec<&'static Row> = Vec::new();
    for name in names {
        let row = find_row(name.as_ref())?;
        if rows.iter().any(|earlier| earlier.name == row.name) {
            return Err(SetupError::Twice { name: row.name });
        }
        rows.push(row);
    }
    Ok(rows)
}

fn find_row(name: &str) -> Result<&'static Row, SetupError> {
    let row = ROWS.iter().find(|row| row.name == name);
    row.ok_or_else(|| SetupError::Unknown {
        name: name.to_owned(),
    })
}

impl Options {
    /// What decides how a program with this name works: its options, and what is in the files that it reads when it starts.
    fn of_program(&self, name: &str) -> String {
        let options: &dyn std::fmt::Debug = match name {
            "bandwidth" => &self.bandwidth,
            "elephants" => &self.elephants,
            "firewall" => &self.firewall,
            "global" | "global-mutex" | "global-stm" => &self.global,
            "l3" => {
                let file = self.l3.l3_config.as_ref();
                return format!("{:?}", file.map(|file| (file, std::fs::read(file).ok())));
            }
            "security" => &self.security,
            _ => return String::new(),
        };
        format!("{options:?}")
    }

    /// Refuses options without effect.
    fn check_used_by(&self, rows: &[&Row]) -> Result<(), SetupError> {
        let is_given = [
            ("bandwidth", self.bandwidth != BandwidthArgs::default()),
            ("firewall", self.firewall != FirewallArgs::default()),
            ("elephants", self.elephants != ElephantsArgs::default()),
            ("global", self.global != GlobalArgs::default()),
            ("l3", self.l3 != L3Args::default()),
            ("security", self.security != SecurityArgs::default()),
        ];
        // Variants of a program begin with its name.
        let is_form = |row: &str, name: &str| {
            let form = row.strip_prefix(name);
            form.is_some_and(|form| form.is_empty() || form.starts_with('-'))
        };
        let runs = |name: &str| rows.iter().any(|row| is_form(row.name, name));
        match is_given.iter().find(|(name, given)| *given && !runs(name)) {
            None => Ok(()),
            Some(&(name, _)) => Err(SetupError::UnusedOptions { name }),
        }
    }
}

/// The warning if no program forwards everything.
fn warn_of_no_forwarder(rows: &[&Row]) -> Option<String> {
    if rows.is_empty() || rows.iter().any(|row| row.forwards == Forwards::All) {
        return None;
    }
    let some: Vec<_> = rows
        .iter()
        .filter_map(|row| match row.forwards {
            Forwards::Only(what) => Some(format!("{what} ({})", row.name)),
            _ => None,
        })
        .collect();
    let but = match &some[..] {
        [] => String::new(),
        some => format!(" but {}", some.join(" and ")),
    };
    Some(format!(
        "nothing forwards packets{but}: hosts will not reach each other; expected one of these programs, too: {}",
        forwarders().collect::<Vec<_>>().join(", ")
    ))
}

/// The programs that forward everything.
fn forwarders() -> impl Iterator<Item = &'static str> {
    let all = ROWS.iter().filter(|row| row.forwards == Forwards::All);
    all.map(|row| row.name)
}

fn is_forwarder(name: &str) -> bool {
    forwarders().any(|forwarder| forwarder == name)
}

/// The names of the bundled programs.
pub fn names() -> impl Iterator<Item = &'static str> {
    ROWS.iter().map(|row| row.name)
}

/// The bundled programs: name and description.
pub fn overview() -> String {
    let lines: Vec<_> = ROWS
        .iter()
        .map(|row| format!("  {:12} {}", row.name, row.about))
        .collect();
    lines.join("\n")
}
