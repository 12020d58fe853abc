//! `urtica completions` and `urtica man`: files for shells and packages, made from the description of the command line.

use crate::status;
use clap::{Command, CommandFactory};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Options of `urtica completions`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  urtica completions bash > /etc/bash_completion.d/urtica
  urtica completions zsh > /usr/local/share/zsh/site-functions/_urtica
  urtica completions fish > ~/.config/fish/completions/urtica.fish")]
pub struct CompletionsArgs {
    /// The shell.
    shell: clap_complete::Shell,
}

/// Options of `urtica man`.
#[derive(clap::Args)]
pub struct ManArgs {
    /// The directory to write urtica.1 and a page for each subcommand to; it is created if it does not exist.
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

/// Why a file was not written.
#[derive(Debug, thiserror::Error)]
enum GenerateError {
    #[error("cannot write to standard output: {0}")]
    Print(#[source] io::Error),
    #[error("cannot write {}: {error}; expected a directory that can be written to", .path.display())]
    Write { path: PathBuf, error: io::Error },
}

/// Prints the completion script.
pub fn completions<C: CommandFactory>(args: &CompletionsArgs) -> ExitCode {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut C::command(), "urtica", &mut script);
    let printed = io::stdout().write_all(&script);
    status::of_printed(
        printed
            .map(|()| ExitCode::SUCCESS)
            .map_err(GenerateError::Print),
        |error| match error {
            GenerateError::Print(error) => Some(error),
            GenerateError::Write { .. } => None,
        },
    )
}

/// Writes the pages.
pub fn man<C: CommandFactory>(args: &ManArgs) -> ExitCode {
    let mut command = C::command().flatten_help(false);
    command.build();
    status::of(write_pages(&command, &args.directory))
}

/// Writes the pages of a command and its subcommands.
fn write_pages(command: &Command, directory: &Path) -> Result<(), GenerateError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |error| GenerateError::Write { path, error }
    };
    fs::create_dir_all(directory).map_err(failed(directory))?;
    let name = command.get_display_name().unwrap_or(command.get_name());
    let path = directory.join(format!("{name}.1"));
    let page = clap_mangen::Man::new(command.clone())
        .source(concat!("Urtica ", env!("CARGO_PKG_VERSION")));
    File::create(&path)
        .and_then(|mut file| page.render(&mut file))
        .map_err(failed(&path))?;
    command
        .get_subcommands()
        .filter(|subcommand| subcommand.get_name() != "help")
        .try_for_each(|subcommand| write_pages(subcommand, directory))
}
