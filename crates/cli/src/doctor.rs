//! `urtica doctor`: checks the machine for problems between switches and their controller.
//!
//! **What.** Each check is a file of this folder, and a function from the [`Plan`], which the user wants to run, to
//! [`Finding`]s: a message, and commands that fix the problem.
//!
//! **How.** It changes nothing: it reads `/proc`, `/sys` and files, queries `ovs-vsctl`, `nft` and `iptables`, binds
//! addresses briefly without listening, and loads the kernel's programs briefly. It reports what it cannot see without root,
//! with a command that shows it.

#[cfg(feature = "tls")]
mod certificates;
mod clock;
mod configuration;
mod finding;
mod firewall;
mod kernel;
mod limits;
mod mtu;
mod openvswitch;
mod plan;
mod ports;
mod program;
mod sockets;

use crate::config::LoadError;
use crate::log::log_filtered;
use crate::say::say;
use clap::ValueEnum;
use finding::{Finding, Severity};
use openvswitch::OpenVswitch;
use plan::Plan;
use program::NoAnswer;
use serde::Serialize;
use std::fmt;
use std::path::PathBuf;
use std::process::ExitCode;
use urtica_socket::{Address, TlsArgs};

/// Options of `urtica doctor`.
#[derive(clap::Args)]
#[command(
    after_help = "Give it the options of urtica run, or the same file: it checks what they need. It changes nothing. Each finding has the commands \
                  that fix it, for root. The exit status is 1 with a problem, and 0 with only warnings and notes; docs/operating.md lists the \
                  findings."
)]
pub struct DoctorArgs {
    /// The checks to run [default: all].
    #[arg(value_name = "CHECK", value_enum)]
    checks: Vec<Check>,
    /// The configuration file, as for urtica run.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Address that the controller listens on, as for urtica run. May be repeated.
    #[arg(long, value_name = "ADDR")]
    listen: Vec<Address>,
    /// The file of datapath ids, as for urtica run.
    #[arg(long, value_name = "FILE")]
    datapath_ids: Option<PathBuf>,
    /// Address for HTTP, as for urtica run.
    #[cfg(feature = "northbound")]
    #[arg(
        long,
        value_name = "ADDR",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "127.0.0.1:8080",
        value_parser = crate::northbound::parse_address
    )]
    northbound: Option<std::net::SocketAddr>,
    /// The file of bearer tokens, as for urtica run.
    #[cfg(feature = "northbound")]
    #[arg(long, value_name = "FILE")]
    northbound_tokens: Option<PathBuf>,
    /// Expected number of switches.
    #[arg(long, value_name = "N", default_value_t = 100)]
    switches: u64,
    /// Network device for a port of urtica switch. May be repeated.
    #[arg(long, value_name = "DEVICE")]
    device: Vec<String>,
    /// Print the findings as JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    tls: TlsArgs,
}

/// The checks, in this order: those on which others depend come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
enum Check {
    /// The configuration file, the environment, and the options together.
    Configuration,
    /// The controller's addresses, and other processes that use them.
    Ports,
    /// Firewall rules that drop its packets.
    Firewall,
    /// Open vSwitch on this machine: bridges and their controllers.
    Openvswitch,
    /// The files for TLS.
    Certificates,
    /// The system time.
    Clock,
    /// Kernel features for the kernel half and the switch.
    Kernel,
    /// The process's limits.
    Limits,
    /// Packet lengths of all ports.
    Mtu,
}

/// The input of checks.
struct Facts {
    plan: Plan,
    /// The error in options, file or environment.
    options: Option<LoadError>,
    /// Its database, or why it could not be read.
    openvswitch: Result<OpenVswitch, NoAnswer>,
}

impl Check {
    fn look(self, facts: &Facts) -> Vec<Finding> {
        match self {
            Self::Configuration => configuration::look(facts),
            Self::Ports => ports::look(facts),
            Self::Firewall => firewall::look(facts),
            Self::Openvswitch => openvswitch::look(facts),
            #[cfg(feature = "tls")]
            Self::Certificates => certificates::look(facts),
            #[cfg(not(feature = "tls"))]
            Self::Certificates => vec![Finding::note(
                "tls-not-built",
                "This program is built without TLS, so there are no certificates to look at.",
            )],
            Self::Clock => clock::look(facts),
            Self::Kernel => kernel::look(facts),
            Self::Limits => limits::look(facts),
            Self::Mtu => mtu::look(facts),
        }
    }
}

/// All that was found.
#[derive(Serialize)]
struct Report {
    findings: Vec<Row>,
    problems: usize,
    warnings: usize,
}

#[derive(Serialize)]
struct Row {
    check: Check,
    #[serde(flatten)]
    finding: Finding,
}

impl Report {
    fn new(checks: &[Check], facts: &Facts) -> Self {
        let findings = checks.iter().flat_map(|&check| {
            let findings = check.look(facts).into_iter();
            findings.map(move |finding| Row { check, finding })
        });
        let findings: Vec<Row> = findings.collect();
        let count = |severity| {
            let of = |row: &&Row| row.finding.severity == severity;
            findings.iter().filter(of).count()
        };
        Self {
            problems: count(Severity::Problem),
            warnings: count(Severity::Warning),
            findings,
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Row { finding, .. } in &self.findings {
            let (word, name) = (finding.severity.word(), finding.name);
            writeln!(f, "{word}: {} [{name}]", finding.sentence)?;
            for command in &finding.commands {
                writeln!(f, "    {command}")?;
            }
        }
        let Self {
            problems, warnings, ..
        } = self;
        write!(f, "problems: {problems}, warnings: {warnings}")
    }
}

/// Runs the checks, and prints the findings. The status is 1 if there is a problem.
pub fn run(args: &DoctorArgs) -> ExitCode {
    // Other parts would log, too.
    let _ = log_filtered(Some("off"));
    let (plan, options) = Plan::of(args);
    let facts = Facts {
        plan,
        options,
        openvswitch: OpenVswitch::read(),
    };
    let checks = match args.checks.as_slice() {
        [] => Check::value_variants(),
        some => some,
    };
    let report = Report::new(checks, &facts);
    match args.json {
        true => say(serde_json::json!(report)),
        false => say(&report),
    }
    match report.problems {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}
