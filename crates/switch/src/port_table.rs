//! The switch's ports: their back ends, and what went through them.
//!
//! Each thread of a switch has a table of all ports. Of its own ports it has the back ends, of the others ways to send: past the
//! thread that has the port where the back end has such a way, else outlets to that thread. A port whose flows several threads share is
//! each one's own: each has a back end. What all need to know of a port is in one
//! [`PortRecord`]. Each thread counts by itself, and who asks adds up.
//!
//! **Queues.** A port that has some is another kind of [`Backend`], so that the others do not pay for them.

use crate::parcel::{Inbox, Outlet, Parcel};
use crate::queues::{Polled, Pushed, SharedQueues};
use crate::{LentFrame, PortError, PortIo, PortSender, Received};
use parking_lot::Mutex;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::time::Duration;
use urtica_wire::packet::ethernet;
use urtica_wire::{MacAddr, Port, PortConfig, PortFeatures, PortNo, PortState, PortStats};

/// The shortest frame that Ethernet carries, without the check sequence.
const SHORTEST: usize = 60;

/// What a counter that is not kept reads (1.3.5 section 7.3.5.6).
const NOT_KEPT: u64 = u64::MAX;

/// A port with any of these set takes nothing in.
const DEAF: PortConfig = PortConfig::PORT_DOWN.union(PortConfig::NO_RECV);

/// A port with any of these set sends nothing.
const MUTE: PortConfig = PortConfig::PORT_DOWN.union(PortConfig::NO_FWD);

/// All ports, in the order of their numbers.
#[derive(Default)]
pub(crate) struct PortTable {
    ports: Vec<SwitchPort>,
}

/// One port, as one thread has it.
pub(crate) struct SwitchPort {
    pub port_no: PortNo,
    backend: Backend,
    /// The inbox of the thread that sends what waits in queues; `None` if that is this one.
    home: Option<Arc<Inbox>>,
    record: Arc<PortRecord>,
    /// What this thread counts.
    counters: Arc<Counters>,
    /// The back end returned an error; it is asked again once it has a link.
    failed: bool,
    /// Something was sent since the last flush, or kept by it.
    unflushed: bool,
    /// How many frames were sent since then.
    unflushed_frames: usize,
    /// Lent frames that were not taken in.
    refused: Vec<LentFrame>,
}

/// Where a port's frames come from and go to.
enum Backend {
    /// This thread has it.
    Here(Box<dyn PortIo>),
    /// Another thread has it, and this one can send past it.
    Beside(Box<dyn PortSender>),
    /// Another thread has it.
    Elsewhere(Outlet),
    /// Frames go through queues before they leave.
    Queued(Box<Queued>),
}

/// The way out of a port that has queues.
struct Queued {
    queues: Arc<SharedQueues>,
    /// The way behind them; itself without queues.
    inner: Backend,
}

/// What all threads know of a port. Only the thread that has its back end tells of the link.
#[derive(Debug)]
struct PortRecord {
    added: Duration,
    /// The number of the network interface, or 0 if it is none.
    link_index: AtomicU32,
    /// Its Ethernet address, as a number.
    hw_addr: AtomicU64,
    /// [`PortConfig`]'s bits, as in the pipeline's description of the port.
    config: AtomicU32,
    has_link: AtomicBool,
    speed_kbps: AtomicU32,
    /// Those of all threads. Locked to add one and to add them up.
    counters: Mutex<Vec<Arc<Counters>>>,
}

/// What went through a port on one thread, which alone counts here: on cache lines of its own, two of them, as processors
/// fetch lines in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Counters {
    rx_packets: AtomicU64,
    rx_bytes: AtomicU64,
    /// For want of room.
    rx_dropped: AtomicU64,
    /// Because of the port's configuration.
    rx_blocked: AtomicU64,
    rx_errors: AtomicU64,
    tx_packets: AtomicU64,
    tx_bytes: AtomicU64,
    tx_dropped: AtomicU64,
}

/// What one thread has received by a port, to be asked for by another.
#[cfg(test)]
pub(crate) struct ReceivedHere(Arc<Counters>);

#[cfg(test)]
impl ReceivedHere {
    pub fn packets(&self) -> u64 {
        self.0.rx_packets.load(Relaxed)
    }
}

