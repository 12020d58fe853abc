//! The compiled pipeline (ESWITCH, SIGCOMM 2016), which compiles each table to the fastest search for its entries, and each
//! kind of action list to its own code.
//!
//! **What.** [`Pipeline::compile`](crate::Pipeline::compile) creates a [`Compiled`]. A [`Reader`], one for each thread,
//! processes a [`Burst`] of frames. Packets that the compiled form does not support are left to the plain form at the start
//! of a table, before they are counted or changed there: [`Verdict::Punt`],
//! [`Pipeline::resume`](crate::Pipeline::resume). So the results of both forms never differ.
//!
//! **How.** By folder:
//!
//! - `datapath` runs for each packet, in any number of threads.
//! - `control` runs for each change, in one thread, and creates the structures that the datapath uses.
//! - `memory` is between the two: it has structures that one side changes while the other reads them.
//!
//! `control` uses the other two, `datapath` uses `memory`, and `memory` uses neither.
//!
//! **Thread-safety.** One thread makes changes, any number read. Readers never wait; a change waits at most for a burst.

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
