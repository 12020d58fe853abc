//! Sessions that are created before switches need them.
//!
//! A session is an entry of a map of maps, and each change of such a map waits until all processors have left the programs that
//! may be using it: 10 to 20 ms, or more on a busy machine. So no thread that serves switches changes such a map. The pool's
//! own thread creates sessions in advance, many at a time; a switch that joins uses one that is ready, and returns it when it
//! leaves. If none is ready, the program alone answers the switch until one is.

use crate::maps::{Entries, MAX_SESSIONS, Made};
use crate::waker::{Waker, ring_bytes};
use memmap2::MmapOptions;
use parking_lot::Mutex;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU8};
use std::sync::mpsc::{Receiver, Sender, channel};

/// The number of sessions that are created at first, and the minimum that are created at a time. Each time, the number of
/// sessions doubles.
const FIRST: u32 = 8;

/// Default limit of the number of sessions, which bounds the memory that peers can make the system use.
pub const DEFAULT_MAX_SWITCHES: u32 = 1024;

/// Creates the map of a session, and the ring that wakes its program, if the application has one.
pub(crate) type Make = Box<dyn Fn() -> io::Result<(OwnedFd, Option<OwnedFd>)> + Send>;

/// Creates a pool's sessions.
pub(crate) struct Maker {
    pub make: Make,
    /// Size of a session.
    pub bytes: usize,
}

/// A switch's lease of a session, which is returned when this is dropped.
pub(crate) struct Lease {
    made: Arc<Made>,
    pool: Pool,
    then: AtomicU8,
}

/// The action when a session's lease ends: clear the session for another switch, remove it, or leave it to the next program.
const RENEW: u8 = 0;
const REMOVE: u8 = 1;
const LEAVE: u8 = 2;

impl Lease {
    pub fn slot(&self) -> u32 {
        self.made.slot
    }

    /// Returns the session's map.
    pub fn session(&self) -> BorrowedFd<'_> {
        self.made.session.as_fd()
    }

    /// Returns the program's waker.
    pub fn waker(&self) -> Option<Arc<Waker>> {
        self.made.waker.clone()
    }

    /// Makes the session unavailable to other switches.
    pub fn remove(&self) {
        self.then.store(REMOVE, Relaxed);
    }

    /// Leaves the session to the next program.
    pub fn leave(&self) {
        self.then.store(LEAVE, Relaxed);
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        match self.then.load(Relaxed) {
            RENEW => self.pool.give_back(Order::Renew(Arc::clone(&self.made))),
            REMOVE => self.pool.give_back(Order::Remove(self.made.slot)),
            _ => {}
        }
    }
}

/// The sessions of one kind. Any thread may use the pool, and never waits for the kernel.
#[derive(Clone)]
pub(crate) struct Pool {
    state: Arc<Mutex<State>>,
    orders: Sender<Order>,
}

struct State {
    /// Sessions that no switch uses.
    ready: Vec<Arc<Made>>,
    /// Slots that were used but have no session now.
    free: Vec<u32>,
    /// The first slot that was never used.
    unused: u32,
    /// The number of sessions that switches use.
    leased: u32,
    /// The number of slots that have a session, or for which one is being created.
    made: u32,
    /// Maximum number of sessions.
    limit: u32,
    /// Whether more sessions have been ordered.
    is_making: bool,
    /// Whether the limit was logged.
    has_logged: bool,
}

/// An order for the pool's thread.
enum Order {
    Make,
    Renew(Arc<Made>),
    Remove(u32),
}

impl Pool {
    /// Starts a pool of sessions in these maps of maps, in which these slots, in order, belong to an earlier program's
    /// connections. Without a maker, sessions can only be returned to it.
    pub fn start(entries: Entries, maker: Option<Maker>, used: &[u32]) -> io::Result<Self> {
        let unused = used.last().map_or(0, |last| last + 1);
        let free = (0..unused).filter(|slot| used.binary_search(slot).is_err());
        let state = Arc::new(Mutex::new(State {
            ready: Vec::new(),
            free: free.collect(),
            unused,
            leased: used.len() as u32,
            made: used.len() as u32,
            limit: DEFAULT_MAX_SWITCHES,
            is_making: false,
            has_logged: false,
        }));
        let (orders, received) = channel();
        let worker = Worker {
            entries,
            maker,
            state: Arc::clone(&state),
            has_warned: AtomicBool::new(false),
        };
        worker.make(FIRST.min(MAX_SESSIONS.saturating_sub(used.len() as u32)))?;
        let thread = std::thread::Builder::new().name("kernel sessions".into());
        thread.spawn(move || worker.run(&received))?;
        Ok(Self { state, orders })
    }

    /// Limits the number of sessions. Further ones are removed as soon as no switch uses them.
    pub fn limit(&self, count: u32) {
        let mut state = self.state.lock();
        state.limit = count.min(MAX_SESSIONS);
        while state.made > state.limit {
            let Some(made) = state.ready.pop() else {
                return;
            };
            state.made -= 1;
            self.order(Order::Remove(made.slot));
        }
    }

    /// Returns a session that is ready, if any.
    pub fn take(&self) -> Option<Lease> {
        let mut state = self.state.lock();
        let made = state.ready.pop();
        if state.ready.len() < FIRST as usize / 2 && state.made < state.limit && !state.is_making {
            state.is_making = true;
            self.order(Order::Make);
        }
        if made.is_none()
            && state.leased >= state.limit
            && !std::mem::replace(&mut state.has_logged, true)
        {
            tracing::warn!(
                limit = state.limit,
                "reached the limit of switches with a kernel half; the program answers further switches alone"
            );
        }
        let made = made?;
        state.leased += 1;
        Some(self.lease(made))
    }

