//! The entries of a program that replaces another: entries that both install stay, and are not sent again.
//!
//! **How.** The switch reports the entries with the program's number ([`ProgramId`]). The new program's changes of such
//! entries are first applied to this record, and only changes that make a difference are sent to the switch:
//!
//! ```text
//!              identical add            quiet for a while
//!   inherited ────────────────► kept
//!       │  └──────────────────────────────► deleted
//!       │ delete                ▲               ▲
//!       └──────────► condemned ─┘───────────────┘
//! ```
//! So a program need not know about this: one that deletes all its entries and adds them again, as most do when a switch
//! joins, causes no message for identical entries. Entries that are left when the program has been quiet for a while are
//! deleted.
//!
//! Entries with time-outs are always sent, since they may have expired. In OpenFlow 1.0 a delete also deletes other programs'
//! entries, and is sent unchanged.
//!
//! **Cost.** One request and a copy of the program's entries for each switch, until they are settled; none otherwise.

use crate::permanent::includes;
use crate::request::Asker;
use crate::xid::Origin;
use crate::{ProgramId, Reply, RequestError};
use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::time::{Duration, Instant};
use urtica_wire::{
    FlowMod, FlowModCommand, FlowModFlags, FlowStats, FlowStatsRequest, GROUP_ANY, Header, Match,
    Message, MultipartFlags, MultipartReplyBody, MultipartRequest, MultipartRequestBody, PortNo,
    TABLE_ALL, Version, split_frame,
};

/// The time without changes of entries after which a program has finished its initial changes.
pub(crate) const QUIET: Duration = Duration::from_secs(2);

/// The time after which entries are settled in any case.
const AT_MOST: Duration = Duration::from_secs(15);

/// The time in which a switch must report its entries.
pub(crate) const TOLD_WITHIN: Duration = Duration::from_secs(10);

/// The flags that switches report as an entry's flow mod set them.
const TOLD_FLAGS: FlowModFlags = FlowModFlags::SEND_FLOW_REM;

/// The state of an inherited entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// The earlier program installed it.
    Inherited,
    /// The new program has deleted it, but the deletion was not sent, in case it adds the identical entry again.
    Condemned,
    /// The new program has installed it.
    Kept,
}

struct Known {
    /// The flow mod that adds it.
    frame: Vec<u8>,
    fate: Fate,
}

impl Known {
    /// Returns the stored flow mod, which was decoded before it was stored.
    fn flow_mod(&self) -> Option<FlowMod<'_>> {
        flow_mod_in(&self.frame)
    }
}

/// The numbers of a program's entries in a switch that were kept, added and deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub kept: u64,
    pub added: u64,
    pub deleted: u64,
}

/// The entries of one program in one switch, while another program replaces it.
pub(crate) struct Entries {
    version: Version,
    /// The entries by table, priority and match. The match is hashed independently of the order of its fields.
    by_place: HashMap<(u8, u16, u64), Vec<Known>>,
    pub counts: Counts,
}

impl Entries {
    pub fn new(version: Version) -> Self {
        Self {
            version,
            by_place: HashMap::new(),
            counts: Counts::default(),
        }
    }

    /// Notes the entries of a program that a switch reports.
    pub fn note_told(&mut self, program: ProgramId, reply: &Reply) {
        for message in reply.messages() {
            let Message::MultipartReply(part) = message else {
                continue;
            };
            if let MultipartReplyBody::Flow(rows) = part.body {
                let own = rows
                    .iter()
                    .filter(|row| ProgramId::of_cookie(row.cookie) == Some(program));
                own.for_each(|row| self.inherit(&row));
            }
        }
    }

    fn inherit(&mut self, row: &FlowStats) {
        let addition = Message::FlowMod(FlowMod {
            cookie: row.cookie,
            table_id: match self.version {
                Version::Of10 => 0,
                Version::Of13 => row.table_id,
            },
            priority: row.priority,
            idle_timeout: row.idle_timeout,
            hard_timeout: row.hard_timeout,
            flags: row.flags & TOLD_FLAGS,
            match_: row.match_.clone(),
            instructions: row.instructions.clone(),
            ..FlowMod::default()
        });
        let mut frame = Vec::new();
        if addition.encode(self.version, 0, &mut frame).is_err() {
            return;
        }
        let Some(flow_mod) = flow_mod_in(&frame) else {
            return;
        };
        // Entries that the new program has added since the request are not inherited.
        if self.find(&flow_mod).is_none() {
            let place = place(&flow_mod);
            let known = self.by_place.entry(place).or_default();
            known.push(Known {
                frame,
                fate: Fate::Inherited,
            });
        }
    }

