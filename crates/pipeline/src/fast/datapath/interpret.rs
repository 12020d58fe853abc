//! The compiled pipeline without machine code: the same templates, cells and keys, gone through step by step.
//!
//! It runs where there is no code generator, and is what machine code is measured against. Its judge is the plain form.

use super::action_program::{ActionShape, End, Step};
use super::frame::{DROP, Frame, PUNT};
use super::key::{Base, KeyShape, MAX_WORDS, Word};
use super::kinds::Kinds;
use super::table::{
    Body, Cell, Context, Door, HashPart, Header, LpmPart, Rule, Template, cell_at, door_at,
    shape_of,
};
use crate::fast::memory::hash_table::Slots;
use crate::fast::memory::lpm::Root;
use crate::fast::memory::zeroed::prefetch;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

/// What is where in [`Frame::kept`] during a pause: the body that is searched, and the cell found.
const BODY: usize = 0;
const CELL: usize = 1;

/// Where a frame goes on after a pause, in [`Frame::resume`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
enum Pause {
    /// The slots have been fetched; `key` is the key.
    Slots = 1,
    /// The trie's first entry has been fetched.
    Root = 2,
    /// The cell has been found and is being fetched.
    Cell = 3,
}

/// What a search came to.
enum Found {
    Cell(*const Cell),
    Nothing,
    /// The frame goes the plain way.
    Plain,
    /// The frame waits for memory.
    Paused,
}

/// Takes a frame through the tables, from this one on, until it leaves or pauses.
///
/// # Safety
/// The frame is one of a burst, parsed as deep as the tables look; context, header and all that they lead to belong to
/// one pipeline for the interpreter, and are not freed before the next burst.
pub(crate) unsafe fn enter(frame: &mut Frame, context: &Context, header: *const Header) {
    // SAFETY: the caller's promise, and so for every function here.
    unsafe {
        frame.header = header;
        let body = body_for(frame, context, header);
        let found = search(frame, context, body);
        go_on(frame, context, body, found);
    }
}

/// Goes on with a frame that paused.
///
/// # Safety
/// As for [`enter`], within the same burst.
pub(crate) unsafe fn resume(frame: &mut Frame, context: &Context) {
    let pause = std::mem::take(&mut frame.resume);
    // SAFETY: the caller's promise; `kept` is what the pause needs. The body may not be shown any more, but what the
    // frame knows so far it knows for that one, which is there as long as the burst.
    unsafe {
        let body = &*(frame.kept[BODY] as *const Body);
        let found = match (pause, &body.template) {
            (pause, _) if pause == Pause::Cell as u64 => {
                Found::Cell(frame.kept[CELL] as *const Cell)
            }
            (_, Template::Hash(parts)) => search_slots(frame, context, body, &parts[0]),
            (_, Template::Lpm(part)) => search_trie(frame, context, body, part),
            _ => search(frame, context, body),
        };
        go_on(frame, context, body, found);
    }
}

/// Does what was found, and what follows it, table by table.
unsafe fn go_on(frame: &mut Frame, context: &Context, body: &Body, found: Found) {
    let (mut body, mut found) = (body, found);
    // SAFETY: the caller's promise.
    unsafe {
        loop {
            let cell = match found {
                Found::Cell(cell) => cell,
                Found::Nothing if !body.default.is_null() => body.default,
                Found::Nothing => return miss(frame, context),
                Found::Plain => return punt(frame),
                Found::Paused => return,
            };
            let Some(next) = act(frame, context, cell) else {
                return;
            };
            frame.header = next;
            body = body_for(frame, context, next);
            found = search(frame, context, body);
        }
    }
}

unsafe fn search(frame: &mut Frame, context: &Context, body: &Body) -> Found {
    // SAFETY: the caller's promise.
    unsafe {
        match &body.template {
            Template::Direct(rules) => search_rules(frame, rules),
            Template::Hash(parts) => search_parts(frame, context, body, parts),
            Template::Lpm(part) if part.is_far => pause_for_root(frame, body, part),
            Template::Lpm(part) => search_trie(frame, context, body, part),
            // Behind all cuts there is one of the others.
            Template::Cut(_) | Template::Plain => Found::Plain,
        }
    }
}

