//! The services in the kernel against those in the program: the same bytes in, the same bytes out, and the same state after it.
//!
//! Needs root and a kernel that takes the programs; without, each test says so in a line, and with CI=true it fails.

mod bench;
mod events;
mod frames;
mod links;
mod pair;
mod same_answers;
