//! Checks of the firewall: a connection through a copy of each of its tables.
//!
//! **How.** The kernel itself decides, in two private network namespaces (`copy.rs`): one has the machine's interfaces
//! and addresses, and one table; from the other a switch connects. So sets, jumps, policies and replies count as on the
//! machine, whose own rules and interfaces stay unchanged. The suggested commands are tried there, too.

mod copy;
mod interfaces;
mod tables;

use crate::plan::Plan;
use crate::program::NoAnswer;
use crate::{Facts, Finding};
use copy::{Copy, Verdict};
use interfaces::{Entrance, Interface};
use std::net::SocketAddr;
use tables::Table;
use urtica_socket::Address;

pub fn look(facts: &Facts) -> Vec<Finding> {
    let (tables, mut findings) = tables::read();
    if !tables.is_empty() {
        let judged = judge_all(&facts.plan, &tables);
        findings.extend(judged.unwrap_or_else(|error| vec![not_tried(&error)]));
    }
    if findings.is_empty() {
        let sentence = "No firewall rule of this machine drops packets to the controller's ports.";
        findings.push(Finding::ok("firewall", sentence));
    }
    findings
}

fn not_tried(error: &NoAnswer) -> Finding {
    let sentence = format!("Firewall rules were not checked: {error}.");
    Finding::note("firewall-not-looked-at", sentence).command("sudo urtica doctor firewall")
}

fn judge_all(plan: &Plan, tables: &[Table]) -> Result<Vec<Finding>, NoAnswer> {
    let interfaces = interfaces::read()?;
    let judge = |copy: &mut Copy| {
        let mut findings = Vec::new();
        for table in tables {
            match copy.load(table) {
                Ok(()) => findings.extend(judge(plan, copy, table, &interfaces)),
                Err(error) => findings.push(tables::not_read(table, &error)),
            }
            copy.unload(table);
        }
        findings
    };
    Copy::with(&interfaces, judge)
}

/// Tests the table in the copy.
fn judge(plan: &Plan, copy: &Copy, table: &Table, interfaces: &[Interface]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (socket, address) in plan.sockets() {
        let entrances = interfaces::entrances(interfaces, socket);
        let tried: Vec<_> = entrances
            .iter()
            .filter_map(|entrance| Some((entrance, copy.connect(entrance, socket.port())?)))
            .collect();
        let blocked = tried
            .iter()
            .filter(|(_, verdict)| *verdict != Verdict::Passes);
        if let Some((entrance, verdict)) = blocked.clone().next() {
            let is_for_all = blocked.count() == tried.len() && !table.depends_on_source();
            let finding = blocked_finding(address, table, entrance, *verdict, socket, is_for_all);
            let commands = commands(copy, table, entrance, socket.port());
            findings.push(commands.iter().fold(finding, Finding::command));
        }
    }
    findings
}

fn blocked_finding(
    address: &Address,
    table: &Table,
    entrance: &Entrance,
    verdict: Verdict,
    socket: SocketAddr,
    is_for_all: bool,
) -> Finding {
    let does = match verdict {
        Verdict::Refused => "rejects",
        _ => "drops",
    };
    let (table, port) = (table.name(), socket.port());
    let sentence = format!(
        "{address}: the firewall's table {table} {does} connections to port {port} {entrance}"
    );
    match is_for_all {
        true => Finding::problem(
            "firewall-drops",
            format!("{sentence}, so no switch reaches the controller."),
        ),
        false => Finding::note(
            "firewall-drops-some",
            format!("{sentence}, but may accept those of other switches."),
        ),
    }
}

/// Returns the commands after which a connection passes in the copy: the first that suffices, or all of them.
fn commands(copy: &Copy, table: &Table, entrance: &Entrance, port: u16) -> Vec<String> {
    let passes = || copy.connect(entrance, port) == Some(Verdict::Passes);
    let candidates = table.commands_to_accept(port);
    for command in &candidates {
        copy.run(command);
        let suffices = passes();
        copy.reload(table);
        if suffices {
            return vec![tables::for_manager(command, table, port)];
        }
    }
    candidates.iter().for_each(|command| copy.run(command));
    match passes() {
        true => candidates,
        false => vec![table.command_to_list()],
    }
}
