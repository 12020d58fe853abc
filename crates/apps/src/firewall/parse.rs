//! The text form of rules.
//!
//! ```text
//! # Nobody logs in from 10.*, but for the one machine that may.
//! allow tcp,nw_src=10.1.0.7,tp_dst=22
//! deny  tcp,nw_src=10.0.0.0/8,tp_dst=22
//! default allow
//! ```
//!
//! One rule per line, its match in the syntax of `ovs-ofctl`. The last line decides on packets that no rule matches; it is
//! mandatory, so that the decision is explicit.

use super::fragments;
use super::rules::{FirewallRules, MAX_RULES, Rule, Verdict, why_unusable};
use std::str::FromStr;
use urtica_wire::Match;
use urtica_wire::text::ParseError;

/// The error for an invalid set of rules.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, {problem}")]
pub struct RulesError {
    /// The line, from 1.
    pub line: usize,
    /// The column, the problem, and the expected text.
    pub problem: String,
}

impl FromStr for FirewallRules {
    type Err = RulesError;

    fn from_str(text: &str) -> Result<Self, RulesError> {
        let mut parser = Parser::default();
        for line in text.lines() {
            parser.line += 1;
            parser.take(line).map_err(|problem| parser.error(problem))?;
        }
        parser.line += 1;
        parser.finish()
    }
}

/// The rules parsed so far.
#[derive(Default)]
struct Parser {
    line: usize,
    rules: Vec<Rule>,
    default: Option<Verdict>,
}

impl Parser {
    fn error(&self, problem: String) -> RulesError {
        RulesError {
            line: self.line,
            problem,
        }
    }

    fn take(&mut self, line: &str) -> Result<(), String> {
        let mut rest = Rest::new(line);
        let word = rest.take_word();
        if word.text.is_empty() {
            return Ok(());
        }
        if self.default.is_some() {
            return Err(word.problem("follows the default, so it would never apply", "nothing"));
        }
        match word.text {
            "allow" => self.add(Verdict::Allow, rest),
            "deny" => self.add(Verdict::Deny, rest),
            "default" => {
                self.default = Some(parse_default(rest)?);
                Ok(())
            }
            _ => Err(word.problem("is not a verdict", "allow, deny or default")),
        }
    }

    fn add(&mut self, verdict: Verdict, match_: Rest) -> Result<(), String> {
        if self.rules.len() == MAX_RULES {
            return Err(match_.problem("is one rule too many", &format!("at most {MAX_RULES}")));
        }
        let (text, match_) = (match_, parse_match(match_)?);
        if verdict == Verdict::Allow && fragments::includes_hidden(&match_) {
            let problem = "allows port 0, which stands for the hidden ports of fragments";
            return Err(text.problem(problem, "other ports"));
        }
        self.rules.push(Rule { verdict, match_ });
        Ok(())
    }

    fn finish(self) -> Result<FirewallRules, RulesError> {
        match self.default {
            Some(default) => Ok(FirewallRules {
                rules: self.rules,
                default,
            }),
            None => {
                let end = Rest::new("");
                let expected = "default allow, or default deny";
                Err(self.error(end.problem("where the last line should be", expected)))
            }
        }
    }
}

fn parse_default(verdict: Rest) -> Result<Verdict, String> {
    match verdict.text {
        "allow" => Ok(Verdict::Allow),
        "deny" => Ok(Verdict::Deny),
        _ => Err(verdict.problem("is not a verdict", "allow or deny")),
    }
}

fn parse_match(rest: Rest) -> Result<Match<'static>, String> {
    if rest.text.is_empty() {
        let expected = "a match; the last line, default, decides on all other packets";
        return Err(rest.problem("where the match should be", expected));
    }
    // White space before a match has no meaning: this padding makes the columns of errors count from the start of the line.
    let padded = " ".repeat(rest.at) + rest.text;
    let match_ = padded
        .parse()
        .map_err(|error: ParseError| error.to_string())?;
    match why_unusable(&match_) {
        None => Ok(match_),
        Some((problem, expected)) => Err(rest.problem(&problem, expected)),
    }
}

