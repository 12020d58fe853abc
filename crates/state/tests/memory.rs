//! Tests of the memory of tables and transactions: all allocations are counted.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use urtica_state::{TVar, Table, atomically};

thread_local! {
    /// Bytes that this thread holds.
    static HELD: Cell<isize> = const { Cell::new(0) };
}

/// The system's allocator, with a count of the allocated bytes.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: the system's allocator does all the work; the counter is a plain number without a destructor, which needs no memory.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.set(HELD.get() + layout.size() as isize);
        // SAFETY: the caller meets the requirements of the system's allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.set(HELD.get() - layout.size() as isize);
        // SAFETY: as above; the memory comes from this allocator.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// A table for a million entries needs memory only for its current entries, even if many were removed.
#[test]
fn removed_entries_leave_no_memory_behind() {
    let before = HELD.get();
    let table = Table::with_max_entries(1 << 20);
    for key in 0..100_000_u64 {
        assert_eq!(table.insert(key * 77, key), Ok(None));
        if key >= 60 {
            assert_eq!(table.remove((key - 60) * 77), Some(key - 60));
        }
    }
    let bytes = HELD.get() - before;
    assert_eq!(table.len(), 60);
    assert!(bytes < 32 << 10, "{bytes} bytes");
}

/// A thread keeps the log of its transactions for the next ones, but does not keep the memory of a large log for ever.
#[test]
fn a_large_transaction_leaves_no_memory_behind() {
    let numbers: Vec<_> = (0..20_000).map(TVar::new).collect();
    let before = HELD.get();
    let sum = atomically(|tx| {
        numbers
            .iter()
            .try_fold(0, |sum, number| Ok(sum + number.read(tx)?))
    });
    assert_eq!(sum, (0..20_000).sum::<u64>());
    let bytes = HELD.get() - before;
    assert!(bytes < 128 << 10, "{bytes} bytes after reads");

    atomically(|tx| numbers.iter().try_for_each(|number| number.write(tx, 0)));
    let bytes = HELD.get() - before;
    assert!(bytes < 128 << 10, "{bytes} bytes after writes");
}
