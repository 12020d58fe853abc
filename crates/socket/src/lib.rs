//! Addresses, listening sockets and byte streams of the OpenFlow channel.
//!
//! **Why a separate crate.** Controllers and switches both need it: both can listen and connect, accept addresses in Open
//! vSwitch's form, and use TLS for `ssl:` and `pssl:` addresses.
//!
//! **Features.** `tls` (off by default): TLS on `ssl:` and `pssl:`, by `rustls`. Without it the types exist, but `Tls::load`
//! returns an error. `args` (off by default): the command-line options for TLS (`TlsArgs`), by `clap`.
//!
//! ```
//! use urtica_socket::{Address, Listener};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let address: Address = "ptcp:0:127.0.0.1".parse()?;
//! let listener = Listener::bind(&address)?;
//! assert_ne!(listener.address(), &address); // it names the port that the system chose
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

mod acceptor;
mod address;
#[cfg(feature = "args")]
mod args;
mod connect;
mod file_watch;
mod listener;
mod look_up;
mod poller;
mod stream;
#[cfg(feature = "tls")]
mod tls;
#[cfg(not(feature = "tls"))]
#[path = "tls_absent.rs"]
mod tls;
mod tls_config;
mod try_again;

pub use acceptor::{AcceptError, Accepted, Acceptor, EXHAUSTED_PAUSE, ListenerId};
pub use address::{Address, AddressError, DEFAULT_PORT};
#[cfg(feature = "args")]
pub use args::{TlsArgs, TlsArgsError};
pub use connect::{ConnectError, connect};
pub use file_watch::FileWatch;
pub use listener::{ListenError, Listener};
pub use look_up::look_up;
pub use poller::{Event, EventFlags, Poller};
pub use stream::{Stream, is_tls_record};
pub use tls::{Certificate, Ended, Handshakes, Notice, Tls, TlsError};
#[cfg(feature = "tls")]
pub use tls::{EXPIRY_WARNING, HANDSHAKE_TIMEOUT, MAX_HALF_OPEN};
pub use tls_config::{NoTlsConfig, TlsConfig};
pub use try_again::{has_timed_out, is_try_again};
