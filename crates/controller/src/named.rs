//! A program with a name.

use crate::setting::SettingError;
use crate::{Background, Program, Stage, SwitchHandler, SwitchInfo};
use std::time::Instant;

/// A program with a name, for metrics.
///
/// ```
/// use urtica_controller::{Named, Program, SwitchInfo, on_packet};
/// use urtica_wire::PortNo;
///
/// let hub = |_: &SwitchInfo| on_packet(|switch, packet| switch.forward(packet, PortNo::FLOOD));
/// assert_eq!(Named::new("hub", hub).program_name(), Some("hub"));
/// ```
#[derive(Clone, Debug)]
pub struct Named<P> {
    name: String,
    program: P,
}

impl<P: Program> Named<P> {
    /// Gives a program this name.
    pub fn new(name: impl Into<String>, program: P) -> Self {
        Self {
            name: name.into(),
            program,
        }
    }
}

impl<P: Program> Program for Named<P> {
    fn handler(&self, info: &SwitchInfo) -> Box<dyn SwitchHandler> {
        self.program.handler(info)
    }

    fn resume(
        &self,
        info: &SwitchInfo,
        held: urtica_hold::Id,
        started: Instant,
    ) -> Option<Box<dyn SwitchHandler>> {
        self.program.resume(info, held, started)
    }

    fn resume_for_all(
        &self,
        info: &SwitchInfo,
        held: urtica_hold::Id,
        started: Instant,
    ) -> Option<Box<dyn SwitchHandler>> {
        self.program.resume_for_all(info, held, started)
    }

    fn start(&self, background: &Background) {
        self.program.start(background);
    }

    fn check(&self) -> Result<(), SettingError> {
        self.program.check()
    }

    fn program_name(&self) -> Option<&str> {
        Some(&self.name)
    }

    fn stage(&self) -> Stage {
        self.program.stage()
    }
}
