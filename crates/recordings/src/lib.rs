//! Recordings of the OpenFlow channel: written, read and replayed.
//!
//! - [`capture`]: a relay between switches and controller that records both sides' messages, even under TLS.
//! - [`decode`]: the messages in a recording as text.
//! - [`replay`]: the switches of a recording, connected to a controller.
//!
//! **Layers.** A recording is a pcap or pcapng file: [`Packets`] reads it, [`tcp_segment`] finds TCP in a packet, and
//! [`Reassembly`] assembles one direction of a connection. [`Transcript`] is the reverse: it turns bytes into packets.
//!
//! **Features.** `tls` (off by default): TLS on `ssl:` and `pssl:` addresses.
//!
//! ```
//! use urtica_recordings::decode::{Outcome, parse_hex, print_messages};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let barrier = parse_hex(b"01 12 00 08 00 00 00 01")?;
//! let mut printed = Vec::new();
//! assert_eq!(print_messages(&barrier, false, &mut printed)?, Outcome::AllRead);
//! assert_eq!(printed, b"OFPT_BARRIER_REQUEST (xid=0x1):\n");
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

pub mod capture;
pub mod decode;
mod packets;
mod reassembly;
pub mod replay;
mod segment;
mod transcript;

pub use packets::{Packet, Packets, ReadError, is_capture};
pub use reassembly::{Piece, Reassembly};
pub use segment::{Direction, Segment, tcp_segment};
pub use transcript::{Side, Transcript};
