//! The measured forms of the switch, which receive bursts of frames and forward them. One file per form.
//!
//! A form has two sides, which may run in two threads: the [`Forwarder`] on the measured core, and the [`Control`],
//! which changes the flow entries of forms that have any. Each form shares its pipeline between them in its own way.

mod bare;
mod limit;
mod pipeline;
mod plain;
mod rings;
mod shared;
mod whole;

use super::case::Case;
use super::replay::Replay;
use super::workload::PROBE_PORT;
use crate::Error;
use std::collections::BTreeMap;
use std::time::Duration;
use urtica_pipeline::Backend;
use urtica_wire::{ErrorCode, FlowMod, PortNo};

/// The time at which entries are loaded and deferred work on them is complete, by the switch's clock.
pub const SETTLED_AT: Duration = Duration::from_secs(3);

/// The interval at which a switch's time advances.
const TICK: Duration = Duration::from_millis(100);

/// The forwarding side of a form.
pub trait Forwarder: Send {
    /// Receives one burst, processes it and sends the results. `now` may be some bursts old.
    fn forward(&mut self, replay: &mut Replay, now: Duration) -> Sent;

    /// Like [`Self::forward`], but slower: returns each sent frame with its port, in order.
    fn departures(&mut self, replay: &mut Replay, now: Duration) -> Vec<Departure>;
}

/// A sent frame, and its port.
pub type Departure = (PortNo, Vec<u8>);

/// The side of a form that changes flow entries.
pub trait Control {
    /// Executes a flow mod, which applies to packets received some time later.
    ///
    /// # Errors
    /// The specification's error if the flow mod is refused, or if an earlier one has been refused since the last call.
    fn flow_mod(&mut self, flow_mod: &FlowMod<'_>, now: Duration) -> Result<(), ErrorCode>;

    /// Returns the number of packets that the flow entries have matched, by cookie.
    fn matched(&self) -> BTreeMap<u64, u64>;
}

/// The results for the frames of a burst.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Frames sent by any port but [`PROBE_PORT`].
    pub out: u32,
    /// Frames sent by [`PROBE_PORT`].
    pub probe: u32,
    /// The number of received frames that the compiled form left to the plain form.
    pub plain: u32,
}

impl Sent {
    /// Returns the frames sent since `before` was read; counters wrap.
    fn since(self, before: Self) -> Self {
        Self {
            out: self.out.wrapping_sub(before.out),
            probe: self.probe.wrapping_sub(before.probe),
            plain: self.plain.wrapping_sub(before.plain),
        }
    }

    /// Counts a frame sent by this port.
    fn count(&mut self, port: PortNo) {
        match port.0 {
            PROBE_PORT => self.probe += 1,
            _ => self.out += 1,
        }
    }
}

/// A way to forward packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "args", derive(clap::ValueEnum))]
#[non_exhaustive]
pub enum Form {
    /// The whole switch: frames from the receive ring of one port through the tables to the send rings of others
    Switch,
    /// These ports without a switch: each frame is copied from one ring to the other
    Limit,
    /// The compiled pipeline alone, as machine code: no ports, frames counted and not sent
    #[cfg_attr(feature = "args", value(alias = "compiled"))]
    Pipeline,
    /// The compiled pipeline's templates, interpreted step by step: no ports
    Interpreted,
    /// The pipeline's reference model, table by table and action by action: no ports
    Plain,
    /// No pipeline and no ports: frames received as for 'pipeline', Ethernet addresses swapped, counted
    Bare,
}

impl Form {
    /// Returns its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Switch => "switch",
            Self::Limit => "limit",
            Self::Pipeline => "pipeline",
            Self::Interpreted => "interpreted",
            Self::Plain => "plain",
            Self::Bare => "bare",
        }
    }

    /// Creates both sides, with a case's entries loaded; without a control side if there are no entries.
    ///
    /// # Errors
    /// [`Error`] if an entry is refused, or memory cannot be allocated.
    pub(crate) fn open(self, case: &Case, loading: Loading) -> Result<Sides, Error> {
        match self {
            Self::Switch => whole::open(case, loading),
            Self::Limit => limit::open(case),
            Self::Pipeline => pipeline::open(case, loading, Backend::MachineCode),
            Self::Interpreted => pipeline::open(case, loading, Backend::Interpreter),
            Self::Plain => plain::open(case),
            Self::Bare => bare::open(case),
        }
    }
}

/// A way to load entries into a switch before the measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "args", derive(clap::ValueEnum))]
#[non_exhaustive]
pub enum Loading {
    /// Each by its own flow mod, which is in effect before the next, as from controllers
    #[default]
    OneByOne,
    /// All before the tables are compiled for the first time
    Together,
}

impl Loading {
    /// Returns its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::OneByOne => "one-by-one",
            Self::Together => "together",
        }
    }
}

/// Both sides of a form.
pub struct Sides {
    /// The side that forwards.
    pub forwarder: Box<dyn Forwarder>,
    /// The side that changes entries, if there are any.
    pub control: Option<Box<dyn Control>>,
}

#[cfg(test)]
mod tests {
    use super::super::workload::{OUT_PORT, PROBE_ROUTE, Trace, Workload, route_entry};
    use super::*;
    use urtica_wire::FlowModCommand;

    #[test]
    fn probes_leave_by_the_port_of_their_route() {
        for workload in Workload::ALL {
            let case = Case::of(workload, 10, Trace::Uniform).unwrap();
            let (Some(table), Some(probe)) = (case.route_table, case.probe) else {
                continue;
            };
            for form in [Form::Plain, Form::Switch] {
                let sides = form.open(&case, Loading::default()).unwrap();
                let (mut forwarder, mut control) = (sides.forwarder, sides.control.unwrap());
                for (out_port, expected) in [(OUT_PORT, (32, 0)), (PROBE_PORT, (31, 1))] {
                    let entry = route_entry(PROBE_ROUTE, table, out_port);
                    let flow_mod = FlowMod::parse(FlowModCommand::Add, &entry).unwrap();
                    control.flow_mod(&flow_mod, SETTLED_AT).unwrap();
                    let mut replay = Replay::with_probe(&case.cells, &probe);
                    let sent = forwarder.forward(&mut replay, SETTLED_AT);
                    assert_eq!((sent.out, sent.probe), expected, "{workload}, {form:?}");
                }
            }
        }
    }

    #[test]
    fn entries_are_complete_if_loaded_together_or_one_by_one() {
        let case = Case::of(Workload::Lb, 100, Trace::Uniform).unwrap();
        for form in [Form::Switch, Form::Pipeline, Form::Interpreted] {
            for loading in [Loading::OneByOne, Loading::Together] {
                let mut sides = form.open(&case, loading).unwrap();
                let sent = sides
                    .forwarder
                    .forward(&mut Replay::new(&case.cells), SETTLED_AT);
                let expected = Sent {
                    out: 32,
                    ..Sent::default()
                };
                assert_eq!(sent, expected, "{form:?}, {loading:?}");
            }
        }
    }
}
