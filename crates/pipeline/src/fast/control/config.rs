//! Settings of the compiled form.

use crate::fast::datapath::backend::Backend;

/// The settings for compiling a pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompileConfig {
    /// The backend.
    pub backend: Backend,
    /// Whether several threads process packets concurrently: each then has its own counters.
    pub is_shared: bool,
    /// The maximum size of entries and search structures in bytes, at most 16 GiB. Tables that do not fit are left to the
    /// plain form.
    pub max_bytes: usize,
    /// Whether to cut tables into sub-tables if that is faster; otherwise each is searched as a whole.
    pub decomposes: bool,
    /// Whether a separate thread looks for a better search of a changed table of more than 64 entries, while the table may
    /// change further. A later [`Pipeline::settle`](crate::Pipeline::settle) applies the result. Otherwise, one call of it
    /// does everything.
    pub plans_beside: bool,
}

impl Default for CompileConfig {
    /// Returns the fastest settings for one thread, with at most 4 GiB.
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
