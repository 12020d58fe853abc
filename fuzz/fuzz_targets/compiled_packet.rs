//! Any packet through tables that look at everything: the compiled form does what the plain one does.
//!
//! The first byte chooses among pipelines, the second the port, the rest is the frame.

#![no_main]

#[path = "../../crates/pipeline/tests/compiled/support/mod.rs"]
mod support;

use libfuzzer_sys::fuzz_target;
use std::cell::RefCell;
use std::collections::HashMap;
use support::differential::Comparison;
use support::trial::Trial;
use urtica_wire::PortNo;

/// How many pipelines there are.
const PIPELINES: u64 = 16;

thread_local! {
    static COMPARISONS: RefCell<HashMap<u64, Comparison>> = RefCell::default();
}

fuzz_target!(|bytes: &[u8]| {
    let [pipeline, in_port, frame @ ..] = bytes else {
        return;
    };
    let seed = u64::from(*pipeline) % PIPELINES;
    let in_port = PortNo(1 + u32::from(*in_port) % 4);
    COMPARISONS.with_borrow_mut(|comparisons| {
        let comparison = comparisons.entry(seed).or_insert_with(|| Trial::filled(seed).comparison);
        comparison.send(&[(in_port, frame.to_vec())]);
        comparison.compare_counters();
    });
});
