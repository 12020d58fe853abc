//! The rules of nftables, as `nft -j list ruleset` prints them: `libnftables-json(5)`.

use super::rules::{Chain, Condition, Rule, Ruleset, Verdict};
use crate::finding::quoted;
use serde_json::Value;
use std::collections::BTreeMap;

/// Where packets to this machine come through.
const HOOKS: [&str; 2] = ["input", "prerouting"];

/// The families whose chains see TCP over IPv4 or IPv6.
const FAMILIES: [&str; 3] = ["inet", "ip", "ip6"];

/// Returns `None` for an invalid ruleset.
pub fn parse(printed: &str) -> Option<Ruleset> {
    let printed: Value = serde_json::from_str(printed).ok()?;
    let mut chains: BTreeMap<String, Chain> = BTreeMap::new();
    for object in printed.get("nftables")?.as_array()? {
        if let Some(chain) = object.get("chain") {
            let name = name_of(chain, "name")?;
            chains.entry(name).or_default().take(chain);
        }
        if let Some(rule) = object.get("rule") {
            let chain = chains.entry(name_of(rule, "chain")?).or_default();
            chain.rules.push(parse_rule(rule)?);
        }
    }
    Some(Ruleset {
        chains,
        accept: |chain, port| {
            let chain: Vec<_> = chain.split(' ').map(quoted).collect();
            format!(
                "nft insert rule {} tcp dport {port} accept",
                chain.join(" ")
            )
        },
    })
}

fn text<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object.get(key)?.as_str()
}

/// `inet filter input`: its name on nft's command line.
fn name_of(object: &Value, key: &str) -> Option<String> {
    let table = text(object, "table")?;
    Some(format!(
        "{} {table} {}",
        text(object, "family")?,
        text(object, key)?
    ))
}

impl Chain {
    fn take(&mut self, object: &Value) {
        let hook = text(object, "hook").unwrap_or_default();
        let family = text(object, "family").unwrap_or_default();
        self.is_base = HOOKS.contains(&hook) && text(object, "type") == Some("filter");
        self.is_base &= FAMILIES.contains(&family);
        self.version = match family {
            "ip" => Some(4),
            "ip6" => Some(6),
            _ => None,
        };
        self.drops_the_rest = text(object, "policy") == Some("drop");
    }
}

fn parse_rule(rule: &Value) -> Option<Rule> {
    let chain = name_of(rule, "chain")?;
    let mut parsed = Rule {
        conditions: Vec::new(),
        verdict: Verdict::None,
        name: format!(
            "the firewall's rule {} of chain {chain}",
            rule.get("handle")?
        ),
    };
    let table = chain.rsplit_once(' ')?.0;
    for statement in rule.get("expr")?.as_array()? {
        let (kind, value) = statement.as_object()?.iter().next()?;
        let target = || Some(format!("{table} {}", text(value, "target")?));
        match kind.as_str() {
            "match" => parsed.conditions.extend(parse_match(value)),
            "accept" => parsed.verdict = Verdict::Accept,
            "drop" | "reject" => parsed.verdict = Verdict::Drop,
            "return" => parsed.verdict = Verdict::Return,
            "jump" | "goto" => parsed.verdict = Verdict::Jump(target()?),
            "counter" | "log" | "comment" | "mangle" => {}
            _ => parsed.conditions.push(Condition::Other),
        }
    }
    Some(parsed)
}

/// Parses one `match` into conditions.
fn parse_match(value: &Value) -> Vec<Condition> {
    let right = value.get("right").unwrap_or(&Value::Null);
    let negated = match text(value, "op") {
        Some("==" | "in") => false,
        Some("!=") => true,
        _ => return vec![Condition::Other],
    };
    let left = value.get("left").unwrap_or(&Value::Null);
    let field = |kind: &str, key: &str| left.get(kind).and_then(|of| text(of, key));
    if let Some("dport") = field("payload", "field") {
        return match field("payload", "protocol") {
            Some("tcp") => vec![port(right, negated)],
            Some("th") => vec![port(right, negated)],
            _ => vec![Condition::IsTcp(false)],
        };
    }
    match (field("meta", "key").or(field("ct", "key")), words(right)) {
        (Some("l4proto"), Some(words)) => vec![Condition::IsTcp(words.contains(&"tcp") != negated)],
        (Some("iif" | "iifname"), Some(words)) => match words.as_slice() {
            ["lo"] => vec![Condition::IsLocal(!negated)],
            _ if negated => vec![Condition::Other],
            // From a certain device, which is not the machine itself.
            _ => vec![Condition::IsLocal(false), Condition::Other],
        },
        (Some("state"), Some(words)) => vec![Condition::IsNew(words.contains(&"new") != negated)],
        _ => match field("payload", "field") {
            Some("protocol" | "nexthdr") => match words(right) {
                Some(words) => vec![Condition::IsTcp(words.contains(&"tcp") != negated)],
                None => vec![Condition::Other],
            },
            Some("sport") if field("payload", "protocol") == Some("udp") => {
                vec![Condition::IsTcp(false)]
            }
            _ if field("payload", "protocol").is_some_and(|name| name.starts_with("icmp")) => {
                vec![Condition::IsTcp(false)]
            }
            _ => vec![Condition::Other],
        },
    }
}

