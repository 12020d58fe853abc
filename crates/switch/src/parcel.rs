//! Frames for a port that belongs to another thread.

use crate::mailbox::Mailbox;
use std::sync::Arc;
use urtica_wire::PortNo;

/// Number of frames after which a parcel is sent.
const MAX_FRAMES: usize = 32;

/// Maximum number of frames that wait for a thread.
pub(crate) const MAX_WAITING: usize = 2048;

/// A thread's queue of parcels from other threads.
pub(crate) type Inbox = Mailbox<Parcel>;

/// Some frames for one port.
#[derive(Debug)]
pub(crate) struct Parcel {
    pub port_no: PortNo,
    bytes: Vec<u8>,
    /// The end of each frame in `bytes`.
    ends: Vec<usize>,
}

impl Parcel {
    /// Creates an empty parcel. Sending an empty one makes the port flush its queues.
    pub fn new(port_no: PortNo) -> Self {
        Self {
            port_no,
            bytes: Vec::new(),
            ends: Vec::new(),
        }
    }

    /// Returns the frames, in the order in which they were sent.
    pub fn frames(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let ranges = starts.zip(&self.ends);
        ranges.map(|(start, &end)| &self.bytes[start..end])
    }

    fn push(&mut self, frame: &[u8]) {
        self.bytes.extend_from_slice(frame);
        self.ends.push(self.bytes.len());
    }

    fn begin_again(&mut self, port_no: PortNo) {
        self.port_no = port_no;
        self.bytes.clear();
        self.ends.clear();
    }
}

/// A path from one thread to another thread's port.
pub(crate) struct Outlet {
    parcel: Parcel,
    inbox: Arc<Inbox>,
}

impl Outlet {
    /// Creates an outlet to the port with this number, through its thread's inbox.
    pub fn new(port_no: PortNo, inbox: Arc<Inbox>) -> Self {
        Self {
            parcel: Parcel::new(port_no),
            inbox,
        }
    }

    /// Sends a frame, at the latest with the next [`Outlet::flush`]. Returns the number of frames lost to a full inbox.
    #[must_use]
    pub fn push(&mut self, frame: &[u8]) -> usize {
        self.parcel.push(frame);
        match self.parcel.ends.len() {
            MAX_FRAMES.. => self.flush(),
            _ => 0,
        }
    }

    /// Sends all queued frames. Returns the number of frames lost to a full inbox.
    #[must_use]
    pub fn flush(&mut self) -> usize {
        let count = self.parcel.ends.len();
        if count == 0 {
            return 0;
        }
        let port_no = self.parcel.port_no;
        let full = std::mem::replace(&mut self.parcel, Parcel::new(port_no));
        let (used, lost) = match self.inbox.put(full, count) {
            Ok(used) => (used, 0),
            Err(refused) => (Some(refused), count),
        };
        if let Some(mut used) = used {
            used.begin_again(port_no);
            self.parcel = used;
        }
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(inbox: &Inbox) -> Vec<Vec<u8>> {
        let mut parcels = Vec::new();
        inbox.exchange(&mut parcels);
        let frames = parcels.iter().flat_map(Parcel::frames);
        frames.map(<[u8]>::to_vec).collect()
    }

    #[test]
    fn frames_arrive_in_order() {
        let inbox = Arc::new(Inbox::new(MAX_WAITING).unwrap());
        let mut outlet = Outlet::new(PortNo(7), Arc::clone(&inbox));
        let frames: Vec<Vec<u8>> = (0..100)
            .map(|mark| vec![mark; 60 + usize::from(mark)])
            .collect();
        for _ in 0..3 {
            let lost: usize = frames.iter().map(|frame| outlet.push(frame)).sum();
            assert_eq!(lost + outlet.flush(), 0);
            assert_eq!(received(&inbox), frames);
        }
    }

    #[test]
    fn lost_frames_are_counted() {
        let inbox = Arc::new(Inbox::new(64).unwrap());
        let mut outlet = Outlet::new(PortNo(7), Arc::clone(&inbox));
        let lost: usize = (0..100).map(|mark| outlet.push(&[mark; 60])).sum();
        assert_eq!(lost + outlet.flush(), 36);
        assert_eq!(received(&inbox).len(), 64);
        assert_eq!(outlet.push(&[1; 60]) + outlet.flush(), 0);
        assert_eq!(received(&inbox), [[1; 60]]);
    }
}
