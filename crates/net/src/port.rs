//! A switch's ports in this network.
//!
//! **What.** [`SwitchSide`] is the network's side of a switch's ports: frames enter by [`SwitchSide::push`], and the switch's
//! sent frames leave by [`SwitchSide::exchange`], those of all ports in the order in which they were sent. [`NetPort`] is the
//! switch's back end.
//!
//! **Why not [`urtica_switch::port::memory`].** That module has a queue and a lock for each direction of each link. Here the
//! network removes all frames that a switch has sent at once, and buffers are reused.
//!
//! **Cost.** An uncontended lock per received burst, per sent frame and per exchange; a copy of each sent frame.
//!
//! **Thread-safety.** A back end must be `Send`. The network and the switch are on one thread, so the locks are never
//! contended.

use crate::frame::{Frame, Spare};
use parking_lot::Mutex;
use rustix::fd::BorrowedFd;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use urtica_switch::PortIo;
use urtica_wire::MacAddr;

/// The maximum number of frames queued for a switch at one port; more are dropped.
const QUEUE_FRAMES: usize = 1024;

/// The number of buffers that a switch has for frames that it sends.
const RESERVE_FRAMES: usize = 64;

/// The parameters of a port.
#[derive(Clone, Debug)]
pub(crate) struct PortSpec {
    pub name: String,
    pub hw_addr: MacAddr,
    pub speed_kbps: u32,
}

/// The network's side of a switch's ports.
pub(crate) struct SwitchSide {
    ports: Vec<Arc<Socket>>,
    sent: Arc<Mutex<Sent>>,
}

/// The connection point of a link.
#[derive(Default)]
struct Socket {
    has_carrier: AtomicBool,
    /// The number of frames in `queue`.
    waiting: AtomicUsize,
    queue: Mutex<VecDeque<Frame>>,
}

/// The sent frames, each with its port's index.
#[derive(Default)]
struct Sent {
    frames: Vec<(u32, Frame)>,
    spare: Spare,
}

/// The switch's side of one port.
struct NetPort {
    spec: PortSpec,
    place: u32,
    socket: Arc<Socket>,
    sent: Arc<Mutex<Sent>>,
    /// Delivered frames, whose buffers are free.
    burst: Vec<Frame>,
}

impl SwitchSide {
    /// Creates the ports of a switch, without links, and their back ends.
    pub fn new(specs: &[PortSpec]) -> (Self, Vec<Box<dyn PortIo>>) {
        let mut side = Self {
            ports: Vec::new(),
            sent: Arc::default(),
        };
        let back_ends = specs.iter().map(|spec| side.add(spec)).collect();
        (side, back_ends)
    }

    /// Adds a port, without a link; returns its back end.
    pub fn add(&mut self, spec: &PortSpec) -> Box<dyn PortIo> {
        let socket = Arc::<Socket>::default();
        let port = NetPort {
            spec: spec.clone(),
            place: self.ports.len() as u32,
            socket: Arc::clone(&socket),
            sent: Arc::clone(&self.sent),
            burst: Vec::new(),
        };
        self.ports.push(socket);
        Box::new(port)
    }

    /// Sets whether a port has carrier.
    pub fn set_carrier(&self, place: usize, has_carrier: bool) {
        self.ports[place].has_carrier.store(has_carrier, Relaxed);
    }

    /// Delivers a frame to a port. Returns it if the queue is full.
    pub fn push(&self, place: usize, frame: Frame) -> Result<(), Frame> {
        let socket = &self.ports[place];
        let waiting = socket.waiting.load(Relaxed);
        if waiting >= QUEUE_FRAMES {
            return Err(frame);
        }
        socket.queue.lock().push_back(frame);
        socket.waiting.store(waiting + 1, Relaxed);
        Ok(())
    }

