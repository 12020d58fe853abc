//! The interpreter of compiled tables, which executes templates, flow records and keys step by step.
//!
//! It serves processors without a code generator, and tests of machine code. Its reference model is the plain form.
//!
//! **Safety.** Every function here relies on the requirements of [`enter`]: the frame is parsed as deeply as the tables
//! need, so that its pointers refer to each header in `kinds`; and everything that context, header and body refer to
//! belongs together, and is alive until the burst ends. Comments at `unsafe` name the requirement that applies there.

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

/// The indices in [`Frame::kept`] during a pause: the body being searched, and the flow record found.
const BODY: usize = 0;
const RECORD: usize = 1;

/// Where a frame continues after a pause, in [`Frame::resume`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
enum Pause {
    /// The slots have been fetched; `key` contains the key.
    Slots = 1,
    /// The trie's first entry has been fetched.
    Root = 2,
    /// The flow record has been found and is being fetched.
    Record = 3,
}

/// The result of a search.
enum SearchResult {
    Record(*const FlowRecord),
    Nothing,
    /// The frame is left to the plain form.
    Plain,
    /// The frame waits for memory.
    Paused,
}

/// Processes a frame from this table on, until it leaves the pipeline or pauses.
///
/// # Safety
/// The frame is one of a burst, parsed as deeply as the tables need; context, header and everything that they refer to
/// belong to one pipeline for the interpreter, and are not freed before the next burst.
pub(crate) unsafe fn enter(frame: &mut Frame, context: &Context, header: *const Header) {
    // SAFETY: the header is alive, so its body is; the frame is parsed for everything that the body refers to.
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
    // SAFETY: `pause` has set `kept` and `key` within this burst. The body may have been replaced, but the frame's state
    // refers to it, and it exists as long as the burst.
    unsafe {
        let body = &*(frame.kept[BODY] as *const Body);
        let found = match (pause, &body.template) {
            (pause, _) if pause == Pause::Record as u64 => {
                SearchResult::Record(frame.kept[RECORD] as *const FlowRecord)
            }
            (_, Template::Hash(parts)) => search_slots(frame, context, body, &parts[0]),
            (_, Template::Lpm(part)) => search_trie(frame, context, body, part),
            _ => search(frame, context, body),
        };
        go_on(frame, context, body, found);
    }
}

