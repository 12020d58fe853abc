//! Raw programs, which receive a switch's frames unchanged, and send their own frames.
//!
//! **Why.** A [`Program`](crate::Program) sees decoded messages, and shares its switches with other programs: cookies and
//! xids identify the sender, and the session configures the switch. A program that speaks OpenFlow itself, such as one
//! written for another controller, expects neither.
//!
//! **How.** The session answers the hello, requests the features and keeps the connection alive. The program receives every
//! other frame unchanged, starting with the hello and the features reply, and its frames are sent unchanged.

use crate::frame::{FrameError, check_frame};
use crate::switch::FLUSH_BYTES;
use crate::xid::{Origin, Xids};
use crate::xid_map::XidMap;
use crate::{Background, Network, SwitchCounters, SwitchInfo};
use std::time::Instant;
use urtica_wire::{DatapathId, split_frame};

/// `OFPT_PACKET_IN`, which is equal in all versions.
const PACKET_IN: u8 = 10;

/// A program that gets frames instead of messages: see [`Controller::raw_program`](crate::Controller::raw_program).
///
/// Any function from a switch's description to a [`RawHandler`] is a raw program.
pub trait RawProgram: Send + Sync {
    /// Creates the handler for a switch that has sent its features reply. The handler then gets the switch's frames, from its
    /// hello on.
    fn handler(&self, info: &SwitchInfo) -> Box<dyn RawHandler>;

    /// Starts the program: see [`Program::start`](crate::Program::start).
    fn start(&self, _background: &Background) {}
}

impl<F, H> RawProgram for F
where
    F: Fn(&SwitchInfo) -> H + Send + Sync,
    H: RawHandler + 'static,
{
    fn handler(&self, info: &SwitchInfo) -> Box<dyn RawHandler> {
        Box::new(self(info))
    }
}

/// One switch's part of a [`RawProgram`], with its own state.
///
/// Like a [`SwitchHandler`](crate::SwitchHandler), it runs on one thread at a time and must not block. If it panics, its
/// switch is disconnected.
pub trait RawHandler: Send {
    /// Handles one frame: a whole message, from its header on. The length in its header is correct; nothing else was checked.
    fn frame(&mut self, _switch: &mut RawSwitch, _frame: &[u8]) {}

    /// Handles frames that arrived together; passes them to [`RawHandler::frame`] one by one. Frames that an override leaves
    /// in `frames`, although [`Frames::next`] would return them, are skipped.
    fn frames(&mut self, switch: &mut RawSwitch, frames: &mut Frames) {
        while let Some(frame) = frames.next(switch) {
            self.frame(switch, frame);
        }
    }

    /// Called when the connection has closed. Nothing more can be sent.
    fn switch_down(&mut self, _info: &SwitchInfo) {}
}

/// Frames that arrived together, limited by the space for their replies.
pub struct Frames<'a> {
    bytes: &'a [u8],
    taken: u64,
    packet_ins: u64,
}

impl<'a> Frames<'a> {
    /// Creates the frames from a sequence of whole frames.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            taken: 0,
            packet_ins: 0,
        }
    }

    /// Returns the next frame; `None` if no frame is left, or if the output should be sent first.
    pub fn next(&mut self, switch: &RawSwitch) -> Option<&'a [u8]> {
        match self.taken == 0 || switch.has_room() {
            true => self.split_first(),
            false => None,
        }
    }

    fn split_first(&mut self) -> Option<&'a [u8]> {
        let (frame, rest) = split_frame(self.bytes).ok()??;
        self.bytes = rest;
        self.taken += 1;
        self.packet_ins += u64::from(frame[1] == PACKET_IN);
        Some(frame)
    }

    /// Skips the frames that the handler left, unless the output should be sent first. Returns the number of remaining bytes,
    /// and the numbers of frames and packet-ins handled.
    pub(crate) fn finish(mut self, switch: &RawSwitch) -> (usize, u64, u64) {
        while self.next(switch).is_some() {}
        (self.bytes.len(), self.taken, self.packet_ins)
    }
}

/// A raw handler's switch, during frames that arrived together.
///
/// Frames sent here are appended to the shard's output and sent in one write when the whole batch has been handled.
pub struct RawSwitch<'a> {
    pub(crate) info: &'a SwitchInfo,
    pub(crate) out: &'a mut Vec<u8>,
    pub(crate) xids: &'a mut Xids,
    pub(crate) map: &'a mut XidMap,
    /// Returns whether replies to an origin are for another sender.
    pub(crate) others: &'a dyn Fn(Origin) -> bool,
    pub(crate) counters: &'a SwitchCounters,
    pub(crate) network: &'a Network,
    pub(crate) now: Instant,
}

impl RawSwitch<'_> {
    fn has_room(&self) -> bool {
        self.out.len() < FLUSH_BYTES
    }

    /// Returns the description of the switch. In OpenFlow 1.3 its ports are known only if services run with the raw program:
    /// the session requests their description only for services.
    pub fn info(&self) -> &SwitchInfo {
        self.info
    }

    /// Returns the switch's datapath id.
    pub fn datapath_id(&self) -> DatapathId {
        self.info.datapath_id
    }

    /// Returns the time: read once per batch of messages; simulated in a simulated network.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Returns the network, for the other switches and for services: see [`Network::send_frames`].
    pub fn network(&self) -> &Network {
        self.network
    }

    /// Sends one whole message, unchanged. Its xid may be replaced on the wire if another sender uses it; replies have the
    /// program's xid.
    ///
    /// # Errors
    /// [`FrameError`] if the length in its header is wrong; then nothing is sent. Nothing else is checked.
    pub fn send_frame(&mut self, frame: &[u8]) -> Result<(), FrameError> {
        check_frame(frame)?;
        let start = self.out.len();
        self.out.extend_from_slice(frame);
        self.map
            .replace(&mut self.out[start..], self.xids, self.others);
        self.counters.sent.add(1);
        Ok(())
    }
}
