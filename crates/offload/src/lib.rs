//! The kernel half: eBPF programs that answer packet-ins in the kernel, even while the program is busy, starved or stopped.
//!
//! **Why it exists apart.** The controller does not depend on how input can be answered before it reaches it. It defines an
//! interface ([`KernelHalf`](urtica_controller::KernelHalf)), which this crate implements with eBPF. Without this crate, or if
//! the kernel does not allow eBPF, everything works as before.
//!
//! **What.** [`Kernel::start`] loads the programs of `bpf/`. [`LearningSwitch`] is `l2` with a kernel half, which answers
//! always or while queues are short ([`Mode`]); [`RouterKernel`] is the kernel half of `l3`; [`Driven`] answers for services of
//! any program; [`ring`] delivers messages to any program. No object is pinned: the programs in the kernel are removed with the
//! process, or with the holder that keeps them for the next one ([`Halves`]).
//!
//! ```no_run
//! use urtica_controller::Controller;
//! use urtica_offload::{Kernel, LearningSwitch};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! Controller::new().run(LearningSwitch::new(Kernel::start()?))?;
//! # Ok(())
//! # }
//! ```
//!
//! # One packet-in, answered in the kernel
//!
//! ```text
//!  switch ══► socket ──► from_switch() ─────── not answered here ──────────► Shard::serve
//!                        bpf/answering.h                                      of the controller
//!                           │ longest_reply: can all of this be answered?        │ Connection::reclaim_from_kernel
//!                           │ has_room: does the switch read?                    ▼
//!                           │ answer_message: the table, the replies       KernelHalf for Link ──► Owner::reclaim
//!                           ▼                                              link.rs                 owner.rs
//!                    session.replies ◄─────── memory that both see ─────────────►  SharedPlaces: the handler's table
//!                           │
//!                           ▼
//!                    relay, a pair of Unix sockets ──► to_switch()
//!                                                         │ as many bytes as there are replies
//!  switch ◄══ socket ◄────────────────────────────────────┘
//! ```
//!
//! 1. **`from_switch`** runs for every segment of a switch's input, on the processor that receives it. It first reads all
//!    messages without any change (`longest_reply`), then answers. A segment is answered as a whole or passed on unchanged. The
//!    start of a message at its end is kept in `session.input`, and the next segment is appended to it.
//! 2. **`answer_packet_in`** is `L2::packet_in`, `mac_table.h` is `mac_table.rs`, and `replies.h` is `exact.rs` of
//!    `urtica-wire`, in C; tests compare both, byte by byte. The router `l3` is another application of the same machinery
//!    (`bpf/answering.h`): `l3.bpf.c` decides by facts that the program stores (`l3_tables.rs`). A thread that changes a fact
//!    sets the session's `is_stale`; the kernel then does not answer until the program has forgotten all facts.
//! 3. **Ownership.** One word of the session, `owner`, shows whether the kernel or the program answers, and how many bytes were
//!    passed. A segment that is passed hands ownership to the program, which returns it when it has handled all passed input
//!    and written all its replies: by one compare-and-exchange that fails if more was passed since. Before it writes anything
//!    else, such as an echo request, the program takes ownership. Only the owner uses the table, the xid counter and the
//!    partial message, and writes to the socket. The program waits until the kernel's replies are written (`Link::may_write`),
//!    so that no message is inserted into another.
//! 4. **The relay.** The kernel counts the bytes that a verdict program takes from a TCP socket by their number after the
//!    verdict. Replies longer than their requests would count more bytes than arrived, and the socket would never wake its
//!    reader again. So the unchanged input is sent to one end of a pair of Unix sockets, which count nothing, and becomes
//!    replies at the other end (`to_switch`).
//! 5. **Back-pressure** (`has_room`). The queue of redirected data is unbounded, so replies are held back before it: the number
//!    of sent bytes minus those that the socket has accepted (`write_seq`) is bounded, and so is the send queue.
//! 6. **Stepping aside** (`mode.rs`, [`Mode::Auto`]). A verdict program has a cost even if it passes everything, and large
//!    batches are faster in the program. So the socket is out of the map `switches` while a queue stays long. Passed but unread
//!    input can be read in order only while the socket is in the map. So the socket leaves when all input was read, and returns
//!    at once if more was passed in between (`Link::step_aside`).

#![cfg_attr(
    without_programs,
    allow(dead_code, reason = "without programs nothing is ever loaded")
)]

mod application;
mod halves;
mod kernel;
mod l3_tables;
mod late;
mod learning_switch;
mod link;
#[cfg(not(without_programs))]
mod loaded;
#[cfg(without_programs)]
#[path = "absent.rs"]
mod loaded;
mod maps;
mod mode;
mod owner;
mod places;
mod pool;
pub mod ring;
mod router;
mod services;
mod session;
mod socket;
mod takeover;
mod unread;
mod waker;

pub use halves::Halves;
pub use kernel::{Kernel, Unavailable};
pub use learning_switch::LearningSwitch;
pub use mode::Mode;
pub use pool::DEFAULT_MAX_SWITCHES;
pub use router::RouterKernel;
pub use services::Driven;
