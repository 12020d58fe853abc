//! Tests that compare the switch with the specification, message by message, without sockets, and with a clock that tests
//! advance.

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
