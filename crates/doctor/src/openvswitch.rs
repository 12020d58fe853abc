//! Checks of Open vSwitch on this machine, its bridges, and their controllers.

mod bridges;
mod controllers;
mod database;
mod target;
mod trace;

pub use database::{OpenVswitch, Row};

use crate::program::NoAnswer;
use crate::{Facts, Finding};
use std::path::Path;

/// The first version in which bridges enable OpenFlow 1.3 by default (Open vSwitch's FAQ, OpenFlow).
const OF13_BY_DEFAULT: (u32, u32) = (2, 3);

pub fn look(facts: &Facts) -> Vec<Finding> {
    let switch = match &facts.openvswitch {
        Ok(switch) => switch,
        Err(error) => return vec![without_database(error)],
    };
    let mut findings = daemon(switch);
    if switch.waits_for_flows() {
        findings.push(waits_for_flows());
    }
    for bridge in switch.bridges() {
        findings.extend(bridges::look(switch, bridge));
        findings.extend(controllers::look(switch, bridge, &facts.plan));
        findings.extend(trace::look(switch, bridge));
    }
    findings.extend(bridges::same_datapath_ids(switch));
    if findings.is_empty() {
        let names: Vec<_> = switch
            .bridges()
            .filter_map(|bridge| bridge.text("name"))
            .collect();
        let sentence = format!(
            "Open vSwitch is running; its bridges have no problems: {}.",
            names.join(", ")
        );
        findings.push(Finding::ok("openvswitch", sentence));
    }
    findings
}

fn without_database(error: &NoAnswer) -> Finding {
    match error {
        NoAnswer::Missing(_) => Finding::note(
            "ovs-not-installed",
            "Open vSwitch is not installed on this machine: also run this on the switches' machines.",
        ),
        NoAnswer::Refused(said) if said.contains("Permission denied") => {
            let sentence = "Open vSwitch's database was not checked: this needs root.";
            Finding::note("ovs-not-looked-at", sentence).command("sudo urtica doctor openvswitch")
        }
        NoAnswer::Refused(said) => {
            let sentence = format!(
                "Open vSwitch is installed but not running, since its database does not answer: {said}."
            );
            Finding::warning("ovs-database-unreachable", sentence).command(control("start"))
        }
    }
}

/// Returns the command that starts or restarts Open vSwitch.
fn control(verb: &str) -> String {
    match Path::new("/run/systemd/system").exists() {
        true => format!("systemctl {verb} openvswitch-switch"),
        false => format!("/usr/share/openvswitch/scripts/ovs-ctl {verb} --system-id=random"),
    }
}

/// Checks the version of ovs-vswitchd, and that it runs.
fn daemon(switch: &OpenVswitch) -> Vec<Finding> {
    let running = match switch.daemon() {
        Ok(version) => version,
        Err(NoAnswer::Refused(said)) if said.contains("Permission denied") => {
            let sentence = "The version of ovs-vswitchd was not checked: this needs root.";
            let finding = Finding::note("ovs-not-looked-at", sentence);
            return vec![finding.command("sudo ovs-appctl version")];
        }
        Err(error) => {
            let sentence = format!("ovs-vswitchd does not answer, so no bridge forwards: {error}.");
            let finding = Finding::problem("ovs-vswitchd-stopped", sentence);
            return vec![finding.command(control("restart"))];
        }
    };
    let installed = switch.installed_version();
    let mut findings = Vec::new();
    if installed.is_some_and(|installed| installed != running) {
        let sentence = format!(
            "ovs-vswitchd {running} is running, but version {} is installed: it was not restarted.",
            installed.unwrap_or_default()
        );
        let finding = Finding::note("ovs-not-restarted", sentence);
        findings.push(finding.command(control("restart")));
    }
    if numbers(running).is_some_and(|version| version < OF13_BY_DEFAULT) {
        let sentence = format!(
            "ovs-vswitchd {running} uses OpenFlow 1.3 only if a bridge is configured to; expected {}.{} or later.",
            OF13_BY_DEFAULT.0, OF13_BY_DEFAULT.1
        );
        let finding = Finding::warning("ovs-too-old", sentence);
        findings.push(finding.command("apt-get install openvswitch-switch"));
    }
    findings
}

fn numbers(version: &str) -> Option<(u32, u32)> {
    let mut numbers = version.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

fn waits_for_flows() -> Finding {
    let sentence = "Open vSwitch waits for flows to be restored (other_config:flow-restore-wait), and does not connect \
                    to controllers: an upgrade was not finished.";
    Finding::problem("ovs-waits-for-flows", sentence)
        .command("ovs-vsctl remove open_vswitch . other_config flow-restore-wait")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_that_need_root_are_notes() {
        let refused = |said: &str| without_database(&NoAnswer::Refused(said.into()));
        let finding = refused("unix:/run/db.sock: database connection failed (Permission denied)");
        assert_eq!(finding.name, "ovs-not-looked-at");
        let finding = refused("database connection failed (No such file or directory)");
        assert_eq!(finding.name, "ovs-database-unreachable");
    }

    #[test]
    fn versions_are_compared_by_number() {
        assert!(numbers("2.17.3") > Some(OF13_BY_DEFAULT));
        assert!(numbers("1.10.0") < Some(OF13_BY_DEFAULT));
        assert_eq!(numbers("unknown"), None);
    }
}
