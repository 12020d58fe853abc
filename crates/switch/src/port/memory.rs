//! A link in memory: one end receives the frames that the other sends.
//!
//! **What.** Two bounded queues of frames, one for each direction, for tests and for emulated networks. Both ends may be used
//! by one thread or by two.
//!
//! **Cost.** One lock for a burst received and one for each frame sent, and a copy of the frame in each direction; buffers
//! are reused. The descriptor to wait for is an eventfd, created at the first request. If no receiver waits, there are no
//! system calls.
//!
//! **Limits.** A frame is refused if the queue is full. An end is up while the other one exists.

use super::PortIo;
use parking_lot::{Mutex, MutexGuard};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, OnceLock};
use urtica_wire::MacAddr;

/// One end of the link.
pub struct MemoryPort {
    name: String,
    hw_addr: MacAddr,
    incoming: Arc<Direction>,
    outgoing: Arc<Direction>,
    /// Received frames for the caller of [`PortIo::receive`], outside the lock so that the peer can send.
    burst: Vec<Vec<u8>>,
}

/// One direction of the link.
struct Direction {
    queue: Mutex<Queue>,
    /// Signals frames to the receiving end, once its descriptor was requested; contains `None` if the system refused one.
    bell: OnceLock<Option<OwnedFd>>,
}

struct Queue {
    frames: VecDeque<Vec<u8>>,
    /// Buffers of received frames, for reuse.
    spare: Vec<Vec<u8>>,
    capacity: usize,
    /// Whether the bell was rung for the current frames.
    rung: bool,
}

/// Creates the two ends of a link with space for `capacity` frames in each direction.
pub fn pair(
    (a_name, a_addr): (&str, MacAddr),
    (b_name, b_addr): (&str, MacAddr),
    capacity: usize,
) -> (MemoryPort, MemoryPort) {
    let (a_to_b, b_to_a) = (Direction::new(capacity), Direction::new(capacity));
    let end = |name: &str, hw_addr, incoming: &Arc<_>, outgoing: &Arc<_>| MemoryPort {
        name: name.to_owned(),
        hw_addr,
        incoming: Arc::clone(incoming),
        outgoing: Arc::clone(outgoing),
        burst: Vec::new(),
    };
    (
        end(a_name, a_addr, &b_to_a, &a_to_b),
        end(b_name, b_addr, &a_to_b, &b_to_a),
    )
}

impl PortIo for MemoryPort {
    fn name(&self) -> &str {
        &self.name
    }

    fn hw_addr(&self) -> MacAddr {
        self.hw_addr
    }

    fn is_up(&self) -> bool {
        Arc::strong_count(&self.incoming) > 1
    }

    fn speed_kbps(&self) -> u32 {
        0
    }

    fn receive(&mut self, max: usize, handle: &mut dyn FnMut(&[u8])) -> io::Result<usize> {
        self.incoming.take(max, &mut self.burst);
        self.burst.iter().for_each(|frame| handle(frame));
        let count = self.burst.len();
        if count > 0 {
            self.incoming.lock().spare.append(&mut self.burst);
        }
        Ok(count)
    }

    fn send(&mut self, frame: &[u8]) -> bool {
        self.outgoing.lock().push(frame)
    }

    fn flush(&mut self) {
        self.outgoing.ring();
    }

    fn as_fd(&self) -> Option<BorrowedFd<'_>> {
        self.incoming.watch()
    }
}

