//! One ring and its reader: the paper's application thread.
//!
//! **Why it has its own loop.** In a shard, the loop calls the program. Here, as in the paper, the program calls [`Ring::poll`]
//! and then reads record by record, and may stop between any two. So the progress of reading is state of the ring ([`Reading`])
//! instead of a shard's stack. Both share [`Poller`], the sessions ([`Embedded`](urtica_controller::Embedded)), the [`Reader`]
//! of the ring, and each connection's [`Link`](super::link::Link).

mod peers;
mod waiting;

use super::link::KernelCounts;
use super::peer::{Peer, Read};
use super::reader::{Next, Reader};
use super::record::{MessageType, Record};
use super::replies::Replies;
use super::rings::{NewConnection, Registration, RingError, Rings};
use super::sessions::{RingEvent, Sessions, SwitchReport};
use peers::Peers;
use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};
use urtica_socket::Poller;
use urtica_wire::split_frame;
use waiting::open_poller;

/// Number of bytes at which replies to one switch are sent even without a flush.
const FLUSH_BYTES: usize = 64 << 10;

/// Interval at which sessions handle time-outs.
const TICK: Duration = Duration::from_millis(250);

/// Maximum number of sockets that one wait can report.
const EVENTS: usize = 256;

/// Keys in the poller that identify no connection.
const RING: u64 = u64::MAX;
const INBOX: u64 = u64::MAX - 1;
const LISTENERS: u64 = u64::MAX - 2;

/// The reason why [`Ring::poll`] has returned. If no field is set, the time-out has expired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ready {
    /// Input has arrived: call [`Ring::next_record`] (the paper's POLLRDNORM).
    pub input: bool,
    /// Switches have connected or left: call [`Ring::next_event`] (POLLRDBAND). Never set without [`Ring::subscribe_events`].
    pub control: bool,
    /// The kernel has lost sockets, which are read directly from now on (POLLERR). Reported once; it does not end a wait.
    pub error: bool,
    /// All input has been handled, and replies wait to be flushed: call [`Ring::flush`] (POLLOUT).
    pub output: bool,
}

/// A registration for a ring, and its input.
///
/// One invariant: **a switch's messages reach the program in order**, through the ring or, if they do not fit into it, from the
/// socket; and no message of a switch is handled while the switch does not accept its replies.
///
/// Registering and subscribing: [`Rings::register`](super::Rings::register), [`Ring::subscribe`],
/// [`Ring::flush_every`]. Input: [`Ring::poll`], [`Ring::next_record`], [`Ring::next_event`]. Output: [`Replies`],
/// [`Ring::flush`].
///
/// Thread-safety: one thread at a time may use it. It may be sent to another thread, or shared with a lock.
pub struct Ring {
    peers: Peers,
    reader: Reader,
    registration: Registration,
    sessions: Sessions,
    /// Events of switches that have connected or left, if subscribed to.
    events: Option<VecDeque<RingEvent>>,
    poller: Poller,
    /// Bit N: messages of type N are subscribed to.
    types: u64,
    /// Index of the next record of the entry at the front.
    record: usize,
    /// Connections whose sockets must be read, by number.
    ready: VecDeque<u64>,
    /// The progress of handling the connection that was last read.
    reading: Option<Reading>,
    /// The bytes that were last read.
    buffer: Vec<u8>,
    /// Connections with replies that have not been flushed.
    unflushed: Vec<u64>,
    /// The connection of the last record.
    last: u64,
    flush_interval: Option<Duration>,
    flush_due: Option<Instant>,
    next_tick: Instant,
    /// Whether the tick has been delayed until the input is handled.
    is_tick_late: bool,
    /// Whether the kernel has lost sockets and the program has not been notified yet.
    has_lost: bool,
}

/// Progress of handling the bytes that were read.
struct Reading {
    number: u64,
    at: usize,
    is_drained: bool,
}

