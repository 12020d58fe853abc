//! Code that runs for each change, in one thread.
//!
//! - `compiler` follows a pipeline's changes; `form` is one table's form. `plan` chooses its template, `decompose` its cut, and
//!   `merge` the entries that share hash tables (`cut`, `route` and `planned` are their data, `choice` is the result). `search`
//!   runs these in a separate thread.
//! - `match_key` converts a match to a key, `translate` converts instructions to an action program.
//! - `store` owns the flow records, `meter_cells` and `group_cells` link them to meters and groups, `chains` has shared hash
//!   tables, `generator` creates the code; `machine` is the code generator for x86-64.
//! - `explain` describes the results.

mod chains;
mod choice;
pub(crate) mod compiler;
pub(crate) mod config;
mod cut;
mod decompose;
pub(crate) mod explain;
mod form;
mod generator;
mod group_cells;
#[cfg(target_arch = "x86_64")]
mod machine;
mod match_key;
mod merge;
mod meter_cells;
pub(crate) mod perf_map;
mod plan;
mod planned;
mod record_place;
mod route;
mod search;
mod store;
mod translate;
