//! What runs for each change, in one thread.
//!
//! - `compiler` follows what changes in a pipeline; `form` is one table's form, `plan` which template it gets, and
//!   `decompose` by what it is cut, `merge` which entries share a hash table (`cut`, `route` and `planned` are what these
//!   decide about, `choice` is what they decide). `search` has this done by a thread of its own.
//! - `match_key` makes a key of a match, `translate` an action program of instructions.
//! - `store` has the flow records, `meter_cells` and `group_cells` what leads from them to meters and groups, `chains` the hash tables that entries share, `generator` the code; `machine` is the code generator for x86-64.
//! - `explain` tells people what came of it.

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
