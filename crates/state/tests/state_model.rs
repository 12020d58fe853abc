//! Model checking of all orders in which threads can see each other's stores: transactions see a consistent snapshot
//! and lose no update, waiters are woken, and tables find their entries.
//!
//! Loom runs each model once for every order of accesses and every value that the memory model allows a load to see, with up to
//! two preemptions. With `--include-ignored`, as in the nightly run, transactions have three. The modelled code is private to
//! the crate, so its files are compiled into this program, with loom's atomics; memory is never freed here. It has no test
//! harness, since the files' own tests would be among its tests.

#[path = "../src/stm"]
#[allow(dead_code, reason = "the models use a part of it")]
mod stm {
    pub mod cause;
    pub mod core;
    pub mod log;
    pub mod versioned;
    pub mod waiting;

    /// Tables check this before changes. No table is used in a transaction here.
    pub fn in_transaction() -> bool {
        false
    }

    /// Retired values are never freed, since other threads may still read them.
    pub mod reclaim {
        pub unsafe fn retire(drop_it: impl FnOnce()) {
            std::mem::forget(drop_it);
        }
    }
}

#[path = "../src/table/mod.rs"]
#[allow(dead_code, reason = "the models use a part of it")]
mod table;
#[path = "../src/wait.rs"]
#[allow(dead_code, reason = "the models use a part of it")]
mod wait;
#[path = "../src/word.rs"]
#[allow(dead_code, reason = "the models use a part of it")]
mod word;

use word::Word;

/// Loom's atomics, with two workarounds.
///
/// - It treats `SeqCst` accesses as weaker ones, but models fences, so a fence precedes each access, with equal meaning.
/// - It remembers only the last access to a word. So if a thread loads a word and then changes it, loom forgets that another
///   has loaded it before, and does not try the other order. So each access first changes a separate word, which orders nothing
///   else.
mod sync {
    use loom::sync::atomic;
    pub use loom::sync::{Mutex, MutexGuard};
    use std::ops::Deref;
    use std::sync::atomic::Ordering::{self, Acquire, Relaxed, SeqCst};

    /// The smallest number that has an effect.
    pub const FEW: usize = 2;
    pub const STRIPES: usize = 2;
    pub const NEIGHBOURHOOD: usize = 1;

    pub type AtomicBool = Ordered<atomic::AtomicBool>;
    pub type AtomicPtr<T> = Ordered<atomic::AtomicPtr<T>>;
    pub type AtomicUsize = Ordered<atomic::AtomicUsize>;

    /// An atomic whose accesses each change another atomic first.
    #[derive(Debug)]
    pub struct Ordered<A> {
        accesses: atomic::AtomicUsize,
        inner: A,
    }

    impl<A> Ordered<A> {
        fn of(inner: A) -> Self {
            let accesses = atomic::AtomicUsize::new(0);
            Self { accesses, inner }
        }
    }

    impl<A> Deref for Ordered<A> {
        type Target = A;

        fn deref(&self) -> &A {
            self.accesses.fetch_add(1, Relaxed);
            &self.inner
        }
    }

    impl Ordered<atomic::AtomicBool> {
        pub fn new(value: bool) -> Self {
            Self::of(atomic::AtomicBool::new(value))
        }
    }

    impl<T> Ordered<atomic::AtomicPtr<T>> {
        pub fn new(value: *mut T) -> Self {
            Self::of(atomic::AtomicPtr::new(value))
        }
    }

    impl Ordered<atomic::AtomicUsize> {
        pub fn new(value: usize) -> Self {
            Self::of(atomic::AtomicUsize::new(value))
        }
    }

    #[derive(Debug)]
    pub struct AtomicU64(Ordered<atomic::AtomicU64>);

    impl AtomicU64 {
        pub fn new(value: u64) -> Self {
            Self(Ordered::of(atomic::AtomicU64::new(value)))
        }

        /// Returns the atomic to access, after the fence that the order requires.
        fn inner(&self, ordering: Ordering) -> &atomic::AtomicU64 {
            let inner = &*self.0;
            if ordering == SeqCst {
                atomic::fence(SeqCst);
            }
            inner
        }

        pub fn load(&self, ordering: Ordering) -> u64 {
            let weaker = if ordering == SeqCst {
                Acquire
            } else {
                ordering
            };
            self.inner(ordering).load(weaker)
        }

        pub fn store(&self, value: u64, ordering: Ordering) {
            assert_ne!(ordering, SeqCst, "that would take a fence after it as well");
            self.inner(ordering).store(value, ordering);
        }

        pub fn fetch_max(&self, value: u64, ordering: Ordering) -> u64 {
            self.inner(ordering).fetch_max(value, ordering)
        }

