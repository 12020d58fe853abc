//! The report as a self-contained HTML page: tables, and plots that plotters draws as SVG.
//!
//! The plots are drawn in marker colours, which are then replaced by CSS variables, so that the page follows the reader's light
//! or dark setting, and is printed in black on white.

use std::fmt::{Display, Write as _};

use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

use super::{Report, Test, text};

const INK: RGBColor = RGBColor(1, 2, 3);
const GRID: RGBColor = RGBColor(4, 5, 6);
const SERIES: RGBColor = RGBColor(7, 8, 9);
const SIZE: (u32, u32) = (760, 300);

/// The maximum number of switches with separate bars. With more, each bar is a group.
const MAX_BARS: usize = 128;

type Drawn = Result<String, Box<dyn std::error::Error>>;

/// Writes the page.
pub fn write(report: &Report) -> String {
    let setup = &report.setup;
    let title = format!("{} switches against {}", setup.switches, setup.controller);
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>urtica bench: {title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n\
         <h1>{title}</h1>\n<p class=\"lead\"><b>{}</b> packet-ins answered per second, median of {} tests \
         ({} to {}). {}.</p>\n",
        thousands(report.responses_per_s.median),
        report.rated_tests(),
        thousands(report.responses_per_s.min),
        thousands(report.responses_per_s.max),
        escape(&sentence_case(&report.verdict)),
        title = escape(&title),
    );
    page += &tiles(report);
    page += &figure(
        "Latency",
        "The share of replies that took no longer than this.",
        latency_plot(report),
    );
    page += &figure(
        "Rate over time",
        "Packet-ins answered per second in each test; warm-up and cool-down are hollow.",
        rate_plot(report),
    );
    page += &figure(
        "Rate of each switch",
        &format!("Jain's fairness index {:.4}.", report.jain),
        switch_plot(report),
    );
    page += &tables(report);
    page += "</main>\n</body>\n</html>\n";
    page
}

fn tiles(report: &Report) -> String {
    let mut tiles = Vec::new();
    if let Some(latency) = &report.latency {
        tiles.push(("p50 latency", micros(latency.p50_us)));
        tiles.push(("p99 latency", micros(latency.p99_us)));
    }
    tiles.extend([
        ("Jain's index", format!("{:.4}", report.jain)),
        ("faults", thousands(report.faults() as f64)),
    ]);
    if let Some(cpu_us) = report.controller_cpu_us {
        tiles.push(("controller CPU per packet-in", micros(cpu_us)));
    }
    let tiles: String = tiles
        .iter()
        .map(|(name, value)| format!("<div><b>{value}</b><span>{name}</span></div>"))
        .collect();
    format!("<div class=\"tiles\">{tiles}</div>\n")
}

/// Returns a plot with its heading and caption; empty if the plot is.
fn figure(heading: &str, caption: &str, svg: Drawn) -> String {
    match svg {
        Ok(svg) if !svg.is_empty() => {
            format!(
                "<h2>{heading}</h2>\n<figure>{}<figcaption>{caption}</figcaption></figure>\n",
                themed(&svg, heading)
            )
        }
        _ => String::new(),
    }
}

/// Replaces marker colours by CSS variables, scales the plot with the page, and names it for screen readers.
fn themed(svg: &str, name: &str) -> String {
    svg.replace("#010203", "var(--ink)")
        .replace("#040506", "var(--grid)")
        .replace("#070809", "var(--series)")
        .replacen(
            "<svg width=",
            &format!("<svg role=\"img\" aria-label=\"{name}\" data-width="),
            1,
        )
        .replacen(" height=", " data-height=", 1)
}

fn latency_plot(report: &Report) -> Drawn {
    // The logarithm is taken here, so that all plots have axes of one type.
    let points: Vec<(f64, f64)> = report
        .latency
        .iter()
        .flat_map(|latency| &latency.cdf)
        .map(|&(us, share)| (us.max(0.001).log10(), share))
        .collect();
    let (Some(first), Some(last)) = (points.first(), points.last()) else {
        return Ok(String::new());
    };
    let axes = Axes {
        x: (first.0 - 0.05, last.0 + 0.05),
        x_name: "microseconds".to_owned(),
        x_label: &|log10_us| short(10f64.powf(log10_us)),
        top: 1.0,
        y_name: "share of replies",
        y_label: &|share| format!("{share:.1}"),
    };
    axes.draw(|chart| {
        chart.draw_series(LineSeries::new(
            points.iter().copied(),
            SERIES.stroke_width(2),
        ))?;
        Ok(())
    })
}

