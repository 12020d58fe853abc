//! Rates and percentiles from two samples.

use super::client::Sample;
use super::exposition::{Labels, Metrics};
use std::collections::BTreeMap;
use std::time::Duration;

/// A controller's figures over an interval.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    pub place: String,
    pub programs: Vec<String>,
    pub switches: Vec<SwitchFigures>,
    pub hosts: Option<u64>,
    pub links: Option<u64>,
    /// The load of each shard, from 0 to 1, by its name.
    pub shards: Vec<(String, f64)>,
    pub latencies: Vec<Latency>,
    /// Other gauges of queues, by their names without prefix.
    pub queues: Vec<(String, f64)>,
}

/// A switch's figures over an interval.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SwitchFigures {
    pub id: String,
    pub name: String,
    pub openflow: String,
    pub role: String,
    pub packet_ins_per_s: f64,
    pub sent_per_s: f64,
    pub queued_bytes: f64,
    /// Number of stalls since the switch connected.
    pub stalls: f64,
    pub refused: f64,
    pub errors: f64,
}

/// The percentiles of a histogram in the interval.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Latency {
    /// Its name, without prefix and unit, and its labels.
    pub name: String,
    pub per_s: f64,
    /// Upper bounds, in seconds: the median, 90 %, 99 %, and all. Infinite beyond the last bucket; `None` if the
    /// interval has no values.
    pub percentiles_s: [Option<f64>; 4],
}

/// The share of values below each percentile.
const SHARES: [f64; 4] = [0.5, 0.9, 0.99, 1.0];

const PREFIX: &str = "urtica_";

impl Figures {
    /// Computes the figures of the time between two samples.
    pub fn between(before: &Sample, now: &Sample) -> Self {
        let elapsed = now.at.duration_since(before.at);
        let change = Change {
            before: &before.metrics,
            now: &now.metrics,
            seconds: elapsed.max(Duration::from_millis(1)).as_secs_f64(),
        };
        let count = |name| now.metrics.value(name).map(|value: f64| value as u64);
        Self {
            place: now.place.clone(),
            programs: now.programs.clone(),
            switches: change.switches(),
            hosts: count("urtica_hosts"),
            links: count("urtica_directed_links"),
            shards: change.shards(),
            latencies: change.latencies(),
            queues: change.queues(),
        }
    }

    /// Returns the sum over all switches.
    pub fn sum(&self, of: impl Fn(&SwitchFigures) -> f64) -> f64 {
        // The sum of no numbers is minus zero.
        self.switches
            .iter()
            .map(of)
            .fold(0.0, |sum, value| sum + value)
    }
}

/// The two samples of an interval.
struct Change<'a> {
    before: &'a Metrics,
    now: &'a Metrics,
    seconds: f64,
}