        pub fn fetch_add(&self, value: u64, ordering: Ordering) -> u64 {
            self.inner(ordering).fetch_add(value, ordering)
        }

        pub fn compare_exchange(
            &self,
            current: u64,
            new: u64,
            success: Ordering,
            failure: Ordering,
        ) -> Result<u64, u64> {
            let inner = self.inner(success);
            inner.compare_exchange(current, new, success, failure)
        }
    }

    pub fn prefetch<T>(_: *const T) {}
    pub fn prefetch_to_write<T>(_: *const T) {}

    pub fn spin(spins: &mut u32) {
        *spins += 64; // Few attempts are enough here.
        loom::thread::yield_now();
    }
}

use loom::thread;
use std::ops::Range;
use std::ptr;
use std::sync::Arc;
use std::task::Waker;
use stm::cause::Cause;
use stm::core::{Core, Handle};
use stm::log::Log;
use stm::versioned::Clock;
use stm::waiting::Waiting;
use table::Table;

/// Some variables, initially 0, and their clock.
struct World {
    clock: Clock,
    variables: Vec<Handle>,
}

impl World {
    fn new(variables: usize) -> Arc<Self> {
        let variable = |_| Handle::new(Core::new(ptr::null_mut(), None));
        Arc::new(Self {
            clock: Clock(sync::AtomicU64::new(0)),
            variables: (0..variables).map(variable).collect(),
        })
    }

    fn begin(&self) -> Log {
        let mut log = Log::default();
        // SAFETY: nothing is ever freed here, as if the thread stayed pinned for ever.
        unsafe { log.begin(&self.clock, 100) };
        log
    }

    fn read(&self, log: &mut Log, variable: usize) -> Result<usize, Cause> {
        let raw = log.read(&self.clock, &self.variables[variable])?;
        Ok(raw.addr())
    }

    fn write(&self, log: &mut Log, variable: usize, value: usize) -> Result<(), Cause> {
        let raw = ptr::without_provenance_mut(value);
        // SAFETY: the variables hold plain numbers.
        unsafe { log.write(&self.variables[variable], raw) }
    }

    /// Commits, and wakes the waiters.
    fn commit(&self, mut log: Log) -> Result<(), Cause> {
        let committed = log.commit(&self.clock);
        if committed.is_ok() {
            log.drain_written(|core, _, is_awaited| {
                if is_awaited {
                    core.waiters.take().iter().for_each(|waiter| waiter.wake());
                }
            });
        }
        log.clear();
        committed
    }

    /// Runs one attempt.
    fn attempt<T>(&self, body: impl Fn(&mut Log) -> Result<T, Cause>) -> Result<T, Cause> {
        let mut log = self.begin();
        let value = body(&mut log)?;
        self.commit(log)?;
        Ok(value)
    }

    /// Runs attempts until one commits.
    fn atomically<T>(&self, body: impl Fn(&mut Log) -> Result<T, Cause>) -> T {
        loop {
            match self.attempt(&body) {
                Ok(value) => return value,
                Err(_) => thread::yield_now(),
            }
        }
    }

    fn add(&self, variable: usize) {
        self.atomically(|log| {
            let value = self.read(log, variable)?;
            self.write(log, variable, value + 1)
        });
    }

    fn get(&self, variable: usize) -> usize {
        self.atomically(|log| self.read(log, variable))
    }
}

/// Returns the maximum number of preemptions for transactions. Tables need more steps, and get fewer preemptions.
fn in_transactions() -> usize {
    let is_thorough = std::env::args().any(|arg| arg == "--include-ignored");
    if is_thorough { 3 } else { 2 }
}

const IN_TABLES: usize = 2;
const IN_MOVING_TABLES: usize = 1;

fn model(preemptions: usize, body: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 10_000;
    builder.check(body);
}

/// Runs both functions concurrently, in a world with this number of variables, and then checks the results.
fn race<A: Send + 'static, B: 'static>(
    variables: usize,
    one: fn(&World) -> A,
    other: fn(&World) -> B,
    check: fn(&World, A, B),
) {
    model(in_transactions(), move || {
        let world = World::new(variables);
        let running = thread::spawn({
            let world = Arc::clone(&world);
            move || one(&world)
        });
        let other = other(&world);
        let one = running.join().expect("no panic");
        check(&world, one, other);
    });
}

fn no_write_is_lost() {
    let add = |world: &World| world.add(0);
    race(1, add, add, |world, (), ()| assert_eq!(world.get(0), 2));
}

