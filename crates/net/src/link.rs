//! Full-duplex links, with delay, bandwidth, loss, and cuts.
//!
//! **How.** A frame is sent when the transmission of all earlier ones has ended, which takes as long as their bytes do at the
//! bandwidth of that direction. Frames that do not fit into the queue are dropped. Then the frame is in flight for the delay,
//! plus or minus the jitter. Frames of one direction never overtake each other.
//!
//! **Limits.** Preamble and inter-frame gap, which are 20 bytes per frame, are not counted.

use crate::frame::Frame;
use crate::kernel::{Due, Kernel, to_ns};
use crate::pipe::Pipe;
use crate::watch::{Event, Loss};
use crate::{Draw, End, LinkId};
use urtica_topology::spec::LinkProperties;

/// The counters of one direction of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// Frames sent into it.
    pub sent: u64,
    /// Bytes sent into it.
    pub sent_bytes: u64,
    /// Frames that arrived.
    pub arrived: u64,
    /// Frames lost at random.
    pub lost_drawn: u64,
    /// Frames lost because the link was cut, or one end was switched off.
    pub lost_cut: u64,
    /// Frames dropped because its queue was full.
    pub lost_queue_full: u64,
    /// Frames that the switch at the receiving end did not accept.
    pub lost_switch_busy: u64,
}

/// A link between two ends.
pub(crate) struct Link {
    id: LinkId,
    pub ends: [End; 2],
    /// The index of each end among the ports of its switch.
    pub slots: [usize; 2],
    directions: [Direction; 2],
    pub is_cut: bool,
    /// Whether the link is not cut and both ends are switched on.
    pub has_carrier: bool,
    /// The loss probability of frames sent at each end.
    pub loss: [f64; 2],
    delay_ns: u64,
    jitter_ns: u64,
    bandwidth_bps: Option<u64>,
    queue_bytes: u64,
}

/// One direction of a link, identified by its sending end.
struct Direction {
    under_way: Pipe<Frame>,
    /// The time at which the transmission of the last frame ends.
    busy_until_ns: u64,
    draw: Draw,
    counters: LinkCounters,
}

impl Link {
    /// Creates a link between these ends, whose `slots` are set later. `draws` are the streams of its directions.
    pub fn new(
        id: LinkId,
        ends: [End; 2],
        properties: &LinkProperties,
        queue_bytes: u64,
        draws: [Draw; 2],
    ) -> Self {
        Self {
            id,
            ends,
            slots: [0; 2],
            directions: draws.map(Direction::new),
            is_cut: false,
            has_carrier: true,
            loss: [properties.loss; 2],
            delay_ns: to_ns(properties.delay),
            jitter_ns: to_ns(properties.jitter.min(properties.delay)),
            bandwidth_bps: properties.bandwidth_bps,
            queue_bytes,
        }
    }

    /// Returns the counters of the frames sent at this end.
    pub fn counters(&self, from: usize) -> LinkCounters {
        self.directions[from].counters
    }

    /// Returns the number of frames in flight in both directions.
    pub fn under_way(&self) -> usize {
        self.directions
            .iter()
            .map(|direction| direction.under_way.len())
            .sum()
    }

    /// Returns the link's bandwidth in kb/s, as ports report it; 0 if unlimited.
    pub fn speed_kbps(&self) -> u32 {
        let kbps = self.bandwidth_bps.unwrap_or(0) / 1_000;
        u32::try_from(kbps).unwrap_or(u32::MAX)
    }

