//! The pipeline compiled (ESWITCH, SIGCOMM 2016): each table to what finds its entries fastest, each sort of action to
//! code of its own.
//!
//! **What.** [`Compiled`] is what [`Pipeline::compile`](crate::Pipeline::compile) makes. A [`Reader`], one for each
//! thread, takes a [`Burst`] of frames through it. What the compiled form does not carry out it leaves to the plain one,
//! from the beginning of a table on, before anything was counted or changed there: [`Verdict::Punt`],
//! [`Pipeline::resume`](crate::Pipeline::resume). So it never does anything but what the plain form would.
//!
//! **How.** Folders tell what runs when:
//!
//! - `datapath` runs for each packet, in any number of threads.
//! - `control` runs for each change, in one thread, and makes what the datapath runs.
//! - `memory` is between the two: structures that one side changes while the other looks.
//!
//! `control` uses the other two, `datapath` uses `memory`, and `memory` neither.
//!
//! **Thread-safety.** One thread changes, any number look. Those never wait; a change waits at most for a burst.

mod control;
mod datapath;
mod memory;

pub(crate) use control::compiler::Compiler;
pub use control::config::CompileConfig;
pub use control::explain::{
    ExplainedActions, ExplainedCut, ExplainedPart, ExplainedSubTables, ExplainedTable, Explanation,
    PlainReason, TemplateKind,
};
pub use control::perf_map::write_perf_map;
pub use datapath::backend::Backend;
pub use datapath::buffer::MAX_FRAME;
pub use datapath::burst::{BURST, Burst, Processed, Verdict};
pub(crate) use datapath::compiled::TableTotals;
pub use datapath::compiled::{Compiled, Reader};
pub use datapath::sent::SentFrame;
pub(crate) use memory::thread_counts::ThreadCounts;