    /// Treats all entries as inherited, since the program has been replaced again.
    pub fn inherit_all(&mut self) {
        self.counts = Counts::default();
        for known in self.by_place.values_mut().flatten() {
            known.fate = Fate::Inherited;
        }
    }

    /// Applies a flow mod of the program to the record, and appends to `out` the messages that the switch must be sent.
    pub fn apply(&mut self, frame: &[u8], out: &mut Vec<u8>) {
        let Some(flow_mod) = flow_mod_in(frame) else {
            return out.extend_from_slice(frame);
        };
        match flow_mod.command {
            FlowModCommand::Add => self.add(&flow_mod, frame, out),
            FlowModCommand::Delete | FlowModCommand::DeleteStrict => {
                self.delete(&flow_mod, frame, out);
            }
            FlowModCommand::Modify | FlowModCommand::ModifyStrict => {
                self.modify(&flow_mod);
                out.extend_from_slice(frame);
            }
            FlowModCommand::Other(_) => out.extend_from_slice(frame),
        }
    }

    fn add(&mut self, flow_mod: &FlowMod, frame: &[u8], out: &mut Vec<u8>) {
        let has_timeout = (flow_mod.idle_timeout, flow_mod.hard_timeout) != (0, 0);
        let is_same = match self.find(flow_mod) {
            Some(known) => {
                let is_same = known.flow_mod().is_some_and(|old| same(&old, flow_mod));
                known.fate = Fate::Kept;
                known.frame = frame.to_vec();
                is_same && !has_timeout && !flow_mod.buffer_id.is_some()
            }
            None => {
                let known = self.by_place.entry(place(flow_mod)).or_default();
                known.push(Known {
                    frame: frame.to_vec(),
                    fate: Fate::Kept,
                });
                false
            }
        };
        if is_same {
            self.counts.kept += 1;
        } else {
            self.counts.added += 1;
            out.extend_from_slice(frame);
        }
    }

    /// Applies a delete. If it selects entries by their cookies it is for this program's entries: inherited ones are
    /// condemned, and nothing is sent for them. Other deletes may affect more entries, and are sent.
    fn delete(&mut self, deletion: &FlowMod, frame: &[u8], out: &mut Vec<u8>) {
        let is_own = deletion.cookie_mask != 0
            && deletion.out_port == PortNo::ANY
            && deletion.out_group == GROUP_ANY;
        let xid = Header::peek(frame).map_or(0, |header| header.xid);
        let (version, counts) = (self.version, &mut self.counts);
        for known in self.by_place.values_mut() {
            known.retain_mut(|known| {
                let Some(flow_mod) = known.flow_mod().filter(|it| concerns(deletion, it)) else {
                    return true;
                };
                let is_there = known.fate == Fate::Kept;
                if is_own && is_there {
                    counts.deleted += 1;
                    encode_deletion(&flow_mod, version, xid, out);
                }
                known.fate = Fate::Condemned;
                is_own && !is_there
            });
        }
        if !is_own {
            out.extend_from_slice(frame);
        }
    }

    /// Applies a modification: the entries then belong to the new program.
    fn modify(&mut self, modification: &FlowMod) {
        for known in self.by_place.values_mut().flatten() {
            let is_concerned = known
                .flow_mod()
                .is_some_and(|it| concerns(modification, &it));
            if is_concerned {
                known.fate = Fate::Kept;
            }
        }
    }

    /// Appends the deletions of the entries that the new program does not have.
    pub fn delete_rest(&mut self, mut xid: impl FnMut() -> u32, out: &mut Vec<u8>) {
        for known in self.by_place.drain().flat_map(|(_, known)| known) {
            if let (Some(flow_mod), true) = (known.flow_mod(), known.fate != Fate::Kept) {
                self.counts.deleted += 1;
                encode_deletion(&flow_mod, self.version, xid(), out);
            }
        }
    }

