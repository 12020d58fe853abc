//! Tests of the whole control path: a controller that listens, with switches of a socket and a few lines; and an embedded
//! controller, whose switches are bytes.

mod auxiliary;
mod backlog;
mod bad_input;
mod balance;
mod embedded;
mod forwarding;
mod handlers;
mod holding;
mod in_memory;
mod listening;
mod network;
#[path = "../../../socket/tests/pki/mod.rs"]
mod pki;
mod ports;
mod programs;
mod raw;
mod roles;
mod settings;
mod simulated;
mod stages;
mod stopping;
mod support;
mod threads;
mod times;
mod tls;
