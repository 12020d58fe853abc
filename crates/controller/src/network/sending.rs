//! Messages to switches, from outside of handlers.

use super::Network;
use crate::actions::{self, Actions};
use crate::entries;
use crate::flooding;
use crate::frame::count_frames;
use crate::mailbox::Command;
use crate::permanent::{Full, PermanentEntries};
use crate::request::Asker;
use crate::role::is_write;
use crate::{ProgramId, RequestError, Stage, SwitchCounters, SwitchInfo};
use std::sync::atomic::Ordering;
use urtica_wire::{DatapathId, EncodeError, EntryOptions, Match, Message, Version, split_frame};

/// Encoded messages.
struct Encoded {
    bytes: Vec<u8>,
    /// The number of messages.
    count: u64,
    /// The start of each of the sender's messages, if the switch speaks 1.0: messages that add entries again may be between
    /// them.
    starts: Vec<usize>,
}

/// Returns `true` if the messages do not change a switch.
fn is_question(messages: &[Message]) -> bool {
    use Message::{EchoRequest, FeaturesRequest, GetAsyncRequest, GetConfigRequest};
    use Message::{MultipartRequest, QueueGetConfigRequest};
    let [message] = messages else {
        return false;
    };
    matches!(
        message,
        EchoRequest(_)
            | FeaturesRequest
            | GetAsyncRequest
            | GetConfigRequest
            | MultipartRequest(_)
            | QueueGetConfigRequest(_)
    )
}

/// Returns the message that starts here.
fn frame_at(bytes: &[u8], start: usize) -> Option<&[u8]> {
    let (frame, _) = split_frame(&bytes[start..]).ok()??;
    Some(frame)
}

impl Network {
    /// Sends a message to a switch. The switch's shard writes it; messages of one sender keep their order. An error reply is
    /// logged and reported to the program that this network belongs to
    /// ([`SwitchHandler::refused`](crate::SwitchHandler::refused)); to receive the outcome of one message, use
    /// [`Network::confirm`].
    ///
    /// # Errors
    /// [`RequestError::UnknownSwitch`], [`RequestError::Encode`], [`RequestError::Busy`], [`RequestError::Secondary`],
    /// [`RequestError::InTransaction`].
    pub fn send(&self, datapath_id: DatapathId, message: &Message) -> Result<(), RequestError> {
        self.send_all(datapath_id, std::slice::from_ref(message))
    }

    /// Sends messages to a switch, all or none of them, consecutively: no other sender's message is between them. They may
    /// have any total length; they are accepted if less than 4 MiB wait.
    ///
    /// # Errors
    /// Like [`Network::send`].
    pub fn send_all(
        &self,
        datapath_id: DatapathId,
        messages: &[Message],
    ) -> Result<(), RequestError> {
        if messages.is_empty() {
            return Ok(());
        }
        self.push(datapath_id, messages, None)
    }

    /// Sends frames of a [raw program](crate::Controller::raw_program) to a switch, unchanged: `frames` is a sequence of
    /// whole messages. All or none are sent, consecutively, and the switch's shard is woken once.
    ///
    /// # Errors
    /// [`RequestError::UnknownSwitch`], [`RequestError::NoRawProgram`], [`RequestError::Frame`], [`RequestError::Busy`],
    /// [`RequestError::InTransaction`].
    pub fn send_frames(
        &self,
        datapath_id: DatapathId,
        frames: impl Into<Vec<u8>>,
    ) -> Result<(), RequestError> {
        if urtica_state::in_transaction() {
            return Err(RequestError::InTransaction);
        }
        let bytes = frames.into();
        let count = count_frames(&bytes)?;
        let switches = self.read();
        let unknown = RequestError::UnknownSwitch(datapath_id);
        let entry = switches.get(&datapath_id).ok_or(unknown.clone())?;
        if !entry.is_raw {
            return Err(RequestError::NoRawProgram);
        }
        if !entry.backlog.add(bytes.len()) {
            entry.counters.refused.add_shared(count);
            return Err(RequestError::Busy(datapath_id));
        }
        let command = Command::SendFrames {
            token: entry.token,
            bytes,
            count,
        };
        // Fails only if that shard has ended, and the connection with it.
        let mailbox = &self.shard(entry.shard).mailbox;
        mailbox.push(command).map_err(|_| unknown)
    }

