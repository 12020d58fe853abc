//! The description of a command line, with the facts that clap's lacks.

use clap::Command;

/// A subcommand whose options may also be in a file and in the environment.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CommandLine {
    /// Describes the whole command line.
    pub describe: fn() -> Command,
    /// The subcommand.
    pub subcommand: &'static str,
    /// The prefix of the variables' names, without the underscore. If the option `config` is not given, the variable
    /// `PREFIX_CONFIG` names the file.
    pub prefix: &'static str,
    /// The known programs. The subcommand's argument `apps` lists their names, and their options have the heading "Options of
    /// programs". Empty by default.
    pub programs: Vec<&'static str>,
    /// Another variable for an option. `None` by default.
    pub alias: Option<Alias>,
}

/// A variable that is used for an option if the option's own variable is not set.
#[derive(Clone, Copy, Debug)]
pub struct Alias {
    /// The name of the option.
    pub option: &'static str,
    /// The variable.
    pub variable: &'static str,
    /// Returns whether the variable's value is valid for the option; other values are ignored.
    pub is_valid: fn(&str) -> bool,
}

impl CommandLine {
    /// Describes a subcommand without programs.
    pub fn new(describe: fn() -> Command, subcommand: &'static str, prefix: &'static str) -> Self {
        Self {
            describe,
            subcommand,
            prefix,
            programs: Vec::new(),
            alias: None,
        }
    }

    /// Returns the complete description of the subcommand.
    pub(crate) fn subcommand(&self) -> Command {
        let mut whole = (self.describe)();
        whole.build();
        let found = whole.find_subcommand(self.subcommand);
        found.cloned().expect("the description has the subcommand")
    }

    /// Returns the program with an option of this name.
    pub(crate) fn program_of(&self, name: &str) -> Option<&'static str> {
        let is_prefix = |program: &&&str| {
            let own = name.strip_prefix(**program);
            own.is_some_and(|own| own.starts_with('-'))
        };
        let programs = self.programs.iter().filter(is_prefix);
        programs.max_by_key(|program| program.len()).copied()
    }
}
