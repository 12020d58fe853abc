//! What is measured: something that takes bursts of frames and forwards them. One file per form.
//!
//! A form has two sides, which may live on two threads: the [`Forwarder`] on the measured core, and, where its flow
//! entries can be changed, the [`Control`] that does so. How they share a pipeline is theirs to know.

mod compiled;
mod limit;
mod plain;

use super::replay::Replay;
use super::workload::{IN_PORT, OUT_PORT, Workload};
use clap::ValueEnum;
use std::time::Duration;
use urtica_bench::Error;
use urtica_pipeline::{Backend, Pipeline, PipelineConfig};
use urtica_wire::{ErrorCode, FlowMod, FlowModCommand, MacAddr, Port, PortNo};

/// The port by which probes leave every other time.
pub const PROBE_PORT: u32 = 3;

/// The side that forwards.
pub trait Forwarder: Send {
    /// Takes in one burst, takes it through the pipeline and sends what comes of it. `now` may be some bursts old.
    fn forward(&mut self, replay: &mut Replay, now: Duration) -> Sent;

    /// The same, slowly: each frame that is sent, with its port, in order.
    fn departures(&mut self, replay: &mut Replay, now: Duration) -> Vec<Departure>;
}

/// A frame that left, and its port.
pub type Departure = (PortNo, Vec<u8>);

/// The side that changes flow entries.
pub trait Control {
    /// Carries out a flow mod; packets taken in some time after obey it.
    ///
    /// # Errors
    /// The specification's error where it is refused.
    fn flow_mod(&mut self, flow_mod: &FlowMod<'_>, now: Duration) -> Result<(), ErrorCode>;
}

/// How many frames of a burst were sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// By [`OUT_PORT`].
    pub out: u32,
    /// By [`PROBE_PORT`].
    pub probe: u32,
}

impl Sent {
    /// One more, by this port.
    fn count(&mut self, port: PortNo) {
        match port.0 {
            OUT_PORT => self.out += 1,
            PROBE_PORT => self.probe += 1,
            _ => {}
        }
    }
}

/// How packets are forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// The compiled pipeline, as machine code
    Compiled,
    /// The compiled pipeline's templates, gone through step by step
    Interpreted,
    /// Table by table and action by action, as the pipeline's reference model does
    Plain,
    /// No pipeline: received the same way, Ethernet addresses swapped, sent
    Limit,
}

impl Form {
    /// The name that it has on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Compiled => "compiled",
            Self::Interpreted => "interpreted",
            Self::Plain => "plain",
            Self::Limit => "limit",
        }
    }

    /// Both sides, with a workload's entries loaded; no control where there is nothing to change.
    ///
    /// # Errors
    /// A sentence where the pipeline does not take an entry.
    pub fn open(self, workload: Workload) -> Result<Sides, Error> {
        match self {
            Self::Compiled => compiled::open(pipeline_of(workload)?, Backend::MachineCode),
            Self::Interpreted => compiled::open(pipeline_of(workload)?, Backend::Interpreter),
            Self::Plain => Ok(plain::open(pipeline_of(workload)?)),
            Self::Limit => Ok(limit::open()),
        }
    }
}

/// Both sides of a form.
pub struct Sides {
    /// The one that forwards.
    pub forwarder: Box<dyn Forwarder>,
    /// The one that changes.
    pub control: Option<Box<dyn Control>>,
}

/// A pipeline with a workload's entries, and the ports of all workloads.
fn pipeline_of(workload: Workload) -> Result<Pipeline, Error> {
    let mut pipeline = Pipeline::new(PipelineConfig::default());
    for number in [IN_PORT, OUT_PORT, PROBE_PORT] {
        let hw_addr = MacAddr::from_u64(0x0200_0000_ff00 | u64::from(number));
        let name = format!("port{number}");
        pipeline.set_port(Port::new(PortNo(number), hw_addr, &name));
    }
    for entry in workload.entries() {
        let refused = |reason: String| {
            Error::invalid(format!("the pipeline does not take '{entry}': {reason}"))
        };
        let flow_mod = FlowMod::parse(FlowModCommand::Add, &entry)
            .map_err(|error| refused(error.to_string()))?;
        pipeline
            .flow_mod(&flow_mod, Duration::ZERO, &mut Vec::new())
            .map_err(|error| refused(error.to_string()))?;
    }
    Ok(pipeline)
}

#[cfg(test)]
mod tests {
    use super::super::replay::Cells;
    use super::super::workload::{PROBE_ROUTE, route_entry};
    use super::*;
    use std::sync::Arc;

    #[test]
    fn probes_leave_by_the_port_of_their_route() {
        for workload in Workload::ALL {
            let (Some(table), Some(probe)) = (workload.route_table(), workload.probe()) else {
                continue;
            };
            let cells = Arc::new(Cells::new(&workload.population(10)).unwrap());
            let sides = Form::Plain.open(workload).unwrap();
            let (mut forwarder, mut control) = (sides.forwarder, sides.control.unwrap());
            for (out_port, expected) in [(OUT_PORT, (32, 0)), (PROBE_PORT, (31, 1))] {
                let entry = route_entry(PROBE_ROUTE, table, out_port);
                let flow_mod = FlowMod::parse(FlowModCommand::Add, &entry).unwrap();
                control.flow_mod(&flow_mod, Duration::ZERO).unwrap();
                let mut replay = Replay::with_probe(&cells, &probe);
                let sent = forwarder.forward(&mut replay, Duration::ZERO);
                assert_eq!((sent.out, sent.probe), expected, "{workload}");
            }
        }
    }
}
