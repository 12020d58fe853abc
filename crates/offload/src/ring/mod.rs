//! Messages through rings: the kernel receives, splits the stream into messages and describes them; the program reads
//! memory.
//!
//! **What.** This is the *pass-through mode* of Shalimov and Ivashchenko, "In-kernel offloading of an SDN/OpenFlow controller",
//! with an eBPF program on the controller's own sockets instead of a kernel module. It can be used in two ways:
//!
//! - A program written for `urtica-controller` runs unchanged: [`RingKernel`] is an argument of
//!   [`Controller::input_rings`](urtica_controller::Controller::input_rings), and each shard then has a ring.
//! - A program written as the paper's own loop: [`Rings`] listens, and [`Ring`] is polled and read. This is the paper's
//!   example:
//!
//! ```no_run
#![doc = include_str!("../../examples/ring.rs")]
//! ```
//!
//! | in the paper | here |
//! | --- | --- |
//! | `open("/dev/ctrl")` | [`Rings::start`] |
//! | `ioctl` to register, `mmap` | [`Rings::register`] |
//! | `subscribe_packet_in()` | [`Ring::subscribe`]: one consumer for each type of message; other types are handled by the session |
//! | `poll`: POLLRDNORM, POLLRDBAND, POLLOUT | [`Ring::poll`]: [`Ready::input`], [`Ready::control`], [`Ready::output`] |
//! | the data queue | [`Ring::next_record`]: a [`Record`] has port, xid, buffer id, switch, and the frame's location |
//! | the control queue | [`Ring::next_event`] |
//! | the output buffer, and `write` | [`Replies`], [`Ring::flush`], and [`Ring::flush_every`] |
//! | threads in the kernel | [`RingSettings::rings`] |
//!
//! **Threads.** It is best to have as many threads as rings, each with its own ring. One thread can wait for several rings
//! (they are [`AsFd`](std::os::fd::AsFd)), and several threads can share one with a lock; both have a cost, as in the paper.
//!
//! # One packet-in, through a ring
//!
//! ```text
//!  switch ══► socket ──► to_ring() ── the ring is full, the queue long, another type ──► the socket's queue
//!                        bpf/ring.bpf.c                                                    │
//!                           │ look_at_message: is all of this for the ring?                │ read(2)
//!                           │ put_messages: records, and the messages behind them          │
//!                           ▼                                                              ▼
//!                         ring ══ mapped memory ══► Reader::next ──► Ring::next_record, or the session
//!                                                   reader.rs        consumer.rs
//!                                                      │             Shard::serve_ring of the controller
//!                                                      ▼
//!  switch ◄══ socket ◄── one send(2) for many ◄── Ring::flush, or the shard's batch
//! ```
//!
//! 1. **`to_ring`** runs for every segment of a switch's input, on the processor that receives it. A segment is put into the
//!    ring either as a whole or not at all. The start of a message at its end is kept, so that all messages in the ring are
//!    complete.
//! 2. **Ownership** (`bpf/owner.h`). A segment that is not for the ring is passed to the socket's queue, and so are all later
//!    ones, until the program has read all passed input and hands over again. An entry of the ring reports this, after all
//!    earlier messages. So the order is kept, for any segment that is passed and for any reason.
//! 3. **Back-pressure.** The ring has a limit. Beyond that, the socket's queue grows, which has a limit too; then TCP stops the
//!    switch. If a switch does not accept its replies, the program requests the input back, and does not read it.
//! 4. **No copy after the kernel's.** A [`Record`] borrows the ring. Messages from the socket's queue are described here in an
//!    identical way, from a buffer, so a [`Record`] does not show its origin.
//!
//! **Cost.** Two copies in the kernel instead of a read's one, and one run of a program per segment. In return, no system call
//! is needed for each switch. This pays if many switches send little at a time. Under flood, nearly all input arrives in
//! segments longer than 16 KiB, which are passed and read as without rings, while the program's runs cost extra. In that case
//! the mode is slower.
//!
//! **Errors.** Malformed messages, and streams that cannot be split into messages, are passed, and the session answers them as
//! without rings.

mod consumer;
mod kernel;
mod link;
mod peer;
#[cfg(not(without_programs))]
mod programs;
#[cfg(without_programs)]
#[path = "absent.rs"]
mod programs;
mod queue;
mod reader;
mod record;
mod replies;
mod rings;
mod session;
mod sessions;
mod shards;

pub use consumer::{Ready, Ring};
pub use kernel::RingKernel;
pub use link::KernelCounts;
pub use record::{MessageType, Record, RingSwitch};
pub use replies::Replies;
pub use rings::{RingError, RingSettings, Rings};
pub use sessions::RingEvent;
