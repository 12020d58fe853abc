//! The result of a run, and its three forms: text like cbench's, JSON, and an HTML page.

pub mod html;
pub mod json;
pub mod text;

use hdrhistogram::Histogram;
use serde::Serialize;

use crate::analysis::{Bottleneck, Busy, Little, Spread, jain};
use crate::checker::Tally;
use crate::config::{Expect, LoadConfig, Mode};
use crate::controller_process::Usage;
use crate::load::{Outcome, TestPart, TestRun};
use crate::recorder::latency_histogram;

/// The result of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The program's version.
    pub urtica: &'static str,
    /// The settings of the run.
    pub setup: Setup,
    /// How the run ended.
    pub ended: Ended,
    /// All tests that were run, including warm-up and cool-down.
    pub tests: Vec<Test>,
    /// The rate of answered packet-ins per second, over the tests that count.
    pub responses_per_s: Spread,
    /// The rate of received flow mods and packet-outs per second, as cbench counts, over the same tests.
    pub messages_per_s: Spread,
    /// Each switch's rate over the tests that count, in the order of ids.
    pub switch_responses_per_s: Vec<f64>,
    /// Jain's fairness index of these rates.
    pub jain: f64,
    /// The time from packet-in to reply, if any reply was received.
    pub latency: Option<Latency>,
    /// The check of the rate against the latency, if it was possible.
    pub little: Option<Little>,
    /// The replies of the whole run.
    pub tally: Tally,
    /// The number of packet-ins still waiting when the run ended, while replies kept arriving.
    pub unanswered: u64,
    /// Connections that ended early.
    pub closed: Vec<Closed>,
    /// The resources used by the load threads.
    pub load: LoadUse,
    /// The resources used by the controller's process, if it is on this machine.
    pub controller: Option<Usage>,
    /// The controller's CPU time per answered packet-in, in microseconds: seconds per million.
    pub controller_cpu_us: Option<f64>,
    /// The energy used by the machine's processors per million answered packet-ins.
    pub joules_per_million: Option<f64>,
    /// The bottleneck of the run.
    pub bottleneck: Bottleneck,
    /// The bottleneck as a sentence.
    pub verdict: String,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Ended {
    /// It ended after its last test.
    Complete,
    /// It was interrupted.
    Interrupted,
    /// The controller had closed all connections.
    AllClosed,
}

/// The settings of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Setup {
    /// The controller's address.
    pub controller: String,
    /// `ping-pong`, `max-rate`, `window N` or `rate R`.
    pub mode: String,
    /// The limit on packet-ins outstanding over all switches, if there was one.
    pub most_outstanding: Option<u32>,
    /// The OpenFlow version.
    pub openflow: &'static str,
    /// The number of requested switches.
    pub switches: u32,
    /// The number of switches that completed their handshake.
    pub switches_ready: u32,
    /// The first datapath id.
    pub dpid_offset: u64,
    /// The number of source MACs per switch.
    pub macs: u32,
    /// The kind and order of addresses: `in-turn`, `random` or `zipf`.
    pub addresses: &'static str,
    /// The kinds of frame, which are sent in rotation.
    pub frames: Vec<&'static str>,
    /// The length of each packet-in's frame, in bytes.
    pub frame_bytes: usize,
    /// The number of load threads.
    pub threads: usize,
    /// The cores to which they were pinned.
    pub cores: Vec<usize>,
    /// Whether replies were checked.
    pub verify: bool,
    /// The accepted replies: `learning` or `any`.
    pub expect: &'static str,
    /// Whether destinations were announced.
    pub learn_dst_macs: bool,
    /// The length of a test in seconds.
    pub test_s: f64,
    /// The number of tests, including warm-up and cool-down.
    pub tests: u32,
    /// The number of warm-up tests.
    pub warmup: u32,
    /// The number of cool-down tests.
    pub cooldown: u32,
}

/// A test of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Test {
    /// The number of the test, from 0.
    pub index: u32,
    /// Whether it counts, because it is neither warm-up nor cool-down.
    pub counted: bool,
    /// Whether the run was interrupted during it. Then it only counts for the rate if no whole test does.
    pub cut_short: bool,
    /// The real duration.
    pub elapsed_s: f64,
    /// The number of packet-ins answered, for each switch.
    pub answered: Vec<u64>,
    /// The number of packet-ins answered per second, for all switches together.
    pub responses_per_s: f64,
    /// The number of flow mods and packet-outs received per second.
    pub messages_per_s: f64,
}

