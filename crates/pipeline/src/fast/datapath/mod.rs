//! What runs for each packet.
//!
//! - `frame`, `parse`: a frame, and the headers that the installed pipeline looks at; `burst`, `buffer`: how frames come in.
//! - `table`, `key`, `action_program`: tables, templates, flow records, keys and action programs, as laid out for machine
//!   code.
//! - `meter_cell`: where flow records find their meter; `group`: where they find their group, and what that does to frames
//!   which have what it `needs`.
//! - `sent`: where frames leave besides what verdicts tell, each by a `way`.
//! - `merged` searches tables whose entries look at very many sets of bits, for machine code as well.
//! - `interpret` searches tables step by step and `execute` carries out action programs, by `operations`, where there is no
//!   machine code; `counting` is for both.
//! - `compiled`: what threads share, and each thread's way in; `context`: what each thread has; `backend`: what carries it out.
//!
//! Nothing here allocates, waits, or knows of the control side.

pub(crate) mod action_program;
pub(crate) mod backend;
pub(crate) mod buffer;
pub(crate) mod burst;
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
mod operations;
pub(crate) mod parse;
pub(crate) mod sent;
pub(crate) mod table;
pub(crate) mod way;
