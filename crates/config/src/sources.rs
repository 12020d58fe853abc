//! The sources of options: command line, environment and file.

use crate::CommandLine;
use crate::fault::Fault;
use crate::file::{self, FileError, Parsed, Values};
use crate::option::{Kind, RunOption, all};
use clap::parser::ValueSource;
use clap::{ArgMatches, Command};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The separator of an option's values in its variable.
const SEPARATOR: char = ';';

/// The reason why options cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The file cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// A variable is invalid.
    #[error("the variable {variable} cannot be used: {problem}")]
    Variable {
        /// The variable's name.
        variable: String,
        /// The problem, and the expected value.
        problem: String,
    },
    /// A setting in the command line or the environment prevents the program from starting.
    #[error("{problem}")]
    Setting {
        /// The name of the option.
        option: &'static str,
        /// The problem, and the expected value.
        problem: String,
    },
    /// The running program does not support these programs.
    #[error("{0}")]
    Programs(String),
    /// The command line is invalid, or the combination of all sources.
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

/// A setting that prevents the program from starting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The name of the option.
    pub option: &'static str,
    /// The found and the expected value.
    pub problem: String,
}

/// The sources of a subcommand's options.
#[derive(Clone, Debug)]
pub struct Sources {
    line: CommandLine,
    /// The command line, starting with the program's name.
    arguments: Vec<OsString>,
    /// The ids of the options given on the command line.
    given: BTreeSet<String>,
    /// The absolute path of the file, so that it is found after a change of directory.
    file: Option<PathBuf>,
    variables: BTreeMap<String, String>,
}

/// The options from all sources.
#[derive(Debug)]
#[non_exhaustive]
pub struct Effective {
    /// The matches of the command line's parser.
    pub matches: ArgMatches,
    /// The values of each option by its name, with defaults.
    pub values: BTreeMap<String, Vec<String>>,
    /// The names of options that belong to programs.
    pub program_options: BTreeSet<String>,
    /// The positions of the programs' names in the file.
    parsed: Parsed,
    text: String,
    file: Option<PathBuf>,
}

