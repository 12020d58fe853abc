//! Distributions of packets over flows.

use super::python_random::PythonRandom;
use super::weighted::Weighted;
use super::{Frame, SEED};

/// The weight of the most frequent flow. The sum of all weights stays below 2^32 for the maximum number of flows.
const WEIGHT_MAX: u32 = 1 << 27;

/// A distribution of packets over flows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "args", derive(clap::ValueEnum))]
#[non_exhaustive]
pub enum Trace {
    /// Each flow as often as any other
    #[default]
    Uniform,
    /// By Zipf's law with skew 1: the n-th flow 1/n as often as the first
    Zipf,
}

impl Trace {
    /// Draws as many packets as `flows` contains.
    pub(crate) fn of(self, flows: Vec<Frame>) -> Vec<Frame> {
        match self {
            Self::Uniform => flows,
            Self::Zipf => zipf(&flows),
        }
    }

    /// Returns its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Zipf => "zipf",
        }
    }

    /// Returns the suffix of the name of a trace's file.
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Uniform => "",
            Self::Zipf => "-zipf",
        }
    }
}

fn zipf(flows: &[Frame]) -> Vec<Frame> {
    let mut random = PythonRandom::new(&format!("{SEED}/zipf-{}", flows.len()));
    let weights = (1..).map(|rank| WEIGHT_MAX / rank);
    let by_weight = Weighted::new(flows.iter().zip(weights));
    flows.iter().map(|_| *by_weight.draw(&mut random)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::MAX_FLOWS;
    use super::*;

    #[test]
    fn weights_fit_their_sum() {
        let all: u64 = (1..=MAX_FLOWS)
            .map(|rank| u64::from(WEIGHT_MAX / rank))
            .sum();
        assert!(u32::try_from(all).is_ok(), "{all}");
        assert_ne!(WEIGHT_MAX / MAX_FLOWS, 0);
    }

    #[test]
    fn the_nth_flow_is_an_nth_as_frequent() {
        let flows: Vec<Frame> = (0..10_000u16)
            .map(|number| {
                let mut frame = [0; 60];
                frame[..2].copy_from_slice(&number.to_be_bytes());
                frame
            })
            .collect();
        let trace = Trace::Zipf.of(flows.clone());
        assert_eq!(trace.len(), flows.len());
        let count = |number: usize| {
            trace
                .iter()
                .filter(|&frame| *frame == flows[number])
                .count()
        };
        // The first flow's expected count is 1,022: 10,000 packets over a harmonic sum of 9.8.
        assert!((900..1150).contains(&count(0)), "{}", count(0));
        assert!((80..130).contains(&count(9)), "{}", count(9));
        assert_eq!(Trace::Uniform.of(flows.clone()), flows);
    }
}
