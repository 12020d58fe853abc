//! Checks of nftables and iptables for rules that drop switches' packets.

mod iptables;
mod nft;
mod rules;

use crate::plan::Plan;
use crate::program::{NoAnswer, ask};
use crate::{Facts, Finding};
use rules::{Fate, Probe, Ruleset};
use std::fs;

/// The tables of the older half of iptables, which nft does not show.
const LEGACY_TABLES: &str = "/proc/net/ip_tables_names";

pub fn look(facts: &Facts) -> Vec<Finding> {
    let plan = &facts.plan;
    let (rulesets, unread) = read();
    let judged = rulesets.iter().flat_map(|ruleset| judge(plan, ruleset));
    let mut findings: Vec<Finding> = judged.chain(unread).collect();
    if findings.is_empty() {
        let sentence = "No firewall rule of this machine drops packets to the controller's ports.";
        findings.push(Finding::ok("firewall", sentence));
    }
    findings
}

/// Reads the rules, and reports unreadable ones.
fn read() -> (Vec<Ruleset>, Vec<Finding>) {
    let mut answers = Vec::new();
    let nft = ask("nft", &["-j", "list", "ruleset"]).map(|said| nft::parse(&said));
    let has_nft = !matches!(nft, Err(NoAnswer::Missing(_)));
    let is_legacy = fs::read_to_string(LEGACY_TABLES).is_ok_and(|names| !names.trim().is_empty());
    let iptables = if is_legacy && has_nft {
        "iptables-legacy"
    } else {
        "iptables"
    };
    if has_nft {
        answers.push(("nft list ruleset", nft));
    }
    if !has_nft || is_legacy {
        let rules = ask(iptables, &["-S"]).map(|said| Some(iptables::parse(&said)));
        answers.push(("iptables -S", rules));
    }
    let (mut rulesets, mut unread) = (Vec::new(), Vec::new());
    for (command, answer) in answers {
        match answer {
            Ok(Some(ruleset)) => rulesets.push(ruleset),
            Ok(None) => unread.push(not_looked_at(command, "the output of nft cannot be parsed")),
            Err(NoAnswer::Missing(_)) => unread.push(not_installed()),
            Err(error) => unread.push(not_looked_at(command, &error.to_string())),
        }
    }
    (rulesets, unread)
}

fn not_looked_at(command: &str, why: &str) -> Finding {
    let sentence = format!("Firewall rules were not checked: {why}.");
    Finding::note("firewall-not-looked-at", sentence).command(format!("sudo {command}"))
}

fn not_installed() -> Finding {
    let sentence = "Firewall rules were not checked: neither nft nor iptables is installed.";
    Finding::note("firewall-not-looked-at", sentence)
        .command("apt-get install nftables && nft list ruleset")
}

fn judge(plan: &Plan, ruleset: &Ruleset) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (socket, address) in plan.sockets() {
        let probe = Probe {
            port: socket.port(),
            is_local: socket.ip().is_loopback(),
            version: if socket.is_ipv4() { 4 } else { 6 },
        };
        for (chain, fate) in ruleset.fates(probe) {
            let port = probe.port;
            let finding = match fate {
                Fate::Passes => continue,
                Fate::Dropped(by) => Finding::problem(
                    "firewall-drops",
                    format!(
                        "{address}: {by} drops packets to port {port}, so no switch reaches the controller."
                    ),
                ),
                Fate::DroppedForSome(by) => Finding::note(
                    "firewall-drops-some",
                    format!(
                        "{address}: {by} may drop packets of some switches to port {port}, since it depends on more \
                         than the port."
                    ),
                ),
            };
            findings.push(finding.command(ruleset.command_to_accept(chain, port)));
        }
    }
    findings
}
