//! Checks of the configuration file, the environment and the options, as in `urtica check`.

use crate::check::check;
use crate::config::sources_of_file;
use std::path::Path;
use urtica_config::{Fault, FileError, LoadError};
use urtica_doctor::{Finding, quoted};

/// Returns the faults in options, file and environment if they are already known, and otherwise the faults in the file.
pub fn look(error: Option<&LoadError>, file: Option<&Path>) -> Vec<Finding> {
    if let Some(error) = error {
        return findings_of(error);
    }
    let Some(file) = file else {
        return Vec::new();
    };
    match check(&sources_of_file(file)) {
        Ok(_) => vec![Finding::ok(
            "configuration",
            format!("{} has no errors.", file.display()),
        )],
        Err(error) => findings_of(&error),
    }
}

fn findings_of(error: &LoadError) -> Vec<Finding> {
    match error {
        LoadError::File(FileError::Faults { file, faults }) => {
            faults.iter().map(|fault| of_fault(file, fault)).collect()
        }
        LoadError::File(FileError::Read { file, .. } | FileError::TooLong { file }) => {
            let command = format!("ls -l {}", quoted(&file.display().to_string()));
            vec![Finding::problem("configuration-unreadable", sentence(error)).command(command)]
        }
        LoadError::Variable { variable, .. } => {
            let command = format!("unset {}", quoted(variable));
            vec![Finding::problem("variable-wrong", sentence(error)).command(command)]
        }
        _ => {
            let command = "urtica run --help";
            vec![Finding::problem("options-wrong", sentence(error)).command(command)]
        }
    }
}

fn sentence(error: &LoadError) -> String {
    ended(&format!("The controller would not start: {error}"))
}

/// Adds a full stop, unless it ends in a question.
fn ended(sentence: &str) -> String {
    match sentence.ends_with('?') {
        true => sentence.to_owned(),
        false => format!("{sentence}."),
    }
}

/// Describes a fault. If it names the probable word, the command replaces the wrong one; otherwise it opens the file at the
/// line.
fn of_fault(file: &Path, fault: &Fault) -> Finding {
    let (shown, line) = (file.display().to_string(), fault.position().0);
    let command = match fault.correction() {
        Some((wrong, right)) => {
            format!("sed -i '{line}s/{wrong}/{right}/' {}", quoted(&shown))
        }
        None => format!("${{EDITOR:-vi}} +{line} {}", quoted(&shown)),
    };
    let problem = fault.problem();
    let sentence = format!("The controller would not start with {shown}: line {line}: {problem}");
    Finding::problem("configuration-wrong", ended(&sentence)).command(command)
}