    /// Sends a frame into the link.
    pub fn send(&mut self, from: usize, frame: Frame, kernel: &mut Kernel) {
        kernel.tell(Event::Sent(self.id, self.ends[from], &frame));
        let counters = &mut self.directions[from].counters;
        counters.sent += 1;
        counters.sent_bytes += frame.len() as u64;
        if !self.has_carrier {
            return self.lose(from, Loss::Cut, frame, kernel);
        }
        let Some(sent_ns) = self.queue(from, frame.len(), kernel.now_ns) else {
            return self.lose(from, Loss::QueueFull, frame, kernel);
        };
        if self.directions[from].draw.happens(self.loss[from]) {
            return self.lose(from, Loss::Drawn, frame, kernel);
        }
        let at_ns = sent_ns + self.drawn_delay_ns(from);
        if let Some(at_ns) = self.directions[from].under_way.put(at_ns, frame) {
            kernel.put(at_ns, Due::Link(self.id, from as u8));
        }
    }

    /// Returns the next of the frames sent at this end that has arrived.
    #[inline]
    pub fn take_arrived(&mut self, from: usize, kernel: &mut Kernel) -> Option<Frame> {
        let direction = &mut self.directions[from];
        let frame = direction.under_way.take_due(kernel.now_ns)?;
        direction.counters.arrived += 1;
        kernel.tell(Event::Arrived(self.id, self.ends[1 - from], &frame));
        Some(frame)
    }

    /// Notes that the link's event was due.
    pub fn leave_agenda(&mut self, from: usize) {
        self.directions[from].under_way.leave_agenda();
    }

    /// Schedules the arrival of frames still in flight.
    pub fn enter_agenda(&mut self, from: usize, kernel: &mut Kernel) {
        if let Some(at_ns) = self.directions[from].under_way.next_on_agenda() {
            kernel.put(at_ns, Due::Link(self.id, from as u8));
        }
    }

    /// Loses a frame.
    pub fn lose(&mut self, from: usize, loss: Loss, frame: Frame, kernel: &mut Kernel) {
        let counters = &mut self.directions[from].counters;
        let counter = match loss {
            Loss::Drawn => &mut counters.lost_drawn,
            Loss::Cut => &mut counters.lost_cut,
            Loss::QueueFull => &mut counters.lost_queue_full,
            Loss::SwitchBusy => &mut counters.lost_switch_busy,
        };
        *counter += 1;
        kernel.tell(Event::Lost(self.id, loss, &frame));
        kernel.spare.put(frame);
    }

    /// Loses all frames in flight.
    pub fn lose_all(&mut self, kernel: &mut Kernel) {
        for from in 0..2 {
            self.directions[from].busy_until_ns = 0;
            let lost: Vec<_> = self.directions[from].under_way.clear().collect();
            for frame in lost {
                self.lose(from, Loss::Cut, frame, kernel);
            }
        }
    }

    /// Returns the time at which the transmission of a frame of this length will end; `None` if the queue is full.
    fn queue(&mut self, from: usize, length: usize, now_ns: u64) -> Option<u64> {
        let Some(bandwidth_bps) = self.bandwidth_bps else {
            return Some(now_ns);
        };
        let direction = &mut self.directions[from];
        let starts_ns = direction.busy_until_ns.max(now_ns);
        if starts_ns - now_ns > time_ns(self.queue_bytes, bandwidth_bps) {
            return None;
        }
        direction.busy_until_ns = starts_ns.saturating_add(time_ns(length as u64, bandwidth_bps));
        Some(direction.busy_until_ns)
    }

    fn drawn_delay_ns(&mut self, from: usize) -> u64 {
        match self.jitter_ns {
            0 => self.delay_ns,
            jitter_ns => {
                let drawn_ns = self.directions[from].draw.below(2 * jitter_ns + 1);
                self.delay_ns - jitter_ns + drawn_ns
            }
        }
    }
}

impl Direction {
    fn new(draw: Draw) -> Self {
        Self {
            under_way: Pipe::new(),
            busy_until_ns: 0,
            draw,
            counters: LinkCounters::default(),
        }
    }
}

/// Returns the transmission time of `bytes` bytes.
fn time_ns(bytes: u64, bandwidth_bps: u64) -> u64 {
    const NS_PER_S: u64 = 1_000_000_000;
    bytes.saturating_mul(8 * NS_PER_S) / bandwidth_bps.max(1)
}