/// What a frame's entry is searched by in a table: its body, or where the table was cut that of the frame's piece.
unsafe fn body_for<'a>(frame: &mut Frame, context: &Context, header: *const Header) -> &'a Body {
    // SAFETY: the caller's promise.
    unsafe {
        let mut body = &*(*header).body.load(Acquire);
        while let Template::Cut(shape) = &body.template {
            body = piece(frame, context, body, shape);
        }
        body
    }
}

/// The body of the piece that a frame belongs to.
unsafe fn piece<'a>(
    frame: &mut Frame,
    context: &Context,
    body: &Body,
    shape: &KeyShape,
) -> &'a Body {
    // SAFETY: the caller's promise; the first part has the slots of doors, the second is the door to the rest.
    unsafe {
        let found = frame.kinds.contains(shape.require).then(|| {
            let slots = body.parts[0].load(Acquire) as *const Slots;
            let len = read_key(frame, shape);
            let block = Slots::find(slots, context.arena, &frame.key[..len]);
            block.map(|block| door_at(context.arena, block, len))
        });
        let rest = || &*body.parts[1].load(Acquire).cast::<Door>();
        let door = found.flatten().unwrap_or_else(rest);
        &*door.body.load(Acquire)
    }
}

unsafe fn search_rules(frame: &Frame, rules: &[Rule]) -> Found {
    // SAFETY: the caller's promise.
    let matches = |rule: &&Rule| unsafe {
        let words = rule.shape.words.iter().zip(&rule.values);
        frame.kinds.contains(rule.shape.require) && { words }
            .all(|(&word, &value)| read(frame, word) == value)
    };
    let found = rules.iter().find(matches);
    found.map_or(Found::Nothing, |rule| Found::Cell(rule.cell))
}

/// Searches one hash table after the other for the cell of the lowest rank.
unsafe fn search_parts(
    frame: &mut Frame,
    context: &Context,
    body: &Body,
    parts: &[HashPart],
) -> Found {
    let mut best: *const Cell = std::ptr::null();
    for (part, slots) in parts.iter().zip(&body.parts) {
        // SAFETY: the caller's promise; each part has its slots.
        unsafe {
            if !frame.kinds.contains(part.shape.require) {
                continue;
            }
            let slots = slots.load(Acquire) as *const Slots;
            let len = read_key(frame, &part.shape);
            if part.is_far {
                Slots::prefetch(slots, &frame.key[..len]);
                return pause(frame, body, Pause::Slots);
            }
            let block = Slots::find(slots, context.arena, &frame.key[..len]);
            let Some(block) = block else { continue };
            let cell: *const Cell = cell_at(context.arena, block, part.room);
            if best.is_null() || (*cell).rank < (*best).rank {
                best = cell;
            }
            if part.is_final {
                break;
            }
        }
    }
    match best.is_null() {
        true => Found::Nothing,
        false => Found::Cell(best),
    }
}

/// Goes on where the slots have been fetched; a table that is far has one part.
unsafe fn search_slots(
    frame: &mut Frame,
    context: &Context,
    body: &Body,
    part: &HashPart,
) -> Found {
    let len = part.shape.words.len();
    // SAFETY: the caller's promise.
    let block = unsafe {
        let slots = body.parts[0].load(Acquire) as *const Slots;
        Slots::find(slots, context.arena, &frame.key[..len])
    };
    let Some(block) = block else {
        return Found::Nothing;
    };
    // SAFETY: the block is one of this table.
    Found::Cell(unsafe { cell_at(context.arena, block, part.room) })
}

unsafe fn pause_for_root(frame: &mut Frame, body: &Body, part: &LpmPart) -> Found {
    if !frame.kinds.contains(part.require) {
        return Found::Nothing;
    }
    // SAFETY: the caller's promise.
    let (root, key) = unsafe { (root(body, part), prefix_key(frame, part)) };
    root.prefetch(key);
    pause(frame, body, Pause::Root)
}