impl Sources {
    /// Returns the sources of the subcommand; `None` for other commands, and for help. `variables` is the environment.
    pub fn new(
        line: CommandLine,
        arguments: Vec<OsString>,
        variables: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Option<Self> {
        // Errors are reported once all sources are known.
        let lenient = (line.describe)().ignore_errors(true);
        let matches = lenient.try_get_matches_from(&arguments).ok()?;
        let matches = matches.subcommand_matches(line.subcommand)?;
        let variables = variables.into_iter().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        let variables: BTreeMap<_, _> = variables.collect();
        let file = matches.try_get_one::<PathBuf>("config").ok().flatten();
        let named = || Some(variables.get(&format!("{}_CONFIG", line.prefix))?.into());
        let file = file.cloned().or_else(named);
        Some(Self {
            given: given(matches),
            line,
            arguments,
            file: file.map(|file| std::path::absolute(&file).unwrap_or(file)),
            variables,
        })
    }

    /// Creates sources with a file alone, to check it.
    pub fn of_file(line: CommandLine, file: &Path) -> Self {
        Self {
            arguments: vec!["".into(), line.subcommand.into()],
            line,
            given: BTreeSet::new(),
            file: Some(file.to_owned()),
            variables: BTreeMap::new(),
        }
    }

    /// Returns these sources with another file.
    pub fn with_file(&self, file: PathBuf) -> Self {
        Self {
            file: Some(file),
            ..self.clone()
        }
    }

    /// Returns the file, if there is one.
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Reads the file, and combines all sources.
    ///
    /// # Errors
    /// All errors in the file, or an error in another source.
    ///
    /// # Panics
    /// If the description lacks the subcommand.
    pub fn load(&self) -> Result<Effective, LoadError> {
        let text = self.file.as_deref().map(file::read).transpose()?;
        let text = text.unwrap_or_default();
        let run = self.line.subcommand();
        let mut parsed = file::parse(&text, &self.line, &run).map_err(|faults| {
            let file = self.file.clone().unwrap_or_default();
            FileError::Faults { file, faults }
        })?;
        let options = all(&self.line, &run);
        let mut values = parsed.values.clone();
        let in_environment = self.in_environment(&options, &run)?;
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
        let matches = (self.line.describe)().try_get_matches_from(arguments)?;
        let values = values_of(self.line.subcommand, &options, &matches);
        let of_programs = options.iter().filter(|option| option.program.is_some());
        Ok(Effective {
            matches: matches.clone(),
            values,
            program_options: of_programs.map(|option| option.name.to_owned()).collect(),
            parsed,
            text,
            file: self.file.clone(),
        })
    }

    /// Returns the options set in variables, checked.
    fn in_environment(
        &self,
        options: &[RunOption<'_>],
        run: &Command,
    ) -> Result<Values, LoadError> {
        let mut values = Values::new();
        for option in options {
            let variable = option.variable();
            let said = self.variables.get(&variable);
            let Some(value) = said.or_else(|| self.alias(option)) else {
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

    /// Returns the value of the option's alias, unless it is invalid.
    fn alias(&self, option: &RunOption<'_>) -> Option<&String> {
        let alias = self
            .line
            .alias
            .filter(|alias| alias.option == option.name)?;
        let value = self.variables.get(alias.variable)?;
        (alias.is_valid)(value).then_some(value)
    }

    /// Returns the command line, with these options inserted before its own.
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
    /// Rejects settings that prevent the program from starting.
    ///
    /// # Errors
    /// All of them that are in the file, with their positions; otherwise the first one.
    pub fn refuse(&self, refused: Vec<Refused>) -> Result<(), LoadError> {
        let faults = refused.iter().filter_map(|one| self.fault_of(one));
        let faults: Vec<_> = faults.collect();
        if !faults.is_empty() {
            return Err(self.faults(faults));
        }
        match refused.into_iter().next() {
            Some(Refused { option, problem }) => Err(LoadError::Setting { option, problem }),
            None => Ok(()),
        }
    }

    /// Returns the fault for a refused setting, if its value is from the file.
    fn fault_of(&self, refused: &Refused) -> Option<Fault> {
        let place = self.parsed.places.get(refused.option)?.clone();
        Some(Fault::new(&self.text, place, refused.problem.as_str()))
    }

    /// Returns a problem with a program as an error, with the program's position in the file.
    pub fn place(&self, program: &str, problem: String) -> LoadError {
        let place = self.parsed.programs.get(program).cloned();
        let place = place.or_else(|| {
            let table = format!("[program.{program}]");
            let start = self.text.find(&table)?;
            Some(start..start + table.len())
        });
        self.faults(vec![Fault::new(
            &self.text,
            place.unwrap_or_default(),
            problem,
        )])
    }

    fn faults(&self, faults: Vec<Fault>) -> LoadError {
        let file = self.file.clone().unwrap_or_default();
        LoadError::File(FileError::Faults { file, faults })
    }
}

/// Returns the ids of the options given on the command line.
fn given(matches: &ArgMatches) -> BTreeSet<String> {
    let ids = matches.ids().map(clap::Id::as_str);
    let is_given = |id: &&str| matches.value_source(id) == Some(ValueSource::CommandLine);
    ids.filter(is_given).map(str::to_owned).collect()
}

/// Returns the values of each option by name, with defaults.
fn values_of(
    subcommand: &str,
    options: &[RunOption<'_>],
    matches: &ArgMatches,
) -> BTreeMap<String, Vec<String>> {
    let Some(matches) = matches.subcommand_matches(subcommand) else {
        return BTreeMap::new();
    };
    let value = |option: &RunOption<'_>| {
        let raw = matches.get_raw(option.id())?;
        let values = raw.map(|value| value.to_string_lossy().into_owned());
        Some((option.name.to_owned(), values.collect()))
    };
    options.iter().filter_map(value).collect()
}
