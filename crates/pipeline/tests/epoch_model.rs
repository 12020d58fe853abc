//! A model check of epochs: in every order in which a reader and a writer can see each other's stores, no reader reads a
//! block that the writer has freed.
//!
//! Loom runs each model once for every order of accesses, and every value that the memory model allows a load to see. It
//! fails if an access to a cell is not ordered before or after every change of it. The epochs are private to the crate, so
//! their file is compiled into this program, with loom's atomics. There is no test harness, since it would also run the
//! file's own tests.

#[path = "../src/fast/memory"]
#[allow(dead_code, unused_imports)]
mod memory {
    pub mod epoch;

    mod sync {
        pub use loom::sync::atomic::{AtomicU64, fence};
        pub use loom::sync::{Mutex, MutexGuard};
    }
}

use loom::cell::UnsafeCell;
use loom::sync::atomic::AtomicUsize;
use loom::sync::atomic::Ordering::{Acquire, Release};
use loom::thread;
use memory::epoch::{Epochs, Participant, Retired};
use std::sync::Arc;

/// Two cells, and the index of the one that readers find.
struct Linked {
    link: AtomicUsize,
    cells: [UnsafeCell<u32>; 2],
}

// SAFETY: loom checks each access to the cells.
unsafe impl Sync for Linked {}

impl Linked {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            link: AtomicUsize::new(0),
            cells: [UnsafeCell::new(1), UnsafeCell::new(1)],
        })
    }

    fn read(&self) {
        let found = &self.cells[self.link.load(Acquire)];
        // SAFETY: loom fails if it is changed during the access.
        found.with(|cell| assert_eq!(unsafe { *cell }, 1, "a freed cell"));
    }

    fn free(&self, index: usize) {
        // SAFETY: loom fails if it is read during the access.
        self.cells[index].with_mut(|cell| unsafe { *cell = 0 });
    }
}

/// Models a reader that joins and runs this function, while the writer removes the first cell and frees it as soon as
/// possible.
fn model(reader: fn(&mut Participant, &Linked)) {
    loom::model(move || {
        let (linked, epochs) = (Linked::new(), Epochs::new());
        let reading = thread::spawn({
            let (linked, epochs) = (Arc::clone(&linked), Arc::clone(&epochs));
            move || reader(&mut epochs.join(), &linked)
        });
        let mut retired = Retired::new(&epochs);
        linked.link.store(1, Release);
        retired.retire(0);
        retired.collect(|index| linked.free(index));
        reading.join().expect("the reader read");
        retired.collect(|index| linked.free(index));
        assert_eq!(retired.len(), 0, "the reader has left");
    });
}

fn main() {
    model(|participant, linked| {
        participant.begin();
        linked.read();
        participant.begin();
        linked.read();
    });
    model(|participant, linked| {
        participant.begin();
        linked.read();
        participant.rest();
        participant.begin();
        linked.read();
    });
}
