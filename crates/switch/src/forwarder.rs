//! The forwarding side of a switch: bursts of frames are received by ports, processed, and sent.
//!
//! **What.** [`Forwarder::poll_ports`] receives a burst from each port. The compiled pipeline processes the frames together
//! ([`Reader::process`]). Frames that it leaves to the plain form, frames that do not fit into a burst and frames that a
//! switch without a controller forwards are processed one by one, through [`Egress`].
//!
//! **Order.** Frames received by one port are sent in order, whichever path they use.
//!
//! **Cost.** Consecutive frames for one port share one access to that port. A frame in the compiled form needs no
//! allocation; it is copied once, into the burst, or not at all, if the port lends its memory.

use crate::egress::Egress;
use crate::parcel::Parcel;
use crate::port_table::{PortTable, SwitchPort};
use crate::shared::{Modes, Shared};
use crate::uplink::Controllers;
use crate::{LentFrame, Received};
use parking_lot::RwLockReadGuard;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use urtica_pipeline::{
    BURST, Burst, Packet, Pipeline, Processed, Reader, Sink, Verdict, is_fragment,
};

/// One thread's ports, and the forwarding between them.
pub(crate) struct Forwarder {
    shared: Arc<Shared>,
    pub ports: PortTable,
    /// The reader of the compiled pipeline; without it all packets use the plain form.
    reader: Option<Reader>,
    burst: Burst,
    lent: Lent,
    /// Packets for the plain form, each with the number of the burst's frames that precede it.
    aside: Vec<(usize, Packet)>,
    /// Number of packets that have used the plain form.
    plain_packets: u64,
    /// Since when frames have been waiting to be flushed.
    waiting_since: Option<Duration>,
}

/// The memory of a burst's frames, all received by one port, which is passed on or returned to it.
#[derive(Default)]
struct Lent {
    /// Lent frames by position in the burst; copied frames have `None`, and the list may be shorter than the burst.
    frames: Vec<Option<LentFrame>>,
    /// Frames that are no longer needed.
    unused: Vec<LentFrame>,
}

/// Result of polling all ports.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Polled {
    /// Whether any frame was received.
    pub has_input: bool,
    /// Whether any port had a full burst, and may have more.
    pub may_have_more: bool,
    /// Whether any port has failed.
    pub has_failed: bool,
}

impl Forwarder {
    /// Creates a forwarder with these ports. Without a reader all packets use the plain form.
    pub fn new(shared: Arc<Shared>, ports: PortTable, reader: Option<Reader>) -> Self {
        Self {
            shared,
            ports,
            reader,
            burst: Burst::new(),
            lent: Lent::default(),
            aside: Vec::new(),
            plain_packets: 0,
            waiting_since: None,
        }
    }

    /// Returns the number of packets that the compiled tables left to the plain form, or never saw.
    pub fn plain_packets(&self) -> u64 {
        self.plain_packets
    }

    /// Sets the reader of the compiled tables; without one all packets use the plain form.
    pub fn set_reader(&mut self, reader: Option<Reader>) {
        self.reader = reader;
    }

    /// Receives at most one burst from each port and forwards it; [`Forwarder::flush`] transmits the output.
    pub fn poll_ports(&mut self, controllers: &mut dyn Controllers, now: Duration) -> Polled {
        let modes = self.shared.modes();
        let mut polled = Polled::default();
        for at in 0..self.ports.len() {
            let received = self.receive(at, modes);
            self.forward(controllers, modes, now);
            self.lent.return_unused(self.ports.at_mut(at));
            match received {
                Ok(count) => {
                    polled.has_input |= count > 0;
                    polled.may_have_more |= count == BURST;
                }
                Err(error) => {
                    let port_no = self.ports.at_mut(at).port_no;
                    urtica_log::warn!(about: port_no, %port_no, %error, "the port has failed");
                    polled.has_failed = true;
                }
            }
        }
        polled
    }

    /// Transmits queued frames: those of a port with a full burst immediately, all others when they have waited for `hold`,
    /// since a system call costs more than a frame.
    pub fn flush(&mut self, hold: Duration, now: Duration) {
        let since = self.waiting_since.unwrap_or(now);
        match now.saturating_sub(since) < hold {
            true => self.ports.flush_those_with(BURST, now),
            false => self.ports.flush(now),
        }
        let is_waiting = !hold.is_zero() && self.ports.has_unsent();
        self.waiting_since = is_waiting.then_some(since);
    }

    /// Sends frames from another thread by a port of this one.
    pub fn deliver(&mut self, parcel: &Parcel) {
        if let Some(port) = self.ports.get_mut(parcel.port_no) {
            port.send_all(parcel);
        }
    }

    /// Checks the links of the ports' back ends. Returns whether some were reopened and must be watched again.
    pub fn check_links(&mut self) -> bool {
        let reopened = self
            .ports
            .iter_mut()
            .filter_map(|port| port.check_link().then_some(()));
        reopened.count() > 0
    }

