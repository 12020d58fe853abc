//! Connections on their way into a shard: new ones, and those that another shard gives away.
//!
//! They do not travel in the mailbox, which every [`Network`](crate::Network) leads to: what it carries must not know
//! connections, whose handlers know the network.

use crate::connection::Connection;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;

/// The connections that wait for a shard to take them on.
///
/// Thread-safety: any thread puts in; the shard alone takes out. The lock is taken before those of the registry and of a
/// mailbox, never after them.
#[derive(Default)]
pub(crate) struct ConnectionQueue(Mutex<VecDeque<Box<Connection>>>);

impl ConnectionQueue {
    /// One for each shard.
    pub fn for_shards(count: usize) -> Arc<[Self]> {
        (0..count).map(|_| Self::default()).collect()
    }

    /// Puts a connection in, and has `announce` tell the shard. Returns the connection where `announce` returns `false`: the
    /// shard has ended.
    ///
    /// A shard that was told waits for the lock, and so finds the connection.
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

    /// Takes all out, in the order in which they came.
    pub fn take_all(&self) -> VecDeque<Box<Connection>> {
        std::mem::take(&mut *self.0.lock())
    }
}
