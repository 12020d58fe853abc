//! Messages through rings: the same messages, in the same order, as from sockets, whatever comes and however it is cut.
//!
//! Needs root and a kernel that takes the programs; without, each test says so in a line, and with CI=true it fails.

mod application;
mod connections;
mod controller;
mod flood;
mod full_ring;
mod lost;
mod same_messages;

#[allow(dead_code, reason = "the learning switch's tests use all of it")]
#[path = "../learning_switch/packets.rs"]
mod packets;
mod support;
#[allow(dead_code, reason = "the learning switch's tests use all of it")]
#[path = "../learning_switch/switch.rs"]
mod switch;
