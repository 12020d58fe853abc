//! Whether what leaves is what should leave: ports and bytes of a sample of frames, held against the plain form's.
//!
//! The plain form is the reference model of the pipeline's own differential tests. The bare loop has no pipeline; of its
//! frames the Ethernet addresses are to be swapped.

use super::forwarder::{Departure, Form, Forwarder};
use super::replay::{Cells, Replay};
use super::workload::{FRAME_SIZE, OUT_PORT, Workload};
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;
use urtica_bench::Error;
use urtica_wire::PortNo;

/// How many bursts are looked at.
const BURSTS: usize = 32;

/// The first frames of a workload, and what should become of them.
pub struct Sample {
    workload: Workload,
    cells: Arc<Cells>,
    expected: Vec<Departure>,
}

impl Sample {
    /// What the plain form makes of a workload's frames.
    ///
    /// # Errors
    /// A sentence where the pipeline does not take an entry.
    pub fn of(workload: Workload, cells: &Arc<Cells>) -> Result<Self, Error> {
        let mut reference = Form::Plain.open(workload)?;
        Ok(Self {
            workload,
            cells: Arc::clone(cells),
            expected: departures(&mut *reference.forwarder, cells),
        })
    }

    /// Holds what a form makes of the frames against what it should.
    ///
    /// # Errors
    /// A sentence on the first frame that leaves otherwise.
    pub fn check(&self, form: Form, forwarder: &mut dyn Forwarder) -> Result<(), Error> {
        let swapped;
        let expected = if form == Form::Limit {
            swapped = self.swapped();
            &swapped
        } else {
            &self.expected
        };
        let found = departures(forwarder, &self.cells);
        let frames = expected.len().max(found.len());
        let Some(first) = (0..frames).find(|&at| found.get(at) != expected.get(at)) else {
            return Ok(());
        };
        Err(Error::invalid(format!(
            "frame {first} of {} leaves the form {} as {}; expected {}: the form is wrong, and its figures mean nothing",
            self.workload,
            form.name(),
            told(found.get(first)),
            told(expected.get(first))
        )))
    }

    fn swapped(&self) -> Vec<Departure> {
        let (mut replay, mut swapped) = (Replay::new(&self.cells), Vec::new());
        for _ in 0..BURSTS {
            replay.receive(|cell| {
                let frame = &cell[..FRAME_SIZE];
                let frame = [&frame[6..12], &frame[..6], &frame[12..]].concat();
                swapped.push((PortNo(OUT_PORT), frame));
            });
        }
        swapped
    }
}

fn departures(forwarder: &mut dyn Forwarder, cells: &Arc<Cells>) -> Vec<Departure> {
    let mut replay = Replay::new(cells);
    let bursts = (0..BURSTS).flat_map(|_| forwarder.departures(&mut replay, Duration::ZERO));
    bursts.collect()
}

fn told(departure: Option<&Departure>) -> String {
    let Some((port, frame)) = departure else {
        return "nothing".to_owned();
    };
    let bytes = frame.iter().fold(String::new(), |mut hex, byte| {
        // Writing to a string does not fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    });
    format!("{bytes} by port {port}")
}

#[cfg(test)]
mod tests {
    use super::super::forwarder::Sent;
    use super::super::replay::BURST;
    use super::*;

    #[test]
    fn every_form_sends_what_it_should() {
        for workload in Workload::ALL {
            let cells = Arc::new(Cells::new(&workload.population(100)).unwrap());
            let sample = Sample::of(workload, &cells).unwrap();
            assert_eq!(sample.expected.len(), BURSTS * BURST, "{workload}");
            let by_out_port = |departure: &Departure| departure.0 == PortNo(OUT_PORT);
            assert!(sample.expected.iter().all(by_out_port), "{workload}");
            for form in [Form::Compiled, Form::Interpreted, Form::Limit] {
                let mut sides = form.open(workload).unwrap();
                let checked = sample.check(form, &mut *sides.forwarder);
                assert!(checked.is_ok(), "{checked:?}");
            }
        }
    }

    /// Sends all frames by the right port, as they came.
    struct Unchanged;

    impl Forwarder for Unchanged {
        fn forward(&mut self, _replay: &mut Replay, _now: Duration) -> Sent {
            Sent::default()
        }

        fn departures(&mut self, replay: &mut Replay, _now: Duration) -> Vec<Departure> {
            let mut departures = Vec::new();
            replay.receive(|cell| departures.push((PortNo(OUT_PORT), cell[..FRAME_SIZE].to_vec())));
            departures
        }
    }

    #[test]
    fn a_router_that_rewrites_nothing_is_found_out() {
        let cells = Arc::new(Cells::new(&Workload::Gateway.population(10)).unwrap());
        let sample = Sample::of(Workload::Gateway, &cells).unwrap();
        let error = sample.check(Form::Compiled, &mut Unchanged).unwrap_err();
        let sentence = error.to_string();
        assert!(
            sentence.starts_with("frame 0 of gateway leaves the form compiled as "),
            "{sentence}"
        );
        assert!(sentence.contains(" by port 2; expected "), "{sentence}");
    }
}