/// An attempt that reads both variables reads values of one moment, even if it is aborted.
fn attempts_see_one_moment() {
    fn write_both(world: &World) {
        world.atomically(|log| {
            world.write(log, 0, 1)?;
            world.write(log, 1, 1)
        });
    }
    fn read_both(world: &World) {
        let mut log = world.begin();
        let both = world
            .read(&mut log, 0)
            .and_then(|first| Ok((first, world.read(&mut log, 1)?)));
        if let Ok((first, second)) = both {
            assert_eq!(first, second);
        }
    }
    race(2, write_both, read_both, |_, (), ()| ());
}

/// Like `attempts_see_one_moment`, with enough reads that the last one raises the clock, unless a third thread has done that.
fn attempts_see_one_moment_of_others() {
    model(2, || {
        let world = World::new(2);
        let spawn = |body: fn(&World)| {
            let world = Arc::clone(&world);
            thread::spawn(move || body(&world))
        };
        let writing = spawn(|world| {
            let _ = world.attempt(|log| {
                world.write(log, 0, 1)?;
                world.write(log, 1, 1)
            });
        });
        let raising = spawn(|world| _ = world.clock.raise(1));
        let mut log = world.begin();
        let both = world
            .read(&mut log, 0)
            .and_then(|_| world.read(&mut log, 0))
            .and_then(|first| Ok((first, world.read(&mut log, 1)?)));
        if let Ok((first, second)) = both {
            assert_eq!(first, second);
        }
        writing.join().expect("no panic");
        raising.join().expect("no panic");
    });
}

/// Each transaction reads the variable that the other writes: one of them must see the write.
fn no_write_skew() {
    race(
        2,
        |world| {
            world.attempt(|log| {
                let seen = world.read(log, 0)?;
                world.write(log, 1, 1)?;
                Ok(seen)
            })
        },
        |world| {
            world.attempt(|log| {
                let seen = world.read(log, 1)?;
                world.write(log, 0, 1)?;
                Ok(seen)
            })
        },
        |_, one, other| assert!((one, other) != (Ok(0), Ok(0))),
    );
}

/// Like `no_write_skew`, but each also reads its own variable right before writing it: the lock validates only that
/// read.
fn no_write_skew_with_own_reads() {
    fn add_unless_seen(world: &World, own: usize, other: usize) -> Result<usize, Cause> {
        world.attempt(|log| {
            let seen = world.read(log, other)?;
            let value = world.read(log, own)?;
            world.write(log, own, value + 1)?;
            Ok(seen)
        })
    }
    race(
        2,
        |world| add_unless_seen(world, 0, 1),
        |world| add_unless_seen(world, 1, 0),
        |_, one, other| assert!((one, other) != (Ok(0), Ok(0))),
    );
}

/// A transaction that waits for a change of its reads is woken, or learns that they have changed.
fn no_wake_up_is_lost() {
    fn wait(world: &World) -> Option<Waiting> {
        let mut log = world.begin();
        match world.read(&mut log, 0) {
            Ok(0) => Waiting::new(&log, Waker::noop()),
            _ => None,
        }
    }
    race(
        1,
        wait,
        |world| world.add(0),
        |_, waiting, ()| {
            if let Some(waiting) = waiting {
                assert!(
                    waiting.is_over_or_wakes(Waker::noop()),
                    "it would sleep for ever"
                );
            }
        },
    );
}

/// A key is found with its own value from its insertion until its removal.
fn a_table_finds_its_entries() {
    model(IN_TABLES, || {
        let table = Arc::new(Table::<u64, u64>::new());
        table.insert(1, 10).expect("there is room");
        let changing = thread::spawn({
            let table = Arc::clone(&table);
            move || {
                table.insert(2, 20).expect("there is room");
                table.remove(1);
                table.insert(1, 11).expect("there is room");
            }
        });
        let (one, other) = (table.get(1), table.get(2));
        assert!([None, Some(20)].contains(&other));
        assert!([Some(10), None, Some(11)].contains(&one));
        assert!(
            one != Some(11) || other.is_some(),
            "what came first is there"
        );
        changing.join().expect("no panic");
        assert_eq!(table.to_vec(), [(1, 11), (2, 20)]);
    });
}

/// Two threads insert one key, and one of them is first.
fn a_key_is_inserted_once() {
    model(IN_TABLES, || {
        let table = Arc::new(Table::<u64, u64>::new());
        let inserting = thread::spawn({
            let table = Arc::clone(&table);
            move || table.insert(1, 10)
        });
        let other = table.insert(1, 11).expect("there is room");
        let one = inserting.join().expect("no panic").expect("there is room");
        assert!([(None, Some(10)), (Some(11), None)].contains(&(one, other)));
        assert_eq!(table.len(), 1);
    });
}