/// Has a frame wait for memory.
fn pause(frame: &mut Frame, body: &Body, pause: Pause) -> Found {
    frame.kept[BODY] = std::ptr::from_ref(body) as u64;
    frame.resume = pause as u64;
    Found::Paused
}

unsafe fn search_trie(frame: &mut Frame, context: &Context, body: &Body, part: &LpmPart) -> Found {
    if !frame.kinds.contains(part.require) {
        return Found::Nothing;
    }
    // SAFETY: the caller's promise.
    let found = unsafe { root(body, part).find(context.arena, prefix_key(frame, part)) };
    let Some(block) = found else {
        return Found::Nothing;
    };
    // SAFETY: the block is one of this table.
    let cell: *const Cell = unsafe { cell_at(context.arena, block, part.room) };
    if part.is_far {
        prefetch(cell.cast());
        frame.kept[CELL] = cell as u64;
        return pause(frame, body, Pause::Cell);
    }
    Found::Cell(cell)
}

fn root(body: &Body, part: &LpmPart) -> Root {
    Root::new(body.parts[0].load(Acquire).cast(), part.root_bits.into())
}

/// The field that the prefixes are of.
unsafe fn prefix_key<'a>(frame: &Frame, part: &LpmPart) -> &'a [u8] {
    // SAFETY: the caller's promise: the frame has the field, and nobody writes to it during the search.
    unsafe { std::slice::from_raw_parts(address(frame, part.field), part.len.into()) }
}

fn miss(frame: &mut Frame, context: &Context) {
    if context.misses_punt != 0 {
        return punt(frame);
    }
    // SAFETY: there are counts for each header; `header` was set on the way here.
    let counts = unsafe { &*context.counts.add((*frame.header).index as usize) };
    add(&counts.misses, 1);
    frame.out_port = DROP;
}

fn punt(frame: &mut Frame) {
    // SAFETY: `header` was set on the way here.
    frame.table_id = unsafe { (*frame.header).table_id };
    frame.out_port = PUNT;
}

/// Counts a frame and does what its entry says; returns the table that follows.
unsafe fn act(frame: &mut Frame, context: &Context, cell: *const Cell) -> Option<*const Header> {
    // SAFETY: the caller's promise.
    unsafe {
        let shape = shape_of(cell);
        let cell = &*cell;
        if !can_do(frame, shape) {
            punt(frame);
            return None;
        }
        count(frame, context, cell);
        let mut params = cell.params.as_ptr();
        for &step in &shape.steps {
            take(frame, step, params);
            params = params.add(step.params_len());
        }
        let out_port = match shape.end {
            End::Goto => return Some(context.headers.add(cell.target as usize)),
            End::Output if cell.target == frame.in_port => DROP,
            End::Output => cell.target,
            End::InPort => frame.in_port,
            End::Drop | End::Punt => DROP,
        };
        frame.out_port = out_port;
        None
    }
}

/// Whether the steps can be taken with this frame; if not, nothing has been done yet.
unsafe fn can_do(frame: &Frame, shape: &ActionShape) -> bool {
    // SAFETY: the caller's promise.
    let ttl_is_enough = || unsafe { ttl(frame).is_none_or(|(ttl, _)| *ttl > shape.ttl_steps()) };
    let room = frame.data as usize - frame.floor as usize;
    shape.end != End::Punt
        && room >= shape.headroom()
        && (shape.ttl_steps() == 0 || ttl_is_enough())
}

unsafe fn count(frame: &Frame, context: &Context, cell: &Cell) {
    // SAFETY: there are counts for each header.
    let counts = unsafe { &*context.counts.add((*frame.header).index as usize) };
    add(&counts.matches, 1);
    if context.is_shared {
        cell.counters.packets.fetch_add(1, Relaxed);
        cell.counters.bytes.fetch_add(frame.len.into(), Relaxed);
    } else {
        add(&cell.counters.packets, 1);
        add(&cell.counters.bytes, frame.len.into());
    }
    cell.counters.last_used_ns.store(context.now_ns, Relaxed);
}

