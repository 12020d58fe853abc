//! The configuration of `urtica run`: see [`urtica_config`].

use crate::Cli;
use crate::log::parse_filter;
use crate::run::RunArgs;
use clap::{CommandFactory, FromArgMatches};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use urtica_apps::SetupError;
use urtica_config::{Alias, CommandLine, LoadError, Sources};

/// The options of `urtica run`, from all sources.
pub struct Effective {
    pub cli: Cli,
    /// The values of each option by its name, for comparisons.
    pub values: BTreeMap<String, Vec<String>>,
    loaded: urtica_config::Effective,
}

/// Returns the command line of `urtica run`.
pub fn command_line() -> CommandLine {
    let mut line = CommandLine::new(Cli::command, "run", "URTICA");
    line.programs = urtica_apps::names().collect();
    line.alias = Some(Alias {
        option: "log",
        variable: "RUST_LOG",
        is_valid: |filter| parse_filter(filter).is_ok(),
    });
    line
}

/// Returns the sources of `urtica run` with these arguments; `None` for other commands, and for help.
pub fn sources(arguments: Vec<OsString>) -> Option<Sources> {
    Sources::new(command_line(), arguments, std::env::vars_os())
}

/// Returns a file as the only source, for a check.
pub fn sources_of_file(file: &Path) -> Sources {
    Sources::of_file(command_line(), file)
}

impl Effective {
    /// Combines the sources.
    ///
    /// # Errors
    /// As for [`Sources::load`].
    pub fn load(sources: &Sources) -> Result<Self, LoadError> {
        let mut loaded = sources.load()?;
        Ok(Self {
            cli: Cli::from_arg_matches(&loaded.matches)?,
            values: std::mem::take(&mut loaded.values),
            loaded,
        })
    }

    /// Returns the options of `urtica run`.
    pub fn run_args(&self) -> Option<&RunArgs> {
        match &self.cli.command {
            crate::Command::Run(args) => Some(args),
            _ => None,
        }
    }

    /// Returns `true` if a program has this option.
    pub fn is_of_program(&self, option: &str) -> bool {
        self.loaded.program_options.contains(option)
    }

    /// Refuses settings with which the controller cannot start.
    ///
    /// # Errors
    /// All invalid settings of the file, with their positions; otherwise the first one.
    pub fn check_settings(&self) -> Result<(), LoadError> {
        let refused = self.run_args().map(RunArgs::refused);
        self.loaded.refuse(refused.unwrap_or_default())
    }

    /// Returns an error about a program, with its position in the file.
    pub fn place(&self, error: &SetupError) -> LoadError {
        self.loaded.place(error.program(), error.to_string())
    }
}
