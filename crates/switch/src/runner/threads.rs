//! The number of threads that forward packets, and their processors.

/// The threads that forward packets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Threads {
    /// Number of threads in addition to the one that serves controllers; with 0, that one forwards. All of them receive from an
    /// AF_PACKET port, as many as it has queues from an AF_XDP port, and one from any other port. Threads that could not receive
    /// are not started.
    pub count: usize,
    /// The processors to which they are bound, in order, counted from 0. If this is empty, the system chooses.
    pub cores: Vec<usize>,
}

impl Threads {
    /// Returns a choice for the processors that this process may use. With two or more, one thread forwards packets, so that
    /// controllers' requests do not delay them; with one, the thread that serves controllers also forwards.
    pub fn for_this_machine() -> Self {
        let processors = std::thread::available_parallelism();
        let has_several = processors.is_ok_and(|processors| processors.get() > 1);
        Self {
            count: has_several.into(),
            cores: Vec::new(),
        }
    }
}