/// Adds to a number that only this thread changes.
fn add(counter: &AtomicU64, more: u64) {
    counter.store(counter.load(Relaxed) + more, Relaxed);
}

unsafe fn take(frame: &mut Frame, step: Step, params: *const u8) {
    // SAFETY: the caller's promise: the frame has the headers, the parameters are there.
    unsafe {
        match step {
            Step::SetEthDst => frame.data.copy_from_nonoverlapping(params, 6),
            Step::SetEthSrc => frame.data.add(6).copy_from_nonoverlapping(params, 6),
            Step::SetVlanVid if frame.kinds.contains(Kinds::VLAN) => {
                let vid = u16::from_be_bytes(params.cast::<[u8; 2]>().read());
                set_tci(frame, tci(frame) & 0xf000 | vid);
            }
            Step::SetVlanPcp if frame.kinds.contains(Kinds::VLAN) => {
                set_tci(frame, tci(frame) & 0x1fff | u16::from(*params) << 13);
            }
            Step::SetIpv4Src => set_ipv4_address(frame, 12, params),
            Step::SetIpv4Dst => set_ipv4_address(frame, 16, params),
            Step::SetTransportSrc => set_port(frame, 0, params),
            Step::SetTransportDst => set_port(frame, 2, params),
            Step::DecNwTtl => dec_ttl(frame),
            Step::PushVlan(ether_type) => push_vlan(frame, ether_type),
            Step::PopVlan if frame.kinds.contains(Kinds::VLAN) => pop_vlan(frame),
            Step::WriteMetadata => {
                let [value, kept] = params.cast::<[u64; 2]>().read_unaligned();
                frame.metadata = frame.metadata & kept | value;
            }
            Step::SetVlanVid | Step::SetVlanPcp | Step::PopVlan => {}
        }
    }
}

/// The TTL of IPv4 or the hop limit of IPv6, and where the checksum over it is.
unsafe fn ttl(frame: &Frame) -> Option<(*mut u8, Option<*mut u8>)> {
    // SAFETY: the caller's promise: the header is there.
    unsafe {
        if frame.kinds.contains(Kinds::IPV4) {
            return Some((frame.network.add(8), Some(frame.network.add(10))));
        }
        let is_v6 = frame.kinds.contains(Kinds::IPV6);
        is_v6.then(|| (frame.network.add(7), None))
    }
}

unsafe fn dec_ttl(frame: &mut Frame) {
    // SAFETY: the caller's promise.
    unsafe {
        let Some((ttl, sum)) = ttl(frame) else { return };
        let word = |ttl: u8| u32::from(ttl) << 8;
        if let Some(sum) = sum {
            Change::of_word(word(*ttl), word(*ttl - 1)).update(sum);
        }
        *ttl -= 1;
    }
}

unsafe fn set_ipv4_address(frame: &mut Frame, at: usize, params: *const u8) {
    // SAFETY: the caller's promise.
    unsafe {
        let place = frame.network.add(at);
        let change = Change {
            gone: (word_at(place) ^ 0xffff) + (word_at(place.add(2)) ^ 0xffff),
            come: word_at(params) + word_at(params.add(2)),
        };
        place.copy_from_nonoverlapping(params, 4);
        change.update(frame.network.add(10));
        change.update_transport(frame);
    }
}

unsafe fn set_port(frame: &mut Frame, at: usize, params: *const u8) {
    // SAFETY: the caller's promise.
    unsafe {
        let place = frame.transport.add(at);
        let change = Change::of_word(word_at(place), word_at(params));
        place.copy_from_nonoverlapping(params, 2);
        change.update_transport(frame);
    }
}

/// What changes under a checksum.
#[derive(Clone, Copy)]
struct Change {
    /// The sum of the complements of the words that were.
    gone: u32,
    /// The sum of the words that are.
    come: u32,
}

impl Change {
    fn of_word(old: u32, new: u32) -> Self {
        Self {
            gone: old ^ 0xffff,
            come: new,
        }
    }

