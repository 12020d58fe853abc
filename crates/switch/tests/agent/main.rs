//! The switch held to the specification, message by message: no socket, and a clock that tests move.

mod flows;
mod forwarding;
mod handshake;
mod long_changes;
mod long_replies;
mod multipart;
mod packets;
mod ports;
mod properties;
mod queues;
mod requests;
mod roles;
mod support;
