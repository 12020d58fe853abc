//! The interface over real sockets, with simulated networks.

mod api;
mod bounds;
mod conf_switch;
mod database;
mod drawing;
mod emulation;
mod events;
mod firewall;
mod fuzz;
mod lab;
mod metrics;
mod ofctl;
mod prometheus;
mod qos;
mod queues;
mod require;
mod router;
mod topology;
mod trace;
mod web;
