//! The known state of a port.

use super::{DOUBT_PAUSE, takes_floods};
use crate::flooding::PortRole;
use std::time::Instant;
use urtica_topology::PortId;
use urtica_wire::{MacAddr, Port};

/// The state of a port that is up.
pub(super) struct PortState {
    pub(super) hw_addr: MacAddr,
    /// Whether the switch floods there: OFPPC_NO_FLOOD in 1.0.
    pub(super) takes_floods: bool,
    /// Its offset in the probe interval.
    pub(super) place: u32,
    /// Probes with lower stamps were sent before the port came up.
    pub(super) first_stamp: u64,
    /// The time when it will be classified; `None` afterwards.
    pub(super) classify_at: Option<Instant>,
    /// Whether it was ever classified as a host port.
    pub(super) was_host: bool,
    /// Whether the port may be neither a link port nor a host port until it goes down.
    pub(super) is_blocked: bool,
    pub(super) heard: Option<Heard>,
    /// The port where this port's probes arrive.
    pub(super) heard_by: Option<PortId>,
    /// The highest stamp of this port's probes that arrived anywhere.
    pub(super) heard_stamp: u64,
    /// The other end of the link that is up.
    pub(super) link: Option<PortId>,
    pub(super) refusals: u64,
    pub(super) next_refusal: Option<Instant>,
    /// The time when its classification as a host port may be doubted again.
    pub(super) next_doubt: Option<Instant>,
    /// Whether its probe is due at that time.
    is_doubted_again: bool,
}

/// The most recent probe that arrived.
#[derive(Clone, Copy)]
pub(super) struct Heard {
    pub(super) from: PortId,
    pub(super) at: Instant,
}

impl PortState {
    pub(super) fn new(port: &Port, place: u32, first_stamp: u64) -> Self {
        Self {
            hw_addr: port.hw_addr,
            takes_floods: takes_floods(port),
            place,
            first_stamp,
            classify_at: None,
            was_host: false,
            is_blocked: false,
            heard: None,
            heard_by: None,
            heard_stamp: 0,
            link: None,
            refusals: 0,
            next_refusal: None,
            next_doubt: None,
            is_doubted_again: false,
        }
    }

    pub(super) fn is_link_port(&self) -> bool {
        self.heard.is_some() || self.heard_by.is_some()
    }

    /// Marks the port as possibly leading to a switch. Returns when its probe is due, or `None` if that is scheduled already.
    /// If it was in doubt just now, it is doubted again as soon as that is allowed.
    pub(super) fn doubt(&mut self, now: Instant) -> Option<Instant> {
        match self.next_doubt.filter(|next| *next > now) {
            Some(_) if std::mem::replace(&mut self.is_doubted_again, true) => None,
            Some(next) => Some(next),
            None => {
                self.note_doubt(now);
                Some(now)
            }
        }
    }

    /// Notes that the port is being probed because it is in doubt.
    pub(super) fn note_doubt(&mut self, now: Instant) {
        self.next_doubt = Some(now + DOUBT_PAUSE);
        self.is_doubted_again = false;
    }

    pub(super) fn role(&self) -> PortRole {
        match (self.link, self.classify_at) {
            (Some(_), _) => PortRole::Link,
            (None, _) if self.is_blocked || self.is_link_port() => PortRole::Blocked,
            (None, Some(_)) => PortRole::Unclassified,
            (None, None) => PortRole::Host,
        }
    }
}