impl PortTable {
    /// Adds a port; returns whether it takes the place of the one that had its number before.
    pub fn insert(&mut self, port: SwitchPort) -> bool {
        match self.find(port.port_no) {
            Ok(at) => {
                self.ports[at] = port;
                true
            }
            Err(at) => {
                self.ports.insert(at, port);
                false
            }
        }
    }

    /// Takes a port away.
    pub fn remove(&mut self, port_no: PortNo) -> Option<SwitchPort> {
        let at = self.find(port_no).ok()?;
        Some(self.ports.remove(at))
    }

    /// All ports, taken out.
    pub fn into_ports(self) -> impl Iterator<Item = SwitchPort> {
        self.ports.into_iter()
    }

    /// How many ports there are.
    pub fn len(&self) -> usize {
        self.ports.len()
    }

    /// The port at this place in the order.
    ///
    /// # Panics
    /// Where there are fewer.
    pub fn at_mut(&mut self, at: usize) -> &mut SwitchPort {
        &mut self.ports[at]
    }

    /// The ports, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = &SwitchPort> {
        self.ports.iter()
    }

    /// The same, to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut SwitchPort> {
        self.ports.iter_mut()
    }

    /// The port with this number.
    pub fn get(&self, port_no: PortNo) -> Option<&SwitchPort> {
        let at = self.find(port_no).ok()?;
        self.ports.get(at)
    }

    /// The same, to be changed.
    pub fn get_mut(&mut self, port_no: PortNo) -> Option<&mut SwitchPort> {
        let at = self.find(port_no).ok()?;
        self.ports.get_mut(at)
    }

    /// The port with this number, if its configuration lets it send.
    pub fn sender(&mut self, port_no: PortNo) -> Option<&mut SwitchPort> {
        let port = self.get_mut(port_no)?;
        (!port.record.config().intersects(MUTE)).then_some(port)
    }

    /// Sees to it that everything sent leaves, but for what has to wait in queues.
    pub fn flush(&mut self, now: Duration) {
        for port in self.ports.iter_mut().filter(|port| port.unflushed) {
            port.flush(now);
        }
    }

    /// The same for ports that were sent `count` frames since.
    pub fn flush_those_with(&mut self, count: usize, now: Duration) {
        let is_full = |port: &&mut SwitchPort| port.unflushed_frames >= count;
        self.ports
            .iter_mut()
            .filter(is_full)
            .for_each(|port| port.flush(now));
    }

    /// Gives a port these queues, or none, if there is one of this number.
    pub fn set_queues(&mut self, port_no: PortNo, queues: Option<Arc<SharedQueues>>) {
        if let Some(port) = self.remove(port_no) {
            self.insert(port.with_queues(queues));
        }
    }

    /// Whether the last flush has left something, for which there should be another soon.
    pub fn has_unsent(&self) -> bool {
        self.ports.iter().any(|port| port.unflushed)
    }

    /// The place of the port with this number, or the one where it belongs. Most switches number their ports 1, 2, 3, …:
    /// a port is looked for in the place first that it has there.
    fn find(&self, port_no: PortNo) -> Result<usize, usize> {
        let guess = (port_no.0 as usize).wrapping_sub(1);
        match self.ports.get(guess) {
            Some(port) if port.port_no == port_no => Ok(guess),
            _ => self
                .ports
                .binary_search_by_key(&port_no, |port| port.port_no),
        }
    }
}

impl SwitchPort {
    /// A port that this thread has, and its description.
    pub fn new(port_no: PortNo, io: Box<dyn PortIo>, now: Duration) -> (Self, Port) {
        let mut description = Port::new(port_no, io.hw_addr(), io.name());
        let record = PortRecord::new(now, &*io);
        let mut port = Self::with(port_no, Backend::Here(io), Arc::new(record));
        port.look();
        port.describe(&mut description);
        (port, description)
    }

    /// The same port for other threads, each of which receives a share of its flows: for as many as can, of `count` altogether.
    /// `home` is the inbox of the thread that has this one.
    pub fn split(&mut self, count: usize, home: &Arc<Inbox>) -> Vec<Self> {
        let Backend::Here(io) = self.backend.inner_mut() else {
            return Vec::new();
        };
        let others = match io.split(count) {
            Ok(others) => others,
            Err(error) => {
                tracing::warn!(port_no = %self.port_no, %error, "one thread receives by the port");
                Vec::new()
            }
        };
        let others = others.into_iter();
        others
            .map(|io| self.share(Backend::Here(io), Arc::clone(home)))
            .collect()
    }

