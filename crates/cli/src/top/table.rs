//! Figures as text: lines, and columns of switches.

use super::figures::{Figures, Latency, SwitchFigures};
use std::fmt::Write;

/// The columns of the table of switches: names, widths, and whether they are numbers.
pub const COLUMNS: [(&str, u16, bool); 10] = [
    ("SWITCH", 16, false),
    ("NAME", 16, false),
    ("OF", 3, false),
    ("ROLE", 9, false),
    ("PACKET-INS/S", 12, true),
    ("SENT/S", 10, true),
    ("QUEUED", 9, true),
    ("STALLS", 8, true),
    ("REFUSED", 8, true),
    ("ERRORS", 8, true),
];

/// Returns a switch's text in each column.
pub fn cells(switch: &SwitchFigures) -> [String; COLUMNS.len()] {
    cells_with(switch, number, bytes)
}

fn cells_with(
    switch: &SwitchFigures,
    number: fn(f64) -> String,
    bytes: fn(f64) -> String,
) -> [String; COLUMNS.len()] {
    [
        shown(&switch.id),
        shown(&switch.name),
        shown(&switch.openflow),
        shown(&switch.role),
        number(switch.packet_ins_per_s),
        number(switch.sent_per_s),
        bytes(switch.queued_bytes),
        number(switch.stalls),
        number(switch.refused),
        number(switch.errors),
    ]
}

/// Returns the lines above the table.
pub fn summary(figures: &Figures) -> Vec<String> {
    let mut lines = vec![counts(figures)];
    let programs: Vec<_> = figures.programs.iter().map(|name| shown(name)).collect();
    lines.push(format!("programs: {}", or_none(programs.join(", "))));
    let shards = figures.shards.iter();
    let shards: Vec<_> = shards
        .map(|(name, busy)| format!("{} {:.0} %", shown(name), busy * 100.0))
        .collect();
    lines.push(format!("shards busy: {}", or_none(shards.join(", "))));
    let queues = figures.queues.iter();
    let queues: Vec<_> = queues
        .map(|(name, value)| format!("{} {}", shown(name), number(*value)))
        .collect();
    if !queues.is_empty() {
        lines.push(format!("queues: {}", queues.join(", ")));
    }
    lines.extend(figures.latencies.iter().map(latency));
    lines
}

fn counts(figures: &Figures) -> String {
    let mut line = format!("{} switches", figures.switches.len());
    for (name, count) in [("hosts", figures.hosts), ("directed links", figures.links)] {
        if let Some(count) = count {
            // Writing to a string cannot fail.
            let _ = write!(line, ", {count} {name}");
        }
    }
    let _ = write!(
        line,
        ", {} packet-ins/s, {} sent/s, {} queued",
        number(figures.sum(|switch| switch.packet_ins_per_s)),
        number(figures.sum(|switch| switch.sent_per_s)),
        bytes(figures.sum(|switch| switch.queued_bytes)),
    );
    line
}

fn or_none(text: String) -> String {
    match text.is_empty() {
        true => "none".to_owned(),
        false => text,
    }
}

fn latency(latency: &Latency) -> String {
    let [p50, p90, p99, all] = latency.percentiles_s.map(duration);
    let (name, rate) = (shown(&latency.name), number(latency.per_s));
    format!("{name}: p50 {p50}, p90 {p90}, p99 {p99}, max {all} ({rate}/s)")
}

/// Formats an upper bound of a bucket.
fn duration(seconds: Option<f64>) -> String {
    match seconds {
        None => "-".to_owned(),
        Some(seconds) if seconds.is_infinite() => "beyond".to_owned(),
        Some(seconds) if seconds < 1e-3 => format!("{:.0} µs", seconds * 1e6),
        Some(seconds) if seconds < 1.0 => format!("{:.1} ms", seconds * 1e3),
        Some(seconds) => format!("{seconds:.1} s"),
    }
}

