//! Outputs of the pipeline, as parameters of action programs.

use urtica_wire::PortNo;

/// The size of an [`Origin`]'s parameters, in bytes.
pub(crate) const ORIGIN_LEN: usize = 10;

/// The size of a [`Way`]'s parameters, in bytes.
pub(crate) const WAY_LEN: usize = 6;

/// The size of [`Op::Send`](super::op::Op::Send)'s parameters, in bytes.
pub(crate) const SEND_PARAM_LEN: usize = ORIGIN_LEN + WAY_LEN;

/// The outputs of one frame: a ring among those of all frames, in which the last links to the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(8))]
pub(crate) struct SentList {
    /// The index of the last output; arbitrary if there is none.
    pub last: u32,
    pub count: u32,
}

/// An output: a port, or a reserved port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Way {
    pub port: u32,
    /// The number of bytes to send, if the port is the controller; otherwise the queue of the port.
    pub max_len_or_queue: u16,
}

/// The entry that sends a packet, for packet-ins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Origin {
    pub cookie: u64,
    pub table_id: u8,
    /// Whether it is a table-miss entry, without a group between it and the controller.
    pub is_miss: bool,
}

impl Origin {
    /// Encodes it as parameters.
    pub fn to_bytes(self) -> [u8; ORIGIN_LEN] {
        let mut bytes = [0; ORIGIN_LEN];
        bytes[..8].copy_from_slice(&self.cookie.to_be_bytes());
        bytes[8] = self.table_id;
        bytes[9] = self.is_miss.into();
        bytes
    }

    fn from_bytes(bytes: [u8; ORIGIN_LEN]) -> Self {
        let [cookie @ .., table_id, is_miss] = bytes;
        Self {
            cookie: u64::from_be_bytes(cookie),
            table_id,
            is_miss: is_miss != 0,
        }
    }

    /// Decodes it from parameters.
    ///
    /// # Safety
    /// `params` points to the parameters of an origin.
    pub unsafe fn at(params: *const u8) -> Self {
        // SAFETY: there are this many bytes, as this function requires.
        Self::from_bytes(unsafe { params.cast::<[u8; ORIGIN_LEN]>().read() })
    }
}

impl Way {
    /// Encodes it as parameters.
    pub fn to_bytes(self) -> [u8; WAY_LEN] {
        let mut bytes = [0; WAY_LEN];
        bytes[..4].copy_from_slice(&self.port.to_be_bytes());
        bytes[4..].copy_from_slice(&self.max_len_or_queue.to_be_bytes());
        bytes
    }

    /// Creates an output to a port through one of its queues. The controller has no queues, and gets `max_len` bytes.
    pub fn new(port: PortNo, max_len: u16, queue_id: u16) -> Self {
        Self {
            port: port.0,
            max_len_or_queue: match port {
                PortNo::CONTROLLER => max_len,
                _ => queue_id,
            },
        }
    }

    /// Returns the output through another queue of the port.
    pub fn through(self, queue_id: u16) -> Self {
        Self::new(PortNo(self.port), self.max_len_or_queue, queue_id)
    }

    /// Returns the queue of the port; 0 for the controller.
    pub fn queue_id(self) -> u16 {
        match PortNo(self.port) {
            PortNo::CONTROLLER => 0,
            _ => self.max_len_or_queue,
        }
    }

    pub fn from_bytes(bytes: [u8; WAY_LEN]) -> Self {
        let [port @ .., high, low] = bytes;
        Self {
            port: u32::from_be_bytes(port),
            max_len_or_queue: u16::from_be_bytes([high, low]),
        }
    }

    /// Decodes it from parameters.
    ///
    /// # Safety
    /// `params` points to the parameters of a way.
    pub unsafe fn at(params: *const u8) -> Self {
        // SAFETY: there are this many bytes, as this function requires.
        Self::from_bytes(unsafe { params.cast::<[u8; WAY_LEN]>().read() })
    }
}