/// A connection that ended early.
#[derive(Clone, Debug, Serialize)]
pub struct Closed {
    /// The datapath id of the switch.
    pub datapath_id: String,
    /// The reason, as a clause.
    pub reason: String,
}

/// The time from packet-in to reply, in microseconds.
#[derive(Clone, Debug, Serialize)]
pub struct Latency {
    /// The number of measured replies.
    pub count: u64,
    /// The shortest time.
    pub min_us: f64,
    /// The arithmetic mean, computed exactly.
    pub mean_us: f64,
    /// The standard deviation.
    pub stdev_us: f64,
    /// The median; the following fields are other percentiles.
    pub p50_us: f64,
    /// See above.
    pub p90_us: f64,
    /// See above.
    pub p99_us: f64,
    /// See above.
    pub p999_us: f64,
    /// See above.
    pub p9999_us: f64,
    /// The longest time.
    pub max_us: f64,
    /// Points of the cumulative distribution: a latency, and the share of replies up to it.
    pub cdf: Vec<(f64, f64)>,
}

/// The resources used by the load threads.
#[derive(Clone, Debug, Serialize)]
pub struct LoadUse {
    /// How each thread used its time.
    pub threads: Vec<Busy>,
    /// The CPU time of all threads per answered packet-in, in microseconds.
    pub cpu_us: f64,
    /// The average delay, in microseconds, with which packet-ins were sent because the load threads woke up late. It is a part of
    /// the latency that is not the controller's. Only for a fixed rate.
    pub late_us: Option<f64>,
    /// The number of calls of `send` for packet-ins.
    pub sends: u64,
    /// The number of those calls whose data the socket did not accept completely, because the controller was behind.
    pub blocked_sends: u64,
}

/// The raw results of a run.
pub(crate) struct Found {
    pub ended: Ended,
    /// The number of switches that completed their handshake.
    pub switches_ready: u32,
    pub tests: Vec<Test>,
    pub closed: Vec<Closed>,
    pub outcomes: Vec<Outcome>,
    pub controller: Option<Usage>,
}

impl Test {
    /// Combines the threads' parts of a test.
    pub(crate) fn new(index: u32, counted: bool, parts: Vec<TestPart>) -> Self {
        let longest_ns = parts.iter().map(|part| part.elapsed_ns).max().unwrap_or(0);
        let per_s = |count: fn(&TestPart) -> u64| {
            let rates = parts
                .iter()
                .map(|part| count(part) as f64 * 1e9 / part.elapsed_ns.max(1) as f64);
            rates.sum()
        };
        Self {
            index,
            counted,
            cut_short: parts.iter().any(|part| part.run == TestRun::CutShort),
            elapsed_s: longest_ns as f64 / 1e9,
            responses_per_s: per_s(|part| part.answered.iter().sum()),
            messages_per_s: per_s(|part| part.messages),
            answered: parts.into_iter().flat_map(|part| part.answered).collect(),
        }
    }
}

impl Latency {
    fn new(histogram: &Histogram<u64>, sum_ns: u128) -> Option<Self> {
        let us = |ns: u64| ns as f64 / 1e3;
        let quantile = |q| us(histogram.value_at_quantile(q));
        let count = histogram.len();
        if count == 0 {
            return None;
        }
        let cdf = histogram
            .iter_quantiles(8)
            .map(|step| (us(step.value_iterated_to()), step.quantile_iterated_to()));
        Some(Self {
            count,
            min_us: us(histogram.min()),
            mean_us: sum_ns as f64 / count as f64 / 1e3,
            stdev_us: histogram.stdev() / 1e3,
            p50_us: quantile(0.5),
            p90_us: quantile(0.9),
            p99_us: quantile(0.99),
            p999_us: quantile(0.999),
            p9999_us: quantile(0.9999),
            max_us: us(histogram.max()),
            cdf: cdf.collect(),
        })
    }
}

impl Setup {
    fn new(config: &LoadConfig, switches_ready: u32) -> Self {
        Self {
            controller: config.controller.to_string(),
            mode: mode_name(config.mode),
            most_outstanding: config.most_outstanding,
            openflow: config.version.name(),
            switches: config.switches,
            switches_ready,
            dpid_offset: config.dpid_offset,
            macs: config.macs,
            addresses: config.addresses.name(),
            frames: config.frames.iter().map(|kind| kind.name()).collect(),
            frame_bytes: config.frame_len,
            threads: config.threads,
            cores: config.cores.clone(),
            verify: config.verify,
            expect: match config.expect {
                Expect::Learning => "learning",
                Expect::Any => "any",
            },
            learn_dst_macs: config.learn_dst_macs,
            test_s: config.test_length.as_secs_f64(),
            tests: config.tests,
            warmup: config.warmup,
            cooldown: config.cooldown,
        }
    }
}