impl Change<'_> {
    /// Returns the growth per second of each sample of a counter. After a restart, the counter starts from 0.
    fn rates(&self, name: &str) -> Vec<(&Labels, f64)> {
        let before: BTreeMap<&Labels, f64> = self
            .before
            .rows(name)
            .iter()
            .map(|(labels, value)| (labels, *value))
            .collect();
        let rows = self.now.rows(name).iter();
        rows.map(|(labels, value)| {
            let old = before.get(labels).copied().unwrap_or(*value);
            let grown = if old <= *value { value - old } else { *value };
            (labels, grown / self.seconds)
        })
        .collect()
    }

    /// Returns all switches, with the most packet-ins first.
    fn switches(&self) -> Vec<SwitchFigures> {
        let mut switches: BTreeMap<String, SwitchFigures> = BTreeMap::new();
        for (labels, _) in self.now.rows("urtica_switch_connected") {
            let switch = switches.entry(of(labels, "dp_id")).or_default();
            switch.id = of(labels, "dp_id");
            switch.name = of(labels, "dp_name");
            switch.openflow = of(labels, "openflow");
        }
        for (labels, _) in self.now.rows("urtica_switch_role") {
            set(&mut switches, labels, |switch| {
                switch.role = of(labels, "role")
            });
        }
        for (labels, rate) in self.rates("urtica_switch_packet_ins_total") {
            set(&mut switches, labels, |switch| {
                switch.packet_ins_per_s = rate
            });
        }
        for (labels, rate) in self.rates("urtica_switch_sent_messages_total") {
            set(&mut switches, labels, |switch| switch.sent_per_s = rate);
        }
        type Field = fn(&mut SwitchFigures) -> &mut f64;
        let values: [(&str, Field); 4] = [
            ("urtica_switch_queued_bytes", |switch| {
                &mut switch.queued_bytes
            }),
            ("urtica_switch_stalls_total", |switch| &mut switch.stalls),
            ("urtica_switch_refused_messages_total", |switch| {
                &mut switch.refused
            }),
            ("urtica_switch_errors_total", |switch| &mut switch.errors),
        ];
        for (name, field) in values {
            for (labels, value) in self.now.rows(name) {
                set(&mut switches, labels, |switch| *field(switch) = *value);
            }
        }
        let mut switches: Vec<_> = switches.into_values().collect();
        switches.sort_by(|a, b| {
            let by_rate = b.packet_ins_per_s.total_cmp(&a.packet_ins_per_s);
            by_rate.then_with(|| a.id.cmp(&b.id))
        });
        switches
    }

    fn shards(&self) -> Vec<(String, f64)> {
        let busy = self.rates("urtica_shard_busy_seconds_total").into_iter();
        let mut shards: Vec<_> = busy
            .map(|(labels, busy)| (of(labels, "shard"), busy))
            .collect();
        shards.sort_by(|(a, _), (b, _)| (a.len(), a).cmp(&(b.len(), b)));
        shards
    }

    /// Returns the latencies of all histograms of times.
    fn latencies(&self) -> Vec<Latency> {
        let names = self.now.names();
        let names =
            names.filter(|name| name.starts_with(PREFIX) && name.ends_with("_seconds_bucket"));
        names.flat_map(|name| self.histograms(name)).collect()
    }

    /// Returns the samples with one name, one for each set of labels.
    fn histograms(&self, name: &str) -> Vec<Latency> {
        let mut by_labels: BTreeMap<Labels, Vec<(f64, f64)>> = BTreeMap::new();
        for (labels, rate) in self.rates(name) {
            let mut labels = labels.clone();
            let bound = labels.remove("le").and_then(|bound| bound.parse().ok());
            if let Some(bound) = bound {
                let buckets = by_labels.entry(labels).or_default();
                buckets.push((bound, rate * self.seconds));
            }
        }
        let short = name
            .trim_start_matches(PREFIX)
            .trim_end_matches("_seconds_bucket");
        let latency = |(labels, mut buckets): (Labels, Vec<(f64, f64)>)| {
            buckets.sort_by(|(a, _), (b, _)| a.total_cmp(b));
            let labels: Vec<_> = labels
                .iter()
                .map(|(name, value)| format!(" {name}={value}"))
                .collect();
            Latency {
                name: format!("{short}{}", labels.concat()),
                per_s: buckets.last().map_or(0.0, |(_, all)| all / self.seconds),
                percentiles_s: SHARES.map(|share| percentile(&buckets, share)),
            }
        };
        by_labels.into_iter().map(latency).collect()
    }

    /// Returns the gauges of queues except the switches', which have a column.
    fn queues(&self) -> Vec<(String, f64)> {
        let is_queue = |name: &&str| {
            let is_of_switch = name.starts_with("urtica_switch_");
            let waits = ["queued", "queue_", "waiting", "backlog"];
            let is_gauge = !["_total", "_bucket", "_sum", "_count"]
                .iter()
                .any(|end| name.ends_with(end));
            !is_of_switch && is_gauge && waits.iter().any(|word| name.contains(word))
        };
        let names = self.now.names().filter(is_queue);
        let value = |name: &str| {
            Some((
                name.trim_start_matches(PREFIX).to_owned(),
                self.now.value(name)?,
            ))
        };
        names.filter_map(value).collect()
    }
}

/// Returns the upper bound of the bucket in which this share of all values is reached. Buckets are cumulative, by their bounds.
fn percentile(buckets: &[(f64, f64)], share: f64) -> Option<f64> {
    let (_, all) = buckets.last()?;
    if *all <= 0.0 {
        return None;
    }
    // Counts are whole, but computed from rates: half a value of tolerance makes up for rounding.
    let wanted = all * share - 0.5;
    let reached = buckets.iter().find(|(_, count)| *count >= wanted);
    reached.map(|(bound, _)| *bound)
}

fn of(labels: &Labels, name: &str) -> String {
    labels.get(name).cloned().unwrap_or_default()
}

