//! Checks the sent frames: their ports and bytes are compared with the plain form's.
//!
//! The plain form is the reference model of the pipeline's own differential tests. If the entries were made from rules, a
//! linear search over the rules finds the rule that each frame should match, to compare with the entries' counters.
//! Forms without a pipeline send the received frames; the bare form first swaps their Ethernet addresses.

use super::case::Case;
use super::forwarder::{Control, Departure, Form, Forwarder, Loading, SETTLED_AT, Sides};
use super::replay::{BURST, Cells, Replay};
use super::workload::{Header, OUT_PORT};
use crate::Error;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;
use urtica_wire::PortNo;

/// The number of bursts that are checked, unless all frames are.
const BURSTS: usize = 32;

/// The length to which ports pad shorter frames with zeros; forms without ports do not.
const SHORTEST: usize = 60;

/// Frames of a case, and their expected results.
pub struct Sample {
    name: String,
    cells: Arc<Cells>,
    bursts: usize,
    expected: Vec<Departure>,
    /// The number of packets that entries with each cookie should match, by a linear search over the rules.
    winners: Option<BTreeMap<u64, u64>>,
}

impl Sample {
    /// Returns the plain form's results for a case's frames: for the first, or for all.
    ///
    /// # Errors
    /// If the pipeline refuses an entry.
    pub fn of(case: &Case, checks_all: bool) -> Result<Self, Error> {
        let bursts = match checks_all {
            true => case.cells.count().div_ceil(BURST),
            false => BURSTS,
        };
        let mut reference = Form::Plain.open(case, Loading::default())?;
        Ok(Self {
            name: case.name.clone(),
            cells: Arc::clone(&case.cells),
            bursts,
            expected: departures(&mut *reference.forwarder, &case.cells, bursts, SETTLED_AT),
            winners: winners(case, bursts),
        })
    }

    /// Compares a form's results for the frames with the expected ones.
    ///
    /// # Errors
    /// The first frame with a different result, or a rule that did not match its frames.
    pub fn check(&self, form: Form, sides: &mut Sides, now: Duration) -> Result<(), Error> {
        let before = sides.control.as_ref().map(|control| control.matched());
        self.check_departures(form, &mut *sides.forwarder, now)?;
        match (&self.winners, &sides.control, before) {
            (Some(winners), Some(control), Some(before)) => {
                self.check_winners(form, winners, &**control, &before)
            }
            _ => Ok(()),
        }
    }

    fn check_departures(
        &self,
        form: Form,
        forwarder: &mut dyn Forwarder,
        now: Duration,
    ) -> Result<(), Error> {
        let as_received;
        let expected = match form {
            Form::Bare | Form::Limit => {
                as_received = self.as_received(form == Form::Bare);
                &as_received
            }
            _ => &self.expected,
        };
        let found = departures(forwarder, &self.cells, self.bursts, now);
        let frames = expected.len().max(found.len());
        let Some(first) = (0..frames).find(|&at| found.get(at) != expected.get(at)) else {
            return Ok(());
        };
        Err(Error::OtherFrame {
            case: self.name.clone(),
            form: form.name(),
            number: first,
            found: text_of(found.get(first)),
            expected: text_of(expected.get(first)),
        })
    }

    fn check_winners(
        &self,
        form: Form,
        winners: &BTreeMap<u64, u64>,
        control: &dyn Control,
        before: &BTreeMap<u64, u64>,
    ) -> Result<(), Error> {
        for (cookie, after) in control.matched() {
            let matched = after - before.get(&cookie).unwrap_or(&0);
            let expected = winners.get(&cookie).copied().unwrap_or(0);
            if matched != expected {
                return Err(Error::OtherRule {
                    case: self.name.clone(),
                    form: form.name(),
                    rule: cookie,
                    found: matched,
                    expected,
                });
            }
        }
        Ok(())
    }

    /// Returns the received frames, with their Ethernet addresses swapped if `swaps`.
    fn as_received(&self, swaps: bool) -> Vec<Departure> {
        let mut frames = received(&self.cells, self.bursts);
        if swaps {
            for frame in &mut frames {
                let (eth_dst, rest) = frame.split_at_mut(6);
                eth_dst.swap_with_slice(&mut rest[..6]);
            }
        }
        let padded = frames.into_iter().map(padded);
        padded.map(|frame| (PortNo(OUT_PORT), frame)).collect()
    }
}

fn received(cells: &Arc<Cells>, bursts: usize) -> Vec<Vec<u8>> {
    let (mut replay, mut frames) = (Replay::new(cells), Vec::new());
    for _ in 0..bursts {
        replay.receive(|frame| frames.push(frame.bytes().to_vec()));
    }
    frames
}