/// Executes the entry found, and continues table by table.
unsafe fn go_on(frame: &mut Frame, context: &Context, body: &Body, found: SearchResult) {
    let (mut body, mut found) = (body, found);
    // SAFETY: the flow record is one of the body's, or its default, and lives as long as the burst. A header that an entry
    // refers to belongs to this pipeline, and frames are parsed for its tables.
    unsafe {
        loop {
            let record = match found {
                SearchResult::Record(record) => record,
                SearchResult::Nothing if !body.default.is_null() => body.default,
                SearchResult::Nothing => return miss(frame, context),
                SearchResult::Plain => return punt(frame, context),
                SearchResult::Paused => return,
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

unsafe fn search(frame: &mut Frame, context: &Context, body: &Body) -> SearchResult {
    // SAFETY: the rules or parts belong to this body, for which the frame is parsed.
    unsafe {
        match &body.template {
            Template::Direct(rules) => search_rules(frame, rules),
            Template::Hash(parts) => search_parts(frame, context, body, parts),
            Template::Lpm(part) if part.is_far => pause_for_root(frame, body, part),
            Template::Lpm(part) => search_trie(frame, context, body, part),
            Template::Merged(_) => found(merged::find(frame, context, body)),
            // After all cuts comes one of the other templates.
            Template::Cut(_) | Template::Plain => SearchResult::Plain,
        }
    }
}

/// Returns the result of a search for a flow record, which is null if none was found.
fn found(record: *const FlowRecord) -> SearchResult {
    match record.is_null() {
        true => SearchResult::Nothing,
        false => SearchResult::Record(record),
    }
}

/// Returns the body in which to search for a frame: the table's, or, for a cut table, that of the frame's sub-table.
unsafe fn body_for<'a>(frame: &mut Frame, context: &Context, header: *const Header) -> &'a Body {
    // SAFETY: the header is alive. Its body was loaded within the burst, and is not freed before the burst ends; nor are the
    // bodies of its sub-tables.
    unsafe {
        let mut body = &*(*header).body.load(Acquire);
        while let Template::Cut(mask) = &body.template {
            body = sub_table(frame, context, body, mask);
        }
        body
    }
}

/// Returns the body of the sub-table for a frame.
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

unsafe fn search_rules(frame: &Frame, rules: &[Rule]) -> SearchResult {
    // SAFETY: words are only read from frames that have the required headers.
    let matches = |rule: &&Rule| unsafe {
        let words = rule.mask.words.iter().zip(&rule.values);
        frame.kinds.contains(rule.mask.require) && { words }
            .all(|(&word, &value)| read(frame, word) == value)
    };
    let found = rules.iter().find(matches);
    found.map_or(SearchResult::Nothing, |rule| {
        SearchResult::Record(rule.record)
    })
}

/// Searches the hash tables one after the other for the flow record with the lowest rank.
unsafe fn search_parts(
    frame: &mut Frame,
    context: &Context,
    body: &Body,
    parts: &[HashPart],
) -> SearchResult {
    let mut best: *const FlowRecord = std::ptr::null();
    for (part, slots) in parts.iter().zip(&body.parts) {
        // SAFETY: each part has its slots, whose blocks start with keys of this number of words, and have a flow record after
        // `room` words. The key is only read from frames that have the required headers.
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

/// Continues after the slots were fetched. A far table has one part.
unsafe fn search_slots(
    frame: &mut Frame,
    context: &Context,
    body: &Body,
    part: &HashPart,
) -> SearchResult {
    let len = part.mask.words.len();
    // SAFETY: the body's first part has slots, which live as long as the burst; `key` was read before the pause.
    let block = unsafe {
        let slots = body.parts[0].load(Acquire) as *const Slots;
        Slots::find(slots, context.arena, &frame.key[..len])
    };
    let Some(block) = block else {
        return SearchResult::Nothing;
    };
    // SAFETY: the block belongs to this table, with this number of words before its flow record.
    SearchResult::Record(unsafe { record_at(context.arena, block, part.room) })
}

unsafe fn pause_for_root(frame: &mut Frame, body: &Body, part: &LpmPart) -> SearchResult {
    if !frame.kinds.contains(part.require) {
        return SearchResult::Nothing;
    }
    // SAFETY: the frame has the required headers.
    let (root, key) = unsafe { (root(body, part), prefix_key(frame, part)) };
    root.prefetch(key);
    pause(frame, body, Pause::Root)
}

/// Makes a frame wait for memory.
fn pause(frame: &mut Frame, body: &Body, pause: Pause) -> SearchResult {
    frame.kept[BODY] = std::ptr::from_ref(body) as u64;
    frame.resume = pause as u64;
    SearchResult::Paused
}

unsafe fn search_trie(
    frame: &mut Frame,
    context: &Context,
    body: &Body,
    part: &LpmPart,
) -> SearchResult {
    if !frame.kinds.contains(part.require) {
        return SearchResult::Nothing;
    }
    // SAFETY: the body's first part is the root of a trie in this arena, which lives as long as the burst; the frame has the
    // required headers.
    let found = unsafe { root(body, part).find(context.arena, prefix_key(frame, part)) };
    let Some(block) = found else {
        return SearchResult::Nothing;
    };
    // SAFETY: the block belongs to this table, with this number of words before its flow record.
    let record: *const FlowRecord = unsafe { record_at(context.arena, block, part.room) };
    if part.is_far {
        prefetch(record.cast());
        frame.kept[RECORD] = record as u64;
        return pause(frame, body, Pause::Record);
    }
    SearchResult::Record(record)
}

fn root(body: &Body, part: &LpmPart) -> Root {
    Root::new(body.parts[0].load(Acquire).cast(), part.root_bits.into())
}

/// Returns the field that the prefixes apply to.
unsafe fn prefix_key<'a>(frame: &Frame, part: &LpmPart) -> &'a [u8] {
    // SAFETY: the frame has the header with the field, which is not written during the search, while the key is used.
    unsafe { std::slice::from_raw_parts(address(frame, part.field), part.len.into()) }
}

unsafe fn miss(frame: &mut Frame, context: &Context) {
    // SAFETY: `header` belongs to the frame's table, and the context has counts for each header.
    unsafe {
        if context.misses_punt != 0 {
            return punt(frame, context);
        }
        let counts = &*context.counts.add((*frame.header).index as usize);
        add(&counts.misses, 1);
    }
    frame.out_port = DROP;
}

/// Reads a key into the frame's space for keys. Returns the number of words.
unsafe fn read_key(frame: &mut Frame, mask: &KeyMask) -> usize {
    let mut key = [0; MAX_WORDS];
    for (place, &word) in key.iter_mut().zip(&mask.words) {
        // SAFETY: the frame has the headers that the key requires, which contain these words.
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
