//! A second controller, in addition to the network's.
//!
//! **What.** Its only program does nothing. Like a standby controller, it has a session with each switch, receives the
//! packet-ins and port status messages that the first controller receives, and ignores them.
//!
//! **How.** It has no channels: bytes are exchanged when the controllers tick, and are never in flight.

use super::Net;
use crate::SwitchId;
use std::collections::BTreeMap;
use std::time::Duration;
use urtica_controller::{Controller, Embedded, SwitchHandler, SwitchInfo};
use urtica_switch::Switch;

/// The maximum number of exchanges at one moment.
const MAX_ROUNDS: usize = 100;

/// The second controller, and its sessions.
pub(super) struct Second {
    controller: Embedded,
    sessions: BTreeMap<SwitchId, Session>,
}

/// A program that does nothing.
struct Idle;

impl SwitchHandler for Idle {}

/// A connection to a switch, with its identifiers on both sides.
struct Session {
    at_switch: urtica_switch::ConnectionId,
    at_controller: urtica_controller::ConnectionId,
    /// The number of the switch's start after which the connection was opened.
    life: u16,
}

impl Net {
    /// Starts a second controller, whose program does nothing, and to which all switches connect as well. Does nothing if it
    /// runs already.
    ///
    /// # Errors
    /// The errors of [`Controller::embed`].
    pub fn start_second_controller(&mut self) -> Result<(), urtica_controller::Error> {
        if self.second.is_none() {
            self.second = Some(Second {
                controller: Controller::new().program(|_: &SwitchInfo| Idle).embed()?,
                sessions: BTreeMap::new(),
            });
        }
        Ok(())
    }

    /// Stops the second controller: its connections break.
    pub fn stop_second_controller(&mut self) {
        let Some(second) = self.second.take() else {
            return;
        };
        for (switch, session) in second.sessions {
            let now = self.now_at(switch);
            let node = &mut self.nodes[switch.place()];
            let powered = node.powered.as_mut().filter(|_| node.lives == session.life);
            if let Some(powered) = powered {
                powered.switch.disconnect(session.at_switch, now);
            }
        }
    }

    /// Returns the number of switches that the second controller knows.
    pub fn switches_of_second_controller(&self) -> usize {
        let second = self.second.as_ref();
        second.map_or(0, |second| second.controller.network().switches().len())
    }

    /// Handles the second controller's tick, if it is running: exchanges bytes between it and the switches.
    pub(super) fn tick_second_controller(&mut self) {
        let Some(mut second) = self.second.take() else {
            return;
        };
        let now = self.now();
        for (id, _) in second.controller.handle_timeout(now) {
            second.controller.disconnect(id, now);
        }
        for switch in self.switches() {
            let switch_now = self.now_at(switch);
            let node = &mut self.nodes[switch.place()];
            match &mut node.powered {
                Some(powered) => second.serve(
                    switch,
                    node.lives,
                    &node.name,
                    &mut powered.switch,
                    [now, switch_now],
                ),
                None => second.leave(switch, now),
            }
            self.settle_switch(switch);
        }
        self.second = Some(second);
    }
}

impl Second {
    fn leave(&mut self, switch: SwitchId, now: Duration) {
        if let Some(session) = self.sessions.remove(&switch) {
            self.controller.disconnect(session.at_controller, now);
        }
    }

    /// Exchanges bytes between a switch and this controller until neither has any to send. The times are those of its clock and
    /// the switch's.
    fn serve(
        &mut self,
        id: SwitchId,
        life: u16,
        name: &str,
        switch: &mut Switch,
        [now, switch_now]: [Duration; 2],
    ) {
        let is_stale = |session: &mut Session| {
            session.life != life || switch.output(session.at_switch).is_none()
        };
        if self.sessions.get_mut(&id).is_some_and(is_stale) {
            self.leave(id, now);
        }
        let controller = &mut self.controller;
        let session = self.sessions.entry(id).or_insert_with(|| Session {
            at_switch: switch.connect("the second controller".into(), switch_now),
            at_controller: controller.connect(name.to_owned(), now),
            life,
        });
        for _ in 0..MAX_ROUNDS {
            switch.poll_output(switch_now);
            let up = switch.output(session.at_switch).map(std::mem::take);
            let up = up.unwrap_or_default();
            let taken = controller.handle_input(session.at_controller, &up, now);
            controller.poll(now);
            let down = controller.output(session.at_controller).map(std::mem::take);
            let down = down.unwrap_or_default();
            let heard = switch.handle_input(session.at_switch, &down, switch_now);
            if taken.is_err() || heard.is_err() {
                switch.disconnect(session.at_switch, switch_now);
                return self.leave(id, now);
            }
            if up.is_empty() && down.is_empty() {
                return;
            }
        }
    }
}