/// A table of four slots moves to other slots twice, finally back to the first ones, during a look-up.
fn a_table_finds_its_entries_while_it_moves() {
    model(IN_MOVING_TABLES, || {
        let table = Arc::new(Table::<u64, u64>::with_max_entries(2));
        let pass = |table: &Table<u64, u64>, keys: Range<u64>| {
            for key in keys {
                table.insert(key, 9).expect("there is room");
                table.remove(key);
            }
        };
        table.insert(0, 7).expect("there is room");
        pass(&table, 1..3);
        let moving = thread::spawn({
            let table = Arc::clone(&table);
            move || pass(&table, 3..6)
        });
        assert_eq!(table.get(0), Some(7));
        moving.join().expect("no panic");
        assert_eq!(table.to_vec(), [(0, 7)]);
    });
}

/// A key outside the first line of its path is found: four other keys have the first four of eight slots.
fn a_table_finds_displaced_keys() {
    model(IN_MOVING_TABLES, || {
        let table = Arc::new(Table::<u64, u64>::with_max_entries(5));
        for key in 0..4 {
            table.insert(key, 7).expect("there is room");
        }
        let inserting = thread::spawn({
            let table = Arc::clone(&table);
            move || {
                table.insert(8, 80).expect("there is room");
                table.insert(8, 81).expect("it is there");
            }
        });
        let (one, other) = (table.get(8), table.get(8));
        assert!([None, Some(80), Some(81)].contains(&one));
        assert!(one <= other, "what was seen once does not come back");
        inserting.join().expect("no panic");
        assert!(table.has(8, 81));
    });
}

/// A key whose search starts at one of four slots.
#[derive(Clone, Copy)]
struct Beside(u64);

impl Word for Beside {
    fn to_word(self) -> u64 {
        self.0
    }

    fn from_word(word: u64) -> Self {
        Self(word)
    }

    fn first_slot(word: u64) -> u64 {
        word % 4
    }
}

/// The key of a free slot is the table's reserved word, and may change to another key. A look-up of the reserved word does not
/// return that key's value.
fn the_reserved_word_is_never_found() {
    model(IN_TABLES, || {
        let table = Arc::new(Table::<Beside, u64>::with_max_entries(5));
        for key in 0..4 {
            table.insert(Beside(key), 7).expect("there is room");
        }
        let inserting = thread::spawn({
            let table = Arc::clone(&table);
            move || table.insert(Beside(7), 70).expect("there is room")
        });
        assert_eq!(table.get(Beside(u64::MAX)), None);
        inserting.join().expect("no panic");
        assert!(table.has(Beside(7), 70));
    });
}

/// A key outside the first line of its path is also found while the table moves to other slots.
fn a_table_finds_displaced_keys_while_it_moves() {
    model(IN_MOVING_TABLES, || {
        let table = Arc::new(Table::<u64, u64>::with_max_entries(5));
        for key in [0, 1, 2, 3, 8] {
            table.insert(key, key + 7).expect("there is room");
        }
        table.remove(0);
        let pass = |table: &Table<u64, u64>, keys: Range<u64>| {
            for key in keys {
                table.insert(key, 9).expect("there is room");
                table.remove(key);
            }
        };
        // Now seven of eight slots are in use.
        pass(&table, 4..6);
        let moving = thread::spawn({
            let table = Arc::clone(&table);
            move || pass(&table, 6..7)
        });
        assert_eq!(table.get(8), Some(15));
        moving.join().expect("no panic");
        assert_eq!(table.to_vec(), [(1, 8), (2, 9), (3, 10), (8, 15)]);
    });
}

/// Runs all models, or those whose names contain the argument.
fn main() {
    let is_name = |arg: &String| !arg.starts_with("--");
    let wanted = std::env::args().skip(1).find(is_name);
    let wanted = wanted.unwrap_or_default();
    let models: [(&str, fn()); 12] = [
        ("no_write_is_lost", no_write_is_lost),
        ("attempts_see_one_moment", attempts_see_one_moment),
        (
            "attempts_see_one_moment_of_others",
            attempts_see_one_moment_of_others,
        ),
        ("no_write_skew", no_write_skew),
        ("no_write_skew_with_own_reads", no_write_skew_with_own_reads),
        ("no_wake_up_is_lost", no_wake_up_is_lost),
        ("a_table_finds_its_entries", a_table_finds_its_entries),
        ("a_key_is_inserted_once", a_key_is_inserted_once),
        (
            "a_table_finds_its_entries_while_it_moves",
            a_table_finds_its_entries_while_it_moves,
        ),
        ("a_table_finds_displaced_keys", a_table_finds_displaced_keys),
        (
            "the_reserved_word_is_never_found",
            the_reserved_word_is_never_found,
        ),
        (
            "a_table_finds_displaced_keys_while_it_moves",
            a_table_finds_displaced_keys_while_it_moves,
        ),
    ];
    for (name, model) in models {
        if name.contains(&wanted) {
            println!("model {name}");
            model();
        }
    }
}
