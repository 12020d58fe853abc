//! The packets' side of a switch: bursts come from ports, go through the pipeline, and leave.
//!
//! **What.** [`Forwarder::poll_ports`] takes in a burst from each port. Frames go through the compiled pipeline together
//! ([`Reader::process`]); what that leaves to the plain form, what does not fit into a burst and what a switch without a
//! controller forwards go on one by one, through [`Egress`].
//!
//! **Order.** Frames that came by one port are sent in the order in which they came, whichever way they take.
//!
//! **Cost.** Frames that follow each other and leave by the same port share one look at that port. Nothing is allocated for
//! a frame that is carried out compiled; it is copied once, into the burst, or not at all, where the port lends its memory.

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

/// Ports, and what takes packets from one to the other, of one thread.
pub(crate) struct Forwarder {
    shared: Arc<Shared>,
    pub ports: PortTable,
    /// The way into the compiled pipeline; without it all packets go the plain way.
    reader: Option<Reader>,
    burst: Burst,
    lent: Lent,
    /// Packets that go the plain way, each with how many frames of the burst came before it.
    aside: Vec<(usize, Packet)>,
    /// How many packets went the plain way so far.
    plain_packets: u64,
    /// Since when frames wait for others to leave with.
    waiting_since: Option<Duration>,
}

/// The memory of the frames of one burst, all of one port, that is to be passed on or given back.
#[derive(Default)]
struct Lent {
    /// By their places in the burst; those behind the last, and those that were copied, have none.
    frames: Vec<Option<LentFrame>>,
    /// What is not needed any more.
    unused: Vec<LentFrame>,
}

/// What came of asking all ports.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Polled {
    /// Whether any frame came.
    pub has_input: bool,
    /// Whether any port had a full burst, so that there may be more.
    pub may_have_more: bool,
    /// Whether any port turned out not to work any more.
    pub has_failed: bool,
}

impl Forwarder {
    /// A forwarder with these ports. Without a reader all packets go the plain way.
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

    /// How many packets the compiled tables left to the plain form, or never saw.
    pub fn plain_packets(&self) -> u64 {
        self.plain_packets
    }

    /// Has packets go through compiled tables from now on, or not.
    pub fn set_reader(&mut self, reader: Option<Reader>) {
        self.reader = reader;
    }

    /// Takes in at most a burst from each port, and sends what comes of it; [`Forwarder::flush`] has it leave.
    pub fn poll_ports(&mut self, controllers: &mut dyn Controllers, now: Duration) -> Polled {
        let modes = self.shared.modes();
        let mut polled = Polled::default();
        for at in 0..self.ports.len() {
            let received = self.receive(at, modes);
            self.forward(controllers, modes, now);
            self.lent.give_back(self.ports.at_mut(at));
            match received {
                Ok(count) => {
                    polled.has_input |= count > 0;
                    polled.may_have_more |= count == BURST;
                }
                Err(error) => {
                    let port_no = self.ports.at_mut(at).port_no;
                    urtica_log::warn!(about: port_no, %port_no, %error, "the port does not work any more");
                    polled.has_failed = true;
                }
            }
        }
        polled
    }

    /// Sees to it that frames that were sent leave: those of a port that has a burst of them at once, all others when they have
    /// waited for `hold`. A system call for each frame would cost more than the frame.
    pub fn flush(&mut self, hold: Duration, now: Duration) {
        let since = self.waiting_since.unwrap_or(now);
        match now.saturating_sub(since) < hold {
            true => self.ports.flush_those_with(BURST, now),
            false => self.ports.flush(now),
        }
        let is_waiting = !hold.is_zero() && self.ports.has_unsent();
        self.waiting_since = is_waiting.then_some(since);
    }

    /// Sends what another thread has sent by a port of this one.
    pub fn deliver(&mut self, parcel: &Parcel) {
        if let Some(port) = self.ports.get_mut(parcel.port_no) {
            port.send_all(parcel);
        }
    }

    /// Asks the ports' back ends how they are. Returns whether some were opened again, which are to be watched anew.
    pub fn look_at_links(&mut self) -> bool {
        let reopened = self
            .ports
            .iter_mut()
            .filter_map(|port| port.look().then_some(()));
        reopened.count() > 0
    }

    /// Takes in a burst from the port at this place; returns how many frames came.
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
                // SAFETY: the port exists, and nothing else has the frame.
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
                    // SAFETY: the port exists while the burst is processed, and `lent` has the frame until it is sent.
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

    /// Takes what was received through the pipeline, and sends what comes of it.
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

/// Where the frames of one burst go.
struct Exit<'a> {
    shared: &'a Shared,
    /// Taken for the rest of the burst when the first frame needs it.
    pipeline: Option<RwLockReadGuard<'a, Pipeline>>,
    ports: &'a mut PortTable,
    lent: &'a mut Lent,
    controllers: &'a mut dyn Controllers,
    now: Duration,
    plain_packets: &'a mut u64,
}

impl<'a> Exit<'a> {
    /// Sends these frames of the burst where the compiled pipeline says.
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

    /// Sends a frame that leaves more than once where it leaves first.
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

    /// Goes on with frames that the compiled pipeline leaves to the plain form.
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

    /// Where the plain form leaves packets.
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
    /// Notes where the memory of the burst's last frame is, if it was lent.
    fn keep(&mut self, received: Received<'_>, place: usize) {
        if let Received::Lent(frame) = received {
            self.frames.resize_with(place, || None);
            self.frames.push(Some(frame));
        }
    }

    /// A frame was copied, or is not needed.
    fn drop(&mut self, received: Received<'_>) {
        if let Received::Lent(frame) = received {
            self.unused.push(frame);
        }
    }

    /// Sends frames by a port, if there is one that may send. Each comes with its place in the burst.
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
        // SAFETY: the port that lent it exists, and nobody looks at the burst's frame after this.
        if let Err(frame) = unsafe { port.send_lent(frame) } {
            self.unused.push(frame);
        }
    }

    /// Gives all that is left back to the port that lent it.
    fn give_back(&mut self, port: &mut SwitchPort) {
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

    /// A port to nowhere that counts how often it was flushed.
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
