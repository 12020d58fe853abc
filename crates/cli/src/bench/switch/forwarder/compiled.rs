//! The compiled form: [`Reader::process`] on the measured core, while the control side has the pipeline to itself.
//!
//! The two share no lock. A frame that the compiled form does not forward itself is not sent: no workload has such
//! frames, and the share of frames sent is checked.

use super::{Control, Departure, Forwarder, Sent, Sides};
use crate::bench::switch::replay::Replay;
use crate::bench::switch::workload::{FRAME_SIZE, IN_PORT};
use std::time::Duration;
use urtica_bench::Error;
use urtica_pipeline::{Backend, Burst, CompileConfig, Pipeline, Reader, Verdict};
use urtica_wire::{ErrorCode, FlowMod, PortNo};

/// Both sides of a pipeline.
///
/// # Errors
/// What the system says where it has no memory for the compiled form.
pub fn open(mut pipeline: Pipeline, backend: Backend) -> Result<Sides, Error> {
    let config = CompileConfig {
        backend,
        ..CompileConfig::default()
    };
    let compiled = pipeline.compile(config).map_err(|error| {
        Error::invalid(format!("there is no memory for the compiled form: {error}"))
    })?;
    let forwarder = Compiled {
        reader: compiled.reader(),
        burst: Burst::new(),
    };
    Ok(Sides {
        forwarder: Box::new(forwarder),
        control: Some(Box::new(pipeline)),
    })
}

struct Compiled {
    reader: Reader,
    burst: Burst,
}

impl Forwarder for Compiled {
    fn forward(&mut self, replay: &mut Replay, now: Duration) -> Sent {
        self.burst.clear();
        replay.receive(|cell| {
            self.burst.push(PortNo(IN_PORT), &cell[..FRAME_SIZE]);
        });
        self.reader.process(&mut self.burst, now);
        let mut sent = Sent::default();
        for frame in self.burst.iter() {
            if let Verdict::Output(port) = frame.verdict() {
                sent.count(port);
            }
        }
        sent
    }

    fn departures(&mut self, replay: &mut Replay, now: Duration) -> Vec<Departure> {
        self.forward(replay, now);
        let frames = self.burst.iter();
        frames
            .filter_map(|frame| match frame.verdict() {
                Verdict::Output(port) => Some((port, frame.bytes().to_vec())),
                _ => None,
            })
            .collect()
    }
}

impl Control for Pipeline {
    fn flow_mod(&mut self, flow_mod: &FlowMod<'_>, now: Duration) -> Result<(), ErrorCode> {
        Pipeline::flow_mod(self, flow_mod, now, &mut Vec::new())
    }
}
