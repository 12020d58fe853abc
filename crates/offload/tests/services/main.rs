//! The services in the kernel compared with those in the program: equal input gives equal output, and equal state.
//!
//! Needs root and a kernel that accepts the programs; otherwise each test prints a line, and with CI=true it fails.

mod bench;
mod events;
mod frames;
mod links;
mod pair;
mod same_answers;

#[path = "../learning_switch/attempts.rs"]
mod attempts;