impl Direction {
    fn new(capacity: usize) -> Arc<Self> {
        let queue = Queue {
            frames: VecDeque::new(),
            spare: Vec::new(),
            capacity,
            rung: false,
        };
        Arc::new(Self {
            queue: Mutex::new(queue),
            bell: OnceLock::new(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock()
    }

    /// Moves at most `max` frames into `burst`, and silences the bell if the queue is then empty.
    fn take(&self, max: usize, burst: &mut Vec<Vec<u8>>) {
        let mut queue = self.lock();
        let count = max.min(queue.frames.len());
        burst.extend(queue.frames.drain(..count));
        if queue.frames.is_empty() && std::mem::take(&mut queue.rung) {
            self.silence();
        }
    }

    /// Creates the bell, and rings it for frames that arrived before.
    fn watch(&self) -> Option<BorrowedFd<'_>> {
        let make = || eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).ok();
        self.bell.get_or_init(make);
        self.ring();
        self.bell.get()?.as_ref().map(AsFd::as_fd)
    }

    /// Rings the bell, if there is one and the queue has frames.
    fn ring(&self) {
        let Some(Some(bell)) = self.bell.get() else {
            return;
        };
        let mut queue = self.lock();
        if !queue.frames.is_empty() && !std::mem::replace(&mut queue.rung, true) {
            // Fails only if the counter is at its limit, and so readable already.
            let _ = rustix::io::write(bell, &1_u64.to_ne_bytes());
        }
    }

    fn silence(&self) {
        if let Some(Some(bell)) = self.bell.get() {
            // Fails only if it is silent already.
            let _ = rustix::io::read(bell, &mut [0_u8; 8]);
        }
    }
}

impl Queue {
    fn push(&mut self, frame: &[u8]) -> bool {
        if self.frames.len() >= self.capacity {
            return false;
        }
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.clear();
        buffer.extend_from_slice(frame);
        self.frames.push_back(buffer);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::port::testing::{frame, is_readable, receive};

    fn link(capacity: usize) -> (MemoryPort, MemoryPort) {
        let mac = |last| MacAddr::new([2, 0, 0, 0, 0, last]);
        pair(("a", mac(1)), ("b", mac(2)), capacity)
    }

    #[test]
    fn frames_arrive_in_order_and_in_both_directions() {
        let (mut a, mut b) = link(8);
        for mark in 0..5 {
            assert!(a.send(&frame(60 + usize::from(mark), mark)));
        }
        assert!(b.send(&frame(100, 9)));
        let expected: Vec<_> = (0..5)
            .map(|mark| frame(60 + usize::from(mark), mark))
            .collect();
        assert_eq!(receive(&mut b, 5), expected);
        assert_eq!(receive(&mut a, 1), [frame(100, 9)]);
    }

    #[test]
    fn receive_respects_its_maximum() {
        let (mut a, mut b) = link(8);
        (0..5).for_each(|mark| assert!(a.send(&frame(60, mark))));
        assert_eq!(b.receive(3, &mut |_| {}).unwrap(), 3);
        assert_eq!(b.receive(3, &mut |_| {}).unwrap(), 2);
        assert_eq!(b.receive(3, &mut |_| {}).unwrap(), 0);
    }

    #[test]
    fn a_full_queue_refuses_frames() {
        let (mut a, mut b) = link(2);
        assert!(a.send(&frame(60, 0)) && a.send(&frame(60, 1)));
        assert!(!a.send(&frame(60, 2)));
        receive(&mut b, 2);
        assert!(a.send(&frame(60, 3)));
    }

    #[test]
    fn up_as_long_as_the_other_end_exists() {
        let (a, b) = link(2);
        assert!(a.is_up() && b.is_up());
        drop(b);
        assert!(!a.is_up());
    }

    #[test]
    fn readable_exactly_while_frames_wait() {
        let (mut a, mut b) = link(8);
        a.send(&frame(60, 0));
        assert!(is_readable(&b, 0), "frames that came before it was watched");
        receive(&mut b, 1);
        assert!(!is_readable(&b, 0));
        a.send(&frame(60, 1));
        a.send(&frame(60, 2));
        a.flush();
        assert!(is_readable(&b, 0));
        b.receive(1, &mut |_| {}).unwrap();
        assert!(is_readable(&b, 0), "one frame is left");
        b.receive(1, &mut |_| {}).unwrap();
        assert!(!is_readable(&b, 0));
    }

    #[test]
    fn ends_work_on_two_threads() {
        const FRAMES: usize = 10_000;
        let (mut a, mut b) = link(64);
        let sender = std::thread::spawn(move || {
            for number in 0..FRAMES {
                while !a.send(&frame(60, number as u8)) {
                    std::thread::yield_now();
                }
                a.flush();
            }
        });
        let mut received = Vec::new();
        while received.len() < FRAMES {
            assert!(is_readable(&b, 900));
            b.receive(32, &mut |frame| received.push(frame[20]))
                .unwrap();
        }
        sender.join().unwrap();
        assert!(
            received
                .iter()
                .enumerate()
                .all(|(number, &mark)| number as u8 == mark)
        );
    }
}