fn mode_name(mode: Mode) -> String {
    match mode {
        Mode::PingPong => "ping-pong".to_owned(),
        Mode::MaxRate => "max-rate".to_owned(),
        Mode::Window(window) => format!("window {window}"),
        Mode::Rate(rate) => format!("rate {rate}"),
    }
}

impl Report {
    /// Computes the report from the threads' results.
    pub(crate) fn new(config: &LoadConfig, found: Found) -> Self {
        let Found {
            ended,
            switches_ready,
            tests,
            closed,
            outcomes,
            controller,
        } = found;
        let counted: Vec<&Test> = tests.iter().filter(|test| test.counted).collect();
        let rated = rated(&tests);
        let spread = |rate: fn(&Test) -> f64| {
            Spread::of(&rated.iter().map(|test| rate(test)).collect::<Vec<_>>())
        };
        let responses_per_s = spread(|test| test.responses_per_s);
        let elapsed_s: f64 = counted.iter().map(|test| test.elapsed_s).sum();
        let answered: u64 = counted.iter().flat_map(|test| &test.answered).sum();
        let switch_responses_per_s = switch_rates(&counted, elapsed_s);
        let sums = Sums::of(&outcomes);
        let latency = Latency::new(&sums.latency, sums.latency_sum_ns);
        let controller_busy = controller.as_ref().map(Usage::busy);
        let kept_schedule = matches!(config.mode, Mode::Rate(rate)
            if responses_per_s.mean >= 0.99 * rate * f64::from(switches_ready));
        let bottleneck = if answered == 0 {
            Bottleneck::NoAnswers
        } else {
            Bottleneck::find(sums.busiest, controller_busy, kept_schedule)
        };
        // These are ratios of rates, since CPU time and answers are not measured over exactly the same time.
        let rate = responses_per_s.mean;
        let per_answer = |per_s: f64| if rate > 0.0 { per_s * 1e6 / rate } else { 0.0 };
        Self {
            urtica: env!("CARGO_PKG_VERSION"),
            setup: Setup::new(config, switches_ready),
            ended,
            responses_per_s,
            messages_per_s: spread(|test| test.messages_per_s),
            jain: jain(&switch_responses_per_s),
            switch_responses_per_s,
            little: latency.as_ref().map(|latency| {
                Little::new(
                    sums.outstanding,
                    answered as f64,
                    elapsed_s.max(1e-9),
                    latency.mean_us / 1e6,
                )
            }),
            latency,
            tally: sums.tally,
            unanswered: sums.unanswered,
            closed,
            load: LoadUse {
                cpu_us: per_answer(sums.threads.iter().map(|busy| busy.ran).sum()),
                threads: sums.threads,
                late_us: (sums.due > 0).then(|| sums.late_ns as f64 / sums.due as f64 / 1e3),
                sends: sums.sends,
                blocked_sends: sums.blocked_sends,
            },
            controller_cpu_us: controller.as_ref().map(|usage| per_answer(usage.cores)),
            joules_per_million: controller
                .as_ref()
                .and_then(|usage| Some(per_answer(usage.joules? / usage.elapsed_s))),
            controller,
            bottleneck,
            verdict: bottleneck.sentence(sums.busiest, controller_busy),
            tests,
        }
    }

    /// Returns the report if the run was complete and had answers; otherwise the reason why it is not meaningful.
    pub fn whole(self) -> Result<Self, &'static str> {
        match self.ended {
            Ended::AllClosed => Err("the controller closed all connections"),
            _ if self.has_no_answers() => Err("the controller answered no packet-in"),
            _ => Ok(self),
        }
    }

    /// Returns `true` if the load generator was busy all the time and the controller was not, so that the controller can do more
    /// than was measured.
    pub fn was_load_bound(&self) -> bool {
        self.bottleneck == Bottleneck::Load
    }

    /// Returns the number of wrong, repeated and lost answers, plus that of missing answers when the run ended normally.
    pub fn faults(&self) -> u64 {
        let owed = if self.ended == Ended::Interrupted {
            0
        } else {
            self.unanswered
        };
        self.tally.faults() + owed
    }

    /// Returns `true` if replies were checked and faults found.
    pub fn failed_verification(&self) -> bool {
        self.setup.verify && self.faults() > 0
    }

    /// Returns `true` if no packet-in was answered in the tests that count.
    pub fn has_no_answers(&self) -> bool {
        self.bottleneck == Bottleneck::NoAnswers
    }

    /// Returns the number of tests from which the rate is computed.
    pub fn rated_tests(&self) -> usize {
        rated(&self.tests).len()
    }
}