    /// How many frames this thread receives by it, for whoever asks.
    #[cfg(test)]
    pub fn received_here(&self) -> ReceivedHere {
        ReceivedHere(Arc::clone(&self.counters))
    }

    /// How many threads could receive by it.
    pub fn max_threads(&self) -> usize {
        self.io().map_or(0, PortIo::max_threads)
    }

    /// The same port for a thread that does not have it, but the inbox of the one that does.
    pub fn elsewhere(&self, inbox: Arc<Inbox>) -> Self {
        let outlet = || Backend::Elsewhere(Outlet::new(self.port_no, Arc::clone(&inbox)));
        let backend = match self.io().and_then(PortIo::sender) {
            Some(Ok(sender)) => Backend::Beside(sender),
            Some(Err(error)) => {
                tracing::info!(port_no = %self.port_no, %error, "frames for the port go through the thread that has it");
                outlet()
            }
            None => outlet(),
        };
        self.share(backend, inbox)
    }

    /// The same port for another thread, with its queues.
    fn share(&self, backend: Backend, home: Arc<Inbox>) -> Self {
        let mut port = Self::with(self.port_no, backend, Arc::clone(&self.record));
        port.home = Some(home);
        port.with_queues(self.queues().cloned())
    }

    /// The port with these queues in place of those that it has, or without. What waits in the latter leaves at once.
    pub fn with_queues(self, queues: Option<Arc<SharedQueues>>) -> Self {
        let is_home = self.home.is_none();
        let mut backend = match self.backend {
            Backend::Queued(queued) => {
                let Queued { queues, mut inner } = *queued;
                if is_home {
                    inner.take_all(&queues, &self.counters);
                }
                inner
            }
            backend => backend,
        };
        if let Some(queues) = queues {
            let inner = backend;
            backend = Backend::Queued(Box::new(Queued { queues, inner }));
        }
        Self {
            backend,
            unflushed: true,
            ..self
        }
    }

    /// The queues, if it has some.
    pub fn queues(&self) -> Option<&Arc<SharedQueues>> {
        match &self.backend {
            Backend::Queued(queued) => Some(&queued.queues),
            _ => None,
        }
    }

    /// The rate that the back end reports, in bits a second, if it does.
    pub fn rate_bps(&self) -> Option<u64> {
        self.record.rate_bps()
    }

    fn with(port_no: PortNo, backend: Backend, record: Arc<PortRecord>) -> Self {
        let counters = Arc::new(Counters::default());
        record.counters.lock().push(Arc::clone(&counters));
        Self {
            port_no,
            backend,
            home: None,
            record,
            counters,
            failed: false,
            unflushed: false,
            unflushed_frames: 0,
            refused: Vec::new(),
        }
    }

    /// The back end, if this thread has it.
    pub fn io(&self) -> Option<&dyn PortIo> {
        match self.backend.inner() {
            Backend::Here(io) => Some(&**io),
            _ => None,
        }
    }

    /// The same, taken out.
    pub fn into_io(self) -> Option<Box<dyn PortIo>> {
        match self.backend {
            Backend::Here(io) => Some(io),
            Backend::Queued(queued) => match queued.inner {
                Backend::Here(io) => Some(io),
                _ => None,
            },
            Backend::Beside(_) | Backend::Elsewhere(_) => None,
        }
    }

    /// Sets what the port may do, from each thread's next burst on.
    pub fn set_config(&self, config: PortConfig) {
        self.record.config.store(config.bits(), Relaxed);
    }

