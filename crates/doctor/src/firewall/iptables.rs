//! The rules of iptables, as `iptables -S` prints them.

use super::rules::{Chain, Condition, Rule, Ruleset, Verdict};
use std::collections::BTreeMap;

pub fn parse(printed: &str) -> Ruleset {
    let mut chains: BTreeMap<String, Chain> = BTreeMap::new();
    for line in printed.lines() {
        let words = split(line);
        match words.as_slice() {
            ["-P", name, policy] => {
                let chain = chains.entry((*name).to_owned()).or_default();
                chain.is_base = *name == "INPUT";
                chain.drops_the_rest = *policy == "DROP";
                chain.version = Some(4);
            }
            ["-A", name, rest @ ..] => {
                let chain = chains.entry((*name).to_owned()).or_default();
                chain.rules.push(parse_rule(rest, line));
            }
            _ => {}
        }
    }
    Ruleset {
        chains,
        accept: |chain, port| format!("iptables -I {chain} -p tcp --dport {port} -j ACCEPT"),
    }
}

/// The words of a line; one may be in quotes, and have spaces then.
fn split(line: &str) -> Vec<&str> {
    let parts = line.split('"').enumerate();
    let words = parts.flat_map(|(index, part)| match index % 2 {
        0 => part.split_whitespace().collect(),
        _ => vec![part],
    });
    words.collect()
}

fn parse_rule(words: &[&str], line: &str) -> Rule {
    let mut rule = Rule {
        conditions: Vec::new(),
        verdict: Verdict::None,
        name: format!("the firewall's rule `{line}`"),
    };
    let mut words = words.iter();
    let mut negated = false;
    while let Some(word) = words.next() {
        let mut value = || words.next().copied().unwrap_or_default();
        match *word {
            "!" => {
                negated = true;
                continue;
            }
            "-p" => {
                let is_tcp = matches!(value(), "tcp" | "all");
                rule.conditions.push(Condition::IsTcp(is_tcp != negated));
            }
            "--dport" | "--dports" => rule.conditions.push(port(value(), negated)),
            "-i" => rule.conditions.push(match value() {
                "lo" => Condition::IsLocal(!negated),
                _ => Condition::Other,
            }),
            "--state" | "--ctstate" => {
                let is_new = value().split(',').any(|state| state == "NEW");
                rule.conditions.push(Condition::IsNew(is_new != negated));
            }
            "-j" | "-g" => {
                rule.verdict = verdict(value());
                break;
            }
            "--comment" => drop(value()),
            "-m" => match value() {
                "tcp" | "multiport" | "state" | "conntrack" | "comment" => {}
                _ => rule.conditions.push(Condition::Other),
            },
            _ => rule.conditions.push(Condition::Other),
        }
        negated = false;
    }
    rule
}

fn verdict(target: &str) -> Verdict {
    match target {
        "ACCEPT" => Verdict::Accept,
        "DROP" | "REJECT" => Verdict::Drop,
        "RETURN" => Verdict::Return,
        "LOG" | "NFLOG" | "MARK" => Verdict::None,
        chain => Verdict::Jump(chain.to_owned()),
    }
}

/// `6653`, `6000:7000`, or several of them with commas.
fn port(text: &str, negated: bool) -> Condition {
    let one = |text: &str| -> Option<(u16, u16)> {
        let (from, to) = text.split_once(':').unwrap_or((text, text));
        Some((from.parse().ok()?, to.parse().ok()?))
    };
    let ranges: Option<Vec<_>> = text.split(',').map(one).collect();
    ranges.map_or(Condition::Other, |ranges| Condition::Port {
        ranges,
        negated,
    })
}

#[cfg(test)]
mod tests {
    use super::super::rules::{Fate, Probe};
    use super::*;

    fn fate(rules: &str) -> Fate {
        let probe = Probe {
            port: 6653,
            is_local: false,
            version: 4,
        };
        let ruleset = parse(rules);
        let (chain, fate) = ruleset.fates(probe).next().unwrap();
        let command = "iptables -I INPUT -p tcp --dport 6653 -j ACCEPT";
        assert_eq!(ruleset.command_to_accept(chain, 6653), command);
        fate
    }

    #[test]
    fn what_a_usual_firewall_has_is_understood() {
        let usual = "-P INPUT DROP\n-P FORWARD ACCEPT\n-N mine\n-A INPUT -i lo -j ACCEPT\n\
                     -A INPUT -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT\n-A INPUT -j mine\n\
                     -A mine -p udp -m udp --dport 6653 -j ACCEPT\n";
        assert!(matches!(fate(usual), Fate::Dropped(by) if by.contains("policy")));
        for accepting in [
            "-A mine -p tcp -m tcp --dport 6653 -j ACCEPT",
            "-A mine -p tcp -m multiport --dports 22,6000:7000 -j ACCEPT",
            "-A mine -p tcp -m tcp ! --dport 22 -j ACCEPT",
            "-A mine -p tcp -m comment --comment \"of switches -j DROP\" -m tcp --dport 6653 -j ACCEPT",
        ] {
            assert_eq!(
                fate(&format!("{usual}{accepting}\n")),
                Fate::Passes,
                "{accepting}"
            );
        }
    }

    #[test]
    fn rules_that_drop_are_named() {
        let rule =
            "-A INPUT -p tcp -m tcp --dport 6653 -j REJECT --reject-with icmp-port-unreachable";
        let by = format!("the firewall's rule `{rule}`");
        assert_eq!(
            fate(&format!("-P INPUT ACCEPT\n{rule}\n")),
            Fate::Dropped(by)
        );
        let some = "-P INPUT ACCEPT\n-A INPUT -s 10.0.0.0/8 -p tcp -m tcp --dport 6653 -j DROP\n";
        assert!(matches!(fate(some), Fate::DroppedForSome(_)));
    }

    #[test]
    fn broken_lines_do_no_harm() {
        for line in [
            "-A INPUT -p",
            "-A INPUT --comment \"",
            "-A INPUT --comment",
            "-A INPUT !",
            "-A INPUT --dport x -j",
            "-A",
        ] {
            parse(&format!("-P INPUT ACCEPT\n{line}\n"));
        }
    }
}