    fn find(&mut self, flow_mod: &FlowMod) -> Option<&mut Known> {
        let known = self.by_place.get_mut(&place(flow_mod))?;
        let mut known = known.iter_mut();
        known.find(|known| {
            let other = known.flow_mod();
            other.is_some_and(|other| other.match_ == flow_mod.match_)
        })
    }
}

fn flow_mod_in(frame: &[u8]) -> Option<FlowMod<'_>> {
    match Message::decode(frame).ok()?.1 {
        Message::FlowMod(flow_mod) => Some(flow_mod),
        _ => None,
    }
}

fn place(flow_mod: &FlowMod) -> (u8, u16, u64) {
    let fields = flow_mod.match_.fields().map(|field| {
        let mut hasher = DefaultHasher::new();
        field.hash(&mut hasher);
        hasher.finish()
    });
    let fields = fields.fold(0, u64::wrapping_add);
    (flow_mod.table_id, flow_mod.priority, fields)
}

/// Returns whether two entries with one match and priority have equal effect.
fn same(a: &FlowMod, b: &FlowMod) -> bool {
    a.cookie == b.cookie
        && (a.idle_timeout, a.hard_timeout) == (b.idle_timeout, b.hard_timeout)
        && a.flags & TOLD_FLAGS == b.flags & TOLD_FLAGS
        && a.instructions == b.instructions
}

/// Returns `true` if a flow mod that modifies or deletes affects this entry (1.3.5 section 6.4).
fn concerns(wide: &FlowMod, entry: &FlowMod) -> bool {
    use FlowModCommand::{DeleteStrict, ModifyStrict};
    let is_in = match wide.command {
        DeleteStrict | ModifyStrict => {
            (wide.priority, &wide.match_) == (entry.priority, &entry.match_)
        }
        _ => includes(&wide.match_, &entry.match_),
    };
    let is_in_table = wide.table_id == TABLE_ALL || wide.table_id == entry.table_id;
    is_in && is_in_table && (wide.cookie ^ entry.cookie) & wide.cookie_mask == 0
}

/// Encodes a delete of one entry; in 1.3, only if it is this program's.
fn encode_deletion(entry: &FlowMod, version: Version, xid: u32, out: &mut Vec<u8>) {
    let deletion = Message::FlowMod(FlowMod {
        command: FlowModCommand::DeleteStrict,
        cookie: match version {
            Version::Of10 => 0,
            Version::Of13 => entry.cookie,
        },
        cookie_mask: match version {
            Version::Of10 => 0,
            Version::Of13 => u64::MAX,
        },
        table_id: entry.table_id,
        priority: entry.priority,
        match_: entry.match_.clone(),
        ..FlowMod::default()
    });
    // Encoding a message that was encoded before does not fail.
    let _ = deletion.encode(version, xid, out);
}

/// Builds the request for a program's entries: in 1.0, which cannot select them, for all programs' entries.
pub(crate) fn request(program: ProgramId, version: Version) -> Message<'static> {
    let request = match version {
        Version::Of10 => FlowStatsRequest::default(),
        Version::Of13 => FlowStatsRequest {
            cookie: program.cookie(0),
            cookie_mask: !crate::OWN_COOKIE_BITS,
            match_: Match::any(),
            ..FlowStatsRequest::default()
        },
    };
    Message::MultipartRequest(MultipartRequest {
        flags: MultipartFlags::empty(),
        body: MultipartRequestBody::Flow(request),
    })
}

/// Messages that wait until the switch has reported its entries.
pub(crate) struct Waiting {
    pub bytes: Vec<u8>,
    pub count: u64,
    pub reply: Option<Asker>,
    /// The number of bytes that the backlog counts.
    pub counted: usize,
}

impl Waiting {
    /// Creates messages that no backlog counts.
    pub fn uncounted(bytes: Vec<u8>) -> Self {
        Self {
            bytes,
            count: 0,
            reply: None,
            counted: 0,
        }
    }
}

/// A switch's pending reply.
pub(crate) type PendingReply = oneshot::Receiver<Result<Reply, RequestError>>;

/// The reconciliation of one program's entries at one connection's switch.
pub(crate) struct Reconciliation {
    pub program: ProgramId,
    /// Whether another program replaces it.
    pub is_replaced: bool,
    pub entries: Entries,
    /// The switch's reply, until it arrives.
    told: Option<PendingReply>,
    waiting: Vec<Waiting>,
    began: Instant,
    last_change: Instant,
}

