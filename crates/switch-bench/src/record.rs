//! Results of measurements: each is a row of a table, and a JSON object.

use super::measured_core::MeasuredCore;
use chrono::{SecondsFormat, Utc};
use serde::{Serialize, Serializer};
use urtica_bench::analysis::Spread;

/// The head of every record: the measurement, the machine and the time.
#[derive(Clone, Debug, Serialize)]
pub struct Setting {
    kind: &'static str,
    switch: &'static str,
    core: usize,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "whole")]
    tsc_hz: Option<f64>,
    time: String,
}

impl Setting {
    /// Creates the setting of a measurement of this kind that ends now.
    pub fn now(kind: &'static str, core: MeasuredCore) -> Self {
        Self {
            kind,
            switch: concat!("Urtica ", env!("CARGO_PKG_VERSION")),
            core: core.number(),
            tsc_hz: core.tsc_hz(),
            time: Utc::now().to_rfc3339_opts(SecondsFormat::Secs, true),
        }
    }
}

/// A result of a measurement.
pub trait Record: Serialize {
    /// The headings and widths of the table's columns.
    const COLUMNS: &'static [(&'static str, usize)];

    /// Returns the cells of the record's row.
    fn cells(&self) -> Vec<String>;
}

/// The rate at which one form forwarded one case.
#[derive(Clone, Debug, Serialize)]
pub struct Rate {
    #[serde(flatten)]
    /// The measurement, the machine and the time.
    pub setting: Setting,
    /// The case.
    pub pipeline: String,
    /// The number of packets that are replayed.
    pub flows: u32,
    /// The packets' distribution; `None` if they come from a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<&'static str>,
    /// The form.
    pub form: &'static str,
    /// The number of flow entries.
    pub entries: usize,
    /// The way of loading the entries; `None` if the form has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loading: Option<&'static str>,
    /// The time in seconds to load the entries and to wait until the switch has settled.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "some_thousandths"
    )]
    pub open_s: Option<f64>,
    /// The length of each reading in seconds.
    pub seconds: f64,
    /// The readings.
    #[serde(flatten)]
    pub figures: Figures,
    /// The cycles of bursts, if they were timed.
    #[serde(flatten)]
    pub bursts: Option<BurstCycles>,
    /// The route updates made, if any.
    #[serde(flatten)]
    pub updates: Option<UpdateFigures>,
}

/// The readings of one form, and their spread.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Figures {
    /// Million packets per second: the median of the readings.
    #[serde(serialize_with = "thousandths")]
    pub mpps: f64,
    /// The slowest reading.
    #[serde(serialize_with = "thousandths")]
    pub mpps_min: f64,
    /// The fastest reading.
    #[serde(serialize_with = "thousandths")]
    pub mpps_max: f64,
    /// Million packets per second of each reading.
    #[serde(serialize_with = "all_thousandths")]
    pub readings: Vec<f64>,
    /// Cycles per packet, if the processor has a counter.
    #[serde(flatten)]
    pub cycles: Option<Cycles>,
    /// Packets sent over packets received.
    pub forwarded_share: f64,
    /// Packets that the compiled form left to the plain form over packets received.
    pub plain_share: f64,
}

/// Cycles per packet.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Cycles {
    /// The median of the readings.
    #[serde(serialize_with = "tenths")]
    pub cycles_per_packet: f64,
    /// The fewest.
    #[serde(serialize_with = "tenths")]
    pub cycles_per_packet_min: f64,
    /// The most.
    #[serde(serialize_with = "tenths")]
    pub cycles_per_packet_max: f64,
}

/// The cycles of a burst.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct BurstCycles {
    /// The median.
    pub burst_cycles_p50: u64,
    /// The 99th percentile.
    pub burst_cycles_p99: u64,
    /// The 99.9th percentile.
    pub burst_cycles_p999: u64,
}

/// Route updates during readings, and their effect.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct UpdateFigures {
    /// Route updates made per second.
    #[serde(serialize_with = "tenths")]
    pub updates_per_s: f64,
    /// Route updates requested per second; 0 requests as many as possible.
    pub updates_per_s_asked: u64,
    /// The median ratio of a reading under updates to the reading without updates just before it.
    #[serde(serialize_with = "thousandths")]
    pub mpps_ratio: f64,
    /// The times to effect of updates, if any were observed.
    #[serde(flatten)]
    pub effects: Option<Effects>,
}

