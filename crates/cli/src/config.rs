//! The configuration file of `urtica run`, and how it, the environment and the command line become one set of options.
//!
//! **What.** A TOML file says what the command line says: a key is an option's name without dashes, and an option `--NAME-KEY` of a program is
//! `KEY` in the table `[program.NAME]`. The environment variable of an option is `URTICA_` and its name in capitals. Where several say
//! something, the command line counts, then the environment, then the file.
//!
//! **How.** Keys, their types and their checks are read off the command line's own description (`config/option.rs`), so that an option is
//! described once. What file and environment say is put in front of the arguments that were given (`config/sources.rs`).

mod fault;
mod file;
mod option;
mod schema;
mod sources;

pub use fault::Fault;
pub use file::FileError;
pub use schema::schema;
pub use sources::{Effective, LoadError, Sources};
