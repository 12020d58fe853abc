//! Settings for compiling a pipeline.

use crate::fast::datapath::backend::Backend;

/// The settings for compiling a pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompileConfig {
    /// The backend.
    pub backend: Backend,
    /// Whether several threads process packets concurrently: each then has its own counters.
    pub is_shared: bool,
    /// The maximum bytes of entries and search structures, at most 16 GiB. Tables that do not fit are left to the plain
    /// form.
    pub max_bytes: usize,
    /// Whether tables are cut into sub-tables if that is faster; otherwise each is searched as a whole.
    pub decomposes: bool,
    /// Whether a separate thread finds a better search for a changed table of more than 64 entries, while the table may
    /// change further. The result is applied by a later [`Pipeline::settle`](crate::Pipeline::settle); otherwise, one call
    /// of that does everything.
    pub plans_beside: bool,
}

impl Default for CompileConfig {
    /// The fastest for one thread; 4 GiB at most.
    fn default() -> Self {
        Self {
            backend: Backend::default(),
            is_shared: false,
            max_bytes: 4 << 30,
            decomposes: true,
            plans_beside: false,
        }
    }
}
