//! The report as text: cbench's lines, which scripts parse, and then lines that cbench does not have.

use std::fmt::Write as _;
use std::time::Duration;

use super::{Ended, Report, Test};
use crate::analysis::{Busy, Spread};
use crate::config::{Addresses, LoadConfig, Mode};

/// Returns cbench's opening lines, which it writes to standard error.
pub fn opening(config: &LoadConfig) -> String {
    let mode = match config.mode {
        Mode::PingPong => "'latency'".to_owned(),
        Mode::MaxRate => "'throughput'".to_owned(),
        Mode::Window(window) => format!("'window' with {window} outstanding per switch"),
        Mode::Rate(rate) => format!("'rate' with {rate} packet-ins/s per switch"),
    };
    let together = config
        .most_outstanding
        .map(|most| format!(", and {most} over all of them"))
        .unwrap_or_default();
    let learning = if config.learn_dst_macs {
        "learning"
    } else {
        "NOT learning"
    };
    format!(
        "urtica bench: controller benchmarking tool, after cbench\n   \
         running in mode {mode}{together}\n   \
         connecting to controller at {} with OpenFlow {}\n   \
         faking {} switches offset {} :: {} tests each; {} ms per test\n   \
         with {} unique source MACs per switch, {}\n   \
         {learning} destination mac addresses before the test\n   \
         starting test with {} ms delay after features_reply\n   \
         ignoring first {} \"warmup\" and last {} \"cooldown\" loops\n   \
         connection delay of {}ms per {} switch(es)\n   \
         {}",
        config.controller,
        config.version.name(),
        config.switches,
        config.dpid_offset,
        config.tests,
        config.test_length.as_millis(),
        config.macs,
        workload(config),
        config.delay.as_millis(),
        config.warmup,
        config.cooldown,
        config.connect_delay.as_millis(),
        config.connect_group_size,
        if config.verify {
            "checking every reply against its packet-in"
        } else {
            "matching replies by buffer id, without checking the rest"
        },
    )
}

/// Describes the order and kinds of frames, if they are not cbench's.
fn workload(config: &LoadConfig) -> String {
    let order = match config.addresses {
        Addresses::InTurn => "counting up",
        Addresses::Random => "random ones drawn uniformly",
        Addresses::Zipf => "random ones drawn by Zipf's law",
    };
    let kinds: Vec<&str> = config.frames.iter().map(|kind| kind.name()).collect();
    format!("{order}; frames: {}", kinds.join(", "))
}

/// Returns cbench's line for a test, at the given time of day since midnight: for each switch the packet-ins answered per
/// second, and their sum per millisecond.
pub fn test_line(test: &Test, since_midnight: Duration) -> String {
    let (seconds, ms) = (since_midnight.as_secs(), since_midnight.subsec_millis());
    let mut line = format!(
        "{:02}:{:02}:{:02}.{ms:03} ",
        seconds / 3600 % 24,
        seconds / 60 % 60,
        seconds % 60
    );
    let _ = write!(line, "{:<3} switches: flows/sec:  ", test.answered.len());
    for answered in &test.answered {
        let _ = write!(line, "{:.0}  ", *answered as f64 / test.elapsed_s.max(1e-9));
    }
    let _ = write!(line, " total = {:.6} per ms ", test.responses_per_s / 1e3);
    line
}

/// The share by which messages may differ from answered packet-ins before the result line shows both. At the edges of a test,
/// a message may be counted in the next.
const ALIKE: f64 = 0.01;

/// Returns cbench's result line: the switches that completed their handshake, the tests that count, and the packet-ins
/// answered. If the controller sends several messages per packet-in, cbench's count is added.
pub fn result_line(report: &Report) -> String {
    let (rate, messages) = (&report.responses_per_s, &report.messages_per_s);
    let mut line = format!(
        "RESULT: {} switches {} tests min/max/avg/stdev = {} responses/s",
        report.setup.switches_ready,
        report.rated_tests(),
        slashed(rate),
    );
    if (messages.mean - rate.mean).abs() > ALIKE * rate.mean {
        let _ = write!(
            line,
            " (packet-ins answered; {} flow mods and packet-outs/s, which cbench counts)",
            slashed(messages)
        );
    }
    line
}

fn slashed(spread: &Spread) -> String {
    let Spread {
        min,
        max,
        mean,
        stdev,
        ..
    } = spread;
    format!("{min:.2}/{max:.2}/{mean:.2}/{stdev:.2}")
}

