//! Any text as a topology's name and as its file: nothing panics; what reads is written and reads again as the same.

#![no_main]

use libfuzzer_sys::fuzz_target;
use urtica_topology::spec::{Plan, TopologySpec};

fuzz_target!(|text: &str| {
    if let Ok(spec) = text.parse::<TopologySpec>() {
        assert_eq!(
            spec.to_string().parse::<TopologySpec>().ok().as_ref(),
            Some(&spec),
            "{text:?}"
        );
    }
    if let Ok(plan) = Plan::from_toml(text) {
        assert_eq!(
            Plan::from_toml(&plan.to_toml()).as_ref(),
            Ok(&plan),
            "{text:?}"
        );
    }
});
