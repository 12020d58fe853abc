//! Any text as a topology's name and as its file, in both forms: nothing panics; what reads is written and reads again as the same.

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
    for plan in [Plan::from_toml(text), Plan::from_graphml(text)].into_iter().flatten() {
        assert_eq!(
            Plan::from_toml(&plan.to_toml()).as_ref(),
            Ok(&plan),
            "{text:?}"
        );
    }
});
