//! urtica
fn main() {}
