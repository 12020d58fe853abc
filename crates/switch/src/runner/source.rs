//! The sources of events, and their keys in the poller.

/// The source of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Stop,
    Port,
    /// Other threads have packets for controllers.
    Packets,
    /// Connections wait to be accepted, or TLS handshakes continue.
    Acceptor,
    /// Network interfaces have changed.
    Links,
    /// Other threads have tasks.
    Tasks,
    Target(usize),
    Connection(usize),
}

impl Source {
    pub fn key(self) -> u64 {
        let (kind, index) = match self {
            Self::Stop => (0, 0),
            Self::Port => (1, 0),
            Self::Acceptor => (2, 0),
            Self::Target(index) => (3, index),
            Self::Connection(index) => (4, index),
            Self::Packets => (5, 0),
            Self::Links => (6, 0),
            Self::Tasks => (7, 0),
        };
        kind << 32 | index as u64
    }

    pub fn from_key(key: u64) -> Self {
        let index = key as u32 as usize;
        match key >> 32 {
            0 => Self::Stop,
            1 => Self::Port,
            2 => Self::Acceptor,
            3 => Self::Target(index),
            5 => Self::Packets,
            6 => Self::Links,
            7 => Self::Tasks,
            _ => Self::Connection(index),
        }
    }
}