    /// Leases a session that an earlier program left in one of the used slots.
    pub fn resume(&self, made: Made) -> Lease {
        self.lease(Arc::new(made))
    }

    fn lease(&self, made: Arc<Made>) -> Lease {
        Lease {
            made,
            pool: self.clone(),
            then: AtomicU8::new(RENEW),
        }
    }

    fn give_back(&self, order: Order) {
        let mut state = self.state.lock();
        state.leased -= 1;
        let order = match order {
            Order::Renew(made) if state.made > state.limit => Order::Remove(made.slot),
            order => order,
        };
        if matches!(order, Order::Remove(_)) {
            state.made -= 1;
        }
        self.order(order);
    }

    fn order(&self, order: Order) {
        // Fails only if the thread has panicked: then no session is renewed or created.
        let _ = self.orders.send(order);
    }
}

/// The pool's thread.
struct Worker {
    entries: Entries,
    maker: Option<Maker>,
    state: Arc<Mutex<State>>,
    has_warned: AtomicBool,
}

impl Worker {
    /// Carries out orders, all queued ones at a time, until the last sender is dropped.
    fn run(&self, orders: &Receiver<Order>) {
        while let Ok(first) = orders.recv() {
            let (mut renewed, mut removed, mut is_more_wanted) = (Vec::new(), Vec::new(), false);
            for order in std::iter::once(first).chain(orders.try_iter()) {
                match order {
                    Order::Make => is_more_wanted = true,
                    Order::Renew(made) => renewed.push(made),
                    Order::Remove(slot) => removed.push(slot),
                }
            }
            self.remove(removed);
            self.renew(renewed);
            if is_more_wanted {
                self.make_more();
            }
        }
    }

    /// Creates as many sessions as exist already, up to the limit.
    fn make_more(&self) {
        let count = {
            let state = self.state.lock();
            let room = state.limit.saturating_sub(state.made);
            state.made.max(FIRST).min(room)
        };
        match self.make(count) {
            Ok(()) => self.log_size(),
            Err(error) if !self.has_warned.swap(true, Relaxed) => {
                tracing::warn!(%error, "cannot create more sessions of the kernel half; the program answers further switches alone");
            }
            _ => {}
        }
        self.state.lock().is_making = false;
    }

    /// Logs the memory that all sessions need.
    fn log_size(&self) {
        let Some(maker) = &self.maker else {
            return;
        };
        let waker_bytes = self.entries.wakers.as_ref().map_or(0, |_| ring_bytes());
        let sessions = self.state.lock().made;
        let bytes = sessions as usize * (maker.bytes + waker_bytes);
        tracing::info!(sessions, bytes, "created more sessions of the kernel half");
    }

    fn make(&self, count: u32) -> io::Result<()> {
        let Some(maker) = &self.maker else {
            return Ok(());
        };
        let slots = self.state.lock().take_slots(count);
        let made = slots.iter().map(|slot| maker.make(*slot));
        let made = made.collect::<io::Result<Vec<_>>>().and_then(|made| {
            self.entries.enter(made.iter())?;
            Ok(made)
        });
        let mut state = self.state.lock();
        match made {
            Ok(made) => state.ready.extend(made.into_iter().map(Arc::new)),
            Err(error) => {
                state.made -= slots.len() as u32;
                state.free.extend(slots);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Clears sessions for other switches.
    fn renew(&self, made: Vec<Arc<Made>>) {
        if made.is_empty() {
            return;
        }
        // Waits until no program uses a session that it found before the session's switch left.
        let is_left = self.entries.enter(made.iter().map(Arc::as_ref)).is_ok();
        let maker = self.maker.as_ref().filter(|_| is_left);
        for made in made {
            match maker.map(|maker| maker.clear(&made)) {
                Some(Ok(())) => self.state.lock().ready.push(made),
                _ => {
                    self.state.lock().made -= 1;
                    self.remove(vec![made.slot]);
                }
            }
        }
    }

    fn remove(&self, slots: Vec<u32>) {
        if !slots.is_empty() {
            self.entries.remove(&slots);
            self.state.lock().free.extend(slots);
        }
    }
}

impl State {
    /// Returns `count` unused slots, or fewer if not as many are left.
    fn take_slots(&mut self, count: u32) -> Vec<u32> {
        let mut slots = Vec::new();
        while slots.len() < count as usize {
            match self.free.pop() {
                Some(slot) => slots.push(slot),
                None if self.unused < MAX_SESSIONS => {
                    slots.push(self.unused);
                    self.unused += 1;
                }
                None => break,
            }
        }
        self.made += slots.len() as u32;
        slots
    }
}

impl Maker {
    fn make(&self, slot: u32) -> io::Result<Made> {
        let (session, waker) = (self.make)()?;
        let waker = waker.map(Waker::map).transpose()?.map(Arc::new);
        Ok(Made {
            slot,
            session,
            waker,
        })
    }

    /// Resets a session to its initial state. No program uses it, neither here nor in the kernel.
    fn clear(&self, made: &Made) -> io::Result<()> {
        let session = MmapOptions::new()
            .len(self.bytes)
            .map_raw(made.session.as_raw_fd())?;
        // SAFETY: this number of bytes is mapped there, and no other code uses them.
        unsafe { session.as_mut_ptr().write_bytes(0, self.bytes) };
        if let Some(waker) = &made.waker {
            waker.clear();
        }
        Ok(())
    }
}