    /// Adds an entry that applies `actions` to matching packets; an empty list drops them (McNettle section 3,
    /// `installRule`).
    ///
    /// # Errors
    /// Like [`Network::send`].
    pub fn install<'b>(
        &self,
        datapath_id: DatapathId,
        match_: Match,
        actions: impl Into<Actions<'b>>,
        options: EntryOptions,
    ) -> Result<(), RequestError> {
        entries::with_addition(match_, actions.into(), options, |entry| {
            self.send(datapath_id, &Message::FlowMod(entry))
        })
    }

    /// Sends a packet that the controller has, from its Ethernet header on, out of a switch's port or through a list of
    /// actions.
    ///
    /// # Errors
    /// Like [`Network::send`].
    pub fn send_packet<'b>(
        &self,
        datapath_id: DatapathId,
        data: &[u8],
        actions: impl Into<Actions<'b>>,
    ) -> Result<(), RequestError> {
        actions::with_packet_out(data, actions.into(), |packet_out| {
            self.send(datapath_id, packet_out)
        })
    }

    /// Adds an entry that lets matching packets pass a filter: see [`Switch::let_pass`](crate::Switch::let_pass).
    ///
    /// # Errors
    /// Like [`Network::send`].
    pub fn let_pass(
        &self,
        datapath_id: DatapathId,
        match_: Match,
        options: EntryOptions,
    ) -> Result<(), RequestError> {
        self.for_stage(Stage::Filter)
            .send(datapath_id, &entries::pass(match_, options))
    }

    /// Deletes the entries of this network's program that `match_` includes, in all tables; if a program filters, in the
    /// table of this network's stage. See [`Switch::delete`](crate::Switch::delete).
    ///
    /// # Errors
    /// Like [`Network::send`].
    pub fn delete(&self, datapath_id: DatapathId, match_: Match) -> Result<(), RequestError> {
        self.delete_of(self.program(), datapath_id, match_)
    }

    /// Deletes another program's entries: see [`Switch::delete_of`](crate::Switch::delete_of).
    ///
    /// # Errors
    /// Like [`Network::send`].
    pub fn delete_of(
        &self,
        program: ProgramId,
        datapath_id: DatapathId,
        match_: Match,
    ) -> Result<(), RequestError> {
        self.send(datapath_id, &entries::deletion(match_, program))
    }

    pub(super) fn push(
        &self,
        datapath_id: DatapathId,
        messages: &[Message],
        reply: Option<Asker>,
    ) -> Result<(), RequestError> {
        if urtica_state::in_transaction() {
            return Err(RequestError::InTransaction);
        }
        let switches = self.read();
        let entry = switches
            .get(&datapath_id)
            .ok_or(RequestError::UnknownSwitch(datapath_id))?;
        if let Some(unsent) = self.unsent.as_ref().filter(|_| !is_question(messages)) {
            let encoded = self.encode(messages, &entry.joined, None)?;
            unsent.keep(datapath_id, &encoded.bytes, entry.joined.version, reply);
            return Ok(());
        }
        if !entry.may_write.load(Ordering::Relaxed) && messages.iter().any(is_write) {
            return Err(RequestError::Secondary(datapath_id));
        }
        // Locked until the messages are in the mailbox, so that the record and the switch see them in one order.
        let mut permanent = (entry.joined.version == Version::Of10).then(|| entry.permanent.lock());
        let Encoded {
            bytes,
            count,
            starts,
        } = self.encode(messages, &entry.joined, permanent.as_deref())?;
        if !entry.backlog.add(bytes.len()) {
            entry.counters.refused.add_shared(messages.len() as u64);
            return Err(RequestError::Busy(datapath_id));
        }
        if let Some(permanent) = &mut permanent {
            let frames = starts.iter().filter_map(|start| frame_at(&bytes, *start));
            self.note_permanent(permanent, messages.iter().zip(frames), &entry.counters);
        }
        let command = Command::Send {
            token: entry.token,
            bytes,
            count,
            reply,
        };
        // Fails only if that shard has ended, and the connection with it.
        self.shard(entry.shard)
            .mailbox
            .push(command)
            .map_err(|_| RequestError::UnknownSwitch(datapath_id))
    }

    fn note_permanent<'m>(
        &self,
        permanent: &mut PermanentEntries,
        sent: impl Iterator<Item = (&'m Message<'m>, &'m [u8])>,
        counters: &SwitchCounters,
    ) {
        for (message, frame) in sent {
            let Message::FlowMod(flow_mod) = message else {
                continue;
            };
            if let Err(Full) = permanent.note(self.program(), flow_mod, frame) {
                counters.unprotected.add_shared(1);
            }
        }
    }

    fn encode(
        &self,
        messages: &[Message],
        info: &SwitchInfo,
        permanent: Option<&PermanentEntries>,
    ) -> Result<Encoded, EncodeError> {
        let own_table = self.shared.tables.own_table(self.stage);
        let (mut bytes, mut starts) = (Vec::new(), Vec::new());
        let mut count = messages.len() as u64;
        for message in messages {
            let start = bytes.len();
            let spread = flooding::in_place_of(message, |in_port| {
                self.flood_ports(info.datapath_id, in_port)
            });
            let parts = match &spread[..] {
                [] => std::slice::from_ref(message),
                parts => parts,
            };
            count += parts.len() as u64 - 1;
            for part in parts {
                let (program, xid) = (self.program(), self.origin.xid());
                entries::encode(part, program, own_table, info.version, xid, &mut bytes)?;
            }
            let Some(permanent) = permanent else { continue };
            starts.push(start);
            if let Message::FlowMod(flow_mod) = message {
                count += permanent.add_again(flow_mod, &mut bytes, start);
            }
        }
        Ok(Encoded {
            bytes,
            count,
            starts,
        })
    }
}
