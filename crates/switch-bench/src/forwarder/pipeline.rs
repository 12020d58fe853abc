//! The compiled pipeline alone: [`Reader::process`] on the measured core, while the control side owns the pipeline.
//!
//! There are no ports: a frame is copied into the burst, and its verdict counted. The two sides share no lock, except
//! for frames that the compiled form leaves to the plain form, which runs under the pipeline's lock as in a whole
//! switch.

use super::shared::{Departures, Shared, empty, load, settle};
use super::{Departure, Forwarder, Loading, Sent, Sides};
use crate::Error;
use crate::case::Case;
use crate::replay::Replay;
use crate::workload::{FRAME_SIZE, IN_PORT};
use std::sync::Arc;
use std::time::Duration;
use urtica_pipeline::{
    Backend, Burst, CompileConfig, Compiled, Packet, Pipeline, Reader, Sink, Verdict,
};
use urtica_wire::PortNo;

/// Creates both sides of a pipeline with a case's entries.
///
/// # Errors
/// If an entry is refused, or memory for the compiled form cannot be allocated.
pub fn open(case: &Case, loading: Loading, backend: Backend) -> Result<Sides, Error> {
    let mut pipeline = empty(case);
    let compiled = match loading {
        Loading::OneByOne => {
            let compiled = compile(&mut pipeline, backend)?;
            load(case, &mut pipeline)?;
            compiled
        }
        Loading::Together => {
            load(case, &mut pipeline)?;
            compile(&mut pipeline, backend)?
        }
    };
    settle(&mut pipeline);
    let pipeline = Shared::new(pipeline);
    let forwarder = Alone {
        reader: compiled.reader(),
        burst: Burst::new(),
        pipeline: pipeline.clone(),
    };
    Ok(Sides {
        forwarder: Box::new(forwarder),
        control: Some(Box::new(pipeline)),
    })
}

fn compile(pipeline: &mut Pipeline, backend: Backend) -> Result<Arc<Compiled>, Error> {
    let config = CompileConfig {
        backend,
        ..CompileConfig::default()
    };
    let compiled = pipeline.compile(config);
    // Misses are counted and dropped, as without a table-miss entry for a controller.
    compiled
        .inspect(|compiled| compiled.set_misses_punt(false))
        .map_err(Error::system("allocate memory for the compiled form"))
}

struct Alone {
    reader: Reader,
    burst: Burst,
    pipeline: Shared,
}

impl Forwarder for Alone {
    fn forward(&mut self, replay: &mut Replay, now: Duration) -> Sent {
        let mut sent = Sent::default();
        self.process(replay, now, &mut sent);
        sent
    }

    fn departures(&mut self, replay: &mut Replay, now: Duration) -> Vec<Departure> {
        let mut departures = Departures::default();
        self.process(replay, now, &mut departures);
        departures.0
    }
}

impl Alone {
    #[inline]
    fn process(&mut self, replay: &mut Replay, now: Duration, outcome: &mut impl Outcome) {
        replay.receive(|frame| {
            let is_taken = match frame.of_length::<FRAME_SIZE>() {
                Some(bytes) => self.burst.push(PortNo(IN_PORT), bytes),
                None => self.burst.push(PortNo(IN_PORT), frame.bytes()),
            };
            if !is_taken {
                // Send the earlier frames first.
                self.finish_burst(now, outcome);
                outcome.count_plain();
                let packet = Packet::new(PortNo(IN_PORT), frame.bytes());
                self.pipeline.read().process(packet, now, outcome);
            }
        });
        self.finish_burst(now, outcome);
    }

    #[inline]
    fn finish_burst(&mut self, now: Duration, outcome: &mut impl Outcome) {
        self.reader.process(&mut self.burst, now);
        for frame in self.burst.iter() {
            for sent in frame.sent() {
                match sent.port() {
                    Some(port) => outcome.send(port, sent.bytes()),
                    None => self.pipeline.read().send(sent, now, outcome),
                }
            }
            match frame.verdict() {
                Verdict::Output(port) => outcome.send(port, frame.bytes()),
                Verdict::Drop => {}
                Verdict::Punt => {
                    outcome.count_plain();
                    self.pipeline.read().resume(frame, now, outcome);
                }
            }
        }
        self.burst.clear();
    }
}

/// The output of frames of the compiled form, and of the plain form.
trait Outcome: Sink {
    fn send(&mut self, port: PortNo, frame: &[u8]);

    /// Counts a frame that the plain form processes.
    fn count_plain(&mut self);
}

impl Outcome for Sent {
    #[inline]
    fn send(&mut self, port: PortNo, _frame: &[u8]) {
        self.count(port);
    }

    fn count_plain(&mut self) {
        self.plain += 1;
    }
}

impl Outcome for Departures {
    fn send(&mut self, port: PortNo, frame: &[u8]) {
        self.0.push((port, frame.to_vec()));
    }

    fn count_plain(&mut self) {}
}