    /// Receives a burst from the port at index `at`; returns the number of frames.
    fn receive(&mut self, at: usize, modes: Modes) -> io::Result<usize> {
        let Self {
            ports,
            reader,
            burst,
            lent,
            aside,
            ..
        } = self;
        let is_compiled = reader.is_some() && !modes.is_alone;
        let port = ports.at_mut(at);
        let port_no = port.port_no;
        port.receive(BURST, &mut |received| {
            let frame = match &received {
                Received::Bytes(bytes) => bytes,
                // SAFETY: the port exists, and only this code has the frame.
                Received::Lent(frame) => unsafe { frame.bytes() },
            };
            if modes.has_fragments_apart() && is_fragment(frame) {
                let fragment = modes.fragment(Packet::new(port_no, frame));
                aside.extend(fragment.map(|fragment| (burst.len(), fragment)));
                return lent.drop(received);
            }
            let is_taken = is_compiled
                && match &received {
                    Received::Bytes(bytes) => burst.push(port_no, bytes),
                    // SAFETY: the port exists while the burst is processed, and `lent` owns the frame until it is sent.
                    Received::Lent(frame) => unsafe {
                        burst.push_in_place(port_no, frame.room(), frame.start(), frame.len())
                    },
                };
            if is_taken {
                return lent.keep(received, burst.len() - 1);
            }
            aside.push((burst.len(), Packet::new(port_no, frame)));
            lent.drop(received);
        })
    }

    /// Processes the received frames in the pipeline, and sends the results.
    fn forward(&mut self, controllers: &mut dyn Controllers, modes: Modes, now: Duration) {
        match &mut self.reader {
            Some(reader) if !self.burst.is_empty() => reader.process(&mut self.burst, now),
            _ => {}
        }
        let mut exit = Exit {
            shared: &self.shared,
            pipeline: None,
            ports: &mut self.ports,
            lent: &mut self.lent,
            controllers,
            now,
            plain_packets: &mut self.plain_packets,
        };
        let mut sent = 0;
        for (at, packet) in self.aside.drain(..) {
            exit.send_processed(&self.burst, sent..at);
            sent = at;
            exit.forward_plainly(packet, modes);
        }
        exit.send_processed(&self.burst, sent..self.burst.len());
        self.burst.clear();
    }
}

/// The outputs for the frames of one burst.
struct Exit<'a> {
    shared: &'a Shared,
    /// Locked when the first frame needs it, for the rest of the burst.
    pipeline: Option<RwLockReadGuard<'a, Pipeline>>,
    ports: &'a mut PortTable,
    lent: &'a mut Lent,
    controllers: &'a mut dyn Controllers,
    now: Duration,
    plain_packets: &'a mut u64,
}

impl<'a> Exit<'a> {
    /// Sends the frames in `range` according to their verdicts.
    fn send_processed(&mut self, burst: &Burst, range: Range<usize>) {
        let frames = burst.iter().enumerate();
        let mut frames = frames.skip(range.start).take(range.len()).peekable();
        while let Some(first) = frames.next() {
            if first.1.is_sent_besides() {
                self.send_besides(first.1);
            }
            let verdict = first.1.verdict();
            let mut rest =
                || frames.next_if(|(_, next)| next.verdict() == verdict && !next.is_sent_besides());
            let run = std::iter::once(first).chain(std::iter::from_fn(&mut rest));
            match verdict {
                Verdict::Output(port) => self.lent.send_run(self.ports.sender(port), run),
                Verdict::Drop => run.for_each(drop),
                Verdict::Punt => self.resume_run(run.map(|(_, frame)| frame)),
            }
        }
    }

    /// Sends the additional outputs of a frame.
    fn send_besides(&mut self, frame: Processed<'_>) {
        for sent in frame.sent() {
            match sent.port() {
                Some(port) => {
                    if let Some(port) = self.ports.sender(port) {
                        port.send_by(sent.queue_id(), sent.bytes());
                    }
                }
                None => {
                    let mut egress = self.egress();
                    let (pipeline, now) = (egress.pipeline, egress.now);
                    pipeline.send(sent, now, &mut egress);
                }
            }
        }
    }

    /// Continues processing frames that the compiled pipeline leaves to the plain form.
    fn resume_run<'b>(&mut self, run: impl Iterator<Item = Processed<'b>>) {
        let mut count = 0;
        let mut egress = self.egress();
        let (pipeline, now) = (egress.pipeline, egress.now);
        run.for_each(|frame| {
            pipeline.resume(frame, now, &mut egress);
            count += 1;
        });
        *self.plain_packets += count;
    }

    fn forward_plainly(&mut self, packet: Packet, modes: Modes) {
        *self.plain_packets += 1;
        let mut egress = self.egress();
        let (pipeline, now) = (egress.pipeline, egress.now);
        match modes.is_alone {
            true => egress.normal(&packet),
            false => pipeline.process(packet, now, &mut egress),
        }
    }

    /// Creates the sink for the plain form.
    fn egress(&mut self) -> Egress<'_> {
        let shared = self.shared;
        Egress {
            pipeline: self.pipeline.get_or_insert_with(|| shared.pipeline()),
            shared,
            ports: self.ports,
            controllers: self.controllers,
            now: self.now,
        }
    }
}

