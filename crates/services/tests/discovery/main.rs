//! Discovery and flooding with switches and links, an embedded controller, and time that only passes when a test says so.

mod flooding;
mod links;
mod mesh;
mod spoofing;
