//! Any changes to any tables, with packets in between: the compiled form does what the plain one does.
//!
//! The input decides everything by turns: bounds, what each table is like, then changes, packets and time that passes.

#![no_main]

#[path = "../../crates/pipeline/tests/compiled/support/mod.rs"]
mod support;

use libfuzzer_sys::fuzz_target;
use support::choices::Choices;
use support::trial::Trial;

fuzz_target!(|bytes: &[u8]| {
    Trial::new(Choices::from_bytes(bytes)).run(usize::MAX);
});
