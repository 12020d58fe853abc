//! The owner of a connection's next input, which is the kernel or the program. The kernel's side is `bpf/owner.h`.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

const PROGRAM: u64 = 0;
const KERNEL: u64 = 1;
const BUSY: u64 = 2;
const OWNER_MASK: u64 = 3;
const PASSED_SHIFT: u32 = 2;

/// Number of times that the owner is read while the kernel is busy, before the thread yields.
const SPINS: u32 = 1000;

/// The owner, and the number of bytes that the kernel has passed to the program, in one word that both share.
#[repr(transparent)]
pub struct Owner(AtomicU64);

impl Owner {
    /// Makes the program the owner: from now on the kernel passes all input.
    pub fn reclaim(&self) {
        for attempt in 0_u32.. {
            let owner = self.0.load(Acquire);
            match owner & OWNER_MASK {
                PROGRAM => return,
                // The kernel is working on another core, or was interrupted there; that lasts some microseconds.
                BUSY if attempt < SPINS => std::hint::spin_loop(),
                BUSY => std::thread::yield_now(),
                _ => {
                    let ours = owner - KERNEL + PROGRAM;
                    let _ = self.0.compare_exchange(owner, ours, AcqRel, Relaxed);
                }
            }
        }
    }

    /// Returns whether the owner has one of the three valid values.
    pub fn is_sound(&self) -> bool {
        self.0.load(Acquire) & OWNER_MASK <= BUSY
    }

    /// Returns the number of bytes that the kernel has passed so far. Valid while the program is the owner.
    pub fn passed_bytes(&self) -> u64 {
        self.0.load(Acquire) >> PASSED_SHIFT
    }

    /// Returns whether the program is the owner.
    pub fn is_program(&self) -> bool {
        self.0.load(Acquire) & OWNER_MASK == PROGRAM
    }

    /// Makes the kernel the owner if it has passed exactly `seen` bytes. Returns whether it did.
    pub fn hand_over(&self, seen: u64) -> bool {
        let ours = seen << PASSED_SHIFT | PROGRAM;
        let theirs = seen << PASSED_SHIFT | KERNEL;
        self.0
            .compare_exchange(ours, theirs, AcqRel, Relaxed)
            .is_ok()
    }
}
