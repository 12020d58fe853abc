//! Traffic between hosts: one flow after another, between random hosts.

use super::meter::Pair;
use std::time::Duration;
use urtica_net::{Datagrams, Draw, HostId, Net, NetError};

/// The interval between flows.
const FLOW_INTERVAL: Duration = Duration::from_millis(10);

/// The properties of a flow.
const FLOW: Datagrams = Datagrams {
    count: 20,
    payload_bytes: 200,
    interval: Duration::from_millis(25),
};

/// The interval of removing finished flows.
const CLEAR_AWAY: Duration = Duration::from_secs(20);

/// The traffic, and its times.
pub struct Traffic {
    draw: Draw,
    next: Duration,
    clear_away_at: Duration,
    started: u64,
}

impl Traffic {
    /// Creates traffic that starts now.
    pub fn new(seed: u64, now: Duration) -> Self {
        Self {
            draw: Draw::new(seed),
            next: now,
            clear_away_at: now + CLEAR_AWAY,
            started: 0,
        }
    }

    /// Returns the number of flows started.
    pub fn started(&self) -> u64 {
        self.started
    }

    /// Starts the flows that are due.
    ///
    /// # Errors
    /// If the network refuses a flow.
    pub fn advance(&mut self, net: &mut Net, hosts: &[HostId]) -> Result<(), NetError> {
        while self.next <= net.now() {
            let (from, to) = self.draw_pair(hosts);
            net.start_datagrams(from, to, FLOW)?;
            self.next += FLOW_INTERVAL;
            self.started += 1;
        }
        Ok(())
    }

    /// Removes finished flows from time to time; returns whether it did. This stops flows that are not finished, and all
    /// pings.
    pub fn clear_away(&mut self, net: &mut Net) -> bool {
        let is_time = net.now() >= self.clear_away_at;
        if is_time {
            self.clear_away_at = net.now() + CLEAR_AWAY;
            net.stop_flows();
        }
        is_time
    }

    fn draw_pair(&mut self, hosts: &[HostId]) -> Pair {
        let from = self.draw.place(hosts.len());
        let to = (from + 1 + self.draw.place(hosts.len() - 1)) % hosts.len();
        (hosts[from], hosts[to])
    }
}
