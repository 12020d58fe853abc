//! Figures that are computed from raw counts: spread, fairness, Little's law, and the bottleneck.

use serde::Serialize;

use crate::random::Random;

/// The spread of a series of measurements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Spread {
    /// The smallest value.
    pub min: f64,
    /// The median; the mean of the two middle values if their number is even.
    pub median: f64,
    /// The largest value.
    pub max: f64,
    /// The arithmetic mean.
    pub mean: f64,
    /// The standard deviation of the whole population, as cbench computes it.
    pub stdev: f64,
}

impl Spread {
    /// Computes the spread of `values`; all zero if there are none.
    pub fn of(values: &[f64]) -> Self {
        if values.is_empty() {
            return Self::default();
        }
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let count = sorted.len();
        let mean = sorted.iter().sum::<f64>() / count as f64;
        let variance = sorted
            .iter()
            .map(|value| (value - mean).powi(2))
            .sum::<f64>()
            / count as f64;
        Self {
            min: sorted[0],
            median: (sorted[(count - 1) / 2] + sorted[count / 2]) / 2.0,
            max: sorted[count - 1],
            mean,
            stdev: variance.sqrt(),
        }
    }
}

/// A comparison of two sides that were measured in pairs: the median of the pairs' ratios, and its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Ratio {
    /// The median.
    pub median: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
}

impl Ratio {
    /// Computes the ratio of the first of each pair to the second. Pairs with a zero were not measured; returns `None` if no
    /// others are left. The interval is computed by bootstrap, from many samples as large as the list of ratios, which are drawn
    /// from it with replacement.
    pub fn of(pairs: impl IntoIterator<Item = (f64, f64)>) -> Option<Self> {
        const DRAWS: usize = 2000;
        let measured = pairs
            .into_iter()
            .filter(|&(ours, its)| ours > 0.0 && its > 0.0);
        let ratios: Vec<f64> = measured.map(|(ours, its)| ours / its).collect();
        if ratios.is_empty() {
            return None;
        }
        let mut random = Random::new(ratios.len() as u64);
        let mut draw = || -> Vec<f64> {
            ratios
                .iter()
                .map(|_| ratios[random.below(ratios.len())])
                .collect()
        };
        let mut medians: Vec<f64> = (0..DRAWS).map(|_| Spread::of(&draw()).median).collect();
        medians.sort_by(f64::total_cmp);
        Some(Self {
            median: Spread::of(&ratios).median,
            low: medians[DRAWS / 40],
            high: medians[DRAWS - 1 - DRAWS / 40],
        })
    }
}

/// Computes Jain's fairness index: 1 if all values are equal, 1/n if one value has everything; 1 for no values or all zero.
pub fn jain(values: &[f64]) -> f64 {
    let sum: f64 = values.iter().sum();
    let squares: f64 = values.iter().map(|value| value * value).sum();
    if squares == 0.0 {
        1.0
    } else {
        sum * sum / (values.len() as f64 * squares)
    }
}

/// Little's law, applied to the benchmark's own figures: the mean number outstanding, counted continuously, must be the rate
/// times the mean latency, which is measured individually.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Little {
    /// The mean number of packet-ins outstanding.
    pub outstanding: f64,
    /// The number of packet-ins answered per second, times their mean latency.
    pub rate_times_latency: f64,
    /// The second divided by the first; near 1 if the figures are consistent.
    pub ratio: f64,
    /// Whether latencies were short enough, relative to the measured time, for the law to apply.
    pub steady: bool,
}

impl Little {
    /// Computes the check from the mean number outstanding, the packet-ins answered in `elapsed_s` seconds, and their mean
    /// latency.
    pub fn new(outstanding: f64, answered: f64, elapsed_s: f64, latency_s: f64) -> Self {
        let rate_times_latency = answered / elapsed_s * latency_s;
        let ratio = if outstanding > 0.0 {
            rate_times_latency / outstanding
        } else {
            1.0
        };
        Self {
            outstanding,
            rate_times_latency,
            ratio,
            steady: latency_s <= elapsed_s / 20.0,
        }
    }

    /// Returns `true` if both sides agree within a tenth.
    pub fn holds(&self) -> bool {
        (self.ratio - 1.0).abs() <= 0.1
    }
}

/// The bottleneck of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Bottleneck {
    /// The load generator: one of its threads was busy all the time, and the controller could do more.
    Load,
    /// The controller: its busiest thread was busy all the time.
    Controller,
    /// Both were busy all the time.
    Both,
    /// Neither: the time was spent on packets and wake-ups in transit.
    Latency,
    /// The schedule, which required no more.
    Schedule,
    /// Not the load generator, which was not busy; the controller's process is unknown.
    NotLoad,
    /// Unknown, since no packet-in was answered and there is no rate.
    NoAnswers,
}

/// The saturation from which a thread counts as busy all the time.
const BUSY: f64 = 0.9;

/// The share of time waiting for a core from which the figures depend on the machine's other load.
const DISTURBED: f64 = 0.1;

/// How a thread used its time, as shares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Busy {
    /// The share in which it ran.
    pub ran: f64,
    /// The share in which it waited for a core that another thread used.
    pub waited: f64,
}