impl Reconciliation {
    /// Starts with the reply that `told` will receive.
    pub fn begin(
        program: ProgramId,
        is_replaced: bool,
        version: Version,
        told: PendingReply,
        now: Instant,
    ) -> Self {
        Self {
            program,
            is_replaced,
            entries: Entries::new(version),
            told: Some(told),
            waiting: Vec::new(),
            began: now,
            last_change: now,
        }
    }

    /// Starts again, since the program has been replaced again, or removed. Returns waiting messages, whose program is gone.
    pub fn begin_again(&mut self, is_replaced: bool, now: Instant) -> Vec<Waiting> {
        self.is_replaced = is_replaced;
        self.entries.inherit_all();
        (self.began, self.last_change) = (now, now);
        std::mem::take(&mut self.waiting)
    }

    /// Returns whether messages that start with this one are from the program.
    pub fn is_about(&self, frame: &[u8]) -> bool {
        let xid = Header::peek(frame).map(|header| header.xid);
        xid.is_some_and(|xid| Origin::of(xid).tag() == self.program.number())
    }

    /// Returns the reply, or the reason for its absence, once known: waiting messages must then be
    /// [taken](Self::take_waiting).
    pub fn take_reply(&mut self) -> Option<Result<Reply, RequestError>> {
        let reply = match self.told.as_ref()?.try_recv() {
            Ok(reply) => reply,
            Err(oneshot::TryRecvError::Empty) => return None,
            Err(oneshot::TryRecvError::Disconnected) => Err(RequestError::Disconnected),
        };
        self.told = None;
        Some(reply)
    }

    pub fn take_waiting(&mut self) -> Vec<Waiting> {
        std::mem::take(&mut self.waiting)
    }

    /// Returns whether the program's messages about permanent entries, and later ones, must wait.
    pub fn is_asking(&self) -> bool {
        self.told.is_some()
    }

    /// Keeps messages for later.
    pub fn wait(&mut self, waiting: Waiting) {
        self.waiting.push(waiting);
    }

    /// Returns the part of the handlers' output, including the program's, that must be sent to the switch.
    pub fn rewrite_output(&mut self, bytes: &[u8], now: Instant) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes.len());
        let mut rest = bytes;
        while let Ok(Some((frame, after))) = split_frame(rest) {
            rest = after;
            match self.is_about(frame) {
                false => out.extend_from_slice(frame),
                true => self.pass_or_keep(frame, now, &mut out),
            }
        }
        out
    }

    fn pass_or_keep(&mut self, frame: &[u8], now: Instant, out: &mut Vec<u8>) {
        if !self.is_asking() || answers_a_packet(frame) {
            return self.rewrite(frame, now, out);
        }
        self.wait(Waiting::uncounted(frame.to_vec()));
    }

    /// Appends the part of these messages of the program that must be sent to the switch.
    pub fn rewrite(&mut self, bytes: &[u8], now: Instant, out: &mut Vec<u8>) {
        let mut rest = bytes;
        while let Ok(Some((frame, after))) = split_frame(rest) {
            rest = after;
            if is_flow_mod(frame) {
                self.last_change = now;
                self.entries.apply(frame, out);
            } else {
                out.extend_from_slice(frame);
            }
        }
    }

    /// Returns whether the remaining entries must be deleted now.
    pub fn is_over(&self, now: Instant) -> bool {
        let is_quiet = now.saturating_duration_since(self.last_change) >= QUIET;
        let is_late = now.saturating_duration_since(self.began) >= AT_MOST;
        !self.is_asking() && (!self.is_replaced || is_quiet || is_late)
    }
}

fn is_flow_mod(frame: &[u8]) -> bool {
    flow_mod_in(frame).is_some()
}

