//! Runs a script of `tools/vectors` on a corpus. The script reads the examples as JSON lines, and prints a verdict on each.

use super::Corpus;
use serde_json::{Value, json};
use std::env;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// A peer implementation's result for one example.
pub struct Verdict {
    /// The example's name.
    pub name: String,
    /// The result, in one word.
    pub verdict: String,
    /// The whole result.
    pub details: Value,
}

/// Returns `true` if all `tools` are installed: names on the `PATH`, or paths. Otherwise prints a line.
///
/// # Panics
/// If a tool is missing and `CI=true`, since a skipped test would hide a broken set-up.
pub fn has_all(tools: &[&str]) -> bool {
    let Some(missing) = tools.iter().find(|tool| !is_installed(tool)) else {
        return true;
    };
    let skipped = format!("skipped: needs {missing} (tools/setup)");
    assert!(env::var("CI").as_deref() != Ok("true"), "{skipped}");
    // Not eprintln!, whose output is hidden for tests that pass.
    let _ = writeln!(io::stderr(), "{skipped}");
    false
}

fn is_installed(tool: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| folder.join(tool).is_file())
}

/// Returns the verdict on every example, in the order of the corpus.
///
/// # Panics
/// If the script cannot be run, or omits an example.
pub fn verdicts(python: &str, script: &str, corpus: &Corpus) -> Vec<Verdict> {
    let examples = write_examples(script, corpus);
    let output = Command::new(python)
        .arg(Path::new(ROOT).join("tools/vectors").join(script))
        .stdin(File::open(examples).expect("the examples were just written"))
        .stderr(Stdio::inherit())
        .output()
        .expect("python is installed");
    let printed = String::from_utf8(output.stdout).expect("a script prints text");
    let verdicts: Vec<_> = printed.lines().map(read_verdict).collect();
    let answered: Vec<_> = verdicts.iter().map(|verdict| &verdict.name).collect();
    let asked: Vec<_> = corpus
        .examples
        .iter()
        .map(|example| &example.name)
        .collect();
    assert_eq!(answered, asked, "{script} leaves an example out");
    verdicts
}

/// Writes the examples to a file that can be examined after a failure.
fn write_examples(script: &str, corpus: &Corpus) -> PathBuf {
    let mut lines = String::new();
    for example in &corpus.examples {
        let line = json!({"name": example.name, "hex": hex(&example.bytes)});
        writeln!(lines, "{line}").expect("a String takes all");
    }
    let name = format!("{script}.{}.jsonl", corpus.version);
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, lines).expect("cargo's folder for tests is writable");
    path
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn read_verdict(line: &str) -> Verdict {
    let value: Value = serde_json::from_str(line).expect("a script prints JSON lines");
    let text = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
    let (name, verdict) = (text("name"), text("verdict"));
    Verdict {
        name,
        verdict,
        details: value,
    }
}