/// The location of a record.
enum RecordLocation {
    /// In the first entry of the ring.
    Ring(usize),
    /// In the bytes that were read.
    Buffer(Range<usize>),
}

impl Rings {
    /// Registers for a ring and maps it. Dropping the registration closes the ring's connections and makes the ring available
    /// again.
    ///
    /// # Errors
    /// [`RingError`] if there is no such ring, or it has a registration already.
    pub fn register(&self, number: usize) -> Result<Ring, RingError> {
        Ring::open(self.reserve(number)?)
    }
}

impl Ring {
    fn open(registration: Registration) -> Result<Self, RingError> {
        let shared = registration.shared();
        let reader = Reader::open(&shared.kernel, shared.settings.ring_bytes);
        let reader = reader.map_err(RingError::io("make a ring"))?;
        let sessions = Sessions::new(shared.settings.session.clone())?;
        let poller = open_poller(&reader, &registration).map_err(RingError::io("watch a ring"))?;
        Ok(Self {
            peers: Peers::default(),
            reader,
            registration,
            sessions,
            events: None,
            poller,
            types: 0,
            record: 0,
            ready: VecDeque::new(),
            reading: None,
            buffer: Vec::new(),
            unflushed: Vec::new(),
            last: 0,
            flush_interval: None,
            flush_due: None,
            next_tick: Instant::now() + TICK,
            is_tick_late: false,
            has_lost: false,
        })
    }

    /// Passes messages of this type through this ring. The session handles all other types, as in any controller.
    ///
    /// # Errors
    /// [`RingError::Subscribed`] if another subscription exists: each type has one consumer.
    pub fn subscribe(&mut self, message_type: MessageType) -> Result<(), RingError> {
        if self.types & message_type.bit() != 0 {
            return Err(RingError::Subscribed);
        }
        self.types |= message_type.bit();
        for (_, peer) in &self.peers.slab {
            if let Some(link) = &peer.link {
                link.set_types(self.types);
            }
        }
        // These connections had no messages for the ring.
        for number in self.peers.numbers() {
            self.make_ready(number);
        }
        Ok(())
    }

    /// Makes this ring report switches that connect and leave: the paper's control queue.
    pub fn subscribe_events(&mut self) {
        self.events.get_or_insert_default();
    }

    /// Flushes replies automatically when `interval` has passed since the first was written, while the program polls or reads
    /// records. [`Ring::poll`] then does not wait for [`Ring::flush`].
    pub fn flush_every(&mut self, interval: Duration) {
        self.flush_interval = Some(interval);
    }

    /// Waits until there is work, but no longer than the time-out.
    ///
    /// # Errors
    /// The system's errors.
    pub fn poll(&mut self, timeout: Duration) -> io::Result<Ready> {
        let until = Instant::now().checked_add(timeout);
        loop {
            let ready = self.ready_now();
            let is_idle = ready == Ready::default();
            let now = Instant::now();
            let wait = match until {
                _ if !is_idle => Duration::ZERO,
                None => TICK,
                Some(until) => until.saturating_duration_since(now),
            };
            self.wait(wait.min(self.next_due(now)))?;
            self.reader.look();
            self.handle_time();
            let ready = self.ready_now();
            if ready != Ready::default() || until.is_some_and(|until| Instant::now() >= until) {
                let error = std::mem::take(&mut self.has_lost);
                return Ok(Ready { error, ..ready });
            }
        }
    }

    /// Returns the next message, and the buffer for replies. `None` if all input of the last [`Ring::poll`] has been handled.
    pub fn next_record(&mut self) -> Option<(Record<'_>, Replies<'_>)> {
        let (number, place) = self.find()?;
        self.note_unflushed(number);
        self.last = number;
        let peer = self.peers.get_mut(number)?;
        let switch = peer.switch?;
        let record = match place {
            RecordLocation::Ring(index) => {
                let entry = self.reader.entry();
                Record::of_kernel(switch, &entry.records[index], entry.messages)?
            }
            RecordLocation::Buffer(range) => Record::of_message(switch, &self.buffer[range])?,
        };
        Some((record, Replies::new(switch, &mut peer.output)))
    }

