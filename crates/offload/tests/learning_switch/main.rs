//! The learning switch in the kernel against the one in the program: the same bytes in, the same bytes out.
//!
//! Needs root and a kernel that takes the programs; without, each test says so in a line, and with CI=true it fails.

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
