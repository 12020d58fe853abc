//! The interface over real sockets, in front of simulated networks.

mod bounds;
mod lab;
mod ofctl;
mod topology;