    /// Returns the next event of a switch that has connected or left.
    pub fn next_event(&mut self) -> Option<RingEvent> {
        self.events.as_mut()?.pop_front()
    }

    /// Sends all replies. If a switch does not accept them, they wait, and so does the switch's input.
    pub fn flush(&mut self) {
        self.flush_due = None;
        for number in std::mem::take(&mut self.unflushed) {
            if let Some(peer) = self.peers.get_mut(number) {
                peer.is_unflushed = false;
                self.flush_peer(number);
            }
        }
    }

    /// Returns the kernel's counts for the connected switches.
    pub fn counts(&self) -> KernelCounts {
        let links = self
            .peers
            .slab
            .iter()
            .filter_map(|(_, peer)| peer.link.as_ref());
        links.fold(KernelCounts::default(), |sum, link| sum + link.counts())
    }

    /// Returns the number of switches connected to this ring.
    pub fn connections(&self) -> usize {
        self.peers.slab.len()
    }

    // ---- Finding the next message ----

    fn find(&mut self) -> Option<(u64, RecordLocation)> {
        self.flush_last_if_full();
        loop {
            let found = self.find_in_buffer().or_else(|| self.find_in_ring());
            if found.is_some() {
                return found;
            }
            let number = self.ready.pop_front()?;
            self.begin_reading(number);
        }
    }

    /// Returns the ring's next message for the program.
    fn find_in_ring(&mut self) -> Option<(u64, RecordLocation)> {
        loop {
            if let Next::Passed(number) = self.reader.next()? {
                self.take_back(number);
                continue;
            }
            let entry = self.reader.entry();
            let next = entry.records.get(self.record);
            let peer = self.peers.get_mut(entry.connection);
            let (Some(raw), Some(peer)) = (next, peer) else {
                self.pass_over_entry();
                continue;
            };
            if !peer.takes_messages() {
                peer.keep(&entry.messages[raw.at as usize..]);
                self.pass_over_entry();
                continue;
            }
            if self.record == 0 {
                self.sessions.note_received(peer.session);
                self.flush_if_due();
            }
            if let Some(found) = self.take_record() {
                return Some(found);
            }
        }
    }

    /// Reads the next record of the first entry, for the program or for the session.
    fn take_record(&mut self) -> Option<(u64, RecordLocation)> {
        let entry = self.reader.entry();
        let number = entry.connection;
        let (index, raw) = (self.record, entry.records.get(self.record)?);
        let switch = self.peers.get_mut(number)?.switch?;
        self.record += 1;
        if Record::of_kernel(switch, raw, entry.messages).is_some() {
            return Some((number, RecordLocation::Ring(index)));
        }
        let message = entry.messages[raw.at as usize..][..raw.bytes.into()].to_vec();
        self.pass_to_session(number, &message);
        None
    }

    fn pass_over_entry(&mut self) {
        self.reader.pass_over();
        self.record = 0;
    }

    /// Handles a connection that the kernel has passed to the program, after all its earlier messages in the ring.
    fn take_back(&mut self, number: u64) {
        let Some(peer) = self.peers.get_mut(number) else {
            return;
        };
        let Some(link) = &mut peer.link else {
            return;
        };
        if link.take_back(&mut peer.input) {
            self.watch(number);
            self.make_ready(number);
        }
    }