    /// Exchanges the frames sent since the last call, in order, for buffers for the next ones.
    pub fn exchange(&self, frames: &mut Vec<(u32, Frame)>, spare: &mut Spare) {
        let mut sent = self.sent.lock();
        std::mem::swap(&mut sent.frames, frames);
        sent.spare.level(spare, RESERVE_FRAMES);
    }

    /// Returns the number of frames that wait for the switch.
    pub fn waiting(&self) -> usize {
        (0..self.ports.len())
            .map(|place| self.waiting_at(place))
            .sum()
    }

    /// Returns the number of frames that wait at this port.
    pub fn waiting_at(&self, place: usize) -> usize {
        self.ports[place].waiting.load(Relaxed)
    }
}

impl PortIo for NetPort {
    fn name(&self) -> &str {
        &self.spec.name
    }

    fn hw_addr(&self) -> MacAddr {
        self.spec.hw_addr
    }

    fn is_up(&self) -> bool {
        self.socket.has_carrier.load(Relaxed)
    }

    fn speed_kbps(&self) -> u32 {
        self.spec.speed_kbps
    }

    fn receive(&mut self, max: usize, handle: &mut dyn FnMut(&[u8])) -> io::Result<usize> {
        let waiting = self.socket.waiting.load(Relaxed);
        let count = waiting.min(max);
        if count == 0 {
            return Ok(0);
        }
        self.burst.extend(self.socket.queue.lock().drain(..count));
        self.socket.waiting.store(waiting - count, Relaxed);
        self.burst.iter().for_each(|frame| handle(frame));
        self.sent.lock().spare.append(&mut self.burst);
        Ok(count)
    }

    fn send(&mut self, frame: &[u8]) -> bool {
        if !self.is_up() {
            return false;
        }
        let mut sent = self.sent.lock();
        let frame = sent.spare.copy(frame);
        sent.frames.push((self.place, frame));
        true
    }

    fn flush(&mut self) {}

    fn as_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two_ports() -> (SwitchSide, Vec<Box<dyn PortIo>>) {
        let spec = |name: &str| PortSpec {
            name: name.into(),
            hw_addr: MacAddr::new([2, 0, 0, 0, 0, 1]),
            speed_kbps: 0,
        };
        let (side, ports) = SwitchSide::new(&[spec("a"), spec("b")]);
        side.set_carrier(0, true);
        side.set_carrier(1, true);
        (side, ports)
    }

    fn sent(side: &SwitchSide) -> Vec<(u32, Frame)> {
        let mut frames = Vec::new();
        side.exchange(&mut frames, &mut Spare::default());
        frames
    }

    #[test]
    fn frames_pass_in_order_both_ways() {
        let (side, mut ports) = two_ports();
        (0..3).for_each(|mark| side.push(1, vec![mark; 60]).unwrap());
        let mut marks = Vec::new();
        assert_eq!(
            ports[1]
                .receive(2, &mut |frame| marks.push(frame[0]))
                .unwrap(),
            2
        );
        assert_eq!((marks, side.waiting()), (vec![0, 1], 1));
        assert!(ports[1].send(&[8; 60]) && ports[0].send(&[9; 60]));
        assert_eq!(sent(&side), [(1, vec![8; 60]), (0, vec![9; 60])]);
        assert_eq!(sent(&side), []);
    }

    #[test]
    fn nothing_is_sent_without_a_link() {
        let (side, mut ports) = two_ports();
        side.set_carrier(0, false);
        assert!(!ports[0].is_up() && !ports[0].send(&[1; 60]));
        assert_eq!(sent(&side), []);
    }

    #[test]
    fn a_full_queue_returns_the_frame() {
        let (side, mut ports) = two_ports();
        (0..QUEUE_FRAMES).for_each(|_| side.push(0, vec![1]).unwrap());
        assert_eq!(side.push(0, vec![2]), Err(vec![2]));
        ports[0].receive(1, &mut |_| {}).unwrap();
        assert_eq!(side.push(0, vec![2]), Ok(()));
    }
}
