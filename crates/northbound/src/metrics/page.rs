//! A page of metrics while it is built.

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

/// The labels of a metric: names and values, in order.
pub type Labels = Vec<(&'static str, String)>;

/// A page of metrics while it is built: metrics by name, each with its rows. Names get the prefix `urtica_`.
#[derive(Debug, Default)]
pub struct Page(BTreeMap<&'static str, Family>);

#[derive(Debug)]
struct Family {
    help: &'static str,
    rows: Vec<(Labels, Value)>,
}

#[derive(Clone, Debug)]
enum Value {
    Counter(u64),
    Seconds(f64),
    Gauge(u64),
    Histogram { sum: f64, buckets: Vec<(f64, u64)> },
}

impl Page {
    /// Adds counters; `_total` is appended to the name.
    pub fn counter(
        &mut self,
        name: &'static str,
        help: &'static str,
        rows: impl IntoIterator<Item = (Labels, u64)>,
    ) {
        self.add(
            name,
            help,
            rows.into_iter()
                .map(|(labels, count)| (labels, Value::Counter(count))),
        );
    }

    /// Adds counters of time; `_total` is appended to the name.
    pub fn seconds(
        &mut self,
        name: &'static str,
        help: &'static str,
        rows: impl IntoIterator<Item = (Labels, Duration)>,
    ) {
        let value = |(labels, time): (_, Duration)| (labels, Value::Seconds(time.as_secs_f64()));
        self.add(name, help, rows.into_iter().map(value));
    }

    /// Adds gauges.
    pub fn gauge(
        &mut self,
        name: &'static str,
        help: &'static str,
        rows: impl IntoIterator<Item = (Labels, u64)>,
    ) {
        self.add(
            name,
            help,
            rows.into_iter()
                .map(|(labels, value)| (labels, Value::Gauge(value))),
        );
    }

    /// Adds histograms, each with a sum and its classes. All values in a class are less than its number of nanoseconds.
    pub fn histogram(
        &mut self,
        name: &'static str,
        help: &'static str,
        rows: impl IntoIterator<Item = (Labels, Duration, Vec<(u64, u64)>)>,
    ) {
        let value = |(labels, sum, classes): (_, Duration, Vec<_>)| {
            let value = Value::Histogram {
                sum: sum.as_secs_f64(),
                buckets: buckets(&classes),
            };
            (labels, value)
        };
        self.add(name, help, rows.into_iter().map(value));
    }

    fn add(
        &mut self,
        name: &'static str,
        help: &'static str,
        rows: impl Iterator<Item = (Labels, Value)>,
    ) {
        let empty = Family {
            help,
            rows: Vec::new(),
        };
        self.0.entry(name).or_insert(empty).rows.extend(rows);
    }

    /// Returns the page in the text format of Prometheus, version 0.0.4, in which a counter's help and type contain its full
    /// name.
    pub(super) fn prometheus_text(self) -> String {
        let is_counter = |family: &Family| {
            matches!(
                family.rows.first(),
                Some((_, Value::Counter(_) | Value::Seconds(_)))
            )
        };
        let counters = self.0.iter().filter(|(_, family)| is_counter(family));
        let counters: BTreeSet<_> = counters.map(|(name, _)| *name).collect();
        let text = self.text();
        let lines = text.lines().filter(|line| *line != "# EOF");
        let lines = lines.map(|line| match about(line) {
            Some((before, name, after)) if counters.contains(name) => {
                format!("{before}{name}_total {after}\n")
            }
            _ => format!("{line}\n"),
        });
        lines.collect()
    }

    /// Returns the page in the format of OpenMetrics, version 1.0.0.
    pub fn text(self) -> String {
        let mut registry = Registry::with_prefix("urtica");
        registry.register_collector(Box::new(self));
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = text::encode(&mut text, &registry);
        text
    }
}

/// Splits a line with a metric's help or type around the metric's name.
fn about(line: &str) -> Option<(&str, &str, &str)> {
    const PREFIX: &str = "# HELP urtica_";
    let is_about = ["# HELP urtica_", "# TYPE urtica_"]
        .iter()
        .any(|prefix| line.starts_with(prefix));
    let (before, rest) = line.split_at_checked(PREFIX.len()).filter(|_| is_about)?;
    let (name, after) = rest.split_once(' ')?;
    Some((before, name, after))
}

/// Returns the buckets, from a microsecond to a second; the last one contains all values.
fn buckets(classes: &[(u64, u64)]) -> Vec<(f64, u64)> {
    const SHORTEST_NS: u64 = 1 << 10;
    const LONGEST_NS: u64 = 1 << 30;
    let (mut buckets, mut waiting) = (Vec::new(), 0);
    for (bound_ns, count) in classes {
        waiting += count;
        if (SHORTEST_NS..=LONGEST_NS).contains(bound_ns) {
            buckets.push((Duration::from_nanos(*bound_ns).as_secs_f64(), waiting));
            waiting = 0;
        }
    }
    buckets.push((f64::INFINITY, waiting));
    buckets
}

impl Collector for Page {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        for (name, family) in &self.0 {
            let Some((_, first)) = family.rows.first() else {
                continue;
            };
            let mut metric =
                encoder.encode_descriptor(name, family.help, None, first.metric_type())?;
            for (labels, value) in &family.rows {
                value.encode(metric.encode_family(labels)?)?;
            }
        }
        Ok(())
    }
}

impl EncodeMetric for Value {
    fn encode(&self, mut encoder: prometheus_client::encoding::MetricEncoder) -> fmt::Result {
        match self {
            Self::Counter(count) => ConstCounter::new(*count).encode(encoder),
            Self::Seconds(seconds) => ConstCounter::new(*seconds).encode(encoder),
            Self::Gauge(value) => {
                ConstGauge::new(i64::try_from(*value).unwrap_or(i64::MAX)).encode(encoder)
            }
            Self::Histogram { sum, buckets } => {
                let count = buckets.iter().map(|(_, count)| count).sum();
                encoder.encode_histogram::<Labels>(*sum, count, buckets, None)
            }
        }
    }

    fn metric_type(&self) -> MetricType {
        match self {
            Self::Counter(_) | Self::Seconds(_) => MetricType::Counter,
            Self::Gauge(_) => MetricType::Gauge,
            Self::Histogram { .. } => MetricType::Histogram,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_help_type_and_rows_of_each_metric() {
        let mut page = Page::default();
        page.counter("port_errors", "Errors", [(vec![("port", "1".into())], 5)]);
        page.counter("port_errors", "Errors", [(vec![("port", "2".into())], 0)]);
        page.gauge("switches", "Switches", [(Labels::new(), 3)]);
        page.gauge("nothing", "Nothing", []);
        let expected = "# HELP urtica_port_errors Errors\n# TYPE urtica_port_errors counter\n\
            urtica_port_errors_total{port=\"1\"} 5\nurtica_port_errors_total{port=\"2\"} 0\n\
            # HELP urtica_switches Switches\n# TYPE urtica_switches gauge\nurtica_switches{} 3\n# EOF\n";
        assert_eq!(page.text(), expected);
    }

    #[test]
    fn in_prometheus_format_help_and_type_have_the_names_of_rows() {
        let mut page = Page::default();
        page.counter("port_errors", "Errors", [(vec![("port", "1".into())], 5)]);
        page.seconds(
            "shard_busy_seconds",
            "Busy",
            [(Labels::new(), Duration::from_millis(1500))],
        );
        page.gauge("switches", "Switches", [(Labels::new(), 3)]);
        let classes = vec![(2048, 1)];
        page.histogram(
            "duration_seconds",
            "Durations",
            [(Labels::new(), Duration::ZERO, classes)],
        );
        let expected = "# HELP urtica_duration_seconds Durations\n# TYPE urtica_duration_seconds histogram\n\
            urtica_duration_seconds_sum{} 0.0\nurtica_duration_seconds_count{} 1\n\
            urtica_duration_seconds_bucket{le=\"0.000002048\"} 1\nurtica_duration_seconds_bucket{le=\"+Inf\"} 1\n\
            # HELP urtica_port_errors_total Errors\n# TYPE urtica_port_errors_total counter\n\
            urtica_port_errors_total{port=\"1\"} 5\n\
            # HELP urtica_shard_busy_seconds_total Busy\n# TYPE urtica_shard_busy_seconds_total counter\n\
            urtica_shard_busy_seconds_total{} 1.5\n\
            # HELP urtica_switches Switches\n# TYPE urtica_switches gauge\nurtica_switches{} 3\n";
        assert_eq!(page.prometheus_text(), expected);
    }

    #[test]
    fn names_that_switches_send_are_escaped() {
        let mut page = Page::default();
        let name = "\"} 9\nurtica_switches 7\\";
        page.gauge(
            "switches",
            "Switches",
            [(vec![("dp_name", name.into())], 1)],
        );
        let text = page.text();
        let row = r#"urtica_switches{dp_name="\"} 9\nurtica_switches 7\\"} 1"#;
        assert!(text.lines().any(|line| line == row), "{text}");
    }

    #[test]
    fn buckets_hold_each_duration_once() {
        let classes: Vec<_> = (0..32).map(|class| (1 << class, 1)).collect();
        let buckets = buckets(&classes);
        assert_eq!(buckets.iter().map(|(_, count)| count).sum::<u64>(), 32);
        // Times below a microsecond are in the first bucket.
        assert_eq!(buckets[0], (1024e-9, 11));
        assert_eq!(buckets.last(), Some(&(f64::INFINITY, 1)));
    }
}
