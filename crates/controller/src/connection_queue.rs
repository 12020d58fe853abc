//! Connections on their way into a shard: new ones, and connections that another shard hands over.
//!
//! They are not in the mailbox, to which every [`Network`](crate::Network) refers: its commands must not refer to
//! connections, since the handlers of a connection refer to the network.

use crate::connection::Connection;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;

/// The connections that wait for a shard to adopt them.
///
/// Thread-safety: any thread adds; only the shard removes. In the lock order, this lock precedes the registry's and a
/// mailbox's.
#[derive(Default)]
pub(crate) struct ConnectionQueue(Mutex<VecDeque<Box<Connection>>>);

impl ConnectionQueue {
    /// Creates a queue for each shard.
    pub fn for_shards(count: usize) -> Arc<[Self]> {
        (0..count).map(|_| Self::default()).collect()
    }

    /// Adds a connection, and calls `announce` to notify the shard. If that returns `false`, the shard has ended, and the
    /// connection is returned.
    ///
    /// `announce` is called under the lock, so a notified shard finds the connection.
    pub fn put(
        &self,
        connection: Box<Connection>,
        announce: impl FnOnce() -> bool,
    ) -> Result<(), Box<Connection>> {
        let mut waiting = self.0.lock();
        if !announce() {
            return Err(connection);
        }
        waiting.push_back(connection);
        Ok(())
    }

    /// Removes and returns all connections, in the order in which they were added.
    pub fn take_all(&self) -> VecDeque<Box<Connection>> {
        std::mem::take(&mut *self.0.lock())
    }
}
