//! The description of a command line, and what it does not say.

use clap::Command;

/// A subcommand whose options may also be in a file and in the environment.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CommandLine {
    /// Describes the whole command line.
    pub describe: fn() -> Command,
    /// The subcommand.
    pub subcommand: &'static str,
    /// The start of the variables' names, without the underscore. The variable with `CONFIG` names the file, if the option
    /// `config` does not.
    pub prefix: &'static str,
    /// The known programs, whose names are the argument `apps` of the subcommand, and whose options have the heading "Options of
    /// programs". None by default.
    pub programs: Vec<&'static str>,
    /// Another variable for an option. None by default.
    pub alias: Option<Alias>,
}

/// A variable that stands for an option where the option's own is not set.
#[derive(Clone, Copy, Debug)]
pub struct Alias {
    /// The name of the option.
    pub option: &'static str,
    /// The variable.
    pub variable: &'static str,
    /// Whether the variable's value is one for the option; others are ignored.
    pub is_valid: fn(&str) -> bool,
}

impl CommandLine {
    /// A subcommand without programs.
    pub fn new(describe: fn() -> Command, subcommand: &'static str, prefix: &'static str) -> Self {
        Self {
            describe,
            subcommand,
            prefix,
            programs: Vec::new(),
            alias: None,
        }
    }

    /// Returns the description of the subcommand, complete.
    pub(crate) fn subcommand(&self) -> Command {
        let mut whole = (self.describe)();
        whole.build();
        let found = whole.find_subcommand(self.subcommand);
        found.cloned().expect("the description has the subcommand")
    }

    /// Returns the program that an option of this name belongs to.
    pub(crate) fn program_of(&self, name: &str) -> Option<&'static str> {
        let is_prefix = |program: &&&str| {
            let own = name.strip_prefix(**program);
            own.is_some_and(|own| own.starts_with('-'))
        };
        let programs = self.programs.iter().filter(is_prefix);
        programs.max_by_key(|program| program.len()).copied()
    }
}
