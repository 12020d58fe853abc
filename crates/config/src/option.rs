//! The options of a subcommand, as described by its command line.

use crate::CommandLine;
use crate::fault::Problem;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, Command};
use std::any::TypeId;
use std::error::Error;

/// The key of the programs' names, which are arguments on the command line.
pub const PROGRAMS: &str = "programs";

/// The table of programs' options in the file.
pub const PROGRAM: &str = "program";

/// The id of the programs' names on the command line.
const APPS: &str = "apps";

/// Options that are not permitted in a file.
const NOT_IN_A_FILE: [&str; 3] = ["config", "help", "version"];

/// The form of an option's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `true` or `false`.
    Flag,
    /// A string, or `true` for the option without a value.
    FlagOrText,
    Text,
    Number,
    /// Several strings, or one.
    List,
}

impl Kind {
    /// Returns the expected form as a text.
    pub fn expected(self) -> &'static str {
        match self {
            Self::Flag => "true or false",
            Self::FlagOrText => "a string, true or false",
            Self::Text => "a string",
            Self::Number => "a whole number",
            Self::List => "an array of strings",
        }
    }
}

/// An option of the subcommand.
pub struct RunOption<'a> {
    line: &'a CommandLine,
    arg: &'a Arg,
    /// The option's name in the file and on the command line, without dashes.
    pub name: &'a str,
    pub kind: Kind,
    /// The program that has this option, if any.
    pub program: Option<&'static str>,
}

impl<'a> RunOption<'a> {
    fn of(line: &'a CommandLine, arg: &'a Arg) -> Option<Self> {
        let name = match arg.get_id().as_str() {
            APPS => PROGRAMS,
            _ => arg.get_long()?,
        };
        if NOT_IN_A_FILE.contains(&name) {
            return None;
        }
        let is_of_program = arg.get_help_heading() == Some("Options of programs");
        let program = is_of_program.then(|| line.program_of(name)).flatten();
        Some(Self {
            line,
            arg,
            name,
            kind: kind(arg),
            program,
        })
    }

    /// Returns the option's id in clap.
    pub fn id(&self) -> &str {
        self.arg.get_id().as_str()
    }

    /// Returns the option's key: in its program's table, if a program has it.
    pub fn key(&self) -> &str {
        let own = self
            .program
            .and_then(|program| self.name.strip_prefix(program));
        own.map_or(self.name, |own| own.trim_start_matches('-'))
    }

    /// Returns the name of its environment variable.
    pub fn variable(&self) -> String {
        let name = self.name.to_uppercase().replace('-', "_");
        format!("{}_{name}", self.line.prefix)
    }

    pub fn help(&self) -> String {
        let help = self.arg.get_help().map(ToString::to_string);
        help.unwrap_or_default()
    }

    /// Returns its possible values, if these are words.
    pub fn words(&self) -> Vec<String> {
        let values = self.arg.get_possible_values().into_iter();
        let words = values.map(|value| value.get_name().to_owned());
        match self.kind {
            Kind::Flag => Vec::new(),
            _ => words.collect(),
        }
    }

    /// Returns the command-line arguments that give it these values.
    pub fn arguments(&self, values: &[String]) -> Vec<String> {
        let argument = |value: &String| match (self.id(), self.kind) {
            (APPS, _) => Some(value.clone()),
            (_, Kind::Flag | Kind::FlagOrText) if value == "false" => None,
            (_, Kind::Flag) => Some(format!("--{}", self.name)),
            (_, Kind::FlagOrText) if value == "true" => Some(format!("--{}", self.name)),
            _ => Some(format!("--{}={value}", self.name)),
        };
        values.iter().filter_map(argument).collect()
    }

