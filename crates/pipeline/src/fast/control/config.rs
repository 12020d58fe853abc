//! How a pipeline is to be compiled.

use crate::fast::datapath::backend::Backend;

/// How a pipeline is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompileConfig {
    /// What carries it out.
    pub backend: Backend,
    /// Whether several threads will process packets at a time: each has counters of its own then.
    pub is_shared: bool,
    /// How many bytes entries and what finds them may take, 16 GiB at most. Tables for which there is no room are left
    /// to the plain form.
    pub max_bytes: usize,
    /// Whether tables are cut into sub-tables where that pays; without, each is searched as a whole.
    pub decomposes: bool,
    /// Whether a thread of its own looks for a better way to search a table of more than 64 entries that has changed, while the
    /// table changes further. What it has found is taken over by a later [`Pipeline::settle`](crate::Pipeline::settle); without, one
    /// call of that does all.
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
