//! The interface over real sockets, in front of simulated networks.

mod api;
mod bounds;
mod events;
mod fuzz;
mod lab;
mod metrics;
mod ofctl;
mod prometheus;
mod require;
mod topology;
