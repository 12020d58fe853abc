//! Frames to and from a raw program.
//!
//! ```text
//!             hello … features reply         from then on
//! frame ──┬─► early ─────────────────┐  ┌──► RawHandler: all but replies to others
//!         └─► Session ──► join ──────┴──┤
//!                                       └──► Session, services: what they need, and replies to them
//! ```
//! Runs of frames for the program alone are passed to it together, without being decoded.

use super::joined::Joined;
use super::raw_part::RawPart;
use super::{Channel, Close, Connection, panic_of};
use crate::batch::BatchContext;
use crate::panics::panic_text;
use crate::program_list::ProgramList;
use crate::reconciliation::Waiting;
use crate::session::Subject;
use crate::switch::FLUSH_BYTES;
use crate::xid::Origin;
use crate::{Frames, RawSwitch};
use std::panic::{AssertUnwindSafe, catch_unwind};
use urtica_wire::{Header, Version, split_frame};

/// The maximum number of bytes from a switch that has not identified itself, which are kept for the raw program.
const MAX_EARLY_BYTES: usize = 1 << 20;

/// Message types with equal numbers in all versions.
const ECHO_REQUEST: u8 = 2;
const FEATURES_REPLY: u8 = 6;
const PORT_STATUS: u8 = 12;

/// `OFPT_ROLE_REPLY` of 1.3.
const ROLE_REPLY: u8 = 25;

/// The addressee of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Addressee {
    /// All programs: it is no reply.
    All,
    /// Another sender, by its xids: the session, a service, or code outside of programs.
    Other,
    /// The raw program, since it replies to one of its requests.
    Raw,
}

impl ProgramList {
    /// Returns `true` if replies to messages with xids of this origin are not for the raw program.
    fn is_others(&self, origin: Origin) -> bool {
        matches!(origin, Origin::RAW_SESSION | Origin::REQUEST | Origin::RAW)
            || self.identities.iter().any(|it| it.origin == origin)
    }
}

impl Joined {
    /// Returns the addressee of a frame.
    fn addressee(&self, header: Header) -> Addressee {
        let origin = Origin::of(header.xid);
        match is_reply(self.info.version, header.message_type) {
            false => Addressee::All,
            true if origin == Origin::RAW => Addressee::Raw,
            true if self.programs.is_others(origin) => Addressee::Other,
            true => Addressee::Raw,
        }
    }

    /// Returns the length of the frames at the front that are for the raw program alone.
    fn plain_run(&self, bytes: &[u8]) -> usize {
        if !self.programs.programs.is_empty() {
            return 0;
        }
        let mut rest = bytes;
        while let Ok(Some((frame, after))) = split_frame(rest) {
            let Some(header) = Header::peek(frame) else {
                break;
            };
            let is_sessions = matches!(header.message_type, ECHO_REQUEST | PORT_STATUS);
            let is_mapped = Origin::of(header.xid) == Origin::RAW;
            if is_sessions || is_mapped || self.addressee(header) == Addressee::Other {
                break;
            }
            rest = after;
        }
        bytes.len() - rest.len()
    }
}

impl<C: Channel> Connection<C> {
    /// Handles frames at the front of `rest`, which starts with a complete one.
    pub(super) fn handle_raw(
        &mut self,
        rest: &mut &[u8],
        batch: &mut BatchContext,
    ) -> Result<(), Close> {
        self.show_early(batch)?;
        let run = self.switch.as_ref().map_or(0, |it| it.plain_run(rest));
        if run > 0 {
            let (count, left) = self.show(&rest[..run], batch);
            self.count_received(count, batch);
            *rest = &rest[run - left..];
            return Ok(());
        }
        if let Ok(Some((frame, after))) = split_frame(rest) {
            *rest = after;
            self.count_received(1, batch);
            self.handle_raw_frame(frame, batch)?;
        }
        Ok(())
    }

    fn handle_raw_frame(&mut self, frame: &[u8], batch: &mut BatchContext) -> Result<(), Close> {
        let (Some(header), Some(joined)) = (Header::peek(frame), &self.switch) else {
            return self.handle_early(frame, batch);
        };
        match joined.addressee(header) {
            Addressee::Other => return self.handle_frame(frame, batch),
            Addressee::All => self.handle_frame(frame, batch)?,
            Addressee::Raw if header.message_type == ROLE_REPLY => {
                self.handle_frame(frame, batch)?;
            }
            Addressee::Raw => {}
        }
        let restored = self.raw().and_then(|raw| raw.map.restore(frame));
        self.show(restored.as_deref().unwrap_or(frame), batch);
        Ok(())
    }

