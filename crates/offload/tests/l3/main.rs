//! The router in the kernel compared with the one in the program: equal input gives equal output.
//!
//! Needs root and a kernel that accepts the programs; otherwise each test prints a line, and with CI=true it fails.

mod facts;
mod holding;
mod of13;
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