/// Returns whether a program sends this message because of a packet: a packet-out, or an entry that expires.
fn answers_a_packet(frame: &[u8]) -> bool {
    match Message::decode(frame) {
        Ok((_, Message::PacketOut(_))) => true,
        Ok((_, Message::FlowMod(entry))) => {
            entry.command == FlowModCommand::Add
                && (entry.idle_timeout, entry.hard_timeout) != (0, 0)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EntryOptions, entries};
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use urtica_wire::{OxmField, PortNo};

    /// A change that a program sends, of one host's entry or of all.
    #[derive(Clone, Copy, Debug)]
    enum Word {
        Add(u8, u32),
        Delete(u8),
        DeleteAll,
    }

    /// A program's entries: ports by host.
    type Table = BTreeMap<u8, u32>;

    fn program() -> ProgramId {
        ProgramId::of_cookie(3 << 56).expect("a program's number")
    }

    fn to_host(host: u8) -> Match<'static> {
        Match::any().eth_dst([2, 0, 0, 0, 0, host].into())
    }

    fn said(word: Word) -> Vec<u8> {
        let mut out = Vec::new();
        let mut encode = |message: &Message| {
            entries::encode(message, program(), None, Version::Of13, 7, &mut out)
                .expect("1.3 has all of it");
        };
        match word {
            Word::Add(host, port) => {
                let options = EntryOptions::PERMANENT;
                entries::with_addition(to_host(host), PortNo(port).into(), options, |entry| {
                    encode(&Message::FlowMod(entry));
                });
            }
            Word::Delete(host) => encode(&entries::deletion(to_host(host), program())),
            Word::DeleteAll => encode(&entries::deletion(Match::any(), program())),
        }
        out
    }

    /// Applies messages to a switch's table; returns the number of flow mods that changed nothing.
    fn carry_out(table: &mut Table, bytes: &[u8]) -> usize {
        let (mut rest, mut idle) = (bytes, 0);
        while let Some((frame, after)) = split_frame(rest).expect("whole messages") {
            rest = after;
            let before = table.clone();
            let flow_mod = flow_mod_in(frame).expect("flow mods alone");
            let host = flow_mod.match_.get(OxmField::EthDst);
            let host = host.map(|(host, _)| (host & 0xff) as u8);
            match (flow_mod.command, host) {
                (FlowModCommand::Add, Some(host)) => {
                    let text = format!("{flow_mod}");
                    let port = text.rsplit(':').next().and_then(|port| port.parse().ok());
                    table.insert(host, port.expect("an output"));
                }
                (FlowModCommand::Delete | FlowModCommand::DeleteStrict, Some(host)) => {
                    table.remove(&host);
                }
                _ => table.clear(),
            }
            idle += usize::from(*table == before);
        }
        idle
    }

    /// Returns the record of a switch that has reported this table.
    fn told(table: &Table) -> Entries {
        let mut entries = Entries::new(Version::Of13);
        for (host, port) in table {
            let addition = said(Word::Add(*host, *port));
            let flow_mod = flow_mod_in(&addition).expect("a flow mod");
            entries.inherit(&FlowStats {
                table_id: 0,
                duration_sec: 0,
                duration_nsec: 0,
                priority: flow_mod.priority,
                idle_timeout: 0,
                hard_timeout: 0,
                flags: FlowModFlags::empty(),
                cookie: flow_mod.cookie,
                packet_count: 0,
                byte_count: 0,
                match_: flow_mod.match_,
                instructions: flow_mod.instructions,
            });
        }
        entries
    }

    fn words() -> impl Strategy<Value = Vec<Word>> {
        let word = prop_oneof![
            6 => (0..6_u8, 1..3_u32).prop_map(|(host, port)| Word::Add(host, port)),
            2 => (0..6_u8).prop_map(Word::Delete),
            1 => Just(Word::DeleteAll),
        ];
        prop::collection::vec(word, 0..12)
    }

    proptest! {
        /// With any initial entries, the switch ends up with the entries that the new program adds, as if its table had been
        /// empty.
        #[test]
        fn new_programs_end_up_with_their_entries(
            old in prop::collection::btree_map(0..6_u8, 1..3_u32, 0..6),
            words in words(),
        ) {
            let mut expected = Table::new();
            let (mut table, mut entries) = (old.clone(), told(&old));
            for word in &words {
                carry_out(&mut expected, &said(*word));
                let mut sent = Vec::new();
                entries.apply(&said(*word), &mut sent);
                let idle = carry_out(&mut table, &sent);
                prop_assert_eq!(idle, 0, "{:?} was sent in vain", word);
            }
            let mut sent = Vec::new();
            entries.delete_rest(|| 0, &mut sent);
            prop_assert_eq!(carry_out(&mut table, &sent), 0);
            prop_assert_eq!(table, expected);
        }
    }
}