fn rate_plot(report: &Report) -> Drawn {
    let rates = report.tests.iter().map(|test| test.responses_per_s);
    let Some(top) = rates.max_by(f64::total_cmp) else {
        return Ok(String::new());
    };
    let place = |test: &Test| (f64::from(test.index + 1), test.responses_per_s);
    let axes = Axes {
        x: (0.5, report.tests.len() as f64 + 0.5),
        x_name: "test".to_owned(),
        x_label: &whole,
        top: top * 1.1,
        y_name: "responses/s",
        y_label: &short,
    };
    axes.draw(|chart| {
        chart.draw_series(LineSeries::new(
            report.tests.iter().map(place),
            SERIES.stroke_width(2),
        ))?;
        chart.draw_series(report.tests.iter().map(|test| {
            let style = if test.counted {
                SERIES.filled()
            } else {
                SERIES.stroke_width(1)
            };
            Circle::new(place(test), 4, style)
        }))?;
        Ok(())
    })
}

fn switch_plot(report: &Report) -> Drawn {
    let rates = &report.switch_responses_per_s;
    let group = rates.len().div_ceil(MAX_BARS).max(1);
    let bars: Vec<f64> = rates
        .chunks(group)
        .map(|chunk| chunk.iter().sum::<f64>() / chunk.len() as f64)
        .collect();
    let Some(top) = bars.iter().copied().max_by(f64::total_cmp) else {
        return Ok(String::new());
    };
    let first = report.setup.dpid_offset;
    let axes = Axes {
        x: (-0.5, bars.len() as f64 - 0.5),
        x_name: if group == 1 {
            "switch".to_owned()
        } else {
            format!("switch, {group} to a bar")
        },
        x_label: &|bar| whole(first as f64 + bar * group as f64),
        top: top * 1.1,
        y_name: "responses/s",
        y_label: &short,
    };
    axes.draw(|chart| {
        chart.draw_series(bars.iter().enumerate().map(|(index, &rate)| {
            Rectangle::new(
                [(index as f64 - 0.4, 0.0), (index as f64 + 0.4, rate)],
                SERIES.filled(),
            )
        }))?;
        Ok(())
    })
}

type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

/// The axes that all plots share: from 0 to `top`, with a light grid.
struct Axes<'a> {
    x: (f64, f64),
    x_name: String,
    x_label: &'a dyn Fn(f64) -> String,
    /// The end of the vertical axis; at least 1.
    top: f64,
    y_name: &'a str,
    y_label: &'a dyn Fn(f64) -> String,
}

impl Axes<'_> {
    fn draw(
        &self,
        series: impl FnOnce(&mut Chart<'_, '_>) -> Result<(), Box<dyn std::error::Error>>,
    ) -> Drawn {
        let mut svg = String::new();
        {
            let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
            let mut chart = ChartBuilder::on(&area)
                .margin(8)
                .x_label_area_size(44)
                .y_label_area_size(64)
                .build_cartesian_2d(self.x.0..self.x.1, 0.0..self.top.max(1.0))?;
            chart
                .configure_mesh()
                .light_line_style(TRANSPARENT)
                .bold_line_style(GRID)
                .axis_style(INK)
                .label_style(("sans-serif", 13, &INK))
                .axis_desc_style(("sans-serif", 13, &INK))
                .x_desc(self.x_name.as_str())
                .x_label_formatter(&|x| (self.x_label)(*x))
                .y_desc(self.y_name)
                .y_label_formatter(&|y| (self.y_label)(*y))
                .draw()?;
            series(&mut chart).map_err(|error| error.to_string())?;
            area.present()?;
        }
        Ok(svg)
    }
}

fn tables(report: &Report) -> String {
    let mut out = String::new();
    setup_table(&mut out, report);
    latency_table(&mut out, report);
    replies_table(&mut out, report);
    little_table(&mut out, report);
    let _ = write!(
        out,
        "<h2>As text</h2>\n<pre>{}{}</pre>\n",
        escape(&text::summary(report)),
        text::result_line(report)
    );
    out
}

