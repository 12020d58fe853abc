//! `urtica._native`: control programs in Python, and networks in the process. `python/urtica` wraps it.
//!
//! A program in Python is a callable that makes a handler for each switch; [`program`] calls it like any program. The arguments
//! of a handler are copied ([`message`]) or lent for the duration of the call ([`switch`]). Matches, actions and entries are
//! texts in `ovs-ofctl`'s form ([`text`]).
//!
//! [`raw`] is the exception: unchanged frames, for programs that implement OpenFlow themselves. In a simulated network such
//! programs run in [`turns`]. [`codec`] encodes and decodes the structures that they have as Python objects.

mod codec;
mod controller;
mod message;
mod net;
mod program;
mod raw;
mod report;
mod switch;
mod text;
mod turns;

use pyo3::prelude::*;

#[pymodule]
mod _native {
    #[pymodule_export]
    use super::codec::Codec;
    #[pymodule_export]
    use super::controller::{Network, Running};
    #[pymodule_export]
    use super::message::{ErrorMessage, FlowRemoved, PacketIn, Port, PortStatus, SwitchInfo};
    #[pymodule_export]
    use super::net::{Flow, Net};
    #[pymodule_export]
    use super::raw::{RawLink, RawRunning};
    #[pymodule_export]
    use super::report::{FlowReport, PingAllReport, PingReport};
    #[pymodule_export]
    use super::switch::Switch;

    use pyo3::prelude::*;
    use urtica::wire::PortNo;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("ALL", PortNo::ALL.0)?;
        module.add("CONTROLLER", PortNo::CONTROLLER.0)?;
        module.add("FLOOD", PortNo::FLOOD.0)?;
        module.add("IN_PORT", PortNo::IN_PORT.0)
    }
}
