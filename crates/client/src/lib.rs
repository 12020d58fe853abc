//! A client of OpenFlow switches: it connects to a switch that listens, sends requests, and returns the replies.
//!
//! **Why a separate crate.** The command line, benchmarks and tests use it, and programs that only query a switch need no
//! controller.
//!
//! **How.** A [`Client`] blocks, and has one request at a time. Every send and every wait has a timeout. All errors, even a
//! switch's, are a [`ClientError`].
//!
//! - [`SwitchName`] is an address, or the name of an Open vSwitch bridge on this machine.
//! - [`PortNames`] replaces a switch's port names in texts by numbers.
//! - [`Loader`] copies the entries of a switch, or of files, into a `Pipeline`.
//!
//! **Features.** `tls` (off by default): TLS to switches at `ssl:` addresses.
//!
//! ```no_run
//! use std::time::Duration;
//! use urtica_client::Client;
//! use urtica_wire::{Message, MultipartRequestBody};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut client = Client::connect(&"tcp:10.0.0.1".parse()?, None, &[], Duration::from_secs(10))?;
//! for frame in client.multipart(MultipartRequestBody::PortDesc)? {
//!     println!("{:?}", Message::decode(&frame)?);
//! }
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

mod client;
mod error;
mod hint;
mod loader;
mod port_names;
mod switch_name;

pub use client::{Client, Refusal};
pub use error::ClientError;
pub use hint::hint;
pub use loader::{LoadError, Loader};
pub use port_names::PortNames;
pub use switch_name::{SwitchName, SwitchNameError};
