//! The results of pings and flows.

use pyo3::prelude::*;

/// The result of pings between two hosts. True if all were answered.
#[pyclass(frozen, get_all, module = "urtica")]
pub struct PingReport {
    sent: u32,
    received: u32,
    duplicates: u32,
    /// Round-trip times in seconds.
    rtt_min: f64,
    rtt_mean: f64,
    rtt_max: f64,
}

impl PingReport {
    pub(crate) fn of(report: &urtica::net::PingReport) -> Self {
        Self {
            sent: report.sent,
            received: report.received,
            duplicates: report.duplicates,
            rtt_min: report.rtt_min.as_secs_f64(),
            rtt_mean: report.rtt_mean().as_secs_f64(),
            rtt_max: report.rtt_max.as_secs_f64(),
        }
    }
}

#[pymethods]
impl PingReport {
    fn __bool__(&self) -> bool {
        self.sent == self.received
    }

    fn __repr__(&self) -> String {
        format!("<PingReport: {} of {} received>", self.received, self.sent)
    }
}

/// The result of each host pinging each other. True if all were answered.
#[pyclass(frozen, get_all, module = "urtica")]
pub struct PingAllReport {
    sent: usize,
    received: usize,
    /// The pairs without an answer, by the hosts' names: sender and receiver.
    failed: Vec<(String, String)>,
    duplicates: u32,
    /// The longest round-trip time, in seconds.
    rtt_max: f64,
    summary: String,
}

impl PingAllReport {
    pub(crate) fn of(report: &urtica::net::PingAllReport, failed: Vec<(String, String)>) -> Self {
        Self {
            sent: report.sent,
            received: report.sent - failed.len(),
            failed,
            duplicates: report.duplicates,
            rtt_max: report.rtt_max.as_secs_f64(),
            summary: report.to_string(),
        }
    }
}

#[pymethods]
impl PingAllReport {
    fn __bool__(&self) -> bool {
        self.failed.is_empty()
    }

    fn __str__(&self) -> &str {
        &self.summary
    }

    fn __repr__(&self) -> String {
        format!("<PingAllReport: {}>", self.summary)
    }
}

/// The result of a flow between two hosts so far.
#[pyclass(frozen, get_all, module = "urtica")]
pub struct FlowReport {
    /// Whether all was received.
    is_done: bool,
    sent: u64,
    received: u64,
    lost: u64,
    received_bytes: u64,
    reordered: u64,
    sent_again: u64,
    /// Seconds from start to end, if it has ended.
    took: Option<f64>,
}

impl FlowReport {
    pub(crate) fn of(report: &urtica::net::FlowReport) -> Self {
        Self {
            is_done: report.is_done,
            sent: report.sent,
            received: report.received,
            lost: report.lost(),
            received_bytes: report.received_bytes,
            reordered: report.reordered,
            sent_again: report.sent_again,
            took: report.took.map(|took| took.as_secs_f64()),
        }
    }
}

#[pymethods]
impl FlowReport {
    fn __repr__(&self) -> String {
        format!("<FlowReport: {} of {} received>", self.received, self.sent)
    }
}
