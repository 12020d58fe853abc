//! Code that runs for each packet.
//!
//! - `frame`, `parse`: a frame and its parsed headers; `burst`, `buffer`: bursts of frames.
//! - `table`, `key`, `action_program`: tables, templates, flow records, keys and action programs, as laid out for machine
//!   code.
//! - `action_set`: action sets of frames.
//! - `meter_cell`, `group`: the meters and groups of flow records; `needs`: the requirements of groups on frames.
//! - `sent`: additional outputs of frames, each with a `way`.
//! - `merged` searches merged tuples, also for machine code.
//! - `interpret` searches tables and `execute` executes action programs, by `operations`, without machine code; `counting`
//!   serves both.
//! - `compiled`: the state that threads share, and readers; `context`: each thread's state; `backend`: machine code or
//!   interpreter.
//!
//! Nothing here allocates, waits, or depends on the control side.

pub(crate) mod action_program;
pub(crate) mod action_set;
pub(crate) mod backend;
pub(crate) mod buffer;
pub(crate) mod burst;
mod carried_set;
pub(crate) mod compiled;
pub(crate) mod context;
mod counting;
pub(crate) mod execute;
pub(crate) mod frame;
pub(crate) mod group;
mod interpret;
pub(crate) mod key;
pub(crate) mod kinds;
pub(crate) mod merged;
pub(crate) mod meter_cell;
pub(crate) mod needs;
pub(crate) mod offset;
pub(crate) mod op;
mod operations;
pub(crate) mod parse;
pub(crate) mod sent;
pub(crate) mod table;
pub(crate) mod way;
