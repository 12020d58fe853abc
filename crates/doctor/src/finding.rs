//! Findings of checks.

use serde::Serialize;

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Severity {
    /// Checked, without a problem.
    Ok,
    /// Information, or a skipped check.
    Note,
    /// It works now, but will fail some day or under load.
    Warning,
    /// It does not work.
    Problem,
}

impl Severity {
    /// Returns the word before the message.
    pub fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Problem => "problem",
        }
    }
}

/// The result of a check: a problem, or its absence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Finding {
    /// Its name in the table of findings, stable between versions.
    pub name: &'static str,
    /// Its severity.
    pub severity: Severity,
    /// The message: the problem and its effect.
    pub sentence: String,
    /// Shell commands that fix it, in order.
    pub commands: Vec<String>,
}

impl Finding {
    fn new(name: &'static str, severity: Severity, sentence: impl AsRef<str>) -> Self {
        Self {
            name,
            severity,
            sentence: printable(sentence.as_ref()),
            commands: Vec::new(),
        }
    }

    /// Creates a finding that a check found no problem.
    pub fn ok(name: &'static str, sentence: impl AsRef<str>) -> Self {
        Self::new(name, Severity::Ok, sentence)
    }

    /// Creates a finding that is worth knowing.
    pub fn note(name: &'static str, sentence: impl AsRef<str>) -> Self {
        Self::new(name, Severity::Note, sentence)
    }

    /// Creates a finding of a problem to come.
    pub fn warning(name: &'static str, sentence: impl AsRef<str>) -> Self {
        Self::new(name, Severity::Warning, sentence)
    }

    /// Creates a finding of something that does not work.
    pub fn problem(name: &'static str, sentence: impl AsRef<str>) -> Self {
        Self::new(name, Severity::Problem, sentence)
    }

    /// Adds a command.
    pub fn command(mut self, command: impl AsRef<str>) -> Self {
        self.commands.push(printable(command.as_ref()));
        self
    }
}

/// Removes control characters from text, which contains names of programs, bridges and files.
fn printable(text: &str) -> String {
    let clean = |c: char| match c {
        '\n' => c,
        c if c.is_control() => '\u{fffd}',
        c => c,
    };
    text.chars().map(clean).collect()
}

/// Returns a sentence with an initial capital letter.
pub fn capital(sentence: &str) -> String {
    let mut chars = sentence.chars();
    let first = chars.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(chars).collect()
}

/// Quotes a word for a shell, if necessary.
pub fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_become_commands_or_control_a_terminal() {
        assert_eq!(quoted("br0"), "br0");
        assert_eq!(quoted("/etc/a b.pem"), "'/etc/a b.pem'");
        assert_eq!(quoted("x;rm -rf '"), r"'x;rm -rf '\'''");
        assert_eq!(quoted(""), "''");
        let finding = Finding::note("n", "a\u{1b}[2Jb").command("kill\r 1");
        assert_eq!(finding.sentence, "a\u{fffd}[2Jb");
        assert_eq!(finding.commands, ["kill\u{fffd} 1"]);
    }
}