/// Returns the lines that cbench does not have, one per topic, indented so that scripts do not mistake them for cbench's.
pub fn summary(report: &Report) -> String {
    let mut lines = vec![answers(report), checks(report)];
    if report.has_no_answers() {
        lines
            .push("latency     none: no packet-in was answered in the tests that count".to_owned());
    } else {
        lines.extend(latency(report));
        lines.push(fairness(report));
        lines.extend(little(report));
    }
    lines.extend(controller(report));
    lines.push(load(report));
    lines.extend(closed(report));
    lines.extend(ended(report));
    lines.push(format!("verdict     {}", report.verdict));
    lines.iter().map(|line| format!("   {line}\n")).collect()
}

/// Returns each switch's rate, for detailed output.
pub fn switch_lines(report: &Report) -> String {
    let rates = report.switch_responses_per_s.iter().enumerate();
    let id = |index: usize| report.setup.dpid_offset + index as u64;
    rates
        .map(|(index, rate)| format!("   switch {:016x} {rate:.2} responses/s\n", id(index)))
        .collect()
}

fn answers(report: &Report) -> String {
    let tally = &report.tally;
    let mut line = format!(
        "answers     {} packet-ins answered, by {} flow mods and {} packet-outs",
        tally.answered, tally.flow_mods, tally.packet_outs
    );
    if tally.unbuffered > 0 {
        let _ = write!(
            line,
            " ({} of them additional, without a buffer id)",
            tally.unbuffered
        );
    }
    if report.unanswered > 0 {
        let _ = write!(line, "; {} still unanswered at the end", report.unanswered);
    }
    line
}

fn checks(report: &Report) -> String {
    let tally = &report.tally;
    let found = [
        (tally.lost, "lost"),
        (tally.duplicates, "answered twice"),
        (tally.unknown_buffer, "with an unknown buffer id"),
        (tally.wrong_match, "with a wrong match"),
        (tally.wrong_port, "to a wrong port"),
        (tally.broad_match, "that also match other packets"),
        (tally.wrong_command, "that add no entry"),
        (tally.rewritten, "that change the packet"),
        (tally.wrong_frame, "with another frame"),
        (tally.malformed, "malformed"),
        (tally.errors, "OFPT_ERROR"),
        (
            tally.flooded,
            "flooded although the destination was announced",
        ),
        (tally.out_of_order, "out of order"),
    ];
    let found: Vec<String> = found
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    let checked = match (report.setup.verify, report.setup.expect) {
        (false, _) => "by buffer id",
        (true, "any") => "by xid and buffer id, any match and port accepted",
        (true, _) => "buffer id, command, match and actions of each",
    };
    let found = if found.is_empty() {
        "nothing wrong".to_owned()
    } else {
        found.join(", ")
    };
    format!("checked     {checked}: {found}")
}

fn latency(report: &Report) -> Option<String> {
    let l = report.latency.as_ref()?;
    Some(format!(
        "latency     p50 {:.1}  p90 {:.1}  p99 {:.1}  p99.9 {:.1}  p99.99 {:.1}  max {:.1}  mean {:.1} us",
        l.p50_us, l.p90_us, l.p99_us, l.p999_us, l.p9999_us, l.max_us, l.mean_us
    ))
}

fn fairness(report: &Report) -> String {
    let rates = &report.switch_responses_per_s;
    let (min, max) = rates.iter().fold((f64::MAX, 0.0f64), |(min, max), &rate| {
        (min.min(rate), max.max(rate))
    });
    format!(
        "fairness    Jain's index {:.4} over {} switches ({:.0} to {max:.0} responses/s each)",
        report.jain,
        rates.len(),
        min.min(max)
    )
}

fn little(report: &Report) -> Option<String> {
    let little = report.little.as_ref()?;
    let holds = match (little.holds(), little.steady) {
        (true, _) => "holds",
        (false, true) => "DOES NOT HOLD: distrust these figures",
        (false, false) => {
            "cannot be checked, as replies took too long compared with the time measured"
        }
    };
    Some(format!(
        "Little      {holds}: {:.2} outstanding, rate x mean latency {:.2}",
        little.outstanding, little.rate_times_latency
    ))
}

fn controller(report: &Report) -> Option<String> {
    let usage = report.controller.as_ref()?;
    let user_percent = 100.0 * usage.user_s / (usage.user_s + usage.kernel_s).max(1e-9);
    let mut line = format!(
        "controller  {} (pid {}): {:.2} cores (and waited for one {:.0} %), {:.0} % user and {:.0} % kernel, {:.4} us CPU per packet-in, {:.1} MiB resident",
        usage.name,
        usage.pid,
        usage.cores,
        usage.busiest_thread_waited * 100.0,
        user_percent,
        100.0 - user_percent,
        report.controller_cpu_us.unwrap_or(0.0),
        usage.rss_bytes as f64 / f64::from(1 << 20)
    );
    if let Some(joules) = report.joules_per_million {
        let _ = write!(line, ", {joules:.1} J per million (whole machine)");
    }
    Some(line)
}

