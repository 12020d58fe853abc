//! `urtica check`: checks a configuration file.

use crate::config::{Effective, command_line, sources_of_file};
use crate::log::log_filtered;
use crate::run::ask;
use crate::say::{complain, say};
use crate::status;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use urtica_apps::Apps;
use urtica_config::{FileError, LoadError, Sources, schema};

/// Options of `urtica check`.
#[derive(clap::Args)]
#[command(
    after_help = "The exit status is 0 for a valid file, otherwise 1. Each error has line, column, and the expected \
                  value. The environment and the command line of urtica run, which may override the file, are not \
                  checked."
)]
pub struct CheckArgs {
    /// The file for urtica run --config.
    #[arg(value_name = "FILE", required_unless_present = "schema")]
    file: Option<PathBuf>,
    /// Print the changes that the file would make in the running controller, to programs and to each switch's flow
    /// entries, without making them. The controller is queried at the file's 'control' socket.
    #[arg(long, conflicts_with = "schema")]
    dry_run: bool,
    /// Print the file's JSON Schema, for editors.
    #[arg(long, conflicts_with = "file")]
    schema: bool,
}

/// Checks a file, or prints the schema.
pub fn run(args: CheckArgs) -> ExitCode {
    let Some(file) = args.file else {
        let schema = schema(&command_line(), "The configuration of urtica run");
        say(format_args!("{schema:#}"));
        return ExitCode::SUCCESS;
    };
    // Log only warnings and errors, not the programs' messages when they start.
    let _ = log_filtered(Some("warn"));
    match check(&sources_of_file(&file)) {
        Ok(effective) if args.dry_run => status::of(dry_run(&file, &effective)),
        Ok(_) => {
            say(format_args!("{}: no errors found", file.display()));
            ExitCode::SUCCESS
        }
        // Lines for other tools: FILE:LINE:COLUMN: error.
        Err(LoadError::File(faults @ FileError::Faults { .. })) => {
            complain(faults);
            ExitCode::FAILURE
        }
        Err(error) => status::of(Err(error)),
    }
}

/// Returns the settings of a controller started with these sources, or the errors that would prevent its start.
pub fn check(sources: &Sources) -> Result<Effective, LoadError> {
    let effective = Effective::load(sources)?;
    if let Some(args) = effective.run_args() {
        let apps = Apps::new(&args.apps, &args.options);
        apps.map_err(|error| effective.place(&error))?;
    }
    effective.check_settings()?;
    Ok(effective)
}

/// Prints the changes of the file in the running controller.
fn dry_run(file: &Path, effective: &Effective) -> Result<(), String> {
    let socket = effective
        .values
        .get("control")
        .and_then(|values| values.first());
    let socket = socket.ok_or_else(|| {
        format!(
            "{} does not name the controller's socket; expected control = \"FILE\" as in the running controller's file",
            file.display()
        )
    })?;
    say(ask(Path::new(socket), file)?);
    Ok(())
}
