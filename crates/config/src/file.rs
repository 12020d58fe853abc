//! Reads a configuration file, or reports all of its errors.

use crate::CommandLine;
use crate::fault::{Fault, Problem};
use crate::option::{Kind, PROGRAM, PROGRAMS, RunOption, all, unexpected};
use clap::Command;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The maximum length of a file.
const MAX_BYTES: u64 = 1 << 20;

/// The values of options, by the options' names.
pub type Values = BTreeMap<String, Vec<String>>;

/// The reason why a configuration file cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// The file cannot be read.
    #[error("the configuration cannot be read from '{}': {error}; expected a file in TOML", file.display())]
    Read {
        /// The file's path.
        file: PathBuf,
        /// The system's error.
        error: std::io::Error,
    },
    /// The file is longer than a megabyte.
    #[error("the configuration '{}' is longer than {MAX_BYTES} bytes", file.display())]
    TooLong {
        /// The file's path.
        file: PathBuf,
    },
    /// The file has errors, each of which is one line or more in the message.
    #[error("{}", lines(file, faults))]
    Faults {
        /// The file's path.
        file: PathBuf,
        /// All errors, in order.
        faults: Vec<Fault>,
    },
}

fn lines(file: &Path, faults: &[Fault]) -> String {
    let lines = faults
        .iter()
        .map(|fault| format!("{}:{fault}", file.display()));
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns a file's text.
///
/// # Errors
/// If it cannot be read, or is longer than a megabyte.
pub fn read(file: &Path) -> Result<String, FileError> {
    let cannot = |error| FileError::Read {
        file: file.to_owned(),
        error,
    };
    if std::fs::metadata(file).map_err(cannot)?.len() > MAX_BYTES {
        return Err(FileError::TooLong {
            file: file.to_owned(),
        });
    }
    std::fs::read_to_string(file).map_err(cannot)
}

/// A file's options, with their positions.
#[derive(Debug, Default)]
pub struct Parsed {
    pub values: Values,
    /// The position of each option's value, by the option's name, if the file's value is used.
    pub places: BTreeMap<String, Range<usize>>,
    /// The position of each program's name.
    pub programs: BTreeMap<String, Range<usize>>,
}

/// Parses a text.
///
/// # Errors
/// All errors in it.
pub fn parse(text: &str, line: &CommandLine, run: &Command) -> Result<Parsed, Vec<Fault>> {
    let (table, errors) = DeTable::parse_recoverable(text);
    let mut reader = Reader {
        text,
        line,
        run,
        options: all(line, run),
        parsed: Parsed::default(),
        faults: Vec::new(),
    };
    // Errors that follow from a syntax error would only distract from it.
    match errors.first() {
        None => reader.read(table.get_ref()),
        Some(error) => {
            let place = error.span().unwrap_or_default();
            reader.fault(place, error.message().replace('\n', ", "));
        }
    }
    match reader.faults.is_empty() {
        true => Ok(reader.parsed),
        false => {
            reader.faults.sort_by_key(Fault::position);
            Err(reader.faults)
        }
    }
}

struct Reader<'a> {
    text: &'a str,
    line: &'a CommandLine,
    run: &'a Command,
    options: Vec<RunOption<'a>>,
    parsed: Parsed,
    faults: Vec<Fault>,
}