/// One word, a list, or a set in braces.
fn words(value: &Value) -> Option<Vec<&str>> {
    let list = value.get("set").unwrap_or(value);
    match list.as_array() {
        Some(list) => list.iter().map(Value::as_str).collect(),
        None => list
            .as_str()
            .filter(|word| !word.starts_with('@'))
            .map(|word| vec![word]),
    }
}

fn port(right: &Value, negated: bool) -> Condition {
    let one = |value: &Value| -> Option<(u16, u16)> {
        let number = |value: &Value| u16::try_from(value.as_u64()?).ok();
        match value
            .get("range")
            .and_then(Value::as_array)
            .map(Vec::as_slice)
        {
            Some([from, to]) => Some((number(from)?, number(to)?)),
            _ => Some((number(value)?, number(value)?)),
        }
    };
    let ranges = match right.get("set").and_then(Value::as_array) {
        Some(set) => set.iter().map(one).collect(),
        None => one(right).map(|range| vec![range]),
    };
    ranges.map_or(Condition::Other, |ranges| Condition::Port {
        ranges,
        negated,
    })
}

#[cfg(test)]
mod tests {
    use super::super::rules::{Fate, Probe};
    use super::*;

    /// Returns the fate of a packet to port 6653 in a base chain with these rules.
    fn fate(policy: &str, rules: &[&str]) -> Fate {
        let rules: Vec<_> = (4..)
            .zip(rules)
            .map(|(handle, expr)| {
                format!(r#",{{"rule":{{"family":"inet","table":"f","chain":"in","handle":{handle},"expr":[{expr}]}}}}"#)
            })
            .collect();
        let printed = format!(
            r#"{{"nftables":[{{"metainfo":{{}}}},{{"table":{{"family":"inet","name":"f"}}}},
               {{"chain":{{"family":"inet","table":"f","name":"in","handle":1,"type":"filter","hook":"input","prio":0,"policy":"{policy}"}}}}{}]}}"#,
            rules.concat()
        );
        let ruleset = parse(&printed).unwrap();
        let probe = Probe {
            port: 6653,
            is_local: false,
            version: 4,
        };
        let (chain, fate) = ruleset.fates(probe).next().unwrap();
        let command = "nft insert rule inet f in tcp dport 6653 accept";
        assert_eq!(ruleset.command_to_accept(chain, 6653), command);
        fate
    }

    fn dport(op: &str, right: &str) -> String {
        format!(
            r#"{{"match":{{"op":"{op}","left":{{"payload":{{"protocol":"tcp","field":"dport"}}}},"right":{right}}}}}"#
        )
    }

    #[test]
    fn ports_are_compared_with_numbers_ranges_and_sets() {
        let dropped = || Fate::Dropped("the firewall's rule 4 of chain inet f in".into());
        for (op, right, is_dropped) in [
            ("==", "6653", true),
            ("==", "6633", false),
            ("!=", "22", true),
            ("==", r#"{"range":[6000,7000]}"#, true),
            ("==", r#"{"set":[22,{"range":[6650,6660]}]}"#, true),
            ("!=", r#"{"set":[6653,22]}"#, false),
        ] {
            let rule = format!(r#"{},{{"counter":null}},{{"drop":null}}"#, dport(op, right));
            let expected = if is_dropped { dropped() } else { Fate::Passes };
            assert_eq!(fate("accept", &[&rule]), expected, "{op} {right}");
        }
        let named = format!(r#"{},{{"reject":null}}"#, dport("==", r#""@ports""#));
        assert!(matches!(fate("accept", &[&named]), Fate::DroppedForSome(_)));
    }

    #[test]
    fn what_a_usual_firewall_has_is_understood() {
        let established = r#"{"match":{"op":"in","left":{"ct":{"key":"state"}},"right":["established","related"]}},{"accept":null}"#;
        let local = r#"{"match":{"op":"==","left":{"meta":{"key":"iifname"}},"right":"lo"}},{"accept":null}"#;
        let icmp = r#"{"match":{"op":"==","left":{"meta":{"key":"l4proto"}},"right":"icmp"}},{"accept":null}"#;
        let usual = [established, local, icmp];
        assert!(matches!(fate("drop", &usual), Fate::Dropped(_)));
        let accept = format!(r#"{},{{"accept":null}}"#, dport("==", "6653"));
        assert_eq!(fate("drop", &[established, local, &accept]), Fate::Passes);
    }

    #[test]
    fn what_is_no_ruleset_is_none() {
        for printed in ["", "{}", "[]", r#"{"nftables":[{"rule":{}}]}"#] {
            assert!(parse(printed).is_none(), "{printed}");
        }
    }
}
