//! Any text as what people configure programs by: a firewall's rules, a demand for bandwidth, a router's interfaces and
//! routes. Nothing panics; rules that read are written and read again as the same; an error names a place in the text.

#![no_main]

use libfuzzer_sys::fuzz_target;
use urtica_apps::{Demand, FirewallRules, L3Config, Verdict};

fuzz_target!(|text: &str| {
    read_rules(text);
    read_demand(text);
    if let Err(error) = text.parse::<L3Config>() {
        assert_is_place(text, error.line);
    }
});

fn read_rules(text: &str) {
    match text.parse::<FirewallRules>() {
        Ok(rules) => assert_eq!(written(&rules).parse().as_ref(), Ok(&rules), "{text:?}"),
        Err(error) => assert_is_place(text, error.line),
    }
}

fn read_demand(text: &str) {
    if let Ok(demand) = text.parse::<Demand>() {
        let again = format!("{} {}", demand.bps, demand.match_);
        assert_eq!(again.parse().as_ref(), Ok(&demand), "{text:?}");
    }
}

fn written(rules: &FirewallRules) -> String {
    let lines = rules.rules.iter();
    let lines = lines.map(|rule| format!("{} {}\n", word(rule.verdict), rule.match_));
    lines.collect::<String>() + "default " + word(rules.default)
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Allow => "allow",
        Verdict::Deny => "deny",
    }
}

/// The line after the last is where something was missing.
#[track_caller]
fn assert_is_place(text: &str, line: usize) {
    let lines = text.split('\n').count() + 1;
    assert!((1..=lines).contains(&line), "line {line} of {text:?}");
}
