//! Tests of `urtica doctor` with deliberate mistakes. The doctor finds and explains each; after its printed commands, it
//! finds the mistake no longer. In valid set-ups it finds no problem.

mod certificates;
mod healthy;
mod machine;
mod openvswitch;

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::process::{DEADLINE, eventually, run};

const URTICA: &str = env!("CARGO_BIN_EXE_urtica");

/// A shell in the test's namespace and environment.
type Shell<'a> = &'a dyn Fn() -> Command;

/// Returns a shell on the machine as it is.
fn shell() -> Command {
    Command::new("sh")
}

/// The doctor's report.
#[derive(Debug)]
struct Report(Value);

/// Runs the doctor with these options.
fn examine(shell: Shell, options: &[&str]) -> Report {
    examine_after("true", shell, options)
}

/// Like `examine`, in a shell that has first executed `before`.
///
/// # Panics
/// If its exit status does not agree with the number of problems.
fn examine_after(before: &str, shell: Shell, options: &[&str]) -> Report {
    let mut command = shell();
    let script = format!("{before} && exec \"$0\" \"$@\"");
    command.args(["-c", &script, URTICA, "doctor", "--json"]);
    let output = command.args(options).output().expect("a shell starts");
    let printed = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    let report = serde_json::from_str(&printed);
    let report = Report(report.unwrap_or_else(|error| panic!("{error}: {printed}{stderr}")));
    let expected = if report.problems() == 0 { 0 } else { 1 };
    assert_eq!(output.status.code(), Some(expected), "{printed}{stderr}");
    report
}

impl Report {
    fn problems(&self) -> u64 {
        self.0["problems"].as_u64().expect("a number of problems")
    }

    fn findings(&self) -> &[Value] {
        self.0["findings"].as_array().expect("a list of findings")
    }

    /// Returns the names of the findings of this severity.
    fn names(&self, severity: &str) -> Vec<&str> {
        let of = self
            .findings()
            .iter()
            .filter(|found| found["severity"] == severity);
        of.filter_map(|found| found["name"].as_str()).collect()
    }

    fn find(&self, name: &str) -> Option<&Value> {
        self.findings().iter().find(|found| found["name"] == name)
    }

    /// Returns the commands of a finding with this severity and these words in its message.
    ///
    /// # Panics
    /// If there is no such finding.
    fn commands(&self, name: &str, severity: &str, words: &[&str]) -> Vec<String> {
        let found = self
            .find(name)
            .unwrap_or_else(|| panic!("no {name}: {self:#?}"));
        assert_eq!(found["severity"], severity, "{found}");
        let sentence = found["sentence"].as_str().expect("a sentence");
        for word in words {
            assert!(sentence.contains(word), "no '{word}' in: {sentence}");
        }
        let commands = found["commands"].as_array().expect("a list of commands");
        let commands = commands.iter().filter_map(Value::as_str);
        commands.map(str::to_owned).collect()
    }
}

/// Executes commands as a finding prints them.
fn type_in(shell: Shell, commands: &[String]) {
    assert!(!commands.is_empty(), "no command fixes it");
    for command in commands {
        run(shell().args(["-c", command]));
    }
}

/// Finds this mistake with these words in its message, executes the printed commands, and waits until the doctor no longer
/// finds it.
fn find_and_fix(shell: Shell, options: &[&str], name: &str, severity: &str, words: &[&str]) {
    let commands = examine(shell, options).commands(name, severity, words);
    type_in(shell, &commands);
    let what = format!("{name} is fixed by {commands:?}");
    eventually(&what, DEADLINE, || {
        examine(shell, options).find(name).is_none()
    });
}

fn shown(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}