/// Returns the tests from which the rate is computed: those that count and were not cut short, or else the one that was.
fn rated(tests: &[Test]) -> Vec<&Test> {
    let counted = || tests.iter().filter(|test| test.counted);
    let whole: Vec<_> = counted().filter(|test| !test.cut_short).collect();
    if whole.is_empty() {
        counted().collect()
    } else {
        whole
    }
}

fn switch_rates(counted: &[&Test], elapsed_s: f64) -> Vec<f64> {
    let switches = counted.first().map_or(0, |test| test.answered.len());
    let answered = |switch: usize| {
        counted
            .iter()
            .map(|test| test.answered[switch])
            .sum::<u64>()
    };
    (0..switches)
        .map(|switch| answered(switch) as f64 / elapsed_s.max(1e-9))
        .collect()
}

/// The totals of all threads.
struct Sums {
    tally: Tally,
    latency: Histogram<u64>,
    latency_sum_ns: u128,
    outstanding: f64,
    unanswered: u64,
    threads: Vec<Busy>,
    busiest: Busy,
    late_ns: u128,
    due: u64,
    sends: u64,
    blocked_sends: u64,
}

impl Sums {
    fn of(outcomes: &[Outcome]) -> Self {
        let mut sums = Self {
            tally: Tally::default(),
            latency: latency_histogram(),
            latency_sum_ns: 0,
            outstanding: 0.0,
            unanswered: 0,
            threads: Vec::new(),
            busiest: Busy::default(),
            late_ns: 0,
            due: 0,
            sends: 0,
            blocked_sends: 0,
        };
        for outcome in outcomes {
            let recording = &outcome.recording;
            let elapsed_ns = recording.elapsed_ns.max(1) as f64;
            sums.tally += outcome.tally;
            sums.latency
                .add(&recording.latency)
                .expect("histograms with the same bounds");
            sums.latency_sum_ns += recording.latency_sum_ns;
            sums.outstanding += recording.waiting_ns as f64 / elapsed_ns;
            sums.unanswered += outcome.unanswered;
            let busy = Busy {
                ran: recording.sched.run_ns as f64 / elapsed_ns,
                waited: recording.sched.wait_ns as f64 / elapsed_ns,
            };
            sums.busiest = if busy.total() > sums.busiest.total() {
                busy
            } else {
                sums.busiest
            };
            sums.threads.push(busy);
            sums.late_ns += recording.late_ns;
            sums.due += recording.due;
            sums.sends += outcome.sends;
            sums.blocked_sends += outcome.blocked_sends;
        }
        sums
    }
}

/// Returns a report with a value for each field, for tests of its forms.
#[cfg(test)]
pub(crate) fn sample() -> Report {
    use crate::recorder::Recorder;

    let config = LoadConfig {
        switches: 2,
        tests: 3,
        verify: true,
        ..LoadConfig::default()
    };
    let answered = [(0, 50), (1, 100), (2, 200)];
    let tests = answered.map(|(index, each)| {
        Test::new(
            index,
            index > 0,
            vec![TestPart {
                answered: vec![each, each],
                messages: 2 * each,
                elapsed_ns: 1_000_000_000,
                run: TestRun::Whole,
            }],
        )
    });
    let mut recorder = Recorder::new();
    recorder.add_waiting(2, 0);
    recorder.begin(0);
    (1..=600).for_each(|us| recorder.record(us * 1000, 1));
    let outcome = Outcome {
        tally: Tally {
            answered: 700,
            flow_mods: 700,
            lost: 3,
            ..Tally::default()
        },
        recording: recorder.end(2_000_000_000),
        sends: 700,
        blocked_sends: 1,
        unanswered: 2,
    };
    let controller = Usage {
        pid: 42,
        name: "a <controller>".to_owned(),
        elapsed_s: 2.0,
        user_s: 0.2,
        kernel_s: 0.6,
        cores: 0.4,
        cores_allowed: 1,
        busiest_thread: 0.4,
        busiest_thread_waited: 0.0,
        busy_threads: 1,
        rss_bytes: 3 << 20,
        joules: Some(20.0),
    };
    let closed = vec![Closed {
        datapath_id: "0000000000000002".to_owned(),
        reason: "closed by the controller".to_owned(),
    }];
    Report::new(
        &config,
        Found {
            ended: Ended::Complete,
            switches_ready: 2,
            tests: tests.into(),
            closed,
            outcomes: vec![outcome],
            controller: Some(controller),
        },
    )
}
