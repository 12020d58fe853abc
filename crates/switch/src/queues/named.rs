//! The queues that belong to a port's name.

use super::PortQueues;

/// The queues of the port with some name, whether it exists or not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NamedQueues {
    /// The queues that the switch was started with.
    pub configured: PortQueues,
    /// The present ones, which may have been changed at run time.
    pub current: PortQueues,
}

impl NamedQueues {
    /// Returns `true` if they were changed at run time.
    pub fn has_changed(&self) -> bool {
        self.current != self.configured
    }
}
