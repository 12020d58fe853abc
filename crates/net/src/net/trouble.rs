//! Faults of control channels and clocks.

use super::{Net, NetError};
use crate::SwitchId;
use std::time::Duration;

/// Which end of a connection is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LostEnd {
    /// The switch's. The controller hears nothing of it.
    OfSwitch,
    /// The controller's. The switch is told when it sends something, as by TCP's reset.
    OfController,
}

impl Net {
    /// Has one end of a switch's connection be lost while the other is not told: what is under way is lost, too, and so is what the
    /// controller sends into it from then on. A switch that has lost its end connects again later.
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

    /// Has a switch read so many bytes of its control channel in a second, as one that is busy does; as fast as they come where it is
    /// `None`.
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

    /// Has a switch's clock jump ahead, as where it was asleep: for it, everything was silent for so long.
    /// Not in a network whose controller is elsewhere ([`Net::connect_to`]), which keeps to the time on the wall.
    ///
    /// # Errors
    /// [`NetError::NoSuchId`].
    pub fn jump_clock(&mut self, switch: SwitchId, by: Duration) -> Result<(), NetError> {
        self.check_switch(switch)?;
        self.nodes[switch.place()].ahead += by;
        Ok(())
    }

    /// Has the controller's clock jump ahead.
    pub fn jump_controller_clock(&mut self, by: Duration) {
        self.jump_controller(by);
    }

    /// The time by a switch's clock.
    pub(super) fn now_at(&self, switch: SwitchId) -> Duration {
        self.now() + self.nodes[switch.place()].ahead
    }
}
