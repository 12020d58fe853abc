//! Tab completion.

use super::command::VERBS;
use super::names::Names;
use rustyline::completion::Completer;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::Validator;
use rustyline::{Context, Helper};

/// Completes words from a network's names.
pub(super) struct Completion(pub Names);

impl Completion {
    /// Returns the start of the last word of a line, and its completions.
    fn offers(&self, line: &str) -> (usize, Vec<String>) {
        let start = line.rfind(char::is_whitespace).map_or(0, |blank| blank + 1);
        let before: Vec<&str> = line[..start].split_whitespace().collect();
        let mut words: Vec<_> = self.words_after(&before);
        words.retain(|word| word.starts_with(&line[start..]));
        words.sort_unstable();
        words.dedup();
        let blank = match words.len() {
            // With only one completion, the next word can follow.
            1 => " ",
            _ => "",
        };
        let words = words.into_iter().map(|word| format!("{word}{blank}"));
        (start, words.collect())
    }

    fn words_after<'a>(&'a self, before: &[&'a str]) -> Vec<&'a str> {
        let names = &self.0;
        let hosts = || names.hosts.iter().map(|(name, _)| name.as_str());
        let switches = || names.switches.iter().map(String::as_str);
        match *before {
            [] => VERBS.iter().map(|verb| verb.name).chain(hosts()).collect(),
            ["help"] => VERBS.iter().map(|verb| verb.name).collect(),
            ["flows" | "switch"] => switches().collect(),
            ["switch", _] => vec!["start", "stop"],
            ["link"] => names.nodes().collect(),
            ["link", a] => names.neighbours(a).collect(),
            ["link", _, _] => vec!["down", "up"],
            ["iperf"] => hosts().collect(),
            ["iperf", other] | [other, "ping"] => hosts().filter(|host| *host != other).collect(),
            [host] if names.host(host).is_some() => vec!["ping"],
            _ => Vec::new(),
        }
    }
}

impl Completer for Completion {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        pos: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        Ok(self.offers(line.get(..pos).unwrap_or(line)))
    }
}

impl Helper for Completion {}
impl Highlighter for Completion {}
impl Hinter for Completion {
    type Hint = String;
}
impl Validator for Completion {}

#[cfg(test)]
mod tests {
    use super::super::command::tests::names;
    use super::*;

    #[test]
    fn each_word_is_completed_by_the_words_before() {
        let completion = Completion(names());
        for (line, expected) in [
            ("ping", &["pingall", "pingpair"][..]),
            ("h", &["h1", "h2", "help"]),
            ("h1 ", &["ping "]),
            ("h1 ping ", &["h2 "]),
            ("link s", &["s1", "s2"]),
            ("link s1 ", &["h1", "s2"]),
            ("link s1 s2 d", &["down "]),
            ("flows ", &["s1", "s2"]),
            ("switch s1 st", &["start", "stop"]),
            ("iperf h1 ", &["h2 "]),
            ("help no", &["nodes "]),
            ("dance ", &[]),
        ] {
            assert_eq!(completion.offers(line).1, expected, "{line}");
        }
        assert_eq!(completion.offers("link s1 s").0, 8);
    }
}
