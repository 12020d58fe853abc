//! The whole control path: a controller that listens, and switches that are sockets and a few lines.

mod bad_input;
mod balance;
mod forwarding;
mod handlers;
mod listening;
mod network;
mod stopping;
mod support;
