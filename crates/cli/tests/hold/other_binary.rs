//! Tests of upgrades under `--hold` to a build with other eBPF programs, and to one whose maps have another layout.
//!
//! The other build is a copy of this one in which an instruction of the eBPF programs is changed: they send with the xids of
//! the second program instead of the first, which shows switches which programs answer them.

use crate::kernel::{KERNEL, check_taken_over, room};
use crate::room::*;
use crate::switch::*;
use rustix::process::Signal;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use urtica_wire::Version;

/// The sender in xids of the learning switch, and of the other build's programs in the kernel.
const SENDER: u32 = 1;
const OTHER_SENDER: u32 = 2;

/// A BPF object in an executable.
struct Object<'b>(&'b mut [u8]);

impl<'b> Object<'b> {
    /// Finds all BPF objects.
    fn all(mut bytes: &'b mut [u8]) -> Vec<Self> {
        const MAGIC: &[u8] = b"\x7fELF\x02\x01\x01";
        const EM_BPF: u16 = 247;
        let mut objects = Vec::new();
        let starts = |bytes: &[u8]| bytes.windows(MAGIC.len()).position(|at| at == MAGIC);
        while let Some(start) = starts(bytes) {
            let (_, rest) = bytes.split_at_mut(start);
            if rest.len() > 64 && u16_at(rest, 18) == EM_BPF {
                // The section headers are at the end of an object.
                let end = u64_at(rest, 40) as usize + usize::from(u16_at(rest, 60)) * 64;
                let (object, after) = rest.split_at_mut(end);
                objects.push(Self(object));
                bytes = after;
            } else {
                bytes = &mut rest[MAGIC.len()..];
            }
        }
        objects
    }

    /// Changes the sender in all instructions that add it to a counter; returns their number.
    fn change_sender(&mut self) -> usize {
        const SHF_EXECINSTR: u64 = 4;
        // An instruction has an opcode, a byte of registers, an offset, and 32 immediate bits.
        const OR_IMMEDIATE: [u8; 2] = [0x44, 0x47];
        let (table, count) = (u64_at(self.0, 40) as usize, usize::from(u16_at(self.0, 60)));
        let mut changed = 0;
        for header in (0..count).map(|index| table + 64 * index) {
            if u64_at(self.0, header + 8) & SHF_EXECINSTR == 0 {
                continue;
            }
            let at = u64_at(self.0, header + 24) as usize;
            let bytes = u64_at(self.0, header + 32) as usize;
            for instruction in self.0[at..at + bytes].chunks_exact_mut(8) {
                let is_sender = instruction[4..] == (SENDER << 24).to_le_bytes();
                if is_sender && OR_IMMEDIATE.contains(&instruction[0]) {
                    instruction[4..].copy_from_slice(&(OTHER_SENDER << 24).to_le_bytes());
                    changed += 1;
                }
            }
        }
        changed
    }
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes[at..at + 2].try_into().unwrap())
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

/// Writes the other build; returns its path.
fn other_binary(room: &Room) -> PathBuf {
    let mut bytes = fs::read(URTICA).unwrap();
    let objects = Object::all(&mut bytes).into_iter();
    let changed: usize = objects.map(|mut object| object.change_sender()).sum();
    assert!(
        changed > 0,
        "its programs in the kernel have no such instruction"
    );
    let path = room.folder.path().join("urtica-other");
    fs::write(&path, bytes).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// Requests many answers for a switch; returns `true` if any has an xid of this sender.
fn answers_as(switch: &mut FakeSwitch, sender: u32) -> bool {
    for _ in 0..200 {
        switch.send_packets(1);
        switch.settle();
    }
    switch.senders.contains(&(sender as u8))
}

/// Switches stay connected, and the new programs answer new switches.
#[test]
fn other_programs_in_the_kernel_take_over() {
    let Some(mut room) = room(KERNEL) else { return };
    let (this, other) = (PathBuf::from(URTICA), other_binary(&room));
    under_load_in(&mut room, |room, mut program, progress| {
        let builds = [
            (&other, Signal::TERM),
            (&this, Signal::KILL),
            (&other, Signal::KILL),
        ];
        for ((binary, signal), id) in builds.into_iter().zip(100..) {
            program.signal(signal);
            program.wait();
            progress(1000);
            room.with_binary(binary.clone());
            program = room.start(&format!("build-{id}.log"), &[]);
            check_taken_over_by_other(&program);
            progress(1000);
            let is_other = *binary == other;
            let mut switch = FakeSwitch::join(program.port().unwrap(), Version::Of13, id);
            if is_other {
                eventually("the new programs answer", || {
                    answers_as(&mut switch, OTHER_SENDER)
                });
            } else {
                program.answer_until_kept(&mut switch);
                assert!(!answers_as(&mut switch, OTHER_SENDER), "the old programs");
            }
        }
        program
    });
}

/// A running program lets a newer build take over.
#[test]
fn a_running_program_is_replaced_by_another_build() {
    let Some(mut room) = room(KERNEL) else { return };
    let other = other_binary(&room);
    under_load_in(&mut room, |room, mut first, progress| {
        room.with_binary(other);
        let second = room.start("second.log", &[]);
        assert!(first.wait().success(), "{}", first.log());
        check_taken_over(&second);
        progress(1000);
        second
    });
}

fn check_taken_over_by_other(program: &Program) {
    let log = program.log();
    assert!(!log.contains("cannot be used"), "{log}");
    assert!(!log.contains("WARN"), "{log}");
    assert!(log.contains("closed=0"), "{log}");
    assert!(log.contains("of an earlier program"), "{log}");
}

/// The connections stay, and the kernel answers again with new maps.
#[test]
fn maps_of_another_layout_are_released() {
    let Some(room) = room(KERNEL) else { return };
    let room = room.managed();
    under_load(&room, |mut program, progress| {
        for (round, signal) in [Signal::KILL, Signal::TERM].into_iter().enumerate() {
            program.signal(signal);
            program.wait();
            // The labels of the maps and of four sessions.
            let renamed = room.manager().rename("half%20l2.", "half%20l2.9");
            assert!(renamed >= 7 + 4 * 4, "{renamed}");
            program = room.start(&format!("after-{round}.log"), &[]);
            let log = program.log();
            assert!(log.contains("taken=4 closed=0"), "{log}");
            assert!(!log.contains("of an earlier program;"), "{log}");
            progress(1000);
            let log = program.log();
            assert!(
                log.contains("have another version; releasing them"),
                "{log}"
            );
            program.wait_for_kernel_halves(4);
            progress(1000);
        }
        program
    });
}