/// Times from receiving a flow mod's bytes to sending the first packet by it.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Effects {
    /// The median in microseconds.
    #[serde(serialize_with = "tenths")]
    pub time_to_effect_us_p50: f64,
    /// The 99th percentile in microseconds.
    #[serde(serialize_with = "tenths")]
    pub time_to_effect_us_p99: f64,
    /// The number of observations, at least one.
    pub effects: u64,
}

/// The time to load flow entries.
#[derive(Clone, Debug, Serialize)]
pub struct Load {
    #[serde(flatten)]
    /// The measurement, the machine and the time.
    pub setting: Setting,
    /// The number of entries.
    pub entries: u32,
    /// Seconds from the first flow mod to the barrier reply after the last: the median of the readings.
    pub openflow_s: f64,
    /// The fastest reading.
    pub openflow_s_min: f64,
    /// The slowest reading.
    pub openflow_s_max: f64,
    /// The seconds of each reading.
    pub readings: Vec<f64>,
}

impl Figures {
    /// Creates figures from the million packets per second and the cycles per packet of each reading.
    pub fn new(
        mpps: Vec<f64>,
        cycles_per_packet: Option<Vec<f64>>,
        forwarded_share: f64,
        plain_share: f64,
    ) -> Self {
        let spread = Spread::of(&mpps);
        Self {
            mpps: spread.median,
            mpps_min: spread.min,
            mpps_max: spread.max,
            readings: mpps,
            cycles: cycles_per_packet.map(|cycles| Cycles::of(Spread::of(&cycles))),
            forwarded_share,
            plain_share,
        }
    }
}

impl Cycles {
    fn of(spread: Spread) -> Self {
        Self {
            cycles_per_packet: spread.median,
            cycles_per_packet_min: spread.min,
            cycles_per_packet_max: spread.max,
        }
    }
}

impl Load {
    /// Creates a record from the seconds of each reading.
    pub fn new(setting: Setting, entries: u32, readings: Vec<f64>) -> Self {
        let spread = Spread::of(&readings);
        Self {
            setting,
            entries,
            openflow_s: spread.median,
            openflow_s_min: spread.min,
            openflow_s_max: spread.max,
            readings,
        }
    }
}

impl Record for Rate {
    const COLUMNS: &'static [(&'static str, usize)] = &[
        ("pipeline", 12),
        ("flows", 8),
        ("form", 11),
        ("updates/s", 9),
        ("Mpps", 7),
        ("min", 7),
        ("max", 7),
        ("ratio", 6),
        ("cycles/pkt", 10),
        ("burst p99", 9),
        ("effect us p99", 13),
        ("sent %", 7),
        ("plain %", 7),
    ];

    fn cells(&self) -> Vec<String> {
        let figures = &self.figures;
        let updates = self.updates;
        let effects = updates.and_then(|updates| updates.effects);
        vec![
            self.pipeline.clone(),
            self.flows.to_string(),
            self.form.to_owned(),
            format!(
                "{:.0}",
                updates.map_or(0.0, |updates| updates.updates_per_s)
            ),
            format!("{:.2}", figures.mpps),
            format!("{:.2}", figures.mpps_min),
            format!("{:.2}", figures.mpps_max),
            or_dash(updates.map(|updates| format!("{:.3}", updates.mpps_ratio))),
            or_dash(
                figures
                    .cycles
                    .map(|cycles| format!("{:.0}", cycles.cycles_per_packet)),
            ),
            or_dash(
                self.bursts
                    .map(|bursts| bursts.burst_cycles_p99.to_string()),
            ),
            or_dash(effects.map(|effects| format!("{:.1}", effects.time_to_effect_us_p99))),
            format!("{:.2}", figures.forwarded_share * 100.0),
            format!("{:.2}", figures.plain_share * 100.0),
        ]
    }
}