impl Lent {
    /// Notes the memory of the burst's last frame, if it was lent.
    fn keep(&mut self, received: Received<'_>, place: usize) {
        if let Received::Lent(frame) = received {
            self.frames.resize_with(place, || None);
            self.frames.push(Some(frame));
        }
    }

    /// Notes that a frame was copied, or is not needed.
    fn drop(&mut self, received: Received<'_>) {
        if let Received::Lent(frame) = received {
            self.unused.push(frame);
        }
    }

    /// Sends frames by a port, if it exists and may send. Each has its position in the burst.
    fn send_run<'a>(
        &mut self,
        port: Option<&mut SwitchPort>,
        run: impl Iterator<Item = (usize, Processed<'a>)>,
    ) {
        match port {
            Some(port) if self.frames.is_empty() => {
                run.for_each(|(_, frame)| port.send(frame.bytes()));
            }
            Some(port) => run.for_each(|(place, frame)| self.send(port, place, frame.bytes())),
            None => run.for_each(drop),
        }
    }

    fn send(&mut self, port: &mut SwitchPort, place: usize, bytes: &[u8]) {
        let Some(mut frame) = self.frames.get_mut(place).and_then(Option::take) else {
            return port.send(bytes);
        };
        frame.set_bytes(bytes);
        // SAFETY: the port that lent it exists, and the burst's frame is not read after this.
        if let Err(frame) = unsafe { port.send_lent(frame) } {
            self.unused.push(frame);
        }
    }

    /// Returns all remaining memory to the port that lent it.
    fn return_unused(&mut self, port: &mut SwitchPort) {
        self.unused.extend(self.frames.drain(..).flatten());
        if !self.unused.is_empty() {
            port.take_back(&mut self.unused);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PortIo;
    use crate::port::testing::frame;
    use std::sync::atomic::AtomicUsize;
    use std::sync::atomic::Ordering::SeqCst;
    use urtica_pipeline::PipelineConfig;
    use urtica_wire::{MacAddr, PortNo};

    /// A port that discards frames and counts flushes.
    struct Counting(Arc<AtomicUsize>);

    impl PortIo for Counting {
        fn name(&self) -> &str {
            "counting"
        }

        fn hw_addr(&self) -> MacAddr {
            MacAddr::ZERO
        }

        fn is_up(&self) -> bool {
            true
        }

        fn speed_kbps(&self) -> u32 {
            0
        }

        fn receive(&mut self, _max: usize, _handle: &mut dyn FnMut(&[u8])) -> io::Result<usize> {
            Ok(0)
        }

        fn send(&mut self, _frame: &[u8]) -> bool {
            true
        }

        fn flush(&mut self) {
            self.0.fetch_add(1, SeqCst);
        }

        fn as_fd(&self) -> Option<rustix::fd::BorrowedFd<'_>> {
            None
        }
    }

    #[test]
    fn frames_leave_together_and_soon() {
        let flushed = Arc::new(AtomicUsize::new(0));
        let shared = Shared::new(Pipeline::new(PipelineConfig::default()), None);
        let mut forwarder = Forwarder::new(Arc::new(shared), PortTable::default(), None);
        let io = Box::new(Counting(Arc::clone(&flushed)));
        let (port, _) = SwitchPort::new(PortNo(1), io, Duration::ZERO);
        forwarder.ports.insert(port);
        let at = Duration::from_micros;
        let send = |forwarder: &mut Forwarder, count: usize, hold_us, now_us| {
            let port = forwarder.ports.at_mut(0);
            (0..count).for_each(|_| port.send(&frame(60, 1)));
            forwarder.flush(at(hold_us), at(now_us));
            flushed.swap(0, SeqCst)
        };
        assert_eq!(send(&mut forwarder, 0, 10, 100), 0, "nothing was sent");
        assert_eq!(send(&mut forwarder, 3, 0, 100), 1, "nothing waits");
        assert_eq!(send(&mut forwarder, 3, 10, 200), 0);
        assert_eq!(send(&mut forwarder, 3, 10, 209), 0);
        assert_eq!(send(&mut forwarder, 0, 10, 210), 1, "long enough");
        assert_eq!(send(&mut forwarder, 31, 10, 300), 0);
        assert_eq!(send(&mut forwarder, 1, 10, 301), 1, "a burst");
        assert_eq!(send(&mut forwarder, 1, 10, 400), 0);
        assert_eq!(send(&mut forwarder, 1, 0, 401), 1, "the thread will sleep");
    }
}
