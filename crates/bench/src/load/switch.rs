//! An emulated switch of a thread, and the thread's share of outstanding packet-ins.

use crate::checker::{Checker, Rules};
use crate::config::{LoadConfig, Mode};
use crate::emulated_switch::EmulatedSwitch;
use crate::hosts::Hosts;
use crate::identity::Identity;
use crate::outstanding::{Outstanding, SendTimes};
use urtica_socket::Stream;

pub(super) struct Switch {
    pub(super) stream: Option<Stream>,
    pub(super) identity: Identity,
    pub(super) session: EmulatedSwitch,
    pub(super) ready: bool,
    pub(super) checker: Checker,
    pub(super) outstanding: Outstanding,
    /// The maximum number of outstanding packet-ins.
    pub(super) most_waiting: u64,
    /// The start of an incomplete message.
    pub(super) tail: Vec<u8>,
    /// Replies to requests, which wait for the end of a packet-in that was sent in part.
    pub(super) control: Vec<u8>,
    /// The number of bytes of the next packet-in that the socket has already accepted.
    pub(super) sent_in_part: usize,
    /// The number of packet-ins that are due by the schedule, or that the switch may send from the thread's share.
    pub(super) due: u64,
    pub(super) wants_write: bool,
    pub(super) answered: u64,
    pub(super) answered_before: u64,
    pub(super) last_answer_ns: u64,
    /// The number of answers to the thread's switches at that time.
    pub(super) answered_by_then: u64,
}

impl Switch {
    pub(super) fn new(config: &LoadConfig, datapath_id: u64, times: SendTimes) -> Self {
        let identity = Identity::new(datapath_id);
        let most_waiting = config.mode.max_outstanding(config.switches);
        let rules = Rules {
            version: config.version,
            verify: config.verify,
            expect: config.expect,
            announced: config.learn_dst_macs,
            frames: config.frames.as_slice().into(),
            frame_len: config.frame_len,
        };
        let announced = if config.learn_dst_macs {
            config.frames.as_slice()
        } else {
            &[]
        };
        let hosts = Hosts::new(config.macs, config.addresses, datapath_id);
        Self {
            stream: None,
            identity,
            session: EmulatedSwitch::new(config.version, identity, announced),
            ready: false,
            checker: Checker::new(rules, identity),
            outstanding: Outstanding::new(most_waiting, hosts, times),
            most_waiting: most_waiting.into(),
            tail: Vec::new(),
            control: Vec::new(),
            sent_in_part: 0,
            due: 0,
            wants_write: false,
            answered: 0,
            answered_before: 0,
            last_answer_ns: 0,
            answered_by_then: 0,
        }
    }

    /// Returns the number of packet-ins that may be sent now.
    pub(super) fn allowance(&self, config: &LoadConfig) -> u64 {
        let free = self.most_waiting.saturating_sub(self.outstanding.waiting());
        if config.most_outstanding.is_some() || matches!(config.mode, Mode::Rate(_)) {
            free.min(self.due)
        } else {
            free
        }
    }
}

/// A thread's share of [`LoadConfig::most_outstanding`], which is distributed to its switches round-robin.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    pub(super) most: u64,
    /// The number of outstanding packet-ins, plus those that a switch may send but its socket has not accepted.
    pub(super) used: u64,
    /// The switch that has the next turn.
    pub(super) next: usize,
    /// The number of packet-ins that a switch may send per turn.
    pub(super) at_a_time: u64,
}

impl Share {
    pub(super) fn new(config: &LoadConfig, thread: usize, switches: usize) -> Option<Self> {
        let (most, threads) = (u64::from(config.most_outstanding?), config.threads as u64);
        let before = |thread: u64| most * thread / threads;
        let most = before(thread as u64 + 1) - before(thread as u64);
        Some(Self {
            most,
            used: 0,
            next: 0,
            at_a_time: (most / switches.max(1) as u64).max(1),
        })
    }
}

/// The due times of packet-ins in [`Mode::Rate`]. The switches send round-robin, at equal intervals.
pub(super) struct Schedule {
    pub(super) start_ns: u64,
    /// The interval between two packet-ins of all switches together.
    pub(super) step_ns: f64,
    pub(super) next: u64,
}
