//! The firewall's tables, as text that can be loaded again.

use crate::Finding;
use crate::program::{NoAnswer, ask};
use std::fs;

/// The words by which nft marks untranslatable rules in tables of iptables: only iptables can load these tables again.
const UNTRANSLATED: [&str; 2] = ["xt match", "xt target"];

/// A table of the firewall.
pub struct Table {
    /// The name, such as `inet filter`; for iptables, the program's name comes first.
    name: String,
    manager: Manager,
    /// The text that the manager's program loads.
    pub rules: String,
}

/// The program that prints and loads a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manager {
    Nft,
    /// The program's name, without `-save` and `-restore`.
    Iptables(&'static str),
}

/// A base chain, which the kernel calls from a hook.
#[derive(Debug, PartialEq, Eq)]
struct BaseChain<'a> {
    name: &'a str,
    hook: &'a str,
}

impl Table {
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the program that loads the text, with arguments.
    pub fn loader(&self) -> (String, &'static [&'static str]) {
        match self.manager {
            Manager::Nft => ("nft".to_owned(), &["-f", "-"]),
            Manager::Iptables(program) => (format!("{program}-restore"), &[]),
        }
    }

    /// Returns the command that removes all tables of the manager.
    pub fn command_to_flush(&self) -> String {
        match self.manager {
            Manager::Nft => "nft flush ruleset".to_owned(),
            Manager::Iptables(program) => {
                let policies = ["INPUT", "OUTPUT", "FORWARD"];
                let policies = policies.map(|chain| format!("{program} -P {chain} ACCEPT"));
                format!(
                    "{program} -F; {program} -t raw -F; {program} -t mangle -F; {program} -X; {}",
                    policies.join("; ")
                )
            }
        }
    }

    /// Returns the command that prints the table.
    pub fn command_to_list(&self) -> String {
        match self.manager {
            Manager::Nft => format!("nft list table {}", self.name),
            Manager::Iptables(program) => format!("{program}-save"),
        }
    }

    /// Returns commands that let connections to a port pass: one for each base chain of incoming packets or their
    /// replies.
    pub fn commands_to_accept(&self, port: u16) -> Vec<String> {
        match self.manager {
            Manager::Nft => {
                let chains = base_chains(&self.rules).into_iter();
                let accept = |BaseChain { name, hook }| {
                    let side = match hook {
                        "input" | "prerouting" | "ingress" => "dport",
                        "output" | "postrouting" => "sport",
                        _ => return None,
                    };
                    let table = &self.name;
                    Some(format!(
                        "nft insert rule {table} {name} tcp {side} {port} accept"
                    ))
                };
                chains.filter_map(accept).collect()
            }
            Manager::Iptables(program) => {
                let chains = [("INPUT", "dport"), ("OUTPUT", "sport")];
                let accept = |(chain, side)| {
                    format!("{program} -I {chain} -p tcp --{side} {port} -j ACCEPT")
                };
                chains.map(accept).to_vec()
            }
        }
    }

    /// Returns `true` if it accepts packets of some senders only: a test with one sender says nothing about others.
    pub fn depends_on_source(&self) -> bool {
        let names_source = |line: &str| {
            let words: Vec<_> = line.split_whitespace().collect();
            ["saddr", "-s", "--match-set"]
                .iter()
                .any(|word| words.contains(word))
        };
        let accepts = |line: &str| line.to_ascii_lowercase().contains("accept");
        self.rules
            .lines()
            .any(|line| names_source(line) && accepts(line))
    }
}

/// Returns the command of the program that manages the firewall for users, if any, since other changes are lost at its
/// next reload. Otherwise returns `command`.
pub fn for_manager(command: &str, table: &Table, port: u16) -> String {
    match () {
        () if table.name.contains("firewalld") => format!("firewall-cmd --add-port={port}/tcp"),
        () if table.rules.contains("ufw-") => format!("ufw allow {port}/tcp"),
        () => command.to_owned(),
    }
}

fn base_chains(rules: &str) -> Vec<BaseChain<'_>> {
    let mut chains = Vec::new();
    let mut name = "";
    for line in rules.lines() {
        let words: Vec<_> = line.split_whitespace().collect();
        match words.as_slice() {
            ["chain", chain, "{", ..] => name = chain,
            ["type", _, "hook", hook, ..] => chains.push(BaseChain { name, hook }),
            _ => {}
        }
    }
    chains
}

/// Reads all tables that have rules, and reports unreadable tables.
pub fn read() -> (Vec<Table>, Vec<Finding>) {
    let (mut tables, mut unread) = (Vec::new(), Vec::new());
    let mut add = |command: &str, answer: Result<Vec<Table>, NoAnswer>| match answer {
        Ok(read) => tables.extend(read),
        Err(error) => unread.push(not_looked_at(command, &error.to_string())),
    };
    let nft = read_nft();
    let is_missing = matches!(nft, Err(NoAnswer::Missing(_)));
    if !is_missing {
        add("nft list ruleset", nft);
    }
    let mut has_iptables = false;
    for (program, names) in [
        ("iptables", "/proc/net/ip_tables_names"),
        ("ip6tables", "/proc/net/ip6_tables_names"),
    ] {
        let is_legacy = fs::read_to_string(names).is_ok_and(|names| !names.trim().is_empty());
        if !is_missing && !is_legacy {
            continue;
        }
        match read_iptables(program, is_legacy) {
            Err(NoAnswer::Missing(_)) => {}
            answer => {
                has_iptables = true;
                add(&format!("{program}-save"), answer);
            }
        }
    }
    if is_missing && !has_iptables {
        unread.push(not_installed());
    }
    (tables, unread)
}

