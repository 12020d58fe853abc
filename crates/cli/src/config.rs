//! The configuration file of `urtica run`, and its merging with the environment and the command line.
//!
//! **What.** A TOML file has the options of the command line: a key is an option's name without dashes, and an option
//! `--NAME-KEY` of a program is `KEY` in the table `[program.NAME]`. The environment variable of an option is `URTICA_` and
//! its name in capitals. The command line overrides the environment, and the environment overrides the file.
//!
//! **How.** Keys, their types and their checks are derived from the command line's description (`config/option.rs`), so that
//! an option is described once. Options of file and environment are inserted before the given arguments
//! (`config/sources.rs`).

mod fault;
mod file;
mod option;
mod schema;
mod sources;

pub use fault::Fault;
pub use file::{FileError, read as read_file};
pub use schema::schema;
pub use sources::{Effective, LoadError, Sources};
