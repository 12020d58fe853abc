//! Bytes that the channel has not accepted yet.

use crate::backlog::Backlog;
use std::sync::Arc;

/// Waiting output: replies and messages from the mailbox.
#[derive(Default)]
pub(super) struct Output {
    bytes: Vec<u8>,
    /// The number of bytes from the mailbox; the others are replies, and count as written first.
    counted: usize,
    /// Counts the bytes from the mailbox, and bytes still in the mailbox.
    backlog: Arc<Backlog>,
}

impl Output {
    /// Replaces the waiting bytes by `bytes`, none of which are from the mailbox.
    pub fn resume(&mut self, bytes: Vec<u8>) {
        self.bytes = bytes;
    }

    /// Returns the waiting bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns `true` if no output waits.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Returns the number of waiting bytes that are replies.
    pub fn replies(&self) -> usize {
        self.bytes.len() - self.counted
    }

    /// Returns the count of bytes that wait in the mailbox and here.
    pub fn backlog(&self) -> &Arc<Backlog> {
        &self.backlog
    }

    /// Appends replies.
    pub fn add(&mut self, replies: &[u8]) {
        self.bytes.extend_from_slice(replies);
    }

    /// Appends messages; `counted` of their bytes are in the backlog.
    pub fn add_counted(&mut self, messages: &[u8], counted: usize) {
        self.counted += counted;
        self.bytes.extend_from_slice(messages);
    }

    /// Removes `count` written bytes from the front.
    pub fn remove(&mut self, count: usize) {
        self.bytes.drain(..count);
    }

    /// Subtracts written bytes of the mailbox from the backlog.
    pub fn subtract_written(&mut self) {
        let left = self.counted.min(self.bytes.len());
        self.backlog.subtract(self.counted - left);
        self.counted = left;
    }

    /// Frees unused memory.
    pub fn shrink(&mut self) {
        if self.bytes.is_empty() {
            self.bytes.shrink_to(0);
        }
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        self.backlog.close();
    }
}
