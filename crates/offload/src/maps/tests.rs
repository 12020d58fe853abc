//! Threads that serve switches never change a map of maps, which takes tens of milliseconds.

use super::*;
use crate::kernel::Kernel;
use std::cell::Cell;
use std::os::fd::AsRawFd;

/// `BPF_MAP_TYPE_ARRAY_OF_MAPS`, as in `/proc`.
const OF_MAPS: &str = "map_type:\t12\n";

thread_local! {
    /// Number of changes of maps of maps by this thread.
    static CHANGES: Cell<u32> = const { Cell::new(0) };
}

/// Counts a call of bpf(2).
pub fn note(command: libc::c_int, map: &OwnedFd) {
    let is_change = [UPDATE_ELEM, DELETE_ELEM, UPDATE_BATCH, DELETE_BATCH].contains(&command);
    let path = format!("/proc/self/fdinfo/{}", map.as_raw_fd());
    if is_change && std::fs::read_to_string(path).is_ok_and(|map| map.contains(OF_MAPS)) {
        CHANGES.set(CHANGES.get() + 1);
    }
}

/// Uses many more sessions than are created at first, several times, so that more than one switch uses each session.
#[test]
fn joining_and_leaving_change_no_map_of_maps() {
    let Ok(kernel) = Kernel::start() else {
        assert!(std::env::var("CI").as_deref() != Ok("true"));
        return;
    };
    let at_start = CHANGES.get();
    assert!(at_start > 0, "changes are not noticed");
    for _ in 0..3 {
        let mut opened = Vec::new();
        while opened.len() < 40 {
            match kernel.open_session() {
                Some(session) => opened.push(session),
                None => std::thread::yield_now(),
            }
        }
        for session in opened {
            assert_eq!(session.memory.shared().owner.passed_bytes(), 0);
            session.memory.shared().store(1, b"of an earlier switch");
            let mut stored = Vec::new();
            session.memory.shared().read_stored(2, 20, &mut stored);
            assert_eq!(stored, [0; 20], "a session is as new");
            session.memory.shared().store(2, b"of an earlier switch");
            kernel.close_session(session.lease.slot(), &[]);
        }
    }
    assert_eq!(CHANGES.get(), at_start);
}
