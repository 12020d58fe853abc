//! The settings of link discovery.

use super::damping::DampingConfig;
use super::{LLDP_RATE_PER_PORT, LONGEST};
use std::time::Duration;

/// Settings of link discovery. The defaults suit most networks. Durations longer than a day count as a day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiscoveryConfig {
    /// The key of the authenticator in probes. `None`, the default, obtains a random secret key from the system at
    /// start. A fixed key is for simulations that must be reproducible to the byte.
    pub secret: Option<[u8; 32]>,
    /// The interval between a port's probes while nothing happens. 5 s by default; at least a millisecond.
    pub probe_interval: Duration,
    /// The number of consecutive missed probes after which a link is down. 3 by default; 1 to 1,000. The links of a port or
    /// switch that goes down are removed at once.
    pub missed_probes: u32,
    /// Time for which a new port must be quiet before it is classified as a host port and flooded to. 0.3 s by default.
    pub settle_time: Duration,
    /// The threshold for flapping links, and the time for which they are held down.
    pub damping: DampingConfig,
    /// Whether a port that was classified as a host port remains one until it goes down. Off by default, because a switch
    /// that connects late would not be found behind such a port. If on, a host cannot fake a link by relaying probes unless
    /// it does so from the moment it is plugged in; a port where a link was refused is [blocked](crate::PortRole::Blocked).
    pub refuse_late_links: bool,
    /// The treatment of other stations' LLDP frames.
    pub host_lldp: HostLldp,
    /// Whether each switch gets an entry of the highest priority that sends LLDP to the controller. On by default: without
    /// it, another program's entry that matches LLDP hides links.
    pub installs_entry: bool,
}

/// The treatment of other stations' LLDP frames, after they are counted. In neither case do they create a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum HostLldp {
    /// Passed to later programs, which may read the information that hosts announce.
    #[default]
    Pass,
    /// Dropped.
    Drop,
}

impl Default for DiscoveryConfig {
    fn default() -> Self {
        Self {
            secret: None,
            probe_interval: Duration::from_secs(5),
            missed_probes: 3,
            settle_time: Duration::from_millis(300),
            damping: DampingConfig::default(),
            refuse_late_links: false,
            host_lldp: HostLldp::default(),
            installs_entry: true,
        }
    }
}

impl DiscoveryConfig {
    /// Returns the time after the last probe at which a link is down. The half interval is because the last probe that may be
    /// missed may also be late.
    pub(super) fn timeout(&self) -> Duration {
        self.probe_interval * self.missed_probes + self.probe_interval / 2
    }

    /// Returns the maximum number of LLDP frames per second that are examined from each port. It grows with the number of
    /// probes that a neighbour sends.
    pub(super) fn lldp_rate_per_port(&self) -> u32 {
        let probes = 1.0 / self.probe_interval.as_secs_f64();
        LLDP_RATE_PER_PORT + 2 * probes.ceil() as u32
    }

    /// Returns the values that are used: limited, so that timers neither spin nor overflow.
    pub(super) fn sound(self) -> Self {
        let DampingConfig {
            max_ups,
            window,
            first_hold,
            max_hold,
        } = self.damping;
        Self {
            probe_interval: self.probe_interval.clamp(Duration::from_millis(1), LONGEST),
            missed_probes: self.missed_probes.clamp(1, 1000),
            settle_time: self.settle_time.min(LONGEST),
            damping: DampingConfig {
                max_ups,
                window: window.min(LONGEST),
                first_hold: first_hold.min(LONGEST),
                max_hold: max_hold.min(LONGEST),
            },
            ..self
        }
    }
}
