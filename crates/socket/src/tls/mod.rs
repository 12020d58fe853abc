//! TLS on the OpenFlow channel: `ssl:` and `pssl:`.
//!
//! **What.** Both sides authenticate (mutual authentication). Each has a private key, a certificate, and a file of the
//! authorities (CAs) that verify its peer, all as `ovs-pki(8)` makes them for Open vSwitch. TLS 1.3 and 1.2, by `rustls`.
//!
//! **Trust.** A peer is trusted if one of the authorities has signed its certificate, or if the certificate itself is in their
//! file. As in Open vSwitch, host names are not checked, since certificates of `ovs-pki` contain none. To accept only a certain
//! peer, set [`TlsConfig::peer_name`](crate::TlsConfig::peer_name).
//!
//! **How.** [`Handshakes`] runs the handshakes in progress, in its own epoll instance that its owner waits for. Their number
//! and time are limited, so silent or stalled peers do not affect others. The result is a [`Stream`](crate::Stream). A session
//! does not own its socket, so shards and switches read and write as without TLS.
//!
//! **Cost.** A handshake needs about a millisecond, mostly for RSA, on the thread of the owner of [`Handshakes`]. Bytes are
//! encrypted in batches as large as the writes. Sessions are not resumed: each connection authenticates again.

mod bootstrap;
mod certificate;
mod config;
mod error;
mod handshakes;
mod session;
mod verify;

pub use certificate::Certificate;
pub use config::{EXPIRY_WARNING, Notice, Tls};
pub use error::TlsError;
pub use handshakes::{Ended, HANDSHAKE_TIMEOUT, Handshakes, MAX_HALF_OPEN};
pub(crate) use session::Session;

#[cfg(test)]
pub(crate) mod testing;
