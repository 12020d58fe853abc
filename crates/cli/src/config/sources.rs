//! Command line, environment and file together.

use super::Fault;
use super::file::{self, FileError, Parsed, Values};
use super::option::{Kind, RunOption, all};
use crate::Cli;
use crate::log::parse_filter;
use crate::run::{Refused, RunArgs};
use clap::parser::ValueSource;
use clap::{ArgMatches, Command, CommandFactory, FromArgMatches};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use urtica_apps::SetupError;

/// The variable that names the file.
const CONFIG: &str = "URTICA_CONFIG";

/// The separator of an option's values in its variable.
const SEPARATOR: char = ';';

/// Why options cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error("the variable {variable} cannot be used: {problem}")]
    Variable { variable: String, problem: String },
    /// On the command line or in the environment: the controller cannot start with it.
    #[error("{problem}")]
    Setting {
        option: &'static str,
        problem: String,
    },
    /// The controller cannot run these programs while it runs.
    #[error("{0}")]
    Programs(String),
    /// On the command line, or only in the combination of all.
    #[error("{}", sentence(.0))]
    Arguments(#[from] clap::Error),
}

/// Returns the first line of an error, without its first word.
fn sentence(error: &clap::Error) -> String {
    let text = error.to_string();
    let lines = text.lines().map(str::trim);
    let lines: Vec<_> = lines.take_while(|line| !line.is_empty()).collect();
    lines.join(" ").trim_start_matches("error: ").to_owned()
}

/// The sources of options.
#[derive(Clone)]
pub struct Sources {
    /// The command line, from the program's name on.
    arguments: Vec<OsString>,
    /// The options that it gives, by id.
    given: BTreeSet<String>,
    file: Option<PathBuf>,
    /// The absolute path of the file, so that it is found again after a change of directory.
    variables: BTreeMap<String, String>,
}

/// The combination of all sources.
pub struct Effective {
    pub cli: Cli,
    /// The values of each option by its name, for comparisons.
    pub values: BTreeMap<String, Vec<String>>,
    /// The names of the options that programs have.
    pub program_options: BTreeSet<String>,
    /// The positions of the programs' names in the file.
    parsed: Parsed,
    text: String,
    file: Option<PathBuf>,
}

impl Sources {
    /// Returns the sources of `urtica run`; `None` for other commands, and for help.
    pub fn of_run(arguments: Vec<OsString>) -> Option<Self> {
        // Errors are reported when all sources are known.
        let lenient = Cli::command().ignore_errors(true);
        let matches = lenient.try_get_matches_from(&arguments).ok()?;
        let matches = matches.subcommand_matches("run")?;
        let given = given(matches);
        let file = matches.get_one::<PathBuf>("config").cloned();
        let file = file.or_else(|| std::env::var_os(CONFIG).map(PathBuf::from));
        let variables = std::env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        Some(Self {
            arguments,
            given,
            file: file.map(|file| std::path::absolute(&file).unwrap_or(file)),
            variables: variables.collect(),
        })
    }

    /// A file alone, for a check.
    pub fn of_file(file: &Path) -> Self {
        Self {
            arguments: vec!["urtica".into(), "run".into()],
            given: BTreeSet::new(),
            file: Some(file.to_owned()),
            variables: BTreeMap::new(),
        }
    }

    /// Returns the sources with another file.
    pub fn with_file(&self, file: PathBuf) -> Self {
        Self {
            file: Some(file),
            ..self.clone()
        }
    }

    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Reads the file, and combines all sources.
    ///
    /// # Errors
    /// All errors in the file; an error elsewhere.
    pub fn load(&self) -> Result<Effective, LoadError> {
        let text = self.file.as_deref().map(file::read).transpose()?;
        let text = text.unwrap_or_default();
        let mut cli = Cli::command();
        let run = run_of(&mut cli);
        let mut parsed = file::parse(&text, run).map_err(|faults| FileError::Faults {
            file: self.file.clone().unwrap_or_default(),
            faults,
        })?;
        let options = all(run);
        let mut values = parsed.values.clone();
        let in_environment = self.in_environment(&options, run)?;
        parsed
            .places
            .retain(|name, _| !in_environment.contains_key(name));
        values.extend(in_environment);
        values.retain(|name, _| {
            let option = options.iter().find(|option| option.name == name);
            !option.is_some_and(|option| self.given.contains(option.id()))
        });
        parsed.places.retain(|name, _| values.contains_key(name));
        let arguments = self.arguments_with(&options, &values);
        let matches = Cli::command().try_get_matches_from(arguments)?;
        let values = values_of(&options, &matches);
        let of_programs = options.iter().filter(|option| option.program.is_some());
        Ok(Effective {
            cli: Cli::from_arg_matches(&matches)?,
            values,
            program_options: of_programs.map(|option| option.name.to_owned()).collect(),
            parsed,
            text,
            file: self.file.clone(),
        })
    }

