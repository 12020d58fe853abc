//! The switch's ports: their back ends and counters.
//!
//! Each thread of a switch has a table of all ports. It has the back ends of its own ports, and for the others either
//! senders, if the back end offers them, or outlets to the thread that has the port. If several threads share a port's
//! flows, each has its own back end of it. The state that all threads need of a port is in one [`PortRecord`]. Each thread
//! has its own counters, which are added up on request.
//!
//! **Queues.** A port with queues has another kind of [`Backend`], so that queues cost other ports nothing.

mod backend;
mod record;

use crate::parcel::{Inbox, Outlet, Parcel};
use crate::queues::SharedQueues;
use crate::{LentFrame, PortError, PortIo, Received};
use backend::{Backend, Queued};
#[cfg(test)]
pub(crate) use record::ReceivedHere;
use record::{Counters, PortRecord, add};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use urtica_wire::packet::ethernet;
use urtica_wire::{MacAddr, Port, PortConfig, PortFeatures, PortNo, PortState, PortStats};

/// Minimum length of an Ethernet frame, without the check sequence.
const SHORTEST: usize = 60;

/// The value of a counter that is not kept (1.3.5 section 7.3.5.6).
const NOT_KEPT: u64 = u64::MAX;

/// Flags with which a port drops received frames.
const NO_RECEIVE: PortConfig = PortConfig::PORT_DOWN.union(PortConfig::NO_RECV);

/// Flags with which a port drops frames to be sent.
const NO_SEND: PortConfig = PortConfig::PORT_DOWN.union(PortConfig::NO_FWD);

/// All ports, sorted by number.
#[derive(Default)]
pub(crate) struct PortTable {
    ports: Vec<SwitchPort>,
}

/// One thread's state of a port.
pub(crate) struct SwitchPort {
    pub port_no: PortNo,
    backend: Backend,
    /// The inbox of the thread that sends the frames of queues; `None` if it is this thread.
    home: Option<Arc<Inbox>>,
    record: Arc<PortRecord>,
    /// This thread's counters.
    counters: Arc<Counters>,
    /// Whether the back end has returned an error; then it is only polled again once it has a link.
    failed: bool,
    /// Whether frames were sent since the last flush, or kept by it.
    unflushed: bool,
    /// Number of frames sent since then.
    unflushed_frames: usize,
    /// Lent frames that were refused, to be returned.
    refused: Vec<LentFrame>,
}

impl PortTable {
    /// Adds a port; returns whether it replaced one with its number.
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

    /// Removes a port.
    pub fn remove(&mut self, port_no: PortNo) -> Option<SwitchPort> {
        let at = self.find(port_no).ok()?;
        Some(self.ports.remove(at))
    }

    /// Converts the table to its ports.
    pub fn into_ports(self) -> impl Iterator<Item = SwitchPort> {
        self.ports.into_iter()
    }

    /// Returns the number of ports.
    pub fn len(&self) -> usize {
        self.ports.len()
    }

