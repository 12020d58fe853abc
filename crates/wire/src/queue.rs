//! The queues of a port.

use crate::{List, PortNo};

/// The body of a queue configuration reply (1.3.5 section 7.3.6, 1.0 section 5.3.4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueConfig<'a> {
    /// The requested port.
    pub port: PortNo,
    /// Its queues.
    pub queues: List<'a, PacketQueue<'a>>,
}

/// A queue (`ofp_packet_queue`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketQueue<'a> {
    /// Its number.
    pub queue_id: u32,
    /// The port of the queue; [`PortNo::ANY`] in 1.0, which does not report it.
    pub port: PortNo,
    /// Its properties.
    pub properties: List<'a, QueueProperty<'a>>,
}

/// A property of a queue. Rates are in tenths of a percent of the port's rate; above 1000 means disabled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueProperty<'a> {
    /// 1.0 only: no property (OFPQT_NONE).
    None,
    /// The guaranteed rate.
    MinRate(u16),
    /// The maximum rate. 1.3 only.
    MaxRate(u16),
    /// An experimenter's property. 1.3 only.
    Experimenter {
        /// The experimenter's id.
        experimenter: u32,
        /// The bytes after the experimenter id and its padding.
        data: &'a [u8],
    },
    /// An unknown property.
    Other {
        /// Its type.
        property: u16,
        /// The bytes after the property's eight-byte header.
        data: &'a [u8],
    },
}
