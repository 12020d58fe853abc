//! The queues that belong to a port's name.

use super::PortQueues;

/// The queues that belong to a port's name, whether the port exists or not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NamedQueues {
    /// The queues with which the switch was started.
    pub configured: PortQueues,
    /// The current queues, which may have been changed at run time.
    pub current: PortQueues,
}

impl NamedQueues {
    /// Returns `true` if they were changed at run time.
    pub fn has_changed(&self) -> bool {
        self.current != self.configured
    }
}
