//! The process's limits.

use crate::{Facts, Finding};
use rustix::process::{Resource, getrlimit};

/// Descriptors in addition to switches': shards, timers, files, HTTP.
const OTHER_FILES: u64 = 64;

/// The length of `Listener`'s accept queue.
const BACKLOG: u64 = 4096;

const SOMAXCONN: &str = "/proc/sys/net/core/somaxconn";

pub fn look(facts: &Facts) -> Vec<Finding> {
    let switches = facts.plan.switches;
    let mut findings = vec![open_files(switches)];
    findings.extend(waiting_connections(switches));
    findings
}

/// Checks the hard limit: the controller raises the soft limit to it automatically.
fn open_files(switches: u64) -> Finding {
    let needed = switches.saturating_add(OTHER_FILES);
    match getrlimit(Resource::Nofile).maximum {
        Some(most) if most < needed => Finding::problem(
            "too-few-open-files",
            format!(
                "A process may open at most {most} files, and {switches} switches need about {needed}: some would not \
                 be accepted. For a service, set LimitNOFILE={needed} with systemctl edit urtica."
            ),
        )
        .command(format!("ulimit -n {needed}")),
        _ => Finding::ok(
            "open-files",
            format!("A process may open enough files for {switches} switches."),
        ),
    }
}

fn waiting_connections(switches: u64) -> Option<Finding> {
    let most: u64 = std::fs::read_to_string(SOMAXCONN)
        .ok()?
        .trim()
        .parse()
        .ok()?;
    if most >= switches.min(BACKLOG) {
        return None;
    }
    let sentence = format!(
        "At most {most} connections may wait to be accepted (net.core.somaxconn): if {switches} switches connect at \
         once, some retry a second later."
    );
    let command = format!("sysctl -w net.core.somaxconn={}", switches.min(BACKLOG));
    Some(Finding::warning("short-accept-queue", sentence).command(command))
}
