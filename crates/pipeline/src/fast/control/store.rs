//! What the compiled tables are made from: cells, and everything that is freed only when no packet needs it.

use super::config::CompileConfig;
use super::generator::{Generator, Runner};
use crate::FlowEntry;
use crate::counters::EntryCounts;
use crate::fast::control::translate::Deed;
use crate::fast::datapath::action_program::ActionShape;
use crate::fast::datapath::compiled::Compiled;
use crate::fast::datapath::kinds::{Depth, Kinds};
use crate::fast::datapath::table::{
    Body, Cell, Door, Rule, Template, block_units, cell_at, cell_offset, door_at, door_units,
};
use crate::fast::memory::arena::{Arena, NODE_UNITS, Ref, UNIT_BYTES};
use crate::fast::memory::epoch::Retired;
use crate::fast::memory::hash_table::{HashTable, SlotArray};
use crate::fast::memory::lpm::Trie;
use std::collections::HashMap;
use std::io;
use std::mem::offset_of;
use std::ptr::addr_of_mut;
use std::sync::Arc;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{Acquire, Release};
use urtica_wire::FlowModFlags;

/// How many shapes of actions that no cell has any more are kept, in case that one comes that has.
const SPARE_SHAPES: usize = 64;

/// Memory and code of all tables of one pipeline, as the one thread that changes them has them.
#[derive(Debug)]
pub(super) struct Store {
    pub compiled: Arc<Compiled>,
    pub arena: Arena,
    /// Whether tables may be cut.
    pub decomposes: bool,
    generator: Generator,
    shapes: HashMap<ActionShape, Shape>,
    /// The shape of each runner that stands in a cell.
    by_address: HashMap<u64, ActionShape>,
    /// How many of `shapes` no cell has.
    spare_shapes: usize,
    retired: Retired<Garbage>,
}

/// A shape of actions, and how many cells have it.
#[derive(Debug)]
struct Shape {
    runner: Runner,
    cells: usize,
}

/// What is freed once no packet can be in it.
#[derive(Debug)]
enum Garbage {
    Block(OldBlock),
    Replaced(OldEntry),
    Form(OldForm),
    /// A mark: what was retired before it is gone when it is.
    Mark,
}

