//! Messages through rings: they equal those from sockets, in equal order, for any input and any segmentation.
//!
//! Needs root and a kernel that accepts the programs; otherwise each test prints a line, and with CI=true it fails.

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