    /// Returns the buffer's next message for the program. All other messages are passed to the session.
    fn find_in_buffer(&mut self) -> Option<(u64, RecordLocation)> {
        loop {
            let Reading { number, at, .. } = *self.reading.as_ref()?;
            let Some(peer) = self.peers.get_mut(number) else {
                self.reading = None;
                return None;
            };
            if peer.is_stalled {
                peer.keep(&self.buffer[at..]);
                self.reading = None;
                return None;
            }
            let rest = &self.buffer[at..];
            let length = match split_frame(rest) {
                Ok(Some((frame, _))) => frame.len(),
                Ok(None) => {
                    self.end_reading();
                    return None;
                }
                // The session reports the error and ends the connection.
                Err(_) => rest.len(),
            };
            let range = at..at + length;
            if let Some(reading) = &mut self.reading {
                reading.at = range.end;
            }
            if is_for_program(peer, &self.buffer[range.clone()], self.types) {
                return Some((number, RecordLocation::Buffer(range)));
            }
            let told = std::mem::take(&mut peer.told);
            self.pass_buffer_to_session(number, range.start + told..range.end);
        }
    }

    /// Reads a connection, or handles its kept input.
    fn begin_reading(&mut self, number: u64) {
        let Some(peer) = self.peers.get_mut(number) else {
            return;
        };
        peer.is_ready = false;
        if peer.is_stalled {
            return;
        }
        self.buffer.clear();
        let has_kept = std::mem::take(&mut peer.has_kept);
        let mut is_drained = false;
        if has_kept {
            self.buffer.append(&mut peer.input);
        } else if !peer.is_read_by_kernel() || peer.is_closing {
            match peer.read(&mut self.buffer) {
                Read::Bytes { is_drained: all } => is_drained = all,
                Read::End => return self.close(number),
            }
        } else {
            return;
        }
        self.reading = Some(Reading {
            number,
            at: 0,
            is_drained,
        });
        if has_kept {
            self.make_ready(number);
        }
    }

    /// Ends reading: the rest of the buffer, if any, is the start of a message.
    fn end_reading(&mut self) {
        let Some(reading) = self.reading.take() else {
            return;
        };
        let (number, fragment) = (reading.number, reading.at..self.buffer.len());
        let Some(peer) = self.peers.get_mut(number) else {
            return;
        };
        peer.input.clear();
        peer.input.extend_from_slice(&self.buffer[fragment.clone()]);
        if peer.switch.is_none() {
            // The peer may not be a switch, and may send an apparently long message that never ends.
            let told = std::mem::replace(&mut peer.told, fragment.len());
            self.pass_buffer_to_session(number, fragment.start + told..fragment.end);
        }
        if reading.is_drained {
            self.hand_over(number);
        }
    }

