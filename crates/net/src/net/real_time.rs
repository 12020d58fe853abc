//! Real time, and an external controller.
//!
//! Events are those of simulated time, but the network waits until each is due, and serves the switches' sockets, if any, while
//! it waits. A network that cannot keep up runs late, and catches up when it can.

use super::{Net, NetError};
use crate::SwitchId;
use crate::remote::{Ready, Remotes, Wants};
use std::time::{Duration, Instant};
use urtica_socket::Address;

/// The longest time between two polls of the sockets, even if the network is busy.
const SERVED_EVERY: Duration = Duration::from_millis(1);

/// The longest wait between two checks for an interruption.
const LOOK: Duration = Duration::from_millis(20);

/// The relation of the network's time to the clock.
pub(super) struct Pace {
    started: Instant,
    /// The network's time at that moment.
    base: Duration,
    last_served: Instant,
    remotes: Option<Remotes>,
}

impl Pace {
    fn new(base: Duration) -> Self {
        let started = Instant::now();
        Self {
            started,
            base,
            last_served: started,
            remotes: None,
        }
    }

    fn now(&self) -> Duration {
        self.base + self.started.elapsed()
    }
}

impl Net {
    /// Makes time follow the clock from now on, in all methods that advance it.
    pub fn follow_the_clock(&mut self) {
        let now = self.now();
        self.pace.get_or_insert_with(|| Pace::new(now));
    }

    /// Returns `true` if time follows the clock.
    pub fn follows_the_clock(&self) -> bool {
        self.pace.is_some()
    }

    /// Returns `true` if switches connect to an external controller.
    pub(super) fn has_remotes(&self) -> bool {
        let remotes = self.pace.as_ref().and_then(|pace| pace.remotes.as_ref());
        remotes.is_some()
    }

    /// Connects all switches to an external controller, and makes time follow the clock.
    ///
    /// # Errors
    /// [`NetError::Address`] if the address cannot be resolved.
    pub fn connect_to(&mut self, address: &Address) -> Result<(), NetError> {
        let remotes = Remotes::new(address, self.nodes.len());
        let remotes =
            remotes.map_err(|error| NetError::Address(address.to_string(), error.to_string()))?;
        let now = self.now();
        self.pace.get_or_insert_with(|| Pace::new(now)).remotes = Some(remotes);
        Ok(())
    }

    /// Waits until an event is due, and serves sockets while it waits. Returns `true` if the caller should check again before
    /// that event, because a socket was ready or an interruption must be checked for.
    pub(super) fn wait(&mut self, due_ns: u64) -> bool {
        let Some(mut pace) = self.pace.take() else {
            return false;
        };
        let left = Duration::from_nanos(due_ns).saturating_sub(pace.now());
        let is_in_parts = left > LOOK && self.interrupt.is_possible();
        let left = if is_in_parts { LOOK } else { left };
        let has_served = match &mut pace.remotes {
            Some(remotes) if !left.is_zero() || pace.last_served.elapsed() >= SERVED_EVERY => {
                let has_served = self.serve(remotes, left);
                pace.last_served = Instant::now();
                has_served
            }
            _ => {
                std::thread::sleep(left);
                false
            }
        };
        if is_in_parts {
            self.interrupt.look_soon();
        }
        let is_early = has_served || is_in_parts;
        if is_early {
            let now_ns = pace.now().as_nanos() as u64;
            self.kernel.now_ns = now_ns.min(due_ns).max(self.kernel.now_ns);
        }
        self.pace = Some(pace);
        is_early
    }

    /// Handles the end of a switch's connection to an external controller.
    pub(super) fn close_remote(&mut self, switch: SwitchId, reason: &str) {
        let now = self.now();
        if let Some(powered) = &mut self.nodes[switch.place()].powered {
            if let Some(Pace {
                remotes: Some(remotes),
                ..
            }) = &mut self.pace
            {
                remotes.close(switch, &mut powered.switch, reason, now);
            }
        }
    }

    fn serve(&mut self, remotes: &mut Remotes, timeout: Duration) -> bool {
        let now = self.now();
        for switch in self.switches() {
            if let Some(powered) = &mut self.nodes[switch.place()].powered {
                remotes.tick(switch, now);
                remotes.write(switch, &mut powered.switch, now);
            }
        }
        let ready = remotes.wait(timeout, |switch, id| {
            let powered = self.nodes[switch.place()].powered.as_mut();
            let switch = powered.map(|powered| &mut powered.switch);
            switch.map_or(Wants::NOTHING, |switch| Wants {
                input: switch.wants_input(id),
                room: switch.output(id).is_some_and(|output| !output.is_empty()),
            })
        });
        let ready = ready.unwrap_or_default();
        ready
            .iter()
            .for_each(|&ready| self.handle_ready(remotes, ready));
        !ready.is_empty()
    }

    fn handle_ready(&mut self, remotes: &mut Remotes, ready: Ready) {
        let now = self.now();
        let (Ready::Decided(switch) | Ready::Readable(switch) | Ready::Writable(switch)) = ready;
        let Some(powered) = &mut self.nodes[switch.place()].powered else {
            return;
        };
        let device = &mut powered.switch;
        match ready {
            Ready::Decided(_) => remotes.finish(switch, device, now),
            Ready::Readable(_) => remotes.read(switch, device, now),
            Ready::Writable(_) => remotes.write(switch, device, now),
        }
        self.settle_switch(switch);
    }
}