fn setup_table(out: &mut String, report: &Report) {
    let setup = &report.setup;
    table(
        out,
        "Setup",
        &[
            ("controller", &setup.controller),
            ("mode", &setup.mode),
            ("OpenFlow", &setup.openflow),
            ("switches", &setup.switches),
            ("switches ready", &setup.switches_ready),
            ("source MACs per switch", &count(setup.macs.into())),
            ("addresses", &setup.addresses),
            ("frames", &setup.frames.join(", ")),
            ("frame, bytes", &setup.frame_bytes),
            ("load threads", &setup.threads),
            ("replies checked", &yes_or_no(setup.verify)),
            ("expected replies", &setup.expect),
            ("destinations announced", &yes_or_no(setup.learn_dst_macs)),
            ("tests", &setup.tests),
            ("of them warm-up", &setup.warmup),
            ("of them cool-down", &setup.cooldown),
            ("length of a test, s", &setup.test_s),
            ("urtica", &report.urtica),
        ],
    );
}

fn latency_table(out: &mut String, report: &Report) {
    let Some(latency) = &report.latency else {
        return;
    };
    table(
        out,
        "Latency in microseconds",
        &[
            ("min", &tenths(latency.min_us)),
            ("p50", &tenths(latency.p50_us)),
            ("p90", &tenths(latency.p90_us)),
            ("p99", &tenths(latency.p99_us)),
            ("p99.9", &tenths(latency.p999_us)),
            ("p99.99", &tenths(latency.p9999_us)),
            ("max", &tenths(latency.max_us)),
            ("mean", &tenths(latency.mean_us)),
            ("standard deviation", &tenths(latency.stdev_us)),
            ("replies", &count(latency.count)),
        ],
    );
}

fn replies_table(out: &mut String, report: &Report) {
    let tally = &report.tally;
    table(
        out,
        "Replies",
        &[
            ("packet-ins answered", &count(tally.answered)),
            ("flow mods", &count(tally.flow_mods)),
            ("packet-outs", &count(tally.packet_outs)),
            ("additional, without buffer id", &count(tally.unbuffered)),
            ("flooded although announced", &count(tally.flooded)),
            ("to a wrong port", &count(tally.wrong_port)),
            ("with a wrong match", &count(tally.wrong_match)),
            ("that also match other packets", &count(tally.broad_match)),
            ("that add no entry", &count(tally.wrong_command)),
            ("that change the packet", &count(tally.rewritten)),
            ("with another frame", &count(tally.wrong_frame)),
            ("with an unknown buffer id", &count(tally.unknown_buffer)),
            ("answered twice", &count(tally.duplicates)),
            ("out of order", &count(tally.out_of_order)),
            ("malformed", &count(tally.malformed)),
            ("OFPT_ERROR", &count(tally.errors)),
            ("lost", &count(tally.lost)),
            ("unanswered at the end", &count(report.unanswered)),
            ("connections closed early", &report.closed.len()),
        ],
    );
}

fn little_table(out: &mut String, report: &Report) {
    let Some(little) = &report.little else {
        return;
    };
    table(
        out,
        "Consistency (Little's law)",
        &[
            ("mean number outstanding", &tenths(little.outstanding)),
            (
                "rate times mean latency",
                &tenths(little.rate_times_latency),
            ),
            ("ratio", &format!("{:.4}", little.ratio)),
        ],
    );
}

fn table(out: &mut String, heading: &str, rows: &[(&str, &dyn Display)]) {
    let _ = writeln!(out, "<h2>{heading}</h2>\n<table>");
    for (name, value) in rows {
        let _ = writeln!(
            out,
            "<tr><th scope=\"row\">{name}</th><td>{}</td></tr>",
            escape(&value.to_string())
        );
    }
    let _ = writeln!(out, "</table>");
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

fn yes_or_no(value: bool) -> &'static str {
    if value { "yes" } else { "no" }
}

fn sentence_case(text: &str) -> String {
    let mut letters = text.chars();
    letters
        .next()
        .map(|first| first.to_uppercase().chain(letters).collect())
        .unwrap_or_default()
}

/// Formats a whole number with separated thousands, as in `1,234,567`.
pub fn thousands(value: f64) -> String {
    count(value.round() as u64)
}

/// Formats a number with separated thousands and one decimal.
fn tenths(value: f64) -> String {
    let tenths = (value * 10.0).round() as u64;
    format!("{}.{}", count(tenths / 10), tenths % 10)
}

fn count(value: u64) -> String {
    let digits = value.to_string();
    let groups: Vec<&str> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .filter_map(|group| std::str::from_utf8(group).ok())
        .collect();
    groups.join(",")
}

