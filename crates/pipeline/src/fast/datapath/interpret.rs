//! The interpreter of the compiled pipeline: it executes the templates, flow records and keys step by step.
//!
//! It is for processors without a code generator, and for tests of machine code. Its reference model is the plain form.
//!
//! **Safety.** Every function here relies on the requirements of [`enter`]: the frame is parsed as deep as the tables
//! need, so that its pointers refer to each header in `kinds`; and everything that context, header and body refer to
//! belongs together, and is alive until the burst ends. Comments at `unsafe` name the requirement that is needed there.

use super::context::Context;
use super::counting::add;
use super::execute::{execute, punt};
use super::frame::{DROP, Frame};
use super::key::{Base, KeyMask, MAX_WORDS, Word};
use super::merged;
use super::table::{
    Body, FlowRecord, HashPart, Header, LpmPart, Rule, SubTablePointer, Template, record_at,
    sub_pointer_at,
};
use crate::fast::memory::hash_table::Slots;
use crate::fast::memory::lpm::Root;
use crate::fast::memory::zeroed::prefetch;
use std::sync::atomic::Ordering::Acquire;

/// The indices in [`Frame::kept`] during a pause: the searched body, and the found flow record.
const BODY: usize = 0;
const RECORD: usize = 1;

/// A frame's continuation after a pause, in [`Frame::resume`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
enum Pause {
    /// The slots have been fetched; `key` is the key.
    Slots = 1,
    /// The trie's first entry has been fetched.
    Root = 2,
    /// The flow record has been found and is being fetched.
    Record = 3,
}

/// The result of a search.
enum Found {
    Record(*const FlowRecord),
    Nothing,
    /// The frame is left to the plain form.
    Plain,
    /// The frame waits for memory.
    Paused,
}

/// Sends a frame through the tables, from this one on, until it leaves or pauses.
///
/// # Safety
/// The frame is one of a burst, parsed as deep as the tables need; context, header and everything that they refer to
/// belong to one pipeline for the interpreter, and are not freed before the next burst.
pub(crate) unsafe fn enter(frame: &mut Frame, context: &Context, header: *const Header) {
    // SAFETY: the header is alive, so its body is; the frame is parsed for everything that it refers to.
    unsafe {
        frame.header = header;
        let body = body_for(frame, context, header);
        let found = search(frame, context, body);
        go_on(frame, context, body, found);
    }
}

/// Continues a paused frame.
///
/// # Safety
/// As for [`enter`], within the same burst.
pub(crate) unsafe fn resume(frame: &mut Frame, context: &Context) {
    let pause = std::mem::take(&mut frame.resume);
    // SAFETY: `kept` and `key` are as `pause` has left them within this burst. The body may no longer be shown, but the
    // frame's state refers to it, and it exists as long as the burst.
    unsafe {
        let body = &*(frame.kept[BODY] as *const Body);
        let found = match (pause, &body.template) {
            (pause, _) if pause == Pause::Record as u64 => {
                Found::Record(frame.kept[RECORD] as *const FlowRecord)
            }
            (_, Template::Hash(parts)) => search_slots(frame, context, body, &parts[0]),
            (_, Template::Lpm(part)) => search_trie(frame, context, body, part),
            _ => search(frame, context, body),
        };
        go_on(frame, context, body, found);
    }
}

/// Executes the found entry, and continues table by table.
unsafe fn go_on(frame: &mut Frame, context: &Context, body: &Body, found: Found) {
    let (mut body, mut found) = (body, found);
    // SAFETY: the flow record is one of the body's, or its default, and alive as long as the burst. A header that an
    // entry refers to is one of this pipeline, for whose tables frames are parsed.
    unsafe {
        loop {
            let record = match found {
                Found::Record(record) => record,
                Found::Nothing if !body.default.is_null() => body.default,
                Found::Nothing => return miss(frame, context),
                Found::Plain => return punt(frame, context),
                Found::Paused => return,
            };
            let Some(next) = execute(frame, context, record) else {
                return;
            };
            frame.header = next;
            body = body_for(frame, context, next);
            found = search(frame, context, body);
        }
    }
}