    /// Returns the checked options in variables.
    fn in_environment(
        &self,
        options: &[RunOption<'_>],
        run: &Command,
    ) -> Result<Values, LoadError> {
        let mut values = Values::new();
        for option in options {
            let variable = option.variable();
            let said = self.variables.get(&variable);
            let Some(value) = said.or_else(|| self.rust_log(option)) else {
                continue;
            };
            let parts: Vec<String> = match option.kind {
                Kind::List => value
                    .split([SEPARATOR])
                    .map(str::trim)
                    .filter(|part| !part.is_empty())
                    .map(str::to_owned)
                    .collect(),
                _ => vec![value.clone()],
            };
            for part in &parts {
                let is_wrong_flag =
                    option.kind == Kind::Flag && !matches!(part.as_str(), "true" | "false");
                let checked = match is_wrong_flag {
                    true => Err(format!("expected true or false, not '{part}'").into()),
                    false => option.check(run, part),
                };
                checked.map_err(|problem| LoadError::Variable {
                    variable: variable.clone(),
                    problem: problem.to_string(),
                })?;
            }
            values.insert(option.name.to_owned(), parts);
        }
        Ok(values)
    }

    /// Returns RUST_LOG for its option, unless it is invalid.
    fn rust_log(&self, option: &RunOption<'_>) -> Option<&String> {
        let value = self
            .variables
            .get("RUST_LOG")
            .filter(|_| option.name == "log");
        value.filter(|value| parse_filter(value).is_ok())
    }

    /// The command line, with these options in front of those that it gives itself.
    fn arguments_with(&self, options: &[RunOption<'_>], values: &Values) -> Vec<OsString> {
        let (before, after) = self.arguments.split_at(self.arguments.len().min(2));
        let said = options.iter().filter_map(|option| {
            let values = values.get(option.name)?;
            Some(option.arguments(values))
        });
        let said = said.flatten().map(OsString::from);
        before
            .iter()
            .cloned()
            .chain(said)
            .chain(after.iter().cloned())
            .collect()
    }
}

impl Effective {
    /// The options of `urtica run`.
    pub fn run_args(&self) -> Option<&RunArgs> {
        match &self.cli.command {
            crate::Command::Run(args) => Some(args),
            _ => None,
        }
    }

    /// Refuses settings with which the controller cannot start.
    ///
    /// # Errors
    /// All that are in the file, with their places; otherwise the first one.
    pub fn check_settings(&self) -> Result<(), LoadError> {
        let refused = self.run_args().map(RunArgs::refused).unwrap_or_default();
        let faults: Vec<_> = refused
            .iter()
            .filter_map(|one| self.fault_of(one))
            .collect();
        if !faults.is_empty() {
            return Err(LoadError::File(FileError::Faults {
                file: self.file.clone().unwrap_or_default(),
                faults,
            }));
        }
        match refused.into_iter().next() {
            Some(Refused { option, problem }) => Err(LoadError::Setting { option, problem }),
            None => Ok(()),
        }
    }

    /// The fault of a refused setting, if the file has its value.
    fn fault_of(&self, refused: &Refused) -> Option<Fault> {
        let place = self.parsed.places.get(refused.option)?.clone();
        Some(Fault::new(&self.text, place, refused.problem.as_str()))
    }

    /// Returns an error about a program, with its position in the file.
    pub fn place(&self, error: &SetupError) -> LoadError {
        let name = error.program();
        let place = self.parsed.programs.get(name).cloned();
        let place = place.or_else(|| {
            let table = format!("[program.{name}]");
            let start = self.text.find(&table)?;
            Some(start..start + table.len())
        });
        let fault = Fault::new(&self.text, place.unwrap_or_default(), error.to_string());
        LoadError::File(FileError::Faults {
            file: self.file.clone().unwrap_or_default(),
            faults: vec![fault],
        })
    }
}

/// The description of `urtica run`.
pub fn run_of(cli: &mut Command) -> &Command {
    cli.build();
    cli.find_subcommand("run")
        .expect("urtica has the subcommand run")
}

/// The options that the command line itself gives, by id.
fn given(matches: &ArgMatches) -> BTreeSet<String> {
    let ids = matches.ids().map(clap::Id::as_str);
    let is_given = |id: &&str| matches.value_source(id) == Some(ValueSource::CommandLine);
    ids.filter(is_given).map(str::to_owned).collect()
}

/// The values of each option by name, with defaults.
fn values_of(options: &[RunOption<'_>], matches: &ArgMatches) -> BTreeMap<String, Vec<String>> {
    let Some(matches) = matches.subcommand_matches("run") else {
        return BTreeMap::new();
    };
    let value = |option: &RunOption<'_>| {
        let raw = matches.get_raw(option.id())?;
        let values = raw.map(|value| value.to_string_lossy().into_owned());
        Some((option.name.to_owned(), values.collect()))
    };
    options.iter().filter_map(value).collect()
}