impl Busy {
    /// Returns the share in which it had work to do.
    pub fn total(self) -> f64 {
        self.ran + self.waited
    }
}

impl Bottleneck {
    /// Determines the bottleneck from the busiest load thread, the controller if known, and whether a fixed rate was requested
    /// and achieved.
    pub fn find(load: Busy, controller: Option<Busy>, kept_schedule: bool) -> Self {
        let is_busy = |busy: Busy| busy.total() >= BUSY;
        match (is_busy(load), controller.map(is_busy)) {
            _ if kept_schedule => Self::Schedule,
            (true, Some(true)) => Self::Both,
            (true, _) => Self::Load,
            (false, Some(true)) => Self::Controller,
            (false, Some(false)) => Self::Latency,
            (false, None) => Self::NotLoad,
        }
    }

    /// Formats the verdict, with the figures on which it is based.
    pub fn sentence(self, load: Busy, controller: Option<Busy>) -> String {
        let percent = |share: f64| format!("{:.0} %", share * 100.0);
        let known = controller.map_or("unknown".to_owned(), |busy| percent(busy.total()));
        let verdict = match self {
            Self::Load => {
                "the load generator was the bottleneck: the controller can do more; add --threads"
            }
            Self::Controller => "the controller was the bottleneck",
            Self::Both => {
                "load and controller were both busy all the time: with more --threads the controller may do more"
            }
            Self::Latency => {
                "neither was busy: the rate is bound by latency, that is by wake-ups and the number outstanding"
            }
            Self::Schedule => "the controller kept up with the requested rate",
            Self::NotLoad => "the load generator was not the bottleneck",
            Self::NoAnswers => "the controller answered no packet-in, so nothing was measured",
        };
        let mut sentence = format!(
            "{verdict} (load busy {} of the time, controller {known})",
            percent(load.total())
        );
        let waited = controller.map_or(0.0, |busy| busy.waited).max(load.waited);
        if waited >= DISTURBED {
            sentence += &format!(
                "; but up to {} of the time it waited for a core that another thread used: give load and controller their own cores",
                percent(waited)
            );
        }
        sentence
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn spread_of_few() {
        let spread = Spread::of(&[4.0, 1.0, 3.0, 2.0]);
        assert_eq!(
            (spread.min, spread.median, spread.max, spread.mean),
            (1.0, 2.5, 4.0, 2.5)
        );
        assert!((spread.stdev - 1.25f64.sqrt()).abs() < 1e-12);
        assert_eq!(Spread::of(&[]), Spread::default());
    }

    #[test]
    fn ratio_is_of_pairs_and_not_of_medians() {
        // The medians are 10 and 10, but ours is faster in two rounds of three.
        let ratio = Ratio::of([(10.0, 5.0), (30.0, 15.0), (5.0, 10.0)]).unwrap();
        assert_eq!((ratio.median, ratio.low, ratio.high), (2.0, 0.5, 2.0));
        assert_eq!(Ratio::of([(1.0, 0.0), (0.0, 1.0)]), None);
        let steady = Ratio::of([(2.0, 1.0); 5]).unwrap();
        assert_eq!((steady.low, steady.high), (2.0, 2.0));
    }

    #[test]
    fn jain_of_the_extremes() {
        assert_eq!(jain(&[5.0, 5.0, 5.0]), 1.0);
        assert_eq!(jain(&[9.0, 0.0, 0.0]), 1.0 / 3.0);
        assert_eq!(jain(&[]), 1.0);
    }

    proptest! {
        #[test]
        fn jain_is_between_one_nth_and_one(values in proptest::collection::vec(0.0f64..1e6, 1..50)) {
            let index = jain(&values);
            prop_assert!(index <= 1.0 + 1e-9 && index >= 1.0 / values.len() as f64 - 1e-9);
        }
    }

    #[test]
    fn littles_law() {
        assert!(Little::new(10.0, 2000.0, 2.0, 0.0101).holds());
        assert!(!Little::new(10.0, 2000.0, 2.0, 0.02).holds());
        assert!(!Little::new(1000.0, 2000.0, 2.0, 1.0).steady);
    }

    #[test]
    fn verdicts() {
        let (idle, busy) = (
            Busy {
                ran: 0.3,
                waited: 0.0,
            },
            Busy {
                ran: 0.6,
                waited: 0.35,
            },
        );
        for (load, controller, kept_schedule, bottleneck) in [
            (busy, Some(idle), false, Bottleneck::Load),
            (busy, None, false, Bottleneck::Load),
            (idle, Some(busy), false, Bottleneck::Controller),
            (busy, Some(busy), false, Bottleneck::Both),
            (idle, Some(idle), false, Bottleneck::Latency),
            (idle, None, false, Bottleneck::NotLoad),
            (idle, Some(idle), true, Bottleneck::Schedule),
        ] {
            assert_eq!(
                Bottleneck::find(load, controller, kept_schedule),
                bottleneck
            );
        }
        let sentence = Bottleneck::Latency.sentence(idle, Some(idle));
        assert!(
            sentence.ends_with("(load busy 30 % of the time, controller 30 %)"),
            "{sentence}"
        );
        assert!(
            Bottleneck::Load
                .sentence(busy, None)
                .contains("35 % of the time it waited for a core")
        );
    }
}
