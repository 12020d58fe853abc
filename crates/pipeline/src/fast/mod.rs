//! The pipeline compiled (ESWITCH, SIGCOMM 2016): each table to what finds its entries fastest, each sort of action to
//! code of its own.
//!
//! **What.** [`Compiled`] is what [`Pipeline::compile`](crate::Pipeline::compile) makes. A [`Reader`], one for each
//! thread, takes a [`Burst`] of frames through it. What the compiled form does not carry out it leaves to the plain one,
//! from the beginning of a table on, before anything was counted or changed there: [`Verdict::Punt`],
//! [`Pipeline::resume`](crate::Pipeline::resume). So it never does anything but what the plain form would.
//!
//! **How.** On the packets' side:
//!
//! - `frame`, `parse`: a frame, and the headers that the installed pipeline looks at.
//! - `table`, `actions`: tables, templates, cells, as laid out for machine code.
//! - `machine`: the code generator for x86-64; `interpret`: the same without one.
//!
//! On the side of changes, in one thread:
//!
//! - `compiler` follows what changes in a pipeline; `form` is one table's form, `plan` which template it gets, `key` and
//!   `actions` what becomes of a match and of instructions; `store` has the cells, `generator` the code, and `link` leads
//!   from an entry to its cell.
//!
//! `explain` tells people what came of it. And between the two sides:
//!
//! - `arena`, `hash_table`, `lpm`: memory that packets look at while it changes; `epoch`: when what was taken out can
//!   be freed.
//!
//! **Thread-safety.** One thread changes, any number look. Those never wait; a change waits at most for a burst.

mod actions;
mod arena;
mod backend;
mod compiled;
mod compiler;
mod config;
mod cut;
mod decompose;
mod epoch;
mod explain;
mod form;
mod frame;
mod generator;
mod hash_table;
mod interpret;
mod key;
mod kinds;
mod lpm;
#[cfg(target_arch = "x86_64")]
mod machine;
mod match_key;
mod parse;
mod plan;
mod planned;
mod route;
mod store;
mod table;
mod zeroed;

pub use backend::Backend;
pub(crate) use compiled::TableTotals;
pub use compiled::{Compiled, Reader};
pub(crate) use compiler::Compiler;
pub use config::CompileConfig;
pub use explain::{
    ExplainedActions, ExplainedCut, ExplainedPart, ExplainedPieces, ExplainedTable, Explanation,
    PlainReason, TemplateKind,
};
pub use frame::{BURST, Burst, MAX_FRAME, Processed, Verdict};

/// What `epoch` is made of, for which its model has other ones.
mod sync {
    pub use std::sync::atomic::{AtomicU64, fence};
    pub use std::sync::{Mutex, MutexGuard};
}
