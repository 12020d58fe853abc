//! The parts of compiled tables: flow records, and all data that can be freed only when no packet uses it.

use super::chains::Chains;
use super::config::CompileConfig;
use super::generator::{Executor, Generator};
use super::group_cells::{GroupCells, Replaced, World, free_counters};
use super::meter_cells::MeterCells;
use super::record_place::RecordPlace;
use crate::counters::EntryCounts;
use crate::fast::control::translate::BoundProgram;
use crate::fast::datapath::action_program::ActionProgram;
use crate::fast::datapath::action_set::PROGRAM_LEN;
use crate::fast::datapath::compiled::Compiled;
use crate::fast::datapath::group::GroupCell;
use crate::fast::datapath::key::KeyMask;
use crate::fast::datapath::kinds::{Depth, Kinds};
use crate::fast::datapath::merged::{Tuple, Tuples};
use crate::fast::datapath::meter_cell::MeterCell;
use crate::fast::datapath::op::{CELL_LEN, METER_PARAM_LEN};
use crate::fast::datapath::table::{
    Body, FlowRecord, Rule, SubTablePointer, Template, block_units, record_at, record_offset,
    sub_pointer_at, sub_pointer_units,
};
use crate::fast::memory::arena::{Arena, Ref, UNIT_BYTES};
use crate::fast::memory::epoch::Retired;
use crate::fast::memory::hash_table::{HashTable, SlotArray};
use crate::fast::memory::lpm::Trie;
use crate::thread_counts::{PLACE_BYTES, ThreadCounts};
use crate::{Bucket, FlowEntry, Groups, Meter, Meters};
use std::collections::HashMap;
use std::io;
use std::mem::offset_of;
use std::ptr::addr_of_mut;
use std::sync::Arc;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{Acquire, Release};
use urtica_wire::FlowModFlags;

/// The number of unused action programs to keep for future flow records.
const SPARE_PROGRAMS: usize = 64;

/// The memory and code of a pipeline's tables, for the thread that changes them.
#[derive(Debug)]
pub(super) struct Store {
    pub compiled: Arc<Compiled>,
    pub arena: Arena,
    /// Whether tables may be cut.
    pub decomposes: bool,
    /// Whether a separate thread may plan the search of a table.
    pub plans_beside: bool,
    /// Whether packets may bring an action set or a queue to a table, because an entry has passed one on. Never reset.
    pub carries_state: bool,
    generator: Generator,
    programs: HashMap<ActionProgram, KnownProgram>,
    /// The program of each executor that a flow record refers to.
    by_address: HashMap<u64, ActionProgram>,
    /// The number of programs in `programs` that are unused.
    spare_programs: usize,
    pub meters: MeterCells,
    pub groups: GroupCells,
    retired: Retired<Garbage>,
}

/// The code of an action program, and the number of its flow records.
#[derive(Debug)]
struct KnownProgram {
    executor: Executor,
    records: usize,
    /// The program itself, for flow records that contain its address.
    program: Arc<ActionProgram>,
}

