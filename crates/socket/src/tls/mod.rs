//! TLS on the OpenFlow channel: `ssl:` and `pssl:`.
//!
//! **What.** Both ends have a private key and a certificate, and a file of the authorities (CAs) by which they know the other
//! (mutual authentication), as `ovs-pki(8)` makes them and Open vSwitch has them. TLS 1.3 and 1.2, by `rustls`.
//!
//! **Who is trusted.** Whoever has a certificate that one of the authorities has signed, or that stands in their file itself. As
//! in Open vSwitch the name of a host means nothing, since certificates of `ovs-pki` tell none; who expects a certain peer says so
//! ([`TlsConfig::peer_name`](crate::TlsConfig::peer_name)).
//!
//! **How.** [`Handshakes`] has the connections whose handshake is under way, in an epoll instance of its own that its owner waits
//! for: their number and their time are limited, so that whoever connects and says nothing, or begins and does not go on, costs
//! others nothing. What comes out is a [`Stream`](crate::Stream). A session speaks TLS on a socket that is not its own, so that
//! shards and switches read and write as before.
//!
//! **Cost.** A handshake takes about a millisecond, most of it for RSA, on the thread of whoever owns [`Handshakes`]. Bytes are
//! encrypted in batches as large as what is written. There is no session resumption: each connection proves anew who it is.

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
mod testing;