/// The rest of a line, without comment and surrounding white space, and its position.
#[derive(Clone, Copy)]
struct Rest<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Rest<'t> {
    fn new(line: &'t str) -> Self {
        let code = line.split_once('#').map_or(line, |(code, _)| code);
        Self { text: code, at: 0 }.trimmed()
    }

    fn trimmed(self) -> Self {
        let text = self.text.trim_ascii_start();
        Self {
            at: self.at + self.text.len() - text.len(),
            text: text.trim_ascii_end(),
        }
    }

    /// Removes and returns the first word, which is empty at the end.
    fn take_word(&mut self) -> Self {
        let end = self.text.find(|letter: char| letter.is_ascii_whitespace());
        let (word, rest) = self.text.split_at(end.unwrap_or(self.text.len()));
        let word = Self {
            text: word,
            at: self.at,
        };
        *self = Self {
            text: rest,
            at: self.at + word.text.len(),
        }
        .trimmed();
        word
    }

    /// Formats an error like a [`ParseError`].
    fn problem(self, problem: &str, expected: &str) -> String {
        let column = self.at + 1;
        match self.text {
            "" => format!("column {column}: nothing {problem}; expected {expected}"),
            text => format!("column {column}: '{text}' {problem}; expected {expected}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        let parsed: Result<FirewallRules, _> = text.parse();
        parsed.expect_err(text).to_string()
    }

    #[test]
    fn reads_rules_comments_and_the_default() {
        let text = "# nobody logs in\n\n  deny tcp,tp_dst=22 # ssh\nallow\tip,nw_src=10.0.0.0/8\ndefault deny\n";
        let rules: FirewallRules = text.parse().unwrap();
        let rule = |verdict, match_: &str| Rule {
            verdict,
            match_: match_.parse().unwrap(),
        };
        let expected = [
            rule(Verdict::Deny, "tcp,tp_dst=22"),
            rule(Verdict::Allow, "ip,nw_src=10.0.0.0/8"),
        ];
        assert_eq!(rules.rules, expected);
        assert_eq!(rules.default, Verdict::Deny);
    }

    #[test]
    fn errors_name_position_and_expected_text() {
        for (text, expected) in [
            (
                "",
                "line 1, column 1: nothing where the last line should be; expected default allow, or default deny",
            ),
            (
                "\n dney tcp",
                "line 2, column 2: 'dney' is not a verdict; expected allow, deny or default",
            ),
            (
                "deny in_prot=1",
                "line 1, column 6: 'in_prot' is not a match field or keyword; did you mean 'in_port'?",
            ),
            (
                "deny  tcp,tp_dst=x",
                "line 1, column 18: 'x' is not a number; expected decimal digits, or 0x and hex digits",
            ),
            (
                "deny",
                "line 1, column 5: nothing where the match should be; expected a match; the last line, default, \
                 decides on all other packets",
            ),
            (
                "default maybe",
                "line 1, column 9: 'maybe' is not a verdict; expected allow or deny",
            ),
            (
                "default deny\nallow tcp",
                "line 2, column 1: 'allow' follows the default, so it would never apply; expected nothing",
            ),
        ] {
            assert_eq!(error(text), expected);
        }
    }

    #[test]
    fn rejects_rules_without_effect() {
        for (text, expected) in [
            (
                "deny nw_src=10.0.0.1",
                "expected one of ip, arp or a protocol of IPv4, such as tcp, with it",
            ),
            ("deny tcp_dst=22", "expected tcp or tcp6 with it"),
            ("deny nw_proto=6", "expected one of ip, ipv6, arp with it"),
            ("deny ,", "',' names no field; expected ports, Ethernet"),
            ("deny arp", "'arp' matches packets that always pass"),
            ("deny dl_type=0x88cc", "matches packets that always pass"),
            (
                "allow tcp,tp_dst=0",
                "allows port 0, which stands for the hidden ports of fragments; expected other ports",
            ),
            (
                "deny metadata=1",
                "has the unusable field metadata; expected ports, Ethernet",
            ),
        ] {
            let error = error(text);
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
