//! The kernel half: what answers packet-ins in the kernel, while the program is busy, starved or stopped.
//!
//! **Why it exists apart.** The controller does not know how its sockets' input can be answered before it reaches it; it
//! states what it needs of that ([`KernelHalf`](urtica_controller::KernelHalf)), and this crate has it in eBPF. Without
//! this crate, or where the kernel allows no eBPF, everything works as it did before.
//!
//! **What.** [`Kernel::start`] loads the programs of `bpf/`; [`LearningSwitch`] is `l2` with a kernel half. Nothing is
//! pinned: what is in the kernel goes with the process.
//!
//! **How.** `bpf/learning_switch.bpf.c` opens with the way of the bytes; `bpf/session.h` has what kernel and program share, and
//! who may touch it when.

#![cfg_attr(
    without_programs,
    allow(dead_code, reason = "without programs nothing is ever loaded")
)]

mod kernel;
mod learning_switch;
mod link;
#[cfg(not(without_programs))]
mod loaded;
#[cfg(without_programs)]
#[path = "absent.rs"]
mod loaded;
mod session;
mod socket;
mod waker;

pub use kernel::{Kernel, Unavailable};
pub use learning_switch::LearningSwitch;
