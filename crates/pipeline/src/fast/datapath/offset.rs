//! Offsets of the fields that action programs change, in bytes, for both backends.

/// From [`Frame::data`](super::frame::Frame::data): the Ethernet addresses, and the TCI of the outermost VLAN tag, which is
/// 3 bits priority, 1 bit drop indicator and 12 bits id.
pub(crate) const ETH_DST: usize = 0;
pub(crate) const ETH_SRC: usize = 6;
pub(crate) const TCI: usize = 14;

/// The length of the two Ethernet addresses at the start of every frame.
pub(crate) const ADDRESSES_LEN: usize = 12;

/// The length of a VLAN tag, right after the addresses: its type and TCI.
pub(crate) const TAG_LEN: usize = 4;

/// From [`Frame::network`](super::frame::Frame::network).
pub(crate) const IPV4_TTL: usize = 8;
pub(crate) const IPV4_CHECKSUM: usize = 10;
pub(crate) const IPV4_SRC: usize = 12;
pub(crate) const IPV4_DST: usize = 16;
pub(crate) const IPV6_HOP_LIMIT: usize = 7;

/// From [`Frame::transport`](super::frame::Frame::transport); ports have equal offsets in TCP and UDP.
pub(crate) const SRC_PORT: usize = 0;
pub(crate) const DST_PORT: usize = 2;
pub(crate) const TCP_CHECKSUM: usize = 16;
pub(crate) const UDP_CHECKSUM: usize = 6;