/// Returns the number of frames that each rule should match.
fn winners(case: &Case, bursts: usize) -> Option<BTreeMap<u64, u64>> {
    let rules = case.rules.as_ref()?;
    let mut winners = BTreeMap::new();
    for frame in received(&case.cells, bursts) {
        let winner = Header::of(&frame).and_then(|header| rules.find(&header));
        if let Some(number) = winner {
            *winners.entry(number as u64 + 1).or_default() += 1;
        }
    }
    Some(winners)
}

fn departures(
    forwarder: &mut dyn Forwarder,
    cells: &Arc<Cells>,
    bursts: usize,
    now: Duration,
) -> Vec<Departure> {
    let mut replay = Replay::new(cells);
    let bursts = (0..bursts).flat_map(|_| forwarder.departures(&mut replay, now));
    bursts
        .map(|(port_no, frame)| (port_no, padded(frame)))
        .collect()
}

fn padded(mut frame: Vec<u8>) -> Vec<u8> {
    frame.resize(frame.len().max(SHORTEST), 0);
    frame
}

fn text_of(departure: Option<&Departure>) -> String {
    let Some((port, frame)) = departure else {
        return "nothing".to_owned();
    };
    let bytes = frame.iter().fold(String::new(), |mut hex, byte| {
        // Writing to a string cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    });
    format!("{bytes} by port {port}")
}

#[cfg(test)]
mod tests {
    use super::super::forwarder::Sent;
    use super::super::workload::{Trace, Workload};
    use super::*;
    use urtica_wire::{ErrorCode, FlowMod};

    fn case(name: &str, flows: u32) -> Case {
        Case::of(name.parse().unwrap(), flows, Trace::Uniform).unwrap()
    }

    #[test]
    #[ignore = "takes long: make nightly"]
    fn every_form_sends_the_expected_frames() {
        for workload in Workload::ALL {
            let case = Case::of(workload, 100, Trace::Uniform).unwrap();
            let sample = Sample::of(&case, false).unwrap();
            assert_eq!(sample.expected.len(), BURSTS * BURST, "{workload}");
            let by_out_port = |departure: &Departure| departure.0 == PortNo(OUT_PORT);
            assert!(sample.expected.iter().all(by_out_port), "{workload}");
            for form in [
                Form::Switch,
                Form::Limit,
                Form::Pipeline,
                Form::Interpreted,
                Form::Bare,
            ] {
                let mut sides = form.open(&case, Loading::default()).unwrap();
                let checked = sample.check(form, &mut sides, SETTLED_AT);
                assert!(checked.is_ok(), "{checked:?}");
            }
        }
    }

    /// A switch that sends all frames unchanged by the right port, and matches no entry.
    struct Unchanged;

    impl Forwarder for Unchanged {
        fn forward(&mut self, _replay: &mut Replay, _now: Duration) -> Sent {
            Sent::default()
        }

        fn departures(&mut self, replay: &mut Replay, _now: Duration) -> Vec<Departure> {
            let mut departures = Vec::new();
            replay.receive(|frame| departures.push((PortNo(OUT_PORT), frame.bytes().to_vec())));
            departures
        }
    }

    impl Control for Unchanged {
        fn flow_mod(&mut self, _flow_mod: &FlowMod<'_>, _now: Duration) -> Result<(), ErrorCode> {
            Ok(())
        }

        fn matched(&self) -> BTreeMap<u64, u64> {
            (1..=1000).map(|cookie| (cookie, 0)).collect()
        }
    }

    fn refusal(case: &Case) -> String {
        let mut unchanged = Sides {
            forwarder: Box::new(Unchanged),
            control: Some(Box::new(Unchanged)),
        };
        let sample = Sample::of(case, false).unwrap();
        let checked = sample.check(Form::Pipeline, &mut unchanged, SETTLED_AT);
        checked.unwrap_err().to_string()
    }

    #[test]
    fn a_router_that_rewrites_nothing_is_detected() {
        let sentence = refusal(&case("gateway", 10));
        assert!(
            sentence.starts_with("frame 0 of gateway leaves the form pipeline as "),
            "{sentence}"
        );
        assert!(sentence.contains(" by port 2; expected "), "{sentence}");
    }

    #[test]
    fn a_classifier_that_finds_wrong_rules_is_detected() {
        let sentence = refusal(&case("ipc2-1k", 100));
        assert!(
            sentence.contains("met 0 frames in the form pipeline; a linear search expects"),
            "{sentence}"
        );
    }
}