    /// Hands over at most `max` frames, or drops them where the configuration says so. Returns how many came; none of a
    /// port that is elsewhere.
    ///
    /// # Errors
    /// Where the back end does not work any more; it is then not asked again until [`SwitchPort::look`] finds a link.
    pub fn receive(
        &mut self,
        max: usize,
        handle: &mut dyn FnMut(Received<'_>),
    ) -> io::Result<usize> {
        let Backend::Here(io) = self.backend.inner_mut() else {
            return Ok(0);
        };
        if self.failed {
            return Ok(0);
        }
        let is_deaf = self.record.config().intersects(DEAF);
        let counters = &self.counters;
        let refused = &mut self.refused;
        let received = io.receive_lent(max, &mut |frame| {
            add(&counters.rx_packets, 1);
            add(&counters.rx_bytes, frame.len() as u64);
            let counter = if frame.len() < ethernet::HEADER_LEN {
                &counters.rx_errors
            } else if is_deaf {
                &counters.rx_blocked
            } else {
                return handle(frame);
            };
            add(counter, 1);
            if let Received::Lent(frame) = frame {
                refused.push(frame);
            }
        });
        if !self.refused.is_empty() {
            io.take_back(&mut self.refused);
        }
        if received.is_err() {
            add(&self.counters.rx_errors, 1);
            self.failed = true;
            self.record.has_link.store(false, Relaxed);
        }
        received
    }

    /// Sends a frame, whatever the configuration says. One that a popped tag has left shorter than Ethernet allows is
    /// padded with zeros (IEEE 802.3 section 4.2.3.3).
    #[inline]
    pub fn send(&mut self, frame: &[u8]) {
        self.send_by(0, frame);
    }

    /// The same by a queue, if the port has queues.
    #[inline]
    pub fn send_by(&mut self, queue_id: u32, frame: &[u8]) {
        match frame.len() {
            SHORTEST.. => self.send_whole(queue_id, frame),
            length => {
                let mut padded = [0; SHORTEST];
                padded[..length].copy_from_slice(frame);
                self.send_whole(queue_id, &padded);
            }
        }
    }

    /// Gives the back end frames back that it has lent, all there are.
    pub fn take_back(&mut self, frames: &mut Vec<LentFrame>) {
        if let Backend::Here(io) = self.backend.inner_mut() {
            io.take_back(frames);
        }
    }

    /// Sends a lent frame, as [`SwitchPort::send`]; from where it is, if the back end can.
    ///
    /// # Errors
    /// The frame, where it was copied: its memory is still to be given back.
    ///
    /// # Safety
    /// The port that lent it exists, and nothing else has the frame.
    pub unsafe fn send_lent(&mut self, mut frame: LentFrame) -> Result<(), LentFrame> {
        if let Backend::Here(io) = &mut self.backend {
            // SAFETY: as the caller promises.
            unsafe { frame.pad(SHORTEST) };
            let bytes = frame.len() as u64;
            match io.send_lent(frame) {
                Ok(()) => {
                    self.unflushed = true;
                    self.unflushed_frames += 1;
                    self.counters.count_sent(bytes);
                    return Ok(());
                }
                Err(refused) => frame = refused,
            }
        }
        // SAFETY: as the caller promises.
        self.send(unsafe { frame.bytes() });
        Err(frame)
    }

    /// Sends what another thread has sent by this port. A parcel without frames says that some wait in queues.
    pub fn send_all(&mut self, parcel: &Parcel) {
        self.unflushed = true;
        let frames = parcel.frames();
        frames.for_each(|frame| self.send_whole(0, frame));
    }

    #[inline]
    fn send_whole(&mut self, queue_id: u32, frame: &[u8]) {
        self.unflushed = true;
        self.unflushed_frames += 1;
        let counters = &self.counters;
        let is_sent = match &mut self.backend {
            Backend::Here(io) => io.send(frame),
            Backend::Beside(sender) => sender.send(frame),
            Backend::Elsewhere(outlet) => return counters.count_lost(outlet.push(frame)),
            Backend::Queued(queued) => return queued.push(queue_id, frame, counters),
        };
        match is_sent {
            true => counters.count_sent(frame.len() as u64),
            false => counters.count_lost(1),
        }
    }

    fn flush(&mut self, now: Duration) {
        self.unflushed_frames = 0;
        let counters = &self.counters;
        self.unflushed = match (&mut self.backend, &self.home) {
            (Backend::Queued(queued), None) => queued.flush(&self.record, counters, now),
            (Backend::Queued(queued), Some(home)) => {
                if queued.queues.ring() {
                    // It weighs nothing, so that there is room.
                    let _ = home.put(Parcel::new(self.port_no), 0);
                }
                queued.inner.flush(counters)
            }
            (backend, _) => backend.flush(counters),
        };
    }

    /// Asks the back end, if this thread has it, how it is. Returns whether it was opened again: then it is to be watched anew.
    pub fn look(&mut self) -> bool {
        let reopened = self.reopen();
        let Backend::Here(io) = self.backend.inner_mut() else {
            return false;
        };
        let has_link = reopened.is_ok() && io.is_up();
        self.failed &= !has_link;
        self.record.has_link.store(has_link, Relaxed);
        self.record.speed_kbps.store(io.speed_kbps(), Relaxed);
        let dropped = io.take_dropped();
        if dropped > 0 {
            let port_no = self.port_no;
            add(&self.counters.rx_dropped, dropped);
            urtica_log::warn!(about: port_no, %port_no, dropped, "frames were lost: more came than were received in time");
        }
        reopened.unwrap_or(false)
    }

    /// Has the back end open an interface again that was taken away. Returns whether it did.
    fn reopen(&mut self) -> Result<bool, PortError> {
        let port_no = self.port_no;
        let reopened = match self.backend.inner_mut() {
            Backend::Here(io) => io.reopen(),
            Backend::Beside(sender) => sender.reopen(),
            _ => return Ok(false),
        };
        match (&reopened, self.backend.inner()) {
            (Ok(true), Backend::Here(io)) => {
                self.record.identify(&**io);
                tracing::info!(%port_no, name = io.name(), "the interface is there again");
            }
            (Err(error), _) => {
                urtica_log::warn!(about: port_no, %port_no, %error, "the interface is there again and cannot be opened");
            }
            _ => {}
        }
        reopened
    }

    /// Takes in that the system has told of the link of this network interface. Returns whether it is this port's.
    pub fn note_link(&mut self, link_index: u32, has_link: bool) -> bool {
        if self.record.link_index.load(Relaxed) != link_index {
            return false;
        }
        match self.backend.inner() {
            // Opening it again is left to whoever looks at all, and watches it then.
            Backend::Here(io) => {
                let has_link = io.is_up();
                self.failed &= !has_link;
                self.record.has_link.store(has_link, Relaxed);
            }
            _ => self.record.has_link.store(has_link, Relaxed),
        }
        true
    }

    /// Brings a description up to date with what the back end last told; returns whether anything changed.
    pub fn describe(&self, port: &mut Port) -> bool {
        let before = *port;
        let has_link = self.record.has_link.load(Relaxed);
        port.hw_addr = MacAddr::from_u64(self.record.hw_addr.load(Relaxed));
        port.state.set(PortState::LINK_DOWN, !has_link);
        set_liveness(port);
        set_speed(port, self.record.speed_kbps.load(Relaxed));
        *port != before
    }

    /// What went through the port.
    pub fn stats(&self, now: Duration) -> PortStats {
        let age = now.saturating_sub(self.record.added);
        let sum = |counter| self.record.sum(counter);
        PortStats {
            port_no: self.port_no,
            rx_packets: sum(|counters| &counters.rx_packets),
            tx_packets: sum(|counters| &counters.tx_packets),
            rx_bytes: sum(|counters| &counters.rx_bytes),
            tx_bytes: sum(|counters| &counters.tx_bytes),
            rx_dropped: sum(|counters| &counters.rx_dropped) + self.blocked(),
            tx_dropped: sum(|counters| &counters.tx_dropped),
            rx_errors: sum(|counters| &counters.rx_errors),
            tx_errors: NOT_KEPT,
            rx_frame_err: NOT_KEPT,
            rx_over_err: NOT_KEPT,
            rx_crc_err: NOT_KEPT,
            collisions: NOT_KEPT,
            duration_sec: age.as_secs() as u32,
            duration_nsec: age.subsec_nanos(),
        }
    }

    /// How many of the frames that came in were dropped because of the port's configuration.
    pub fn blocked(&self) -> u64 {
        self.record.sum(|counters| &counters.rx_blocked)
    }
}

impl Backend {
    /// The way behind the queues, if there are some.
    #[inline]
    fn inner(&self) -> &Self {
        match self {
            Self::Queued(queued) => &queued.inner,
            backend => backend,
        }
    }