unsafe fn search(frame: &mut Frame, context: &Context, body: &Body) -> Found {
    // SAFETY: the rules or parts are those of this body, for which the frame is parsed.
    unsafe {
        match &body.template {
            Template::Direct(rules) => search_rules(frame, rules),
            Template::Hash(parts) => search_parts(frame, context, body, parts),
            Template::Lpm(part) if part.is_far => pause_for_root(frame, body, part),
            Template::Lpm(part) => search_trie(frame, context, body, part),
            Template::Merged(_) => found(merged::find(frame, context, body)),
            // After all cuts there is one of the others.
            Template::Cut(_) | Template::Plain => Found::Plain,
        }
    }
}

/// Returns the result of a search that found this flow record, or null.
fn found(record: *const FlowRecord) -> Found {
    match record.is_null() {
        true => Found::Nothing,
        false => Found::Record(record),
    }
}

/// Returns the body for a frame's search in a table: the table's, or, for a cut table, that of the frame's sub-table.
unsafe fn body_for<'a>(frame: &mut Frame, context: &Context, header: *const Header) -> &'a Body {
    // SAFETY: the header is alive, and its body is not freed before the burst ends, as it was loaded within it; nor are the
    // bodies of its sub-tables.
    unsafe {
        let mut body = &*(*header).body.load(Acquire);
        while let Template::Cut(mask) = &body.template {
            body = sub_table(frame, context, body, mask);
        }
        body
    }
}

/// The body of the sub-table that a frame belongs to.
unsafe fn sub_table<'a>(
    frame: &mut Frame,
    context: &Context,
    body: &Body,
    mask: &KeyMask,
) -> &'a Body {
    // SAFETY: the first part of such a body has slots of sub-table pointers, the second is the pointer to the rest. The
    // frame is parsed for this key.
    unsafe {
        let found = frame.kinds.contains(mask.require).then(|| {
            let slots = body.parts[0].load(Acquire) as *const Slots;
            let len = read_key(frame, mask);
            let block = Slots::find(slots, context.arena, &frame.key[..len]);
            block.map(|block| sub_pointer_at(context.arena, block, len))
        });
        let rest = || &*body.parts[1].load(Acquire).cast::<SubTablePointer>();
        let sub_pointer = found.flatten().unwrap_or_else(rest);
        &*sub_pointer.body.load(Acquire)
    }
}

unsafe fn search_rules(frame: &Frame, rules: &[Rule]) -> Found {
    // SAFETY: words are read only of frames that have the headers required.
    let matches = |rule: &&Rule| unsafe {
        let words = rule.mask.words.iter().zip(&rule.values);
        frame.kinds.contains(rule.mask.require) && { words }
            .all(|(&word, &value)| read(frame, word) == value)
    };
    let found = rules.iter().find(matches);
    found.map_or(Found::Nothing, |rule| Found::Record(rule.record))
}

/// Searches one hash table after the other for the flow record of the lowest rank.
unsafe fn search_parts(
    frame: &mut Frame,
    context: &Context,
    body: &Body,
    parts: &[HashPart],
) -> Found {
    let mut best: *const FlowRecord = std::ptr::null();
    for (part, slots) in parts.iter().zip(&body.parts) {
        // SAFETY: each part has its slots, whose blocks start with keys of this number of words, and a flow record
        // after `room`. The key is read only from frames that have the headers required.
        unsafe {
            if !frame.kinds.contains(part.mask.require) {
                continue;
            }
            let slots = slots.load(Acquire) as *const Slots;
            let len = read_key(frame, &part.mask);
            if part.is_far {
                Slots::prefetch(slots, &frame.key[..len]);
                return pause(frame, body, Pause::Slots);
            }
            let block = Slots::find(slots, context.arena, &frame.key[..len]);
            let Some(block) = block else { continue };
            let record: *const FlowRecord = record_at(context.arena, block, part.room);
            if best.is_null() || (*record).rank < (*best).rank {
                best = record;
            }
            if part.is_final {
                break;
            }
        }
    }
    found(best)
}

