//! What runs for each packet.
//!
//! - `frame`, `parse`: a frame, and the headers that the installed pipeline looks at.
//! - `table`, `key`, `action_program`: tables, templates, flow records, keys and action programs, as laid out for machine
//!   code.
//! - `meter_cell`: where flow records find their meter; `group`: where they find their group, and what that does.
//! - `sent`: where frames leave besides what verdicts tell.
//! - `merged` searches tables whose entries look at very many sets of bits, for machine code as well.
//! - `interpret` searches tables step by step and `execute` carries out action programs, where there is no machine code.
//! - `compiled`: what threads share, and each thread's way in; `backend`: what carries it out.
//!
//! Nothing here allocates, waits, or knows of the control side.

pub(crate) mod action_program;
pub(crate) mod backend;
pub(crate) mod compiled;
pub(crate) mod execute;
pub(crate) mod frame;
pub(crate) mod group;
mod interpret;
pub(crate) mod key;
pub(crate) mod kinds;
pub(crate) mod merged;
pub(crate) mod meter_cell;
pub(crate) mod offset;
pub(crate) mod parse;
pub(crate) mod sent;
pub(crate) mod table;
