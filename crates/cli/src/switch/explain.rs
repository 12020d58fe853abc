//! `urtica switch --explain`: prints compiled flow entries without running a switch.

use crate::status;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use urtica_client::{LoadError, Loader};
use urtica_pipeline::CompileConfig;

/// Options of `urtica switch` that print compiled flow entries.
#[derive(Debug, clap::Args)]
pub struct ExplainArgs {
    /// Print how the flow entries in this file are compiled, and exit: for each table its template, the reason, the parsed
    /// headers and the actions. Entries, groups and meters are one per line, as for 'urtica trace'; - is standard input.
    #[arg(long, value_name = "FILE|-", exclusive = true)]
    explain: Option<PathBuf>,
    /// Like --explain, with the machine code.
    #[arg(long, value_name = "FILE|-", exclusive = true)]
    explain_code: Option<PathBuf>,
}

impl ExplainArgs {
    /// Returns the requested file, and `true` for its code, if any.
    pub fn asked(&self) -> Option<(&Path, bool)> {
        let with_code = self.explain_code.as_deref().map(|file| (file, true));
        with_code.or(self.explain.as_deref().map(|file| (file, false)))
    }
}

/// An error that prevents an explanation.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error("the entries cannot be compiled: {0}")]
    Compile(io::Error),
    #[error("cannot write the output: {0}")]
    Output(#[from] io::Error),
}

/// Prints the compiled entries of a file; the status is 1 after an error.
pub fn run(file: &Path, with_code: bool) -> ExitCode {
    let done = print(file, with_code, &mut io::stdout().lock());
    status::of_printed(done.map(|()| ExitCode::SUCCESS), |error| match error {
        Error::Output(error) => Some(error),
        _ => None,
    })
}

fn print(file: &Path, with_code: bool, out: &mut dyn Write) -> Result<(), Error> {
    let mut loader = Loader::default();
    loader.read(file)?;
    let mut pipeline = loader.finish(None)?;
    pipeline
        .compile(CompileConfig::default())
        .map_err(Error::Compile)?;
    match pipeline.explain(with_code) {
        Some(explanation) => Ok(write!(out, "{explanation}")?),
        None => Ok(()),
    }
}