    /// Hands input over to the kernel, after all input has been handled, so that the kernel puts further input into the ring.
    fn hand_over(&mut self, number: u64) {
        let types = self.types;
        let Some(peer) = self.peers.get_mut(number) else {
            return;
        };
        let Some(switch) = peer.switch else {
            return;
        };
        if types == 0 || peer.is_stalled || peer.is_refused || peer.is_closing || peer.told > 0 {
            return;
        }
        if peer.link.is_none() {
            let attached = self
                .reader
                .attach(number, peer.socket(), switch.version, types, true);
            match attached {
                Ok(link) => peer.link = Some(link),
                // Read from its socket until a session is ready.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) => {
                    peer.is_refused = true;
                    tracing::warn!(dp_id = %switch.datapath_id, %error, "cannot pass a switch's messages through the ring; reading them from its socket");
                    return;
                }
            }
        }
        if let Some(link) = &mut peer.link {
            if link.hand_over(&peer.input) {
                peer.input.clear();
            }
        }
        self.watch(number);
    }

    // ---- Sessions ----

    fn pass_buffer_to_session(&mut self, number: u64, range: Range<usize>) {
        let buffer = std::mem::take(&mut self.buffer);
        self.pass_to_session(number, &buffer[range]);
        self.buffer = buffer;
    }

    /// Passes a message to the session, and sends its output.
    fn pass_to_session(&mut self, number: u64, bytes: &[u8]) {
        let Some(peer) = self.peers.get_mut(number) else {
            return;
        };
        let result = self.sessions.handle(peer.session, bytes);
        self.sessions.take_output(peer.session, &mut peer.output);
        self.note_reports(Some(number));
        self.flush_peer(number);
        if result.is_err() {
            self.close(number);
        }
    }

    /// Handles the sessions' reports; those of this session last.
    fn note_reports(&mut self, number: Option<u64>) {
        for told in self.sessions.take_reports() {
            let event = match told {
                SwitchReport::Joined(switch) => {
                    let peer = number.and_then(|number| self.peers.get_mut(number));
                    if let Some(peer) = peer {
                        peer.joined = Some(switch);
                    }
                    continue;
                }
                SwitchReport::Up(switch) => {
                    self.peers.bring_up(switch);
                    RingEvent::SwitchUp(switch)
                }
                SwitchReport::Down(switch) => RingEvent::SwitchDown(switch),
            };
            if let Some(events) = &mut self.events {
                events.push_back(event);
            }
        }
    }

    // ---- Connections ----

    /// Checks whether the kernel has lost sockets. Their input would never be reported.
    fn check_for_lost(&mut self) {
        let mut has_lost = false;
        for (_, peer) in &mut self.peers.slab {
            has_lost |= peer.is_found_lost();
        }
        if has_lost {
            tracing::warn!("the kernel no longer fills rings; reading sockets instead");
            self.has_lost = true;
            self.reader.find_passed();
        }
    }

    fn add(&mut self, connection: NewConnection) {
        let session = self.sessions.connect(connection.peer);
        let number = self.peers.add(connection.socket, session);
        let Some(peer) = self.peers.get_mut(number) else {
            return;
        };
        if let Err(error) = self.poller.add(peer.socket(), number, peer.watched) {
            tracing::warn!(%error, "cannot watch a connection; closing it");
            self.close(number);
        }
    }

    fn close(&mut self, number: u64) {
        if let Some(mut peer) = self.peers.remove(number) {
            // A switch that has closed its own side still receives requested replies.
            let _ = peer.flush();
            self.sessions.disconnect(peer.session);
            self.note_reports(None);
            self.poller.delete(peer.socket());
        }
    }

    fn flush_peer(&mut self, number: u64) {
        let Some(peer) = self.peers.get_mut(number) else {
            return;
        };
        match peer.flush() {
            Ok(()) => self.watch(number),
            Err(_) => self.close(number),
        }
    }

    fn note_unflushed(&mut self, number: u64) {
        let Some(peer) = self.peers.get_mut(number) else {
            return;
        };
        if std::mem::replace(&mut peer.is_unflushed, true) {
            return;
        }
        self.unflushed.push(number);
        if let (None, Some(interval)) = (self.flush_due, self.flush_interval) {
            self.flush_due = Instant::now().checked_add(interval);
        }
    }

    fn flush_last_if_full(&mut self) {
        let last = self.last;
        if let Some(peer) = self.peers.get_mut(last) {
            if peer.output.len() >= FLUSH_BYTES && !peer.is_stalled {
                self.flush_peer(last);
            }
        }
    }

    fn flush_if_due(&mut self) {
        if self.flush_due.is_some_and(|due| due <= Instant::now()) {
            self.flush();
        }
    }

    // ---- Waiting ----
}

impl AsFd for Ring {
    /// Returns a descriptor that is readable while [`Ring::poll`] has work, except for timers. It is for a thread that waits
    /// for several rings.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.poller.as_fd()
    }
}

/// Returns whether a message is for the program rather than for the session.
fn is_for_program(peer: &Peer, message: &[u8], types: u64) -> bool {
    let is_subscribed = message
        .get(1)
        .is_some_and(|&number| number < 64 && types >> number & 1 != 0);
    let record = peer.switch.filter(|_| is_subscribed && peer.told == 0);
    record.is_some_and(|switch| Record::of_message(switch, message).is_some())
}
