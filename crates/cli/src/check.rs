//! `urtica check`: looks whether a configuration file can be used.

use crate::config::{FileError, LoadError, Sources, schema};
use crate::log::log_to_stderr;
use crate::say::{complain, say};
use crate::{Command, status};
use std::path::PathBuf;
use std::process::ExitCode;
use urtica_apps::Apps;

/// Options of `urtica check`.
#[derive(clap::Args)]
#[command(
    after_help = "It ends with 0 where the file can be used, and with 1 where it cannot. Each fault is told with line, column, and what was \
                  expected. The environment and the command line of urtica run may say otherwise than the file: they are not looked at."
)]
pub struct CheckArgs {
    /// The file, as urtica run --config has it.
    #[arg(value_name = "FILE", required_unless_present = "schema")]
    file: Option<PathBuf>,
    /// Print the file's JSON Schema, which editors can use.
    #[arg(long, conflicts_with = "file")]
    schema: bool,
}

/// Checks a file, or prints the schema.
pub fn run(args: CheckArgs) -> ExitCode {
    let Some(file) = args.file else {
        say(format_args!("{:#}", schema()));
        return ExitCode::SUCCESS;
    };
    log_to_stderr();
    match check(&Sources::of_file(&file)) {
        Ok(()) => {
            say(format_args!("{}: no fault was found", file.display()));
            ExitCode::SUCCESS
        }
        // Lines that other tools read: FILE:LINE:COLUMN: what is wrong.
        Err(LoadError::File(faults @ FileError::Faults { .. })) => {
            complain(faults);
            ExitCode::FAILURE
        }
        Err(error) => status::of(Err(error)),
    }
}

/// Whether a controller could start with this.
fn check(sources: &Sources) -> Result<(), LoadError> {
    let effective = sources.load()?;
    let Command::Run(args) = &effective.cli.command else {
        return Ok(());
    };
    let apps = Apps::new(&args.apps, &args.options);
    apps.map(drop).map_err(|error| effective.place(&error))
}