impl Record for Load {
    const COLUMNS: &'static [(&'static str, usize)] =
        &[("entries", 9), ("OpenFlow s", 10), ("min", 8), ("max", 8)];

    fn cells(&self) -> Vec<String> {
        let seconds = [self.openflow_s, self.openflow_s_min, self.openflow_s_max];
        let told = seconds.map(|seconds| format!("{seconds:.4}"));
        [self.entries.to_string()].into_iter().chain(told).collect()
    }
}

fn or_dash(cell: Option<String>) -> String {
    cell.unwrap_or_else(|| "-".to_owned())
}

fn whole<S: Serializer>(value: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    value
        .map(|value| value.round() as u64)
        .serialize(serializer)
}

fn tenths<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64((value * 10.0).round() / 10.0)
}

fn thousandths<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64((value * 1000.0).round() / 1000.0)
}

fn some_thousandths<S: Serializer>(value: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    thousandths(&value.unwrap_or_default(), serializer)
}

fn all_thousandths<S: Serializer>(values: &[f64], serializer: S) -> Result<S::Ok, S::Error> {
    let rounded = values.iter().map(|value| (value * 1000.0).round() / 1000.0);
    serializer.collect_seq(rounded)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, to_value};

    fn setting(kind: &'static str) -> Setting {
        Setting {
            kind,
            switch: "Urtica",
            core: 1,
            tsc_hz: Some(2_596_145_446.4),
            time: "2026-11-22T06:24:48Z".into(),
        }
    }

    fn rate(cycles: Option<Vec<f64>>) -> Rate {
        Rate {
            setting: setting("rate"),
            pipeline: "l3".into(),
            flows: 1000,
            trace: None,
            form: "plain",
            entries: 10_000,
            loading: None,
            open_s: None,
            seconds: 1.0,
            figures: Figures::new(vec![3.0, 1.0004, 2.0], cycles, 1.0, 0.25),
            bursts: None,
            updates: None,
        }
    }

    #[test]
    fn figures_are_in_the_columns_of_their_names() {
        let json = to_value(rate(Some(vec![100.0, 300.0, 200.0]))).unwrap();
        assert_eq!(
            (&json["kind"], &json["tsc_hz"]),
            (&"rate".into(), &2_596_145_446_u64.into())
        );
        assert_eq!(
            (&json["mpps"], &json["mpps_min"]),
            (&2.0.into(), &1.0.into())
        );
        assert_eq!(json["readings"], Value::from(vec![3.0, 1.0, 2.0]));
        assert_eq!(json["cycles_per_packet_max"], 300.0);
        assert_eq!(json["plain_share"], 0.25);
        assert!(json.get("updates_per_s").is_none());
    }

    #[test]
    fn unknown_figures_are_left_out() {
        let json = to_value(rate(None)).unwrap();
        let names: Vec<_> = json.as_object().unwrap().keys().collect();
        assert!(
            names.iter().all(|name| !name.contains("cycles")),
            "{names:?}"
        );
        assert!(
            json.as_object()
                .unwrap()
                .values()
                .all(|value| !value.is_null())
        );
    }

    #[test]
    fn updates_are_next_to_the_rate() {
        let effects = Effects {
            time_to_effect_us_p50: 1.04,
            time_to_effect_us_p99: 20.0,
            effects: 7,
        };
        let updates = UpdateFigures {
            updates_per_s: 999.96,
            updates_per_s_asked: 1000,
            mpps_ratio: 0.98765,
            effects: Some(effects),
        };
        let record = Rate {
            updates: Some(updates),
            ..rate(None)
        };
        let json = to_value(&record).unwrap();
        assert_eq!(
            (&json["updates_per_s"], &json["mpps_ratio"]),
            (&1000.0.into(), &0.988.into())
        );
        assert_eq!(
            (&json["time_to_effect_us_p50"], &json["effects"]),
            (&1.0.into(), &7.into())
        );
    }

    #[test]
    fn every_column_has_a_cell() {
        assert_eq!(rate(None).cells().len(), Rate::COLUMNS.len());
        let load = Load::new(setting("load"), 3, vec![0.2, 0.1]);
        assert_eq!(load.cells(), ["3", "0.1500", "0.1000", "0.2000"]);
        assert_eq!(load.cells().len(), Load::COLUMNS.len());
    }
}
