//! TLS on the OpenFlow channel: `ssl:` and `pssl:`.
//!
//! **What.** Both ends have a private key and a certificate, and a file of the authorities (CAs) that verify the peer
//! (mutual authentication), in the files that `ovs-pki(8)` makes for Open vSwitch. TLS 1.3 and 1.2, by `rustls`.
//!
//! **Trust.** A peer is trusted if one of the authorities has signed its certificate, or if the certificate itself is in
//! their file. As in Open vSwitch host names are not checked, since certificates of `ovs-pki` contain none; to accept only a
//! certain peer, set [`TlsConfig::peer_name`](crate::TlsConfig::peer_name).
//!
//! **How.** [`Handshakes`] runs the handshakes in progress, in its own epoll instance that its owner waits for: their number
//! and time are limited, so that silent or stalled peers cost others nothing. The result is a [`Stream`](crate::Stream). A
//! session does not own its socket, so that shards and switches read and write as without TLS.
//!
//! **Cost.** A handshake needs about a millisecond, most of it for RSA, on the thread of the owner of [`Handshakes`]. Bytes
//! are encrypted in batches as large as the writes. There is no session resumption: each connection authenticates again.

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