/// Data to be freed when no packet can use it.
#[derive(Debug)]
enum Garbage {
    Block(OldBlock),
    Replaced(OldEntry),
    Form(OldForm),
    Meter(#[expect(dead_code, reason = "freed with this")] Arc<Meter>),
    Group(Replaced),
    /// A marker: when it is freed, so is everything that was retired before it.
    Mark,
}

/// A retired search structure of a table.
#[derive(Debug)]
pub(super) enum OldForm {
    Slots(#[expect(dead_code, reason = "freed with this")] SlotArray),
    Hash(#[expect(dead_code, reason = "freed with this")] HashTable),
    Trie(Box<Trie>),
    /// A block of the arena, with its size in units.
    Block(Ref, usize),
    Tuples(#[expect(dead_code, reason = "freed with this")] Box<Tuples>),
    Merged(Box<OldTuples>),
    /// A sub-table pointer, with the number of words of the key before it.
    SubTablePointer(Ref, usize),
    Body(#[expect(dead_code, reason = "freed with this")] OwnedBody),
}

/// A table's merged tuples, with all data that packets use.
#[derive(Debug)]
pub(super) struct OldTuples {
    pub tuples: Vec<(Chains, Arc<Tuple>)>,
    pub masks: Vec<Arc<KeyMask>>,
    pub shown: Box<Tuples>,
}

impl OldTuples {
    /// Frees them; no packet may use them any longer.
    pub fn free(self, arena: &mut Arena) {
        let Self {
            tuples,
            masks,
            shown,
        } = self;
        for (chains, tuple) in tuples {
            chains.free(arena);
            drop(tuple);
        }
        drop((masks, shown));
    }
}

/// A flow record that no packet finds any longer, with its block.
#[derive(Debug)]
struct OldBlock {
    block: Ref,
    /// The number of words of the key before the flow record.
    words: usize,
    /// The entry that receives counts made after `taken`.
    heir: Option<Arc<FlowEntry>>,
    taken: EntryCounts,
    /// The flags of the flow record's entry. The heir gets no counts that they disable.
    flags: FlowModFlags,
}

/// A replaced entry whose counts another one continues. Blocks that were retired earlier may still add counts until they are
/// freed.
#[derive(Debug)]
struct OldEntry {
    old: Arc<FlowEntry>,
    new: Arc<FlowEntry>,
    /// The counts with which the new entry started.
    taken: EntryCounts,
}

/// A body, and the owner of its code.
#[derive(Debug)]
pub(super) struct OwnedBody {
    pub body: Box<Body>,
    pub executor: Executor,
}

impl Store {
    /// Creates an empty store.
    ///
    /// # Errors
    /// The system's error if it has no memory for code.
    pub fn new(arena: Arena, config: CompileConfig) -> io::Result<Self> {
        let (backend, is_shared) = (config.backend.here(), config.is_shared);
        let mut generator = Generator::new(backend, is_shared);
        let plain = generator.table(&Template::Plain, &[])?;
        let compiled = Compiled::new(
            arena.base(),
            backend,
            plain.address(),
            Box::new(plain),
            is_shared.then(|| thread_counts_of(&arena)),
        );
        let compiled = Arc::new(compiled);
        Ok(Self {
            arena,
            decomposes: config.decomposes,
            plans_beside: config.plans_beside,
            carries_state: false,
            generator,
            programs: HashMap::new(),
            by_address: HashMap::new(),
            spare_programs: 0,
            meters: MeterCells::default(),
            groups: GroupCells::default(),
            retired: Retired::new(&compiled.epochs),
            compiled,
        })
    }

    /// Returns the size of code in bytes, in whole pages.
    pub fn code_bytes(&self) -> usize {
        self.generator.used_bytes()
    }

    /// Returns `true` if the system has refused memory for machine code.
    pub fn is_code_refused(&self) -> bool {
        self.generator.is_refused()
    }

    /// Creates a flow record for an entry after these words, and does not publish it yet. `None` if there is not enough memory.
    pub fn make_record(
        &mut self,
        entry: &FlowEntry,
        rank: u64,
        require: Kinds,
        words: &[u64],
    ) -> Option<RecordPlace> {
        let mut bound = BoundProgram::new(entry, require, self.brings_state_to(entry.table_id));
        let units = block_units(words.len(), bound.params.len());
        let block = self.arena.allocate(units)?;
        self.reach_depth(bound.program.depth());
        let can_count = self
            .thread_counts()
            .is_none_or(|counts| counts.reach(self.arena.committed_bytes()));
        let code = self.code_for(&bound.program).ok().filter(|_| can_count);
        let Some((code, program)) = code else {
            self.arena.free(block, units);
            return None;
        };
        if let Some(meter_id) = bound.meter {
            let cell = self.meters.acquire(meter_id).to_ne_bytes();
            bound.params[..METER_PARAM_LEN].copy_from_slice(&cell);
        }
        if let Some(group_id) = bound.group {
            let cell = self.groups.acquire(group_id).to_ne_bytes();
            let at = bound.program.cell_at().unwrap_or_default();
            bound.params[at..][..CELL_LEN].copy_from_slice(&cell);
        }
        if bound.program.set.is_some() {
            let at = bound.program.set_params_at();
            bound.params[at..][..PROGRAM_LEN].copy_from_slice(&program.to_ne_bytes());
        }
        // SAFETY: the block is ours, long enough, aligned, and not published yet.
        let record = unsafe {
            let start = self.arena.pointer(block);
            start
                .cast::<u64>()
                .copy_from_nonoverlapping(words.as_ptr(), words.len());
            let record = record_at(self.arena.base(), block, words.len());
            addr_of_mut!((*record).code).write(code);
            addr_of_mut!((*record).rank).write(rank);
            addr_of_mut!((*record).target).write(bound.target);
            let params = addr_of_mut!((*record).params).cast::<u8>();
            params.copy_from_nonoverlapping(bound.params.as_ptr(), bound.params.len());
            record
        };
        Some(RecordPlace {
            block,
            words: words.len(),
            record,
        })
    }

    /// Returns `true` if packets may bring an action set or a queue to a table.
    pub fn brings_state_to(&self, table_id: u8) -> bool {
        self.carries_state && table_id > 0
    }

    /// Links a flow record to an entry's counters.
    ///
    /// # Safety
    /// The flow record is not freed before it is retired with this entry, which clears the link.
    pub unsafe fn link(&self, place: &RecordPlace, entry: &FlowEntry) {
        // SAFETY: the flow record is in our arena, since it is not freed, and outlives the link.
        unsafe {
            let counters = &raw const (*place.record).counters;
            entry.linked.set(counters, self.thread_counts());
        }
    }

    fn thread_counts(&self) -> Option<&ThreadCounts> {
        self.compiled.thread_counts.as_ref()
    }

    /// Returns the addresses of a program's code and of the program, for another flow record.
    fn code_for(&mut self, program: &ActionProgram) -> io::Result<(u64, u64)> {
        if let Some(known) = self.programs.get_mut(program) {
            self.spare_programs -= usize::from(known.records == 0);
            known.records += 1;
            return Ok((known.executor.address(), address_of(&known.program)));
        }
        let executor = self.generator.actions(program)?;
        let address = executor.address();
        let shared = Arc::new(program.clone());
        let addresses = (address, address_of(&shared));
        self.by_address.insert(address, program.clone());
        self.programs.insert(
            program.clone(),
            KnownProgram {
                executor,
                records: 1,
                program: shared,
            },
        );
        Ok(addresses)
    }

    /// Returns the machine code of an action program, if a flow record uses it.
    pub fn listing(&self, program: &ActionProgram) -> Option<String> {
        self.programs.get(program)?.executor.listing()
    }

    /// Creates a body with its code, and does not publish it yet.
    ///
    /// # Errors
    /// The system's error if it has no memory for code.
    pub fn make_body(
        &mut self,
        template: Template,
        default: *const FlowRecord,
        parts: &[*const u8],
    ) -> io::Result<OwnedBody> {
        let programs = match &template {
            Template::Direct(rules) => programs_of(rules, &self.by_address),
            _ => Vec::new(),
        };
        let executor = self.generator.table(&template, &programs)?;
        let mut body = Box::new(Body {
            code: executor.address(),
            default,
            parts: Default::default(),
            template,
        });
        for (place, &part) in body.parts.iter_mut().zip(parts) {
            *place.get_mut() = part.cast_mut();
        }
        self.reach_depth(body.depth());
        Ok(OwnedBody { body, executor })
    }

    /// Creates a sub-table pointer to this body, after a key, and does not publish it yet. `None` if there is not enough memory.
    pub fn make_sub_pointer(&mut self, words: &[u64], body: &Body) -> Option<Ref> {
        let block = self.arena.allocate(sub_pointer_units(words.len()))?;
        // SAFETY: the block is ours, long enough, aligned, and not published yet.
        unsafe {
            let start = self.arena.pointer(block);
            start
                .cast::<u64>()
                .copy_from_nonoverlapping(words.as_ptr(), words.len());
            let sub_pointer = start
                .add(record_offset(words.len()))
                .cast::<SubTablePointer>();
            sub_pointer.write(SubTablePointer {
                body: AtomicPtr::new(std::ptr::from_ref(body).cast_mut()),
            });
        }
        Some(block)
    }

    /// Changes the body to which a sub-table pointer refers. The old body can then be retired.
    ///
    /// # Safety
    /// The sub-table pointer was created with this number of words before it, and is not freed.
    pub unsafe fn lead(&self, sub_pointer: Ref, words: usize, body: &Body) {
        // SAFETY: a block of our arena has a sub-table pointer after this number of words.
        let sub_pointer = unsafe { sub_pointer_at(self.arena.base(), sub_pointer, words) };
        sub_pointer
            .body
            .store(std::ptr::from_ref(body).cast_mut(), Release);
    }

    /// Frees a sub-table pointer that packets have never seen.
    pub fn forget_sub_pointer(&mut self, sub_pointer: Ref, words: usize) {
        self.arena.free(sub_pointer, sub_pointer_units(words));
    }

    /// Publishes a table's body. The old body can then be retired.
    pub fn show(&self, index: usize, body: &Body) {
        let header = &self.compiled.headers[index];
        header
            .body
            .store(std::ptr::from_ref(body).cast_mut(), Release);
    }

    /// Ensures that every frame in progress is parsed to this depth, before data is published that needs it.
    pub fn reach_depth(&mut self, depth: Depth) {
        if (depth as u8) > self.compiled.depth.load(Acquire) {
            self.compiled.depth.store(depth as u8, Release);
            self.settle();
        }
    }

    /// Retires a flow record that packets no longer find. `heir` receives its counts, including those of packets that have
    /// already found it.
    pub fn retire_record(&mut self, entry: &FlowEntry, words: usize, heir: Option<Arc<FlowEntry>>) {
        let Some(record) = record_of(entry) else {
            return;
        };
        let taken = entry.linked.counts();
        entry.linked.clear();
        if let Some(heir) = &heir {
            heir.take_over(taken.wanted(entry.flags));
        }
        let block = self.block_of(record, words);
        self.retired.retire(Garbage::Block(OldBlock {
            block,
            words,
            heir,
            taken,
            flags: entry.flags,
        }));
    }

    /// Notes that a new entry continues an old one's counts, starting with `taken`. Must be called before other changes of
    /// either.
    pub fn inherit(&mut self, old: &Arc<FlowEntry>, new: &Arc<FlowEntry>, taken: EntryCounts) {
        // If nothing waits to be freed, the old entry gets no more counts.
        if self.waiting() > 0 {
            self.retired.retire(Garbage::Replaced(OldEntry {
                old: old.clone(),
                new: new.clone(),
                taken,
            }));
        }
    }

    /// Frees a flow record that packets have never seen.
    pub fn forget_record(&mut self, place: RecordPlace) {
        self.free_block(&OldBlock {
            block: place.block,
            words: place.words,
            heir: None,
            taken: EntryCounts::default(),
            flags: FlowModFlags::empty(),
        });
    }

    /// Retires data that packets no longer reach.
    pub fn retire(&mut self, form: OldForm) {
        self.retired.retire(Garbage::Form(form));
    }

    /// Makes flow records refer to the current meters.
    pub fn refresh_meters(&mut self, meters: &Meters) {
        for replaced in self.meters.refresh(meters) {
            self.retired.retire(Garbage::Meter(replaced));
        }
    }

    /// Makes flow records refer to the current groups.
    pub fn refresh_groups(&mut self, groups: &Groups, is_live: &dyn Fn(&Bucket) -> bool) {
        let replaced = self.groups.refresh(&mut World {
            groups,
            is_live,
            arena: &mut self.arena,
            threads: self.compiled.thread_counts.as_ref(),
        });
        for replaced in replaced {
            self.retired.retire(Garbage::Group(replaced));
        }
    }

    /// Returns the rank in the flow record of a block, after this number of words.
    ///
    /// # Safety
    /// The block was created with this number of words before a flow record, and is not freed.
    pub unsafe fn rank_of(&self, block: Ref, words: usize) -> u64 {
        // SAFETY: a block of our arena has a flow record after this number of words.
        unsafe { (*record_at(self.arena.base(), block, words)).rank }
    }

    /// Frees data that no packet can use any longer.
    pub fn collect(&mut self) {
        let mut gone = Vec::new();
        self.retired.collect(|garbage| gone.push(garbage));
        for garbage in gone {
            match garbage {
                Garbage::Block(block) => self.free_block(&block),
                Garbage::Replaced(OldEntry { old, new, taken }) => {
                    new.take_over(old.counters.read().since(taken));
                }
                Garbage::Form(OldForm::Block(block, units)) => self.arena.free(block, units),
                Garbage::Form(OldForm::Merged(merged)) => merged.free(&mut self.arena),
                Garbage::Form(OldForm::SubTablePointer(sub_pointer, words)) => {
                    self.forget_sub_pointer(sub_pointer, words)
                }
                Garbage::Form(OldForm::Trie(trie)) => trie.free(&mut self.arena),
                Garbage::Group(Replaced::Counters(blocks)) => {
                    let threads = self.compiled.thread_counts.as_ref();
                    free_counters(blocks, &mut self.arena, threads);
                }
                Garbage::Form(_) | Garbage::Meter(_) | Garbage::Group(_) | Garbage::Mark => {}
            }
        }
    }

    /// Waits until no packet uses retired data, at most for the readers' current bursts, and then frees it.
    pub fn settle(&mut self) {
        self.retired.retire(Garbage::Mark);
        self.collect();
        while self.waiting() > 0 {
            std::thread::yield_now();
            self.collect();
        }
    }

    /// Returns the number of retired items that are not freed yet.
    pub fn waiting(&self) -> usize {
        self.retired.len()
    }

    /// Returns the number of action programs.
    #[cfg(test)]
    pub fn programs_len(&self) -> usize {
        self.programs.len()
    }

    /// Returns the location of an entry's flow record after this number of words; `None` if it has none.
    pub fn place_of(&self, entry: &FlowEntry, words: usize) -> Option<RecordPlace> {
        let record = record_of(entry)?;
        Some(RecordPlace {
            block: self.block_of(record, words),
            words,
            record,
        })
    }

    /// Returns the block that contains a flow record.
    fn block_of(&self, record: *const FlowRecord, words: usize) -> Ref {
        let offset = record as usize - self.arena.base() as usize - record_offset(words);
        Ref::from_bits((offset / UNIT_BYTES) as u32).expect("a record is in a block")
    }

    fn free_block(&mut self, old: &OldBlock) {
        // SAFETY: the block is in the arena, has this number of words in its key, and is not freed yet.
        let (code, counts) = unsafe {
            let record = &*record_at(self.arena.base(), old.block, old.words);
            let mut counts = record.counters.read();
            if let Some(threads) = self.thread_counts() {
                counts = counts.plus(threads.counts(&raw const record.counters));
                threads.clear(&raw const record.counters);
            }
            (record.code, counts)
        };
        if let Some(heir) = &old.heir {
            heir.take_over(counts.since(old.taken).wanted(old.flags));
        }
        let Some(program) = self.by_address.get(&code) else {
            return;
        };
        if program.is_metered() {
            // SAFETY: the first parameter is the address of a cell, which lives as long as the flow record.
            let meter_id = unsafe {
                let record = record_at(self.arena.base(), old.block, old.words);
                let params = addr_of_mut!((*record).params);
                (*params.cast::<*const MeterCell>().read_unaligned()).meter_id
            };
            self.meters.release(meter_id);
        }
        if let Some(at) = program.cell_at() {
            // SAFETY: this parameter is the address of a cell, which lives as long as the flow record.
            let group_id = unsafe {
                let record = record_at(self.arena.base(), old.block, old.words);
                let params = addr_of_mut!((*record).params).cast::<u8>();
                let cell = params.add(at);
                (*cell.cast::<*const GroupCell>().read_unaligned()).group_id
            };
            self.groups.release(group_id);
        }
        let units = block_units(old.words, program.params_len());
        self.arena.free(old.block, units);
        if let Some(program) = self.programs.get_mut(program) {
            program.records -= 1;
            self.spare_programs += usize::from(program.records == 0);
        }
        if self.spare_programs > SPARE_PROGRAMS {
            self.forget_programs();
        }
    }

    /// Drops the programs that no flow record uses.
    fn forget_programs(&mut self) {
        self.programs.retain(|_, program| program.records > 0);
        let programs = &self.programs;
        self.by_address
            .retain(|_, program| programs.contains_key(program));
        self.spare_programs = 0;
    }
}

// A thread's counters for a unit are half as large as the unit.
const _: () = assert!(UNIT_BYTES == 2 * PLACE_BYTES);

/// Creates counters of threads for the flow records in an arena.
pub(in crate::fast) fn thread_counts_of(arena: &Arena) -> ThreadCounts {
    ThreadCounts::new(
        arena.base().addr(),
        arena.limit_bytes(),
        arena.committed_bytes(),
    )
}

/// Returns the flow record that counts for an entry, if any. Only the store links counters, and all of these are in flow
/// records.
pub(super) fn record_of(entry: &FlowEntry) -> Option<*mut FlowRecord> {
    let counters = entry.linked.pointer();
    let record = counters.wrapping_byte_sub(offset_of!(FlowRecord, counters));
    (!counters.is_null()).then_some(record.cast_mut().cast())
}

fn address_of(program: &Arc<ActionProgram>) -> u64 {
    Arc::as_ptr(program).expose_provenance() as u64
}

/// Returns the programs of rules' actions.
fn programs_of<'a>(
    rules: &[Rule],
    by_address: &'a HashMap<u64, ActionProgram>,
) -> Vec<&'a ActionProgram> {
    // SAFETY: the store created the flow records, and has not retired them yet.
    let codes = rules.iter().map(|rule| unsafe { (*rule.record).code });
    codes.filter_map(|code| by_address.get(&code)).collect()
}
