//! The router in the kernel against the one in the program: the same bytes in, the same bytes out.
//!
//! Needs root and a kernel that takes the programs; without, each test says so in a line, and with CI=true it fails.

mod facts;
mod holding;
mod order;
mod pair;
mod plan;
mod same_replies;
mod stopped;
mod traffic;

#[allow(dead_code, reason = "the learning switch's tests use all of it")]
#[path = "../learning_switch/packets.rs"]
mod packets;
#[path = "../learning_switch/process.rs"]
mod process;
#[allow(dead_code, reason = "the learning switch's tests use all of it")]
#[path = "../learning_switch/switch.rs"]
mod switch;