    /// Checks a value; the error is the reason for rejecting it.
    pub fn check(&self, run: &Command, value: &str) -> Result<(), Problem> {
        if self.id() == APPS {
            return self.check_program(value);
        }
        let arguments = self.arguments(&[value.to_owned()]);
        let name = self.line.subcommand.to_owned();
        let arguments = std::iter::once(name).chain(arguments);
        let Err(error) = run.clone().try_get_matches_from(arguments) else {
            return Ok(());
        };
        match error.kind() {
            ErrorKind::InvalidValue => Err(self.wrong_word(value)),
            ErrorKind::ValueValidation => {
                let reason = error.source().map(ToString::to_string);
                let reason = reason.unwrap_or_else(|| "it cannot be read".into());
                Err(format!("'{value}' is no {}: {reason}", self.name).into())
            }
            ErrorKind::UnknownArgument | ErrorKind::TooManyValues => {
                let found = match error.get(ContextKind::InvalidArg) {
                    Some(ContextValue::String(found)) => found.clone(),
                    _ => value.to_owned(),
                };
                Err(format!("'{found}' is not expected here").into())
            }
            // Errors about other options are found once all options are known.
            _ => Ok(()),
        }
    }

    fn check_program(&self, name: &str) -> Result<(), Problem> {
        let known = &self.line.programs;
        if known.contains(&name) {
            return Ok(());
        }
        let text = format!("there is no control program '{name}'");
        Err(unexpected(&text, name, known.iter().copied()))
    }

    fn wrong_word(&self, value: &str) -> Problem {
        let words = self.words();
        let text = format!("'{value}' is no {}", self.name);
        unexpected(&text, value, words.iter().map(String::as_str))
    }
}

fn kind(arg: &Arg) -> Kind {
    let parser = arg.get_value_parser().type_id();
    let numbers = [
        TypeId::of::<u8>(),
        TypeId::of::<u16>(),
        TypeId::of::<u32>(),
        TypeId::of::<u64>(),
        TypeId::of::<usize>(),
    ];
    let is_optional = arg
        .get_num_args()
        .is_some_and(|count| count.min_values() == 0);
    match arg.get_action() {
        ArgAction::SetTrue => Kind::Flag,
        ArgAction::Append => Kind::List,
        _ if is_optional => Kind::FlagOrText,
        // With its own parser, a number may have another form, such as 10M.
        _ if numbers.iter().any(|number| parser == *number) && !has_own_parser(arg) => Kind::Number,
        _ => Kind::Text,
    }
}

/// Returns `true` if a numeric option has its own parser: its value name then differs from those of plain numbers.
fn has_own_parser(arg: &Arg) -> bool {
    let names = arg.get_value_names().unwrap_or_default();
    let numbers = ["N", "SECONDS", "PERCENT", "MILLISECONDS", "BYTES"];
    !names.iter().any(|name| numbers.contains(&name.as_str()))
}

/// Returns all options of the subcommand that can be in a file.
pub fn all<'a>(line: &'a CommandLine, run: &'a Command) -> Vec<RunOption<'a>> {
    let arguments = run.get_arguments();
    arguments
        .filter_map(|argument| RunOption::of(line, argument))
        .collect()
}

/// Returns the word nearest to `found`, if one is near enough.
fn near<'w>(found: &str, words: impl Iterator<Item = &'w str>) -> Option<&'w str> {
    let found = found.to_lowercase();
    let distances = words.map(|word| (strsim::damerau_levenshtein(&found, word), word));
    let (edits, word) = distances.min_by_key(|(edits, _)| *edits)?;
    (edits <= word.len().div_ceil(3)).then_some(word)
}

/// Adds the expected words to a text about an unexpected one: the nearest word, or all if none is near.
pub fn unexpected<'w>(
    text: &str,
    found: &str,
    words: impl Iterator<Item = &'w str> + Clone,
) -> Problem {
    match near(found, words.clone()) {
        Some(word) => Problem::misspelt(text, word),
        None => {
            let words = words.collect::<Vec<_>>().join(", ");
            format!("{text}; expected one of: {words}").into()
        }
    }
}