/// Reads the tables of nftables; tables of iptables are read by its own program.
fn read_nft() -> Result<Vec<Table>, NoAnswer> {
    let listed = ask("nft", &["list", "tables"])?;
    let names = listed
        .lines()
        .filter_map(|line| line.strip_prefix("table "));
    let mut tables = Vec::new();
    for name in names {
        let Some((family, table)) = name.split_once(' ') else {
            continue;
        };
        let rules = ask("nft", &["list", "table", family, table])?;
        let owner = match family {
            "ip6" => "ip6tables",
            _ => "iptables",
        };
        tables.push(match UNTRANSLATED.iter().any(|word| rules.contains(word)) {
            true => Table {
                name: format!("{owner} {table}"),
                manager: Manager::Iptables(owner),
                rules: ask(&format!("{owner}-save"), &["-t", table])?,
            },
            false => Table {
                name: name.to_owned(),
                manager: Manager::Nft,
                rules,
            },
        });
    }
    Ok(tables)
}

/// Reads all tables of iptables or ip6tables as one.
fn read_iptables(program: &'static str, is_legacy: bool) -> Result<Vec<Table>, NoAnswer> {
    let legacy = match program {
        "ip6tables" => "ip6tables-legacy",
        _ => "iptables-legacy",
    };
    let programs = if is_legacy {
        vec![legacy, program]
    } else {
        vec![program]
    };
    let mut last = Err(NoAnswer::Missing(program.to_owned()));
    for program in programs {
        last = ask(&format!("{program}-save"), &[]).map(|rules| {
            let table = Table {
                name: program.to_owned(),
                manager: Manager::Iptables(program),
                rules,
            };
            vec![table]
        });
        if !matches!(last, Err(NoAnswer::Missing(_))) {
            break;
        }
    }
    last
}

fn not_looked_at(command: &str, why: &str) -> Finding {
    let sentence = format!("Firewall rules were not checked: {why}.");
    Finding::note("firewall-not-looked-at", sentence).command(format!("sudo {command}"))
}

/// Reports a table that cannot be loaded into the copy.
pub fn not_read(table: &Table, error: &NoAnswer) -> Finding {
    let why = format!("a copy of table {} cannot be loaded: {error}", table.name);
    not_looked_at(&table.command_to_list(), &why)
}

fn not_installed() -> Finding {
    let sentence = "Firewall rules were not checked: neither nft nor iptables is installed.";
    Finding::note("firewall-not-looked-at", sentence)
        .command("apt-get install nftables && nft list ruleset")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(name: &str, manager: Manager, rules: &str) -> Table {
        Table {
            name: name.to_owned(),
            manager,
            rules: rules.to_owned(),
        }
    }

    const GUARD: &str = "table inet guard {
        set ports {
            type inet_service
            elements = { 6633, 6653 }
        }
        chain in {
            type filter hook input priority filter; policy accept;
            tcp dport @ports reject
        }
        chain more {
            counter
        }
        chain out {
            type filter hook output priority filter; policy drop;
        }
        chain through {
            type filter hook forward priority filter; policy drop;
        }
    }";

    #[test]
    fn rules_are_inserted_in_the_base_chains_of_packets_and_replies() {
        let guard = table("inet guard", Manager::Nft, GUARD);
        let expected = [
            "nft insert rule inet guard in tcp dport 6653 accept",
            "nft insert rule inet guard out tcp sport 6653 accept",
        ];
        assert_eq!(guard.commands_to_accept(6653), expected);
        let old = table("ip6tables", Manager::Iptables("ip6tables"), "");
        let expected = [
            "ip6tables -I INPUT -p tcp --dport 6653 -j ACCEPT",
            "ip6tables -I OUTPUT -p tcp --sport 6653 -j ACCEPT",
        ];
        assert_eq!(old.commands_to_accept(6653), expected);
    }

    #[test]
    fn a_firewall_with_a_manager_is_changed_by_it() {
        let for_table = |name, rules| for_manager("nft …", &table(name, Manager::Nft, rules), 6653);
        let expected = "firewall-cmd --add-port=6653/tcp";
        assert_eq!(for_table("inet firewalld", ""), expected);
        assert_eq!(
            for_table("ip filter", "jump ufw-before-input"),
            "ufw allow 6653/tcp"
        );
        assert_eq!(for_table("inet guard", GUARD), "nft …");
    }

    #[test]
    fn tables_that_accept_some_senders_are_recognised() {
        let depends = |rules| table("t", Manager::Nft, rules).depends_on_source();
        assert!(depends("ip saddr 10.0.0.0/8 tcp dport 6653 accept"));
        assert!(depends("-A INPUT -s 10.0.0.0/8 -p tcp -j ACCEPT"));
        assert!(!depends("ip saddr 10.0.0.0/8 drop\ntcp dport 22 accept"));
        assert!(!depends(GUARD));
    }
}
