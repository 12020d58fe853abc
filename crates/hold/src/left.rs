//! Sockets left by an earlier program.

use crate::message::Id;
use rustix::fd::OwnedFd;

/// A listening socket of an earlier program.
#[derive(Debug)]
pub struct HeldListener {
    /// Its id at the holder.
    pub id: Id,
    /// The label that the earlier program gave it.
    pub label: String,
    /// The socket.
    pub socket: OwnedFd,
}

/// A connection of an earlier program.
#[derive(Debug)]
pub struct HeldConnection {
    /// Its id at the holder.
    pub id: Id,
    /// The label that the earlier program gave it.
    pub label: String,
    /// The socket.
    pub socket: OwnedFd,
    /// Its journal: see [`Journal::recover`](crate::Journal::recover).
    pub journal: OwnedFd,
    /// Further descriptors that the earlier program kept for it: see [`Link::attach`](crate::Link::attach).
    pub attachment: Option<Attachment>,
}

/// Descriptors of an earlier program in addition to a connection's socket.
#[derive(Debug)]
pub struct Attachment {
    /// The label that the earlier program gave them.
    pub label: String,
    /// The descriptors, in the order in which the program passed them.
    pub fds: Vec<OwnedFd>,
}

/// Descriptors of an earlier program that its connections share: see [`Link::keep_common`](crate::Link::keep_common).
#[derive(Debug)]
pub struct HeldCommon {
    /// Their id at the holder.
    pub id: Id,
    /// The descriptors, and their label.
    pub attachment: Attachment,
}