    /// The same, to be changed.
    #[inline]
    fn inner_mut(&mut self) -> &mut Self {
        match self {
            Self::Queued(queued) => &mut queued.inner,
            backend => backend,
        }
    }

    /// Sends a frame past queues, and counts it. Returns whether the port has accepted it.
    fn send(&mut self, frame: &[u8], counters: &Counters) -> bool {
        let is_sent = match self {
            Self::Here(io) => io.send(frame),
            Self::Beside(sender) => sender.send(frame),
            Self::Elsewhere(outlet) => {
                counters.count_lost(outlet.push(frame));
                return true;
            }
            Self::Queued(queued) => return queued.inner.send(frame, counters),
        };
        if is_sent {
            counters.count_sent(frame.len() as u64);
        }
        is_sent
    }

    /// Has everything leave that is not in queues. Returns whether something is left.
    fn flush(&mut self, counters: &Counters) -> bool {
        match self {
            Self::Here(io) => {
                io.flush();
                io.has_unsent()
            }
            Self::Beside(sender) => {
                sender.flush();
                sender.has_unsent()
            }
            Self::Elsewhere(outlet) => {
                counters.count_lost(outlet.flush());
                false
            }
            Self::Queued(queued) => queued.inner.flush(counters),
        }
    }

    /// Ends queues, and sends what waits in them.
    fn take_all(&mut self, queues: &SharedQueues, counters: &Counters) {
        let lost = queues.close(|frame| self.send(frame, counters));
        counters.count_lost(lost);
    }
}

impl Queued {
    fn push(&mut self, queue_id: u32, frame: &[u8], counters: &Counters) {
        let is_lost = match self.queues.push(queue_id, frame) {
            Pushed::Waits => false,
            Pushed::Dropped => true,
            Pushed::Closed => !self.inner.send(frame, counters),
        };
        counters.count_lost(is_lost.into());
    }