fn micros(us: f64) -> String {
    match us {
        us if us < 1.0 => format!("{:.1} ns", us * 1e3),
        us if us < 1e3 => format!("{us:.1} µs"),
        us => format!("{:.1} ms", us / 1e3),
    }
}

/// Formats a mark on an axis of counts; empty if it is not a whole number.
fn whole(value: f64) -> String {
    if (value - value.round()).abs() < 1e-6 {
        format!("{value:.0}")
    } else {
        String::new()
    }
}

/// Formats a number for an axis: three digits and a letter.
fn short(value: f64) -> String {
    let (scaled, unit) = match value {
        v if v >= 1e6 => (v / 1e6, "M"),
        v if v >= 1e3 => (v / 1e3, "k"),
        v => (v, ""),
    };
    let decimals = if scaled >= 10.0 || scaled.fract() == 0.0 {
        0
    } else {
        1
    };
    format!("{scaled:.decimals$}{unit}")
}

const STYLE: &str = "
:root { color-scheme: light dark; --ink: #1c2430; --paper: #fdfdfb; --grid: #d9dde3; --series: #2166ac; --soft: #f0f2f5; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #dde3ea; --paper: #14181e; --grid: #323a45; --series: #6db3f2; --soft: #1e242c; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 48rem; margin: 0 auto; padding: 2rem 1rem 4rem; }
h1 { font-size: 1.6rem; line-height: 1.25; } h2 { font-size: 1.1rem; margin: 2.2rem 0 .6rem; }
.lead { font-size: 1.1rem; }
.tiles { display: flex; flex-wrap: wrap; gap: .6rem; }
.tiles div { flex: 1 1 8rem; background: var(--soft); border-radius: .5rem; padding: .7rem .9rem; }
.tiles b { display: block; font-size: 1.25rem; font-variant-numeric: tabular-nums; } .tiles span { font-size: .85rem; }
figure { margin: 0; } figure svg { width: 100%; height: auto; display: block; } figcaption { font-size: .85rem; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th { font-weight: normal; text-align: left; } td { text-align: right; }
th, td { padding: .2rem .4rem; border-bottom: 1px solid var(--grid); }
pre { background: var(--soft); padding: .8rem; border-radius: .5rem; white-space: pre-wrap; font-size: .8rem; }
@media print {
  :root { --ink: #000; --paper: #fff; --grid: #ddd; --series: #2166ac; --soft: #f4f4f4; }
  main { max-width: none; padding: 0; } body { font-size: 10pt; line-height: 1.35; } h2 { margin-top: 1.2rem; }
  figure svg { width: 80%; margin: 0 auto; } figure, table, pre, .tiles { break-inside: avoid; } h2 { break-after: avoid; }
}
";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    #[test]
    fn the_page_is_self_contained() {
        let page = write(&sample());
        assert_eq!(page.matches("<svg").count(), 3);
        assert!(page.contains("var(--series)") && page.contains("prefers-color-scheme: dark"));
        assert!(!page.contains("#010203") && !page.contains("#070809"));
        for outside in ["src=", "href=", "url(", "<script"] {
            assert!(!page.contains(outside), "{outside}");
        }
    }

    #[test]
    fn escapes_names() {
        let page = write(&sample());
        assert!(page.contains("a &lt;controller&gt;") && !page.contains("a <controller>"));
    }

    #[test]
    fn a_run_without_answers_has_a_page_too() {
        let mut report = sample();
        report.latency = None;
        report.little = None;
        report.switch_responses_per_s.clear();
        assert_eq!(write(&report).matches("<svg").count(), 1);
    }

    #[test]
    fn numbers_for_people() {
        assert_eq!(thousands(1_234_567.0), "1,234,567");
        assert_eq!(
            (tenths(41_254.96), tenths(0.04)),
            ("41,255.0".into(), "0.0".into())
        );
        assert_eq!((whole(3.0), whole(2.5)), ("3".into(), String::new()));
        assert_eq!(
            (short(1.5e6), short(20_000.0), short(3.0)),
            ("1.5M".into(), "20k".into(), "3".into())
        );
        assert_eq!(
            (micros(0.0123), micros(13.0), micros(41_254.9)),
            ("12.3 ns".into(), "13.0 µs".into(), "41.3 ms".into())
        );
    }
}
