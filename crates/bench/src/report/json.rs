//! The report as JSON, in which every figure has the name of its field in [`Report`], with its unit last.

use super::Report;
use crate::versus::Comparison;

/// Writes one JSON object for a run, or an array of them for a ranged test; indented, with a newline at the end.
pub fn write(reports: &[Report]) -> String {
    let text = match reports {
        [report] => serde_json::to_string_pretty(report),
        reports => serde_json::to_string_pretty(reports),
    };
    text.expect("a report has only string keys and finite lengths") + "\n"
}

/// Writes a comparison as one JSON object.
pub fn write_comparison(comparison: &Comparison) -> String {
    serde_json::to_string_pretty(comparison)
        .expect("a comparison has only string keys and finite lengths")
        + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;
    use serde_json::Value;

    #[test]
    fn figures_have_their_fields_names() {
        let value: Value = serde_json::from_str(&write(&[sample()])).unwrap();
        assert_eq!(value["responses_per_s"]["mean"], 300.0);
        assert_eq!(value["tally"]["lost"], 3);
        assert_eq!(value["setup"]["mode"], "ping-pong");
        assert_eq!(value["bottleneck"], "latency");
        assert_eq!(value["latency"]["count"], 600);
        assert_eq!(value["closed"][0]["datapath_id"], "0000000000000002");
        assert_eq!(
            value["joules_per_million"].as_f64().unwrap().round(),
            33333.0
        );
    }

    #[test]
    fn a_ranged_test_is_an_array() {
        let value: Value = serde_json::from_str(&write(&[sample(), sample()])).unwrap();
        assert_eq!(value.as_array().unwrap().len(), 2);
    }
}