/// Continues after the slots were fetched; a far table has one part.
unsafe fn search_slots(
    frame: &mut Frame,
    context: &Context,
    body: &Body,
    part: &HashPart,
) -> Found {
    let len = part.mask.words.len();
    // SAFETY: the body's first part has slots, which are alive as long as the burst; `key` was read before the pause.
    let block = unsafe {
        let slots = body.parts[0].load(Acquire) as *const Slots;
        Slots::find(slots, context.arena, &frame.key[..len])
    };
    let Some(block) = block else {
        return Found::Nothing;
    };
    // SAFETY: the block belongs to this table, with this number of words before its flow record.
    Found::Record(unsafe { record_at(context.arena, block, part.room) })
}

unsafe fn pause_for_root(frame: &mut Frame, body: &Body, part: &LpmPart) -> Found {
    if !frame.kinds.contains(part.require) {
        return Found::Nothing;
    }
    // SAFETY: the frame has the headers required.
    let (root, key) = unsafe { (root(body, part), prefix_key(frame, part)) };
    root.prefetch(key);
    pause(frame, body, Pause::Root)
}

/// Makes a frame wait for memory.
fn pause(frame: &mut Frame, body: &Body, pause: Pause) -> Found {
    frame.kept[BODY] = std::ptr::from_ref(body) as u64;
    frame.resume = pause as u64;
    Found::Paused
}

unsafe fn search_trie(frame: &mut Frame, context: &Context, body: &Body, part: &LpmPart) -> Found {
    if !frame.kinds.contains(part.require) {
        return Found::Nothing;
    }
    // SAFETY: the body's first part is the root of a trie in this arena, alive as long as the burst; the frame has the headers
    // required.
    let found = unsafe { root(body, part).find(context.arena, prefix_key(frame, part)) };
    let Some(block) = found else {
        return Found::Nothing;
    };
    // SAFETY: the block belongs to this table, with this number of words before its flow record.
    let record: *const FlowRecord = unsafe { record_at(context.arena, block, part.room) };
    if part.is_far {
        prefetch(record.cast());
        frame.kept[RECORD] = record as u64;
        return pause(frame, body, Pause::Record);
    }
    Found::Record(record)
}

fn root(body: &Body, part: &LpmPart) -> Root {
    Root::new(body.parts[0].load(Acquire).cast(), part.root_bits.into())
}

/// The field that the prefixes are of.
unsafe fn prefix_key<'a>(frame: &Frame, part: &LpmPart) -> &'a [u8] {
    // SAFETY: the frame has the header with the field; it is not written during the search, in which the key is used.
    unsafe { std::slice::from_raw_parts(address(frame, part.field), part.len.into()) }
}

unsafe fn miss(frame: &mut Frame, context: &Context) {
    // SAFETY: `header` is the table's that the frame is in, and the context has counts for each header.
    unsafe {
        if context.misses_punt != 0 {
            return punt(frame, context);
        }
        let counts = &*context.counts.add((*frame.header).index as usize);
        add(&counts.misses, 1);
    }
    frame.out_port = DROP;
}

/// Reads a key into the frame's space for it; returns its number of words.
unsafe fn read_key(frame: &mut Frame, mask: &KeyMask) -> usize {
    let mut key = [0; MAX_WORDS];
    for (place, &word) in key.iter_mut().zip(&mask.words) {
        // SAFETY: the frame has the headers that the key requires, and these words are in.
        *place = unsafe { read(frame, word) };
    }
    frame.key = key;
    mask.words.len()
}

unsafe fn read(frame: &Frame, word: Word) -> u64 {
    // SAFETY: the word starts in a header of the frame; 8 bytes after the longest frame are still in its buffer.
    unsafe { address(frame, word).cast::<u64>().read_unaligned() & word.mask }
}

unsafe fn address(frame: &Frame, word: Word) -> *const u8 {
    let base = match word.base {
        Base::Frame => std::ptr::from_ref(frame).cast(),
        Base::Data => frame.data.cast_const(),
        Base::Network => frame.network,
        Base::Transport => frame.transport,
    };
    // SAFETY: the word is within the frame's buffer, or within the frame itself.
    unsafe { base.offset(word.at.into()) }
}