    /// Handles a frame of a switch that has not joined, and keeps it for the program.
    fn handle_early(&mut self, frame: &[u8], batch: &mut BatchContext) -> Result<(), Close> {
        let answers = Header::peek(frame).is_some_and(|header| {
            let is_sessions = Origin::of(header.xid) == Origin::RAW_SESSION;
            is_sessions && !matches!(header.message_type, FEATURES_REPLY)
        });
        if !answers {
            if self.early.len() + frame.len() > MAX_EARLY_BYTES {
                return Err(Close::NotAdmitted(format!(
                    "it sent more than {MAX_EARLY_BYTES} bytes before its features reply; expected the reply first"
                )));
            }
            self.early.extend_from_slice(frame);
        }
        self.handle_frame(frame, batch)?;
        self.show_early(batch)
    }

    /// Passes the frames that arrived before the switch joined to its handler.
    fn show_early(&mut self, batch: &mut BatchContext) -> Result<(), Close> {
        if self.switch.is_none() || self.early.is_empty() {
            return Ok(());
        }
        let early = std::mem::take(&mut self.early);
        let mut rest = &early[..];
        while !rest.is_empty() {
            let (_, left) = self.show(rest, batch);
            rest = &rest[rest.len() - left..];
            if batch.out.len() >= FLUSH_BYTES {
                self.flush(batch)?;
            }
        }
        Ok(())
    }

    fn raw(&self) -> Option<&RawPart> {
        self.switch.as_ref()?.raw.as_ref()
    }

    /// Passes frames to the raw handler. Returns the number of frames handled, and the number of bytes left if the output
    /// should be sent first.
    fn show(&mut self, run: &[u8], batch: &mut BatchContext) -> (u64, usize) {
        let Some(joined) = &mut self.switch else {
            return (0, 0);
        };
        let (Some(raw), programs) = (&mut joined.raw, &joined.programs) else {
            return (0, 0);
        };
        let mut switch = RawSwitch {
            info: &joined.info,
            out: &mut batch.out,
            xids: &mut self.session.xids,
            map: &mut raw.map,
            others: &|origin| programs.is_others(origin),
            counters: &self.counters,
            network: &raw.network,
            now: batch.now,
        };
        let mut frames = Frames::new(run);
        raw.handler.frames(&mut switch, &mut frames);
        let (left, count, packet_ins) = frames.finish(&switch);
        // Packet-ins that services see have been counted.
        if programs.programs.is_empty() {
            self.counters.packet_ins.add(packet_ins);
        }
        (count, left)
    }

    /// Sends the raw program's frames from the mailbox. Their bytes were counted when the backlog admitted them.
    pub fn send_frames(&mut self, mut bytes: Vec<u8>, count: u64, batch: &BatchContext) {
        self.reclaim(batch);
        if let Some(joined) = &mut self.switch {
            if let Some(raw) = &mut joined.raw {
                let programs = &joined.programs;
                let mut rest = &mut bytes[..];
                while let Some(header) = Header::peek(rest) {
                    let (frame, after) = rest.split_at_mut(header.length.into());
                    let xids = &mut self.session.xids;
                    raw.map
                        .replace(frame, xids, |origin| programs.is_others(origin));
                    rest = after;
                }
            }
        }
        let counted = bytes.len();
        let sent = Waiting {
            counted,
            bytes,
            count,
            reply: None,
        };
        self.send_now(sent, batch.now);
    }
}

impl Joined {
    /// Notifies the raw handler that its switch is gone.
    pub(super) fn end_raw(&mut self, batch: &BatchContext) {
        let Some(mut raw) = self.raw.take() else {
            return;
        };
        let told = catch_unwind(AssertUnwindSafe(|| raw.handler.switch_down(&self.info)));
        let told = told.map_err(|panic| Close::Panic(panic_text(panic)));
        for reason in [told, raw.drop_contained()]
            .into_iter()
            .filter_map(Result::err)
        {
            let shard = &batch.network.shard(batch.shard).counters;
            shard.panics.add(1);
            let id = self.info.datapath_id;
            let log = batch.network.panic_log();
            log.note(None, Some(id), &panic_of(&reason));
            urtica_log::error!(about: Subject::Switch(id), dp_id = %id, %reason, "a handler panicked while its switch left");
        }
    }
}

/// Returns whether a message of this type answers a request, or refuses one.
fn is_reply(version: Version, message_type: u8) -> bool {
    match version {
        // OFPT_ERROR, and the types of section 5.1 of 1.0 that end in REPLY.
        Version::Of10 => matches!(message_type, 1 | 3 | 6 | 8 | 17 | 19 | 21),
        // The corresponding types of section 7.1 of 1.3.5.
        Version::Of13 => matches!(message_type, 1 | 3 | 6 | 8 | 19 | 21 | 23 | 25 | 27),
    }
}
