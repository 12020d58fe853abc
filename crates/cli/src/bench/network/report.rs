//! The report: a line for each figure, or JSON.

use super::Reading;
use serde::Serialize;
use std::fmt::Write as _;
use urtica_bench::Error;
use urtica_bench::analysis::Spread;

use crate::bench::output::Output;
use crate::say::say;

/// The figures, in the order in which they were measured first.
#[derive(Debug, Default)]
pub struct Report {
    records: Vec<Record>,
}

/// A figure, with the value of each round.
#[derive(Debug, Serialize)]
struct Record {
    figure: String,
    what: String,
    unit: &'static str,
    values: Vec<f64>,
}

impl Report {
    /// Adds the result of a round.
    pub fn add(&mut self, readings: Vec<Reading>) {
        for reading in readings {
            let known = self
                .records
                .iter_mut()
                .find(|record| record.figure == reading.figure);
            match known {
                Some(record) => record.values.push(reading.value),
                None => self.records.push(Record::from(reading)),
            }
        }
    }

    /// Writes JSON if requested, and lines unless the JSON is written to standard output.
    pub fn tell(&self, json: Option<Output>) -> Result<(), Error> {
        if !json.as_ref().is_some_and(Output::is_stdout) {
            say(self.lines().trim_end());
        }
        json.map_or(Ok(()), |file| file.write(&self.json()?))
    }

    fn lines(&self) -> String {
        let mut lines = String::new();
        for record in &self.records {
            let spread = Spread::of(&record.values);
            // Writing to a string does not fail.
            let _ = writeln!(
                lines,
                "{}: {} ({} to {}) {}",
                record.what,
                digits(spread.median),
                digits(spread.min),
                digits(spread.max),
                record.unit
            );
        }
        lines
    }

    fn json(&self) -> Result<String, Error> {
        let mut lines = String::new();
        for record in &self.records {
            lines += &serde_json::to_string(record).map_err(|error| {
                Error::invalid(format!("a figure cannot be written as JSON: {error}"))
            })?;
            lines.push('\n');
        }
        Ok(lines)
    }
}

impl From<Reading> for Record {
    fn from(reading: Reading) -> Self {
        Self {
            figure: reading.figure,
            what: reading.what,
            unit: reading.unit,
            values: vec![reading.value],
        }
    }
}

/// Formats three significant digits, or all digits of a whole number.
fn digits(value: f64) -> String {
    match value.abs() {
        large if large >= 100.0 => format!("{value:.0}"),
        medium if medium >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_are_reported_together() {
        let mut report = Report::default();
        for value in [3.0, 1.0, 2.0] {
            report.add(vec![Reading::new("size", "how large", "ms", value)]);
        }
        assert_eq!(report.lines(), "how large: 2.00 (1.00 to 3.00) ms\n");
        let json: serde_json::Value = serde_json::from_str(&report.json().unwrap()).unwrap();
        assert_eq!(json["figure"], "size");
        assert_eq!(json["values"], serde_json::json!([3.0, 1.0, 2.0]));
    }
}
