//! Discovery and flooding with switches and links, an embedded controller, and time that the tests control.

mod flooding;
mod links;
mod mesh;
mod spoofing;