/// What found a table's cells.
#[derive(Debug)]
pub(super) enum OldForm {
    Slots(#[expect(dead_code, reason = "freed with this")] SlotArray),
    Hash(#[expect(dead_code, reason = "freed with this")] HashTable),
    Trie(Box<Trie>),
    /// A node of a trie.
    Node(Ref),
    /// A door, and how many words the key before it has.
    Door(Ref, usize),
    Body(#[expect(dead_code, reason = "freed with this")] OwnedBody),
}

/// A cell that is not linked any more, with the block that it is in.
#[derive(Debug)]
struct OldBlock {
    block: Ref,
    /// How many words the key before the cell has.
    words: usize,
    /// Who gets what is counted after `taken`.
    heir: Option<Arc<FlowEntry>>,
    taken: EntryCounts,
    /// The flags of the entry that the cell counted for: what it did not ask for, the heir does not get.
    flags: FlowModFlags,
}

/// An entry that another one took the place of, which goes on with its counts: those too that come to the old one from
/// blocks retired before, once these are freed.
#[derive(Debug)]
struct OldEntry {
    old: Arc<FlowEntry>,
    new: Arc<FlowEntry>,
    /// What the new one began with.
    taken: EntryCounts,
}

/// A body and what its code is in.
#[derive(Debug)]
pub(super) struct OwnedBody {
    pub body: Box<Body>,
    pub runner: Runner,
}

/// A cell, where it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct CellPlace {
    pub block: Ref,
    /// How many words there are before the cell.
    pub words: usize,
    pub cell: *mut Cell,
}

impl Store {
    /// An empty one.
    ///
    /// # Errors
    /// The system's, if it has no memory for code.
    pub fn new(arena: Arena, config: CompileConfig) -> io::Result<Self> {
        let (backend, is_shared) = (config.backend.here(), config.is_shared);
        let mut generator = Generator::new(backend, is_shared);
        let plain = generator.table(&Template::Plain, &[])?;
        let compiled = Compiled::new(
            arena.base(),
            backend,
            plain.address(),
            Box::new(plain),
            is_shared,
        );
        let compiled = Arc::new(compiled);
        Ok(Self {
            arena,
            decomposes: config.decomposes,
            generator,
            shapes: HashMap::new(),
            by_address: HashMap::new(),
            spare_shapes: 0,
            retired: Retired::new(&compiled.epochs),
            compiled,
        })
    }

    /// How many bytes code takes, in whole pages.
    pub fn code_bytes(&self) -> usize {
        self.generator.used_bytes()
    }

    /// A cell for an entry, behind these words; nobody sees it yet. `None` where there is no memory.
    pub fn make_cell(
        &mut self,
        entry: &FlowEntry,
        rank: u64,
        require: Kinds,
        words: &[u64],
    ) -> Option<CellPlace> {
        let deed = Deed::new(entry, require);
        let units = block_units(words.len(), deed.params.len());
        let block = self.arena.allocate(units)?;
        self.reach_depth(deed.shape.depth());
        let Ok(run) = self.run(&deed.shape) else {
            self.arena.free(block, units);
            return None;
        };
        // SAFETY: the block is ours, long enough, and aligned; nobody sees it yet.
        let cell = unsafe {
            let start = self.arena.pointer(block);
            start
                .cast::<u64>()
                .copy_from_nonoverlapping(words.as_ptr(), words.len());
            let cell = cell_at(self.arena.base(), block, words.len());
            addr_of_mut!((*cell).run).write(run);
            addr_of_mut!((*cell).rank).write(rank);
            addr_of_mut!((*cell).target).write(deed.target);
            let params = addr_of_mut!((*cell).params).cast::<u8>();
            params.copy_from_nonoverlapping(deed.params.as_ptr(), deed.params.len());
            cell
        };
        Some(CellPlace {
            block,
            words: words.len(),
            cell,
        })
    }

    /// The address of what carries out a shape, for one more cell.
    fn run(&mut self, shape: &ActionShape) -> io::Result<u64> {
        if let Some(known) = self.shapes.get_mut(shape) {
            self.spare_shapes -= usize::from(known.cells == 0);
            known.cells += 1;
            return Ok(known.runner.address());
        }
        let runner = self.generator.actions(shape)?;
        let address = runner.address();
        self.by_address.insert(address, shape.clone());
        self.shapes
            .insert(shape.clone(), Shape { runner, cells: 1 });
        Ok(address)
    }

    /// The machine code of actions of a shape that some cell has, if there is any.
    pub fn listing(&self, shape: &ActionShape) -> Option<String> {
        self.shapes.get(shape)?.runner.listing()
    }

    /// A body, and what runs it; nobody sees it yet.
    ///
    /// # Errors
    /// The system's, if it has no memory for code.
    pub fn make_body(
        &mut self,
        template: Template,
        default: *const Cell,
        parts: &[*const u8],
    ) -> io::Result<OwnedBody> {
        let shapes = match &template {
            Template::Direct(rules) => shapes_of(rules, &self.by_address),
            _ => Vec::new(),
        };
        let runner = self.generator.table(&template, &shapes)?;
        let mut body = Box::new(Body {
            code: runner.address(),
            default,
            parts: Default::default(),
            template,
        });
        for (place, &part) in body.parts.iter_mut().zip(parts) {
            *place.get_mut() = part.cast_mut();
        }
        self.reach_depth(body.depth());
        Ok(OwnedBody { body, runner })
    }

    /// A door behind a key, which leads to this body; nobody sees it yet. `None` where there is no memory.
    pub fn make_door(&mut self, words: &[u64], body: &Body) -> Option<Ref> {
        let block = self.arena.allocate(door_units(words.len()))?;
        // SAFETY: the block is ours, long enough, and aligned; nobody sees it yet.
        unsafe {
            let start = self.arena.pointer(block);
            start
                .cast::<u64>()
                .copy_from_nonoverlapping(words.as_ptr(), words.len());
            let door = start.add(cell_offset(words.len())).cast::<Door>();
            door.write(Door {
                body: AtomicPtr::new(std::ptr::from_ref(body).cast_mut()),
            });
        }
        Some(block)
    }

    /// Has a door lead to another body. The one until now can be retired then.
    pub fn lead(&self, door: Ref, words: usize, body: &Body) {
        // SAFETY: the door has been made, with so many words before it, and is not freed.
        let door = unsafe { door_at(self.arena.base(), door, words) };
        door.body
            .store(std::ptr::from_ref(body).cast_mut(), Release);
    }

    /// Takes a door back that packets never saw.
    pub fn forget_door(&mut self, door: Ref, words: usize) {
        self.arena.free(door, door_units(words));
    }

    /// Shows a table's body to packets. What it was until now can be retired then.
    pub fn show(&self, index: usize, body: &Body) {
        let header = &self.compiled.headers[index];
        header
            .body
            .store(std::ptr::from_ref(body).cast_mut(), Release);
    }

    /// Sees to it that every frame on its way is parsed so deep, before something is shown that needs it.
    fn reach_depth(&mut self, depth: Depth) {
        if (depth as u8) > self.compiled.depth.load(Acquire) {
            self.compiled.depth.store(depth as u8, Release);
            self.settle();
        }
    }

    /// Takes a cell that packets do not find any more. What it has counted goes to `heir`, and so does what is counted by
    /// packets that have found it before.
    pub fn retire_cell(&mut self, entry: &FlowEntry, words: usize, heir: Option<Arc<FlowEntry>>) {
        let Some(cell) = cell_of(entry) else {
            return;
        };
        let taken = entry.linked.counts();
        entry.linked.clear();
        if let Some(heir) = &heir {
            heir.take_over(taken.wanted(entry.flags));
        }
        let block = self.block_of(cell, words);
        self.retired.retire(Garbage::Block(OldBlock {
            block,
            words,
            heir,
            taken,
            flags: entry.flags,
        }));
    }

    /// Notes that one entry goes on with another's counts, before anything else is done about the two.
    pub fn inherit(&mut self, old: &Arc<FlowEntry>, new: &Arc<FlowEntry>) {
        // Where nothing waits to be freed, nothing comes to the old one any more.
        if self.waiting() > 0 {
            self.retired.retire(Garbage::Replaced(OldEntry {
                old: old.clone(),
                new: new.clone(),
                taken: new.counters.read(),
            }));
        }
    }

    /// Takes a cell back that packets never saw.
    pub fn forget_cell(&mut self, place: CellPlace) {
        self.free_block(&OldBlock {
            block: place.block,
            words: place.words,
            heir: None,
            taken: EntryCounts::default(),
            flags: FlowModFlags::empty(),
        });
    }

    /// Takes what packets do not come to any more.
    pub fn retire(&mut self, form: OldForm) {
        self.retired.retire(Garbage::Form(form));
    }

    /// The rank in the cell of a block, with so many words before it.
    pub fn rank_of(&self, block: Ref, words: usize) -> u64 {
        // SAFETY: the block is one of the arena, with a key of so many words and a cell, and not freed.
        unsafe { (*cell_at(self.arena.base(), block, words)).rank }
    }

    /// Frees what no packet can be in any more.
    pub fn collect(&mut self) {
        let mut gone = Vec::new();
        self.retired.collect(|garbage| gone.push(garbage));
        for garbage in gone {
            match garbage {
                Garbage::Block(block) => self.free_block(&block),
                Garbage::Replaced(OldEntry { old, new, taken }) => {
                    new.take_over(old.counters.read().since(taken));
                }
                Garbage::Form(OldForm::Node(node)) => self.arena.free(node, NODE_UNITS),
                Garbage::Form(OldForm::Door(door, words)) => self.forget_door(door, words),
                Garbage::Form(OldForm::Trie(trie)) => trie.free(&mut self.arena),
                Garbage::Form(_) | Garbage::Mark => {}
            }
        }
    }

    /// Waits until no packet is in anything retired, and frees it: as long as a burst takes, which readers are in.
    pub fn settle(&mut self) {
        self.retired.retire(Garbage::Mark);
        self.collect();
        while self.waiting() > 0 {
            std::thread::yield_now();
            self.collect();
        }
    }

    /// How much is not freed yet.
    pub fn waiting(&self) -> usize {
        self.retired.len()
    }

    /// How many shapes of actions are known.
    #[cfg(test)]
    pub fn shapes_len(&self) -> usize {
        self.shapes.len()
    }

    /// Where an entry's cell is, with so many words before it; `None` where it has none.
    pub fn place_of(&self, entry: &FlowEntry, words: usize) -> Option<CellPlace> {
        let cell = cell_of(entry)?;
        Some(CellPlace {
            block: self.block_of(cell, words),
            words,
            cell,
        })
    }

    /// The block that a cell is in.
    fn block_of(&self, cell: *const Cell, words: usize) -> Ref {
        let offset = cell as usize - self.arena.base() as usize - cell_offset(words);
        Ref::from_bits((offset / UNIT_BYTES) as u32).expect("a cell is in a block")
    }

    fn free_block(&mut self, old: &OldBlock) {
        // SAFETY: the block is one of the arena with such a key, and not freed yet.
        let (run, counts) = unsafe {
            let cell = &*cell_at(self.arena.base(), old.block, old.words);
            (cell.run, cell.counters.read())
        };
        if let Some(heir) = &old.heir {
            heir.take_over(counts.since(old.taken).wanted(old.flags));
        }
        let Some(shape) = self.by_address.get(&run) else {
            return;
        };
        let params = shape.steps.iter().map(|step| step.params_len()).sum();
        self.arena.free(old.block, block_units(old.words, params));
        if let Some(shape) = self.shapes.get_mut(shape) {
            shape.cells -= 1;
            self.spare_shapes += usize::from(shape.cells == 0);
        }
        if self.spare_shapes > SPARE_SHAPES {
            self.forget_shapes();
        }
    }

    /// Drops the shapes that no cell has.
    fn forget_shapes(&mut self) {
        self.shapes.retain(|_, shape| shape.cells > 0);
        let shapes = &self.shapes;
        self.by_address
            .retain(|_, shape| shapes.contains_key(shape));
        self.spare_shapes = 0;
    }
}

impl CellPlace {
    /// Has an entry count by the cell.
    ///
    /// # Safety
    /// The cell is not freed before it is retired with this entry, which clears the link.
    pub unsafe fn count_for(&self, entry: &FlowEntry) {
        // SAFETY: the cell is there, as it is not freed; it stays as long as the link.
        unsafe { entry.linked.set(&raw const (*self.cell).counters) };
    }
}

/// The cell that counts for an entry, if there is one: the store alone links counters, and those of cells only.
pub(super) fn cell_of(entry: &FlowEntry) -> Option<*mut Cell> {
    let counters = entry.linked.pointer();
    let cell = counters.wrapping_byte_sub(offset_of!(Cell, counters));
    (!counters.is_null()).then_some(cell.cast_mut().cast())
}

/// The shapes of the actions of rules.
fn shapes_of<'a>(
    rules: &[Rule],
    by_address: &'a HashMap<u64, ActionShape>,
) -> Vec<&'a ActionShape> {
    // SAFETY: the cells have been made by the store, and are not retired yet.
    let runs = rules.iter().map(|rule| unsafe { (*rule.cell).run });
    runs.filter_map(|run| by_address.get(&run)).collect()
}