impl Reader<'_> {
    fn fault(&mut self, place: Range<usize>, problem: impl Into<Problem>) {
        let fault = Fault::new(self.text, place, problem);
        self.faults.push(fault);
    }

    fn read(&mut self, table: &DeTable<'_>) {
        for (key, value) in table {
            match (key.get_ref().as_ref(), value.get_ref()) {
                (PROGRAM, DeValue::Table(programs)) => {
                    for (name, settings) in programs {
                        self.read_program(name, settings);
                    }
                }
                (PROGRAM, _) => {
                    let expected =
                        "expected tables of programs' settings, such as [program.firewall]";
                    self.fault(value.span(), expected);
                }
                (name, _) => self.read_option(None, name, key.span(), value),
            }
        }
    }

    fn read_program(
        &mut self,
        name: &Spanned<std::borrow::Cow<'_, str>>,
        value: &Spanned<DeValue>,
    ) {
        let found = name.get_ref().as_ref();
        let known = self.options.iter().filter_map(|option| option.program);
        let mut known: Vec<_> = known.collect();
        known.dedup();
        let Some(program) = known.iter().find(|known| **known == found) else {
            let problem = match self.line.programs.contains(&found) {
                true => format!("the program '{found}' has no settings"),
                false => format!("there is no program '{found}'"),
            };
            let problem = unexpected(&problem, found, known.iter().copied());
            return self.fault(name.span(), problem);
        };
        let DeValue::Table(settings) = value.get_ref() else {
            let expected = format!("expected a table: [program.{program}]");
            return self.fault(value.span(), expected);
        };
        for (key, value) in settings {
            self.read_option(Some(program), key.get_ref(), key.span(), value);
        }
    }

    fn read_option(
        &mut self,
        program: Option<&str>,
        key: &str,
        place: Range<usize>,
        value: &Spanned<DeValue>,
    ) {
        let candidates = self.options.iter();
        let mut candidates = candidates.filter(|option| option.program == program);
        let Some(at) = candidates
            .clone()
            .find(|option| option.key() == key)
            .map(|option| option.name.to_owned())
        else {
            let known: Vec<_> = candidates.by_ref().map(RunOption::key).collect();
            let problem = self.unknown_key(program, key, &known);
            return self.fault(place, problem);
        };
        let options = std::mem::take(&mut self.options);
        if let Some(option) = options.iter().find(|option| option.name == at) {
            self.read_value(option, value);
        }
        self.options = options;
    }

    fn unknown_key(&self, program: Option<&str>, key: &str, known: &[&str]) -> Problem {
        // An option written as on the command line, in the wrong table.
        let elsewhere = self.options.iter().find(|option| option.name == key);
        if let Some((program, option)) = elsewhere.and_then(|it| Some((it.program?, it))) {
            let own = option.key();
            return format!(
                "'{key}' is a setting of a program; expected '{own}' in [program.{program}]"
            )
            .into();
        }
        let place =
            program.map_or_else(String::new, |program| format!(" of the program {program}"));
        let text = format!("there is no setting '{key}'{place}");
        unexpected(&text, key, known.iter().copied())
    }

    fn read_value(&mut self, option: &RunOption<'_>, value: &Spanned<DeValue>) {
        let mut values = Vec::new();
        match (option.kind, value.get_ref()) {
            (Kind::List, DeValue::Array(elements)) => {
                for element in elements {
                    values.extend(self.scalar(option, element));
                }
            }
            _ => values.extend(self.scalar(option, value)),
        }
        let name = option.name.to_owned();
        self.parsed.places.insert(name.clone(), value.span());
        self.parsed.values.insert(name, values);
    }

    /// Returns the checked value of an option whose value is not an array.
    fn scalar(&mut self, option: &RunOption<'_>, value: &Spanned<DeValue>) -> Option<String> {
        let text = match (option.kind, value.get_ref()) {
            (Kind::Flag | Kind::FlagOrText, DeValue::Boolean(value)) => {
                return Some(value.to_string());
            }
            (Kind::FlagOrText | Kind::Text | Kind::List, DeValue::String(text)) => text.to_string(),
            (Kind::Number, DeValue::Integer(number)) => {
                match i64::from_str_radix(number.as_str(), number.radix()) {
                    Ok(number) => number.to_string(),
                    Err(_) => number.as_str().to_owned(),
                }
            }
            (kind, found) => {
                let problem = format!(
                    "{} is {}; expected {}",
                    option.key(),
                    what_is(found),
                    kind.expected()
                );
                self.fault(value.span(), problem);
                return None;
            }
        };
        if option.name == PROGRAMS {
            let earlier = self.parsed.programs.insert(text.clone(), value.span());
            if earlier.is_some() {
                let problem = format!("the program '{text}' is named twice; expected each once");
                self.fault(value.span(), problem);
                return None;
            }
        }
        match option.check(self.run, &text) {
            Ok(()) => Some(text),
            Err(problem) => {
                self.fault(value.span(), problem);
                None
            }
        }
    }
}

fn what_is(value: &DeValue) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number with a point",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "an array",
        DeValue::Table(_) => "a table",
    }
}
