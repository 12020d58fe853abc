//! The learning switch in the kernel compared with the one in the program: equal input gives equal output.
//!
//! Needs root and a kernel that accepts the programs; otherwise each test prints a line, and with CI=true it fails.

mod attempts;
mod back_pressure;
mod changing_over;
mod dying;
mod holding;
mod limits;
mod owners;
mod packets;
mod pair;
mod process;
mod same_replies;
mod segment_limit;
mod support;
mod switch;