    /// Takes a checksum along (RFC 1624, equation 3).
    unsafe fn update(self, at: *mut u8) {
        // SAFETY: the caller's promise: a checksum is there.
        unsafe {
            let mut total = (word_at(at) ^ 0xffff) + self.gone + self.come;
            total = (total & 0xffff) + (total >> 16);
            total = (total & 0xffff) + (total >> 16);
            at.cast::<[u8; 2]>().write((!(total as u16)).to_be_bytes());
        }
    }

    /// Takes the checksum of TCP or UDP along; of UDP 0 means none (RFC 768).
    unsafe fn update_transport(self, frame: &Frame) {
        // SAFETY: the caller's promise.
        unsafe {
            if frame.kinds.contains(Kinds::TCP) {
                self.update(frame.transport.add(16));
            } else if frame.kinds.contains(Kinds::UDP) && word_at(frame.transport.add(6)) != 0 {
                let sum = frame.transport.add(6);
                self.update(sum);
                if word_at(sum) == 0 {
                    sum.cast::<[u8; 2]>().write([0xff; 2]);
                }
            }
        }
    }
}

unsafe fn word_at(at: *const u8) -> u32 {
    // SAFETY: the caller's promise.
    u16::from_be_bytes(unsafe { at.cast::<[u8; 2]>().read() }).into()
}

/// The outermost tag, without the type before it.
unsafe fn tci(frame: &Frame) -> u16 {
    // SAFETY: the caller's promise.
    unsafe { word_at(frame.data.add(14)) as u16 }
}

unsafe fn set_tci(frame: &mut Frame, tci: u16) {
    // SAFETY: the caller's promise.
    unsafe {
        frame
            .data
            .add(14)
            .cast::<[u8; 2]>()
            .write(tci.to_be_bytes())
    };
    frame.set_tag(0x1000 | tci & 0xfff, tci >> 13);
}

/// A new tag begins with the values of the outermost there is, but for the drop indicator.
unsafe fn push_vlan(frame: &mut Frame, ether_type: u16) {
    let outer = frame.vlan_pcp << 13 | frame.vlan_vid & 0xfff;
    // SAFETY: the caller's promise; that there is room was looked at.
    unsafe {
        frame.data.copy_to(frame.data.sub(4), 12);
        frame.data = frame.data.sub(4);
        frame
            .data
            .add(12)
            .cast::<[u8; 2]>()
            .write(ether_type.to_be_bytes());
        frame.len += 4;
        frame.kinds |= Kinds::VLAN;
        set_tci(frame, outer);
    }
}

unsafe fn pop_vlan(frame: &mut Frame) {
    // SAFETY: the caller's promise: there is a tag.
    unsafe {
        frame.data.copy_to(frame.data.add(4), 12);
        frame.data = frame.data.add(4);
        frame.len -= 4;
        if frame.network as usize - frame.data as usize > 14 {
            let tci = tci(frame);
            frame.set_tag(0x1000 | tci & 0xfff, tci >> 13);
        } else {
            frame.kinds -= Kinds::VLAN;
            frame.set_tag(0, 0);
        }
    }
}

/// Reads a key into the frame's own room for it; returns how many words it has.
unsafe fn read_key(frame: &mut Frame, shape: &KeyShape) -> usize {
    let mut key = [0; MAX_WORDS];
    for (place, &word) in key.iter_mut().zip(&shape.words) {
        // SAFETY: the caller's promise.
        *place = unsafe { read(frame, word) };
    }
    frame.key = key;
    shape.words.len()
}

unsafe fn read(frame: &Frame, word: Word) -> u64 {
    // SAFETY: the caller's promise: up to 8 bytes behind the frame may be read.
    unsafe { address(frame, word).cast::<u64>().read_unaligned() & word.mask }
}

unsafe fn address(frame: &Frame, word: Word) -> *const u8 {
    let base = match word.base {
        Base::Frame => std::ptr::from_ref(frame).cast(),
        Base::Data => frame.data.cast_const(),
        Base::Network => frame.network,
        Base::Transport => frame.transport,
    };
    // SAFETY: the caller's promise.
    unsafe { base.offset(word.at.into()) }
}
