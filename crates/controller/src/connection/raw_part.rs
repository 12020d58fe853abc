//! The state of a raw program at a switch that has joined.

use super::{Close, contain};
use crate::program_list::ProgramList;
use crate::xid_map::XidMap;
use crate::{Network, RawHandler, SwitchInfo};

/// A raw program's handler for a switch that has joined.
pub(super) struct RawPart {
    pub handler: Box<dyn RawHandler>,
    pub network: Network,
    pub map: XidMap,
}

impl RawPart {
    /// Creates the handler, if the controller has a raw program.
    pub fn start(programs: &ProgramList, info: &SwitchInfo) -> Option<Self> {
        let raw = programs.raw.as_ref()?;
        Some(Self {
            handler: raw.program.handler(info),
            network: raw.network.clone(),
            map: XidMap::default(),
        })
    }

    /// Drops the handler, which may panic in its destructor.
    pub fn drop_contained(self) -> Result<(), Close> {
        contain(|| {
            drop(self.handler);
            Ok(())
        })
    }
}
