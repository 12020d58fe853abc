//! Addresses and listening sockets of the OpenFlow channel.
//!
//! **Why it exists apart.** Controllers listen and switches connect, and both can do the other as well; each takes
//! addresses in the same form, Open vSwitch's.
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

mod address;
mod listener;
mod look_up;

pub use address::{Address, AddressError, DEFAULT_PORT};
pub use listener::{ListenError, Listener};
pub use look_up::look_up;
