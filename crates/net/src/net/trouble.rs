//! Faults of control channels and clocks.

use super::{Net, NetError};
use crate::SwitchId;
use std::time::Duration;

/// The end of a connection that is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LostEnd {
    /// The switch's end. The controller does not notice.
    OfSwitch,
    /// The controller's end. The switch notices when it sends something, as by a reset in TCP.
    OfController,
}

impl Net {
    /// Loses one end of a switch's connection without notifying the other: bytes in flight are lost, and so are bytes that the
    /// controller sends from then on. A switch that has lost its end reconnects later.
    ///
    /// # Errors
    /// [`NetError::NoSuchId`].
    pub fn lose_end(&mut self, switch: SwitchId, end: LostEnd) -> Result<(), NetError> {
        self.check_switch(switch)?;
        let channel = &mut self.channels[switch.place()];
        channel.clear();
        match end {
            LostEnd::OfSwitch => {
                let side = channel.controller_side.take();
                channel.half_open.extend(side.map(|side| side.id));
                self.drop_switch_side(switch, "its end was lost");
            }
            LostEnd::OfController => self.drop_controller_side(switch),
        }
        Ok(())
    }

    /// Limits the number of bytes per second that a switch reads from its control channel, like a busy switch; `None` removes
    /// the limit.
    ///
    /// # Errors
    /// [`NetError::NoSuchId`].
    pub fn set_read_rate(
        &mut self,
        switch: SwitchId,
        bytes_per_s: Option<u64>,
    ) -> Result<(), NetError> {
        self.check_switch(switch)?;
        self.channels[switch.place()].read_rate = bytes_per_s;
        Ok(())
    }

    /// Makes a switch's clock jump ahead, as after a suspend: to the switch, its peers seem to have been silent for that time.
    /// Not possible in a network with an external controller ([`Net::connect_to`]), which follows real time.
    ///
    /// # Errors
    /// [`NetError::NoSuchId`].
    pub fn jump_clock(&mut self, switch: SwitchId, by: Duration) -> Result<(), NetError> {
        self.check_switch(switch)?;
        self.nodes[switch.place()].ahead += by;
        Ok(())
    }

    /// Makes the controller's clock jump ahead.
    pub fn jump_controller_clock(&mut self, by: Duration) {
        self.jump_controller(by);
    }

    /// Returns the time of a switch's clock.
    pub(super) fn now_at(&self, switch: SwitchId) -> Duration {
        self.now() + self.nodes[switch.place()].ahead
    }
}