    /// Returns the port at index `at`.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn at_mut(&mut self, at: usize) -> &mut SwitchPort {
        &mut self.ports[at]
    }

    /// Returns the ports, sorted by number.
    pub fn iter(&self) -> impl Iterator<Item = &SwitchPort> {
        self.ports.iter()
    }

    /// Returns the ports mutably, sorted by number.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut SwitchPort> {
        self.ports.iter_mut()
    }

    /// Returns the port with this number.
    pub fn get(&self, port_no: PortNo) -> Option<&SwitchPort> {
        let at = self.find(port_no).ok()?;
        self.ports.get(at)
    }

    /// Returns the port with this number mutably.
    pub fn get_mut(&mut self, port_no: PortNo) -> Option<&mut SwitchPort> {
        let at = self.find(port_no).ok()?;
        self.ports.get_mut(at)
    }

    /// Returns the port with this number, if its configuration allows sending.
    pub fn sender(&mut self, port_no: PortNo) -> Option<&mut SwitchPort> {
        let port = self.get_mut(port_no)?;
        (!port.record.config().intersects(NO_SEND)).then_some(port)
    }

    /// Transmits all queued frames, except those that must wait in queues.
    pub fn flush(&mut self, now: Duration) {
        for port in self.ports.iter_mut().filter(|port| port.unflushed) {
            port.flush(now);
        }
    }

    /// Flushes the ports by which at least `count` frames were sent since the last flush.
    pub fn flush_those_with(&mut self, count: usize, now: Duration) {
        let is_full = |port: &&mut SwitchPort| port.unflushed_frames >= count;
        self.ports
            .iter_mut()
            .filter(is_full)
            .for_each(|port| port.flush(now));
    }

    /// Sets or removes the queues of the port with this number, if it exists.
    pub fn set_queues(&mut self, port_no: PortNo, queues: Option<Arc<SharedQueues>>) {
        if let Some(port) = self.remove(port_no) {
            self.insert(port.with_queues(queues));
        }
    }

    /// Returns whether frames are left after the last flush. Then another flush should follow soon.
    pub fn has_unsent(&self) -> bool {
        self.ports.iter().any(|port| port.unflushed)
    }

    /// Returns the index of the port with this number, or the index for inserting it. Most switches number their ports 1, 2, 3,
    /// …, so the index that this implies is checked first.
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
    /// Creates a port that belongs to this thread, and its description.
    pub fn new(port_no: PortNo, io: Box<dyn PortIo>, now: Duration) -> (Self, Port) {
        let mut description = Port::new(port_no, io.hw_addr(), io.name());
        let record = PortRecord::new(now, &*io);
        let mut port = Self::with(port_no, Backend::Here(io), Arc::new(record));
        port.check_link();
        port.describe(&mut description);
        (port, description)
    }

    /// Splits the port for other threads, each of which receives a share of its flows: for as many as possible, `count` in total.
    /// `home` is the inbox of the thread that has this port.
    pub fn split(&mut self, count: usize, home: &Arc<Inbox>) -> Vec<Self> {
        let Backend::Here(io) = self.backend.inner_mut() else {
            return Vec::new();
        };
        let others = match io.split(count) {
            Ok(others) => others,
            Err(error) => {
                tracing::warn!(port_no = %self.port_no, %error, "cannot share the port among threads; one thread receives from it");
                Vec::new()
            }
        };
        let others = others.into_iter();
        others
            .map(|io| self.share(Backend::Here(io), Arc::clone(home)))
            .collect()
    }

    /// Returns this thread's count of received frames, for other threads.
    #[cfg(test)]
    pub fn received_here(&self) -> ReceivedHere {
        ReceivedHere(Arc::clone(&self.counters))
    }

    /// Returns the maximum number of threads that can receive by the port.
    pub fn max_threads(&self) -> usize {
        self.io().map_or(0, PortIo::max_threads)
    }

    /// Returns the port for a thread that only has the inbox of the thread with the back end.
    pub fn elsewhere(&self, inbox: Arc<Inbox>) -> Self {
        let outlet = || Backend::Elsewhere(Outlet::new(self.port_no, Arc::clone(&inbox)));
        let backend = match self.io().and_then(PortIo::sender) {
            Some(Ok(sender)) => Backend::Direct(sender),
            Some(Err(error)) => {
                tracing::info!(port_no = %self.port_no, %error, "cannot send directly through another thread's port; sending through that thread");
                outlet()
            }
            None => outlet(),
        };
        self.share(backend, inbox)
    }

    /// Returns the port for another thread, with its queues.
    fn share(&self, backend: Backend, home: Arc<Inbox>) -> Self {
        let mut port = Self::with(self.port_no, backend, Arc::clone(&self.record));
        port.home = Some(home);
        port.with_queues(self.queues().cloned())
    }

    /// Replaces or removes the port's queues. Frames that wait in the old queues are sent immediately.
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

    /// Returns the queues, if any.
    pub fn queues(&self) -> Option<&Arc<SharedQueues>> {
        match &self.backend {
            Backend::Queued(queued) => Some(&queued.queues),
            _ => None,
        }
    }

    /// Returns the rate that the back end reports, in bits a second, if any.
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

    /// Returns the back end, if it belongs to this thread.
    pub fn io(&self) -> Option<&dyn PortIo> {
        match self.backend.inner() {
            Backend::Here(io) => Some(&**io),
            _ => None,
        }
    }

    /// Converts the port to its back end, if that belongs to this thread.
    pub fn into_io(self) -> Option<Box<dyn PortIo>> {
        match self.backend {
            Backend::Here(io) => Some(io),
            Backend::Queued(queued) => match queued.inner {
                Backend::Here(io) => Some(io),
                _ => None,
            },
            Backend::Direct(_) | Backend::Elsewhere(_) => None,
        }
    }

    /// Sets the port's configuration, which applies from each thread's next burst on.
    pub fn set_config(&self, config: PortConfig) {
        self.record.config.store(config.bits(), Relaxed);
    }

    /// Passes on at most `max` frames, or drops them if the configuration requires it. Returns the number received, which is 0
    /// for a port of another thread.
    ///
    /// # Errors
    /// If the back end has failed; it is then not polled again until [`SwitchPort::check_link`] finds a link.
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
        let is_deaf = self.record.config().intersects(NO_RECEIVE);
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

    /// Sends a frame, whatever the configuration. A frame that became too short for Ethernet when a tag was popped is padded with
    /// zeros (IEEE 802.3 section 4.2.3.3).
    #[inline]
    pub fn send(&mut self, frame: &[u8]) {
        self.send_by(0, frame);
    }

    /// Sends a frame through a queue, if the port has queues; otherwise like [`SwitchPort::send`].
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

    /// Returns all frames of the list to the back end that lent them.
    pub fn take_back(&mut self, frames: &mut Vec<LentFrame>) {
        if let Backend::Here(io) = self.backend.inner_mut() {
            io.take_back(frames);
        }
    }

    /// Sends a lent frame, like [`SwitchPort::send`], but in place if the back end can.
    ///
    /// # Errors
    /// Returns the frame if it was copied: the caller must return its memory to its port.
    ///
    /// # Safety
    /// The port that lent the frame exists, and only the caller has the frame.
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

    /// Sends the frames of another thread by this port. A parcel without frames means that frames wait in queues.
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
            Backend::Direct(sender) => sender.send(frame),
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
                    // It has no weight, so the inbox does not refuse it.
                    let _ = home.put(Parcel::new(self.port_no), 0);
                }
                queued.inner.flush(counters)
            }
            (backend, _) => backend.flush(counters),
        };
    }

    /// Checks the link of the back end, if it belongs to this thread. Returns whether it was reopened, and must be watched again.
    pub fn check_link(&mut self) -> bool {
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
            urtica_log::warn!(about: port_no, %port_no, dropped, "receive buffer overflowed; frames were lost");
        }
        reopened.unwrap_or(false)
    }

    /// Makes the back end reopen an interface that was deleted. Returns whether it did.
    fn reopen(&mut self) -> Result<bool, PortError> {
        let port_no = self.port_no;
        let reopened = match self.backend.inner_mut() {
            Backend::Here(io) => io.reopen(),
            Backend::Direct(sender) => sender.reopen(),
            _ => return Ok(false),
        };
        match (&reopened, self.backend.inner()) {
            (Ok(true), Backend::Here(io)) => {
                self.record.identify(&**io);
                tracing::info!(%port_no, name = io.name(), "reopened an interface that was deleted and created again");
            }
            (Err(error), _) => {
                urtica_log::warn!(about: port_no, %port_no, %error, "cannot reopen an interface that was deleted and created again");
            }
            _ => {}
        }
        reopened
    }

    /// Handles the system's report of a network interface's link. Returns whether the interface is this port's.
    pub fn note_link(&mut self, link_index: u32, has_link: bool) -> bool {
        if self.record.link_index.load(Relaxed) != link_index {
            return false;
        }
        match self.backend.inner() {
            // Reopening is left to `check_link`, whose caller watches the port again.
            Backend::Here(io) => {
                let has_link = io.is_up();
                self.failed &= !has_link;
                self.record.has_link.store(has_link, Relaxed);
            }
            _ => self.record.has_link.store(has_link, Relaxed),
        }
        true
    }

    /// Updates a description from the back end's last reports; returns whether anything changed.
    pub fn describe(&self, port: &mut Port) -> bool {
        let before = *port;
        let has_link = self.record.has_link.load(Relaxed);
        port.hw_addr = MacAddr::from_u64(self.record.hw_addr.load(Relaxed));
        port.state.set(PortState::LINK_DOWN, !has_link);
        set_liveness(port);
        set_speed(port, self.record.speed_kbps.load(Relaxed));
        *port != before
    }

    /// Returns the port's counters.
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

    /// Returns the number of received frames that were dropped because of the port's configuration.
    pub fn blocked(&self) -> u64 {
        self.record.sum(|counters| &counters.rx_blocked)
    }
}

/// Sets whether fast failover may use a port: it must have a link, and not be configured down.
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