/// Formats a count or a rate in at most seven characters.
fn number(value: f64) -> String {
    match value {
        value if value >= 1e9 => format!("{:.1}G", value / 1e9),
        value if value >= 1e7 => format!("{:.1}M", value / 1e6),
        value if value > 0.0 && value < 10.0 && value.fract() != 0.0 => format!("{value:.1}"),
        value => format!("{value:.0}"),
    }
}

fn bytes(value: f64) -> String {
    const KIB: f64 = 1024.0;
    match value {
        value if value < KIB => format!("{value:.0} B"),
        value if value < KIB * KIB => format!("{:.1} KiB", value / KIB),
        value => format!("{:.1} MiB", value / KIB / KIB),
    }
}

/// Removes control characters from a name chosen by others.
pub fn shown(text: &str) -> String {
    text.escape_debug().to_string()
}

/// Formats a number to a tenth.
fn exact(value: f64) -> String {
    ((value * 10.0).round() / 10.0).to_string()
}

/// Formats all figures for scripts: the lines, and a table with whole numbers and bytes. Empty names are "-", and blanks in
/// names are escaped, so that columns can be counted.
pub fn plain(figures: &Figures) -> String {
    let mut text = format!("urtica top: {}\n", shown(&figures.place));
    for line in summary(figures) {
        text.push_str(&line);
        text.push('\n');
    }
    text.push_str(&row(&COLUMNS.map(|(name, ..)| name.to_owned())));
    for switch in &figures.switches {
        let cells = cells_with(switch, exact, exact);
        text.push_str(&row(&cells.map(|cell| match cell.is_empty() {
            true => "-".to_owned(),
            false => cell.replace(' ', "\\u{20}"),
        })));
    }
    text
}

fn row(cells: &[String; COLUMNS.len()]) -> String {
    let mut line = String::new();
    for (cell, (_, width, is_number)) in cells.iter().zip(COLUMNS) {
        let width = usize::from(width);
        let _ = match is_number {
            true => write!(line, "{cell:>width$} "),
            false => write!(line, "{cell:<width$} "),
        };
    }
    format!("{}\n", line.trim_end())
}

#[cfg(test)]
mod tests {
    use super::super::figures::tests::figures;
    use super::*;

    #[test]
    fn the_plain_table_is_complete_and_escapes_names() {
        let expected = "\
urtica top: http://127.0.0.1:8080
2 switches, 4 hosts, 350 packet-ins/s, 200 sent/s, 4.0 KiB queued
programs: discovery, l2
shards busy: 0 50 %
queues: mailbox_queued_messages 12
packet_in_duration program=l2: p50 1.0 ms, p90 2.0 ms, p99 2.0 ms, max beyond (50/s)
SWITCH           NAME             OF  ROLE      PACKET-INS/S     SENT/S    QUEUED   STALLS  REFUSED   ERRORS
0000000000000002 s\\u{1b}[2J\\n2    1.0 -                  250          0         0        0        0        0
0000000000000001 s1               1.3 primary            100        200      4096        0        0        0
";
        assert_eq!(plain(&figures()), expected);
    }

    #[test]
    fn empty_results_are_reported_as_such() {
        let text = plain(&Figures::default());
        assert!(text.contains("0 switches, 0 packet-ins/s"), "{text}");
        assert!(
            text.contains("programs: none\nshards busy: none\nSWITCH"),
            "{text}"
        );
    }

    #[test]
    fn large_numbers_and_short_times_are_short() {
        assert_eq!(number(1_234_567.0), "1234567");
        assert_eq!(number(12_345_678.0), "12.3M");
        assert_eq!(number(0.5), "0.5");
        assert_eq!(bytes(5_242_880.0), "5.0 MiB");
        assert_eq!(duration(Some(0.000_256)), "256 µs");
        assert_eq!(duration(Some(2.0)), "2.0 s");
        assert_eq!(duration(None), "-");
    }
}