    /// Has frames leave that may; a port without a link drops all. Returns whether some are left.
    fn flush(&mut self, record: &PortRecord, counters: &Counters, now: Duration) -> bool {
        let Self { queues, inner } = self;
        let is_empty = match record.has_link.load(Relaxed) {
            true => {
                let send = |frame: &[u8]| inner.send(frame, counters);
                queues.poll(record.rate_bps(), now, send) == Polled::Empty
            }
            false => {
                counters.count_lost(queues.discard());
                true
            }
        };
        inner.flush(counters) || !is_empty
    }
}

impl PortRecord {
    fn new(added: Duration, io: &dyn PortIo) -> Self {
        let record = Self {
            added,
            link_index: AtomicU32::default(),
            hw_addr: AtomicU64::default(),
            config: AtomicU32::default(),
            has_link: AtomicBool::default(),
            speed_kbps: AtomicU32::default(),
            counters: Mutex::default(),
        };
        record.identify(io);
        record
    }

    /// Notes which interface it is.
    fn identify(&self, io: &dyn PortIo) {
        self.link_index.store(io.link_index().unwrap_or(0), Relaxed);
        self.hw_addr.store(io.hw_addr().to_u64(), Relaxed);
    }

    /// What all threads have counted.
    fn sum(&self, counter: fn(&Counters) -> &AtomicU64) -> u64 {
        let all = self.counters.lock();
        let counts = all.iter().map(|counters| counter(counters).load(Relaxed));
        counts.sum()
    }

    /// The rate that the back end reports, in bits a second, if it does.
    fn rate_bps(&self) -> Option<u64> {
        match self.speed_kbps.load(Relaxed) {
            0 => None,
            speed_kbps => Some(u64::from(speed_kbps) * 1000),
        }
    }

    fn config(&self) -> PortConfig {
        PortConfig::from_bits_retain(self.config.load(Relaxed))
    }
}

impl Counters {
    fn count_sent(&self, bytes: u64) {
        add(&self.tx_packets, 1);
        add(&self.tx_bytes, bytes);
    }

    fn count_lost(&self, count: usize) {
        if count > 0 {
            add(&self.tx_dropped, count as u64);
        }
    }
}

/// Adds to a number that only this thread changes.
#[inline]
fn add(counter: &AtomicU64, more: u64) {
    counter.store(counter.load(Relaxed) + more, Relaxed);
}

/// A port can take packets over from another (fast failover) while it has a link and is not switched off.
pub(crate) fn set_liveness(port: &mut Port) {
    let is_live =
        !port.state.contains(PortState::LINK_DOWN) && !port.config.contains(PortConfig::PORT_DOWN);
    port.state.set(PortState::LIVE, is_live);
}

fn set_speed(port: &mut Port, speed_kbps: u32) {
    port.curr_speed = speed_kbps;
    port.max_speed = port.max_speed.max(speed_kbps);
    port.curr = match speed_kbps {
        0 => PortFeatures::empty(),
        10_000 => PortFeatures::FD_10MB,
        100_000 => PortFeatures::FD_100MB,
        1_000_000 => PortFeatures::FD_1GB,
        10_000_000 => PortFeatures::FD_10GB,
        40_000_000 => PortFeatures::FD_40GB,
        100_000_000 => PortFeatures::FD_100GB,
        1_000_000_000 => PortFeatures::FD_1TB,
        _ => PortFeatures::OTHER,
    };
}