fn set(
    switches: &mut BTreeMap<String, SwitchFigures>,
    labels: &Labels,
    change: impl FnOnce(&mut SwitchFigures),
) {
    if let Some(switch) = labels.get("dp_id").and_then(|id| switches.get_mut(id)) {
        change(switch);
    }
}

#[cfg(test)]
pub mod tests {
    use super::super::exposition::parse;
    use super::*;
    use std::time::Instant;

    const BEFORE: &str = r#"
urtica_switches 2
urtica_switch_connected{dp_id="0000000000000001",dp_name="s1",openflow="1.3"} 1
urtica_switch_connected{dp_id="0000000000000002",dp_name="s2",openflow="1.0"} 1
urtica_switch_packet_ins_total{dp_id="0000000000000001",dp_name="s1"} 1000
urtica_switch_packet_ins_total{dp_id="0000000000000002",dp_name="s2"} 5000
urtica_switch_sent_messages_total{dp_id="0000000000000001",dp_name="s1"} 10
urtica_shard_busy_seconds_total{shard="0"} 10.0
urtica_packet_in_duration_seconds_bucket{program="l2",le="0.001"} 10
urtica_packet_in_duration_seconds_bucket{program="l2",le="0.002"} 10
urtica_packet_in_duration_seconds_bucket{program="l2",le="+Inf"} 10
"#;

    const NOW: &str = r#"
urtica_switches 2
urtica_hosts 4
urtica_mailbox_queued_messages 12
urtica_switch_connected{dp_id="0000000000000001",dp_name="s1",openflow="1.3"} 1
urtica_switch_connected{dp_id="0000000000000002",dp_name="s\u{1b}[2J\n2",openflow="1.0"} 1
urtica_switch_role{dp_id="0000000000000001",dp_name="s1",role="primary"} 1
urtica_switch_packet_ins_total{dp_id="0000000000000001",dp_name="s1"} 1200
urtica_switch_packet_ins_total{dp_id="0000000000000002",dp_name="s2"} 500
urtica_switch_sent_messages_total{dp_id="0000000000000001",dp_name="s1"} 410
urtica_switch_queued_bytes{dp_id="0000000000000001",dp_name="s1"} 4096
urtica_shard_busy_seconds_total{shard="0"} 11.0
urtica_packet_in_duration_seconds_bucket{program="l2",le="0.001"} 70
urtica_packet_in_duration_seconds_bucket{program="l2",le="0.002"} 109
urtica_packet_in_duration_seconds_bucket{program="l2",le="+Inf"} 110
"#;

    /// Creates the figures of two seconds of a controller. Its second switch has a hostile name and has reconnected.
    pub fn figures() -> Figures {
        let at = Instant::now();
        let sample = |page: &str, seconds| Sample {
            at: at + Duration::from_secs(seconds),
            place: "http://127.0.0.1:8080".to_owned(),
            metrics: parse(&page.replace("\\u{1b}", "\u{1b}")),
            programs: vec!["discovery".to_owned(), "l2".to_owned()],
        };
        Figures::between(&sample(BEFORE, 0), &sample(NOW, 2))
    }

    #[test]
    fn counters_become_rates_across_restarts() {
        let figures = figures();
        let rates: Vec<_> = figures
            .switches
            .iter()
            .map(|switch| (&*switch.id, switch.packet_ins_per_s, switch.sent_per_s))
            .collect();
        assert_eq!(
            rates,
            [
                ("0000000000000002", 250.0, 0.0),
                ("0000000000000001", 100.0, 200.0)
            ]
        );
        let first = &figures.switches[1];
        assert_eq!((&*first.role, first.queued_bytes), ("primary", 4096.0));
        assert_eq!(figures.shards, [("0".to_owned(), 0.5)]);
        assert_eq!((figures.hosts, figures.links), (Some(4), None));
        let queues = [("mailbox_queued_messages".to_owned(), 12.0)];
        assert_eq!(figures.queues, queues);
    }

    #[test]
    fn percentiles_cover_the_interval() {
        let figures = figures();
        let [latency] = &figures.latencies[..] else {
            panic!("{figures:?}");
        };
        assert_eq!(latency.name, "packet_in_duration program=l2");
        assert_eq!(latency.per_s, 50.0);
        let infinite = Some(f64::INFINITY);
        let expected = [Some(0.001), Some(0.002), Some(0.002), infinite];
        assert_eq!(latency.percentiles_s, expected);
        assert_eq!(percentile(&[(1.0, 0.0)], 0.5), None);
        assert_eq!(percentile(&[], 0.5), None);
    }
}