fn load(report: &Report) -> String {
    let load = &report.load;
    let percent = |share: fn(&Busy) -> f64| {
        load.threads
            .iter()
            .map(|busy| format!("{:.0} %", share(busy) * 100.0))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let mut line = format!(
        "load        {} of a core (and waited for it {}), {:.4} us CPU per packet-in; {} of {} sends found the socket full",
        percent(|busy| busy.ran),
        percent(|busy| busy.waited),
        load.cpu_us,
        load.blocked_sends,
        load.sends
    );
    if let Some(late_us) = load.late_us {
        let _ = write!(
            line,
            "; woke up {late_us:.1} us late on average, which the latency contains"
        );
    }
    line
}

fn closed(report: &Report) -> Option<String> {
    let first = report.closed.first()?;
    Some(format!(
        "closed      {} connections ended early, the first of switch {}: {}",
        report.closed.len(),
        first.datapath_id,
        first.reason
    ))
}

/// Describes a run that ended early, and its progress.
fn ended(report: &Report) -> Option<String> {
    let why = match report.ended {
        Ended::Complete => return None,
        Ended::Interrupted => "interrupted",
        Ended::AllClosed => "the controller closed all connections",
    };
    let (run, wanted) = (report.tests.len(), report.setup.tests);
    let counted = report.rated_tests();
    Some(format!(
        "ended       {why} in test {run} of {wanted}; {counted} of them count"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{TestPart, TestRun};
    use crate::report::sample;

    fn test(answered: Vec<u64>, elapsed_ns: u64) -> Test {
        let part = TestPart {
            messages: answered.iter().sum(),
            answered,
            elapsed_ns,
            run: TestRun::Whole,
        };
        Test::new(0, true, vec![part])
    }

    #[test]
    fn test_line_is_cbenchs() {
        let test = test(vec![4661, 4702], 1_000_000_000);
        let at = Duration::from_millis(((9 * 60 + 5) * 60 + 3) * 1000 + 42);
        assert_eq!(
            test_line(&test, at),
            "09:05:03.042 2   switches: flows/sec:  4661  4702   total = 9.363000 per ms "
        );
    }

    #[test]
    fn flows_per_second_are_per_second_in_short_tests_too() {
        let test = test(vec![100], 100_000_000);
        assert!(
            test_line(&test, Duration::ZERO)
                .contains("flows/sec:  1000   total = 1.000000 per ms ")
        );
    }

    #[test]
    fn result_line_is_cbenchs() {
        let line = result_line(&sample());
        assert_eq!(
            line,
            "RESULT: 2 switches 2 tests min/max/avg/stdev = 200.00/400.00/300.00/100.00 responses/s"
        );
        // This parses the line as scripts do.
        assert_eq!(
            line.split_whitespace().nth(7),
            Some("200.00/400.00/300.00/100.00")
        );
    }

    #[test]
    fn a_controller_that_answers_twice_has_both_figures_in_its_result() {
        let mut report = sample();
        report.messages_per_s = Spread::of(&[400.0, 800.0]);
        let line = result_line(&report);
        assert!(
            line.ends_with(
                " responses/s (packet-ins answered; 400.00/800.00/600.00/200.00 flow mods and packet-outs/s, which cbench counts)"
            ),
            "{line}"
        );
        assert_eq!(
            line.split_whitespace().nth(7),
            Some("200.00/400.00/300.00/100.00")
        );
    }

    #[test]
    fn the_result_counts_switches_that_were_ready() {
        let mut report = sample();
        report.setup.switches_ready = 1;
        assert!(result_line(&report).starts_with("RESULT: 1 switches 2 tests "));
    }

    #[test]
    fn opening_names_what_runs() {
        let opening = opening(&LoadConfig {
            mode: Mode::MaxRate,
            ..LoadConfig::default()
        });
        assert!(opening.contains("running in mode 'throughput'"));
        assert!(opening.contains("faking 16 switches offset 1 :: 16 tests each; 1000 ms per test"));
    }

    #[test]
    fn summary_has_every_topic() {
        let summary = summary(&sample());
        for topic in [
            "answers",
            "checked",
            "latency",
            "fairness",
            "Little",
            "controller",
            "load",
            "closed",
            "verdict",
        ] {
            assert!(
                summary.contains(&format!("   {topic}")),
                "{topic} in {summary}"
            );
        }
        assert!(summary.contains("3 lost"));
    }
}
