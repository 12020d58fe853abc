//! The options of a subcommand, from a TOML file, the environment and the command line.
//!
//! **What.** The file has the options of the command line: a key is an option's name without dashes, and a program's option
//! `--NAME-KEY` is `KEY` in the table `[program.NAME]`. An option's environment variable is a prefix and the name in
//! capitals. The command line overrides the environment, and the environment overrides the file.
//!
//! **How.** Keys, their types and their checks are derived from the command line's description ([`CommandLine`]), so that
//! each option is described once. Options from the file and the environment are inserted before the given arguments
//! ([`Sources::load`]), and clap parses the result.
//!
//! ```
//! use clap::{Arg, Command};
//! use urtica_config::{CommandLine, Sources};
//!
//! fn describe() -> Command {
//!     let listen = Arg::new("listen").long("listen").default_value("6653");
//!     Command::new("controller").subcommand(Command::new("run").arg(listen))
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let line = CommandLine::new(describe, "run", "CONTROLLER");
//! let arguments = ["controller", "run"].map(Into::into).to_vec();
//! let variables = [("CONTROLLER_LISTEN".into(), "6633".into())];
//! let sources = Sources::new(line, arguments, variables).ok_or("expected the subcommand run")?;
//! assert_eq!(sources.load()?.values["listen"], ["6633"]);
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

mod command_line;
mod fault;
mod file;
mod option;
mod schema;
mod sources;

pub use command_line::{Alias, CommandLine};
pub use fault::{Fault, Problem};
pub use file::{FileError, read as read_file};
pub use schema::schema;
pub use sources::{Effective, LoadError, Refused, Sources};
