//! Checks of a machine for problems between switches and their controller.
//!
//! **What.** Each check is a file, and a function from the [`Plan`], which the user is going to run, to [`Finding`]s: a
//! message, and the commands that fix the problem.
//!
//! **How.** It reads, and changes nothing: `/proc`, `/sys` and files; it queries `ovs-vsctl`, `nft` and `iptables`,
//! binds addresses for a moment without listening, and loads the kernel's programs for a moment. Checks that need root
//! are reported, with a command that shows the result.
//!
//! **Features.** `tls` (off by default): the check of certificates. `args` (off by default): [`Check`] as the value of an
//! option, by `clap`.
//!
//! ```no_run
//! use urtica_doctor::{Check, Facts, Plan, Report};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let plan = Plan::new(vec!["ptcp:6653".parse()?], None);
//! println!("{}", Report::new(&Check::ALL, &Facts::read(plan, Vec::new())));
//! # Ok(())
//! # }
//! ```

#[cfg(feature = "tls")]
mod certificates;
mod clock;
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

pub use finding::{Finding, Severity, capital, quoted};
use openvswitch::OpenVswitch;
pub use plan::Plan;
use program::NoAnswer;
use serde::Serialize;
use std::fmt;

/// A check. Checks that others depend on are first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "args", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Check {
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

/// The input of all checks.
pub struct Facts {
    plan: Plan,
    /// The findings of the check of the configuration.
    configuration: Vec<Finding>,
    /// Its database, or why it could not be read.
    openvswitch: Result<OpenVswitch, NoAnswer>,
}

impl Facts {
    /// Reads the machine's state. The caller reads configuration files; `configuration` has their errors.
    pub fn read(plan: Plan, configuration: Vec<Finding>) -> Self {
        Self {
            plan,
            configuration,
            openvswitch: OpenVswitch::read(),
        }
    }
}

impl Check {
    /// All checks, in their order.
    pub const ALL: [Self; 9] = [
        Self::Configuration,
        Self::Ports,
        Self::Firewall,
        Self::Openvswitch,
        Self::Certificates,
        Self::Clock,
        Self::Kernel,
        Self::Limits,
        Self::Mtu,
    ];

    fn look(self, facts: &Facts) -> Vec<Finding> {
        match self {
            Self::Configuration => facts.configuration.clone(),
            Self::Ports => ports::look(facts),
            Self::Firewall => firewall::look(facts),
            Self::Openvswitch => openvswitch::look(facts),
            #[cfg(feature = "tls")]
            Self::Certificates => certificates::look(facts),
            #[cfg(not(feature = "tls"))]
            Self::Certificates => vec![Finding::note(
                "tls-not-built",
                "This program was built without TLS, so it uses no certificates.",
            )],
            Self::Clock => clock::look(facts),
            Self::Kernel => kernel::look(facts),
            Self::Limits => limits::look(facts),
            Self::Mtu => mtu::look(facts),
        }
    }
}

/// The findings of some checks.
#[derive(Serialize)]
#[non_exhaustive]
pub struct Report {
    /// The findings, by check.
    #[serde(rename = "findings")]
    pub rows: Vec<Row>,
    /// The number of problems.
    pub problems: usize,
    /// The number of warnings.
    pub warnings: usize,
}

/// A finding, and the check that made it.
#[derive(Serialize)]
#[non_exhaustive]
pub struct Row {
    /// The check.
    pub check: Check,
    /// The finding.
    #[serde(flatten)]
    pub finding: Finding,
}

impl Report {
    /// Runs these checks.
    pub fn new(checks: &[Check], facts: &Facts) -> Self {
        let rows = checks.iter().flat_map(|&check| {
            let findings = check.look(facts).into_iter();
            findings.map(move |finding| Row { check, finding })
        });
        let rows: Vec<Row> = rows.collect();
        let count = |severity| {
            let of = |row: &&Row| row.finding.severity == severity;
            rows.iter().filter(of).count()
        };
        Self {
            problems: count(Severity::Problem),
            warnings: count(Severity::Warning),
            rows,
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Row { finding, .. } in &self.rows {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_counts_and_prints_findings() {
        let wrong = Finding::problem("options-wrong", "It would not start.").command("true");
        let facts = Facts {
            plan: Plan::default(),
            configuration: vec![wrong, Finding::warning("old", "It is old.")],
            openvswitch: Err(NoAnswer::Missing("ovs-vsctl".to_owned())),
        };
        let report = Report::new(&[Check::Configuration], &facts);
        assert_eq!(
            report.to_string(),
            "problem: It would not start. [options-wrong]\n    true\nwarning: It is old. [old]\nproblems: 1, warnings: 1"
        );
        let json = serde_json::json!(report);
        assert_eq!(json["findings"][0]["check"], "configuration");
        assert_eq!(json["findings"][0]["name"], "options-wrong");
        assert_eq!(json["problems"], 1);
    }
}
