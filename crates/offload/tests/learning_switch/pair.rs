//! Two controllers with equal input, whose replies are compared.

use crate::switch::{Channel, InMemory, PATIENCE, connect, join, offloaded, settle};
use std::net::TcpStream;
use std::time::Instant;
use urtica_apps::{L2, MacEntry, MacTable};
use urtica_controller::{Running, SwitchCounters, SwitchInfo};
use urtica_offload::{Kernel, Mode};
use urtica_wire::{DatapathId, Version};

/// A switch whose controller answers in the kernel, and one whose controller is the program alone; both receive equal
/// input.
pub struct Pair {
    pub controller: Running,
    pub real: TcpStream,
    pub reference: InMemory,
    version: Version,
    /// Output of the reference model, which must equal the real controller's.
    pub expected: Vec<u8>,
}

impl Pair {
    pub fn new(kernel: &Kernel, mode: Mode, version: Version, places: usize) -> Self {
        let program =
            move |_: &SwitchInfo| L2::with_table(MacTable::in_slots(vec![MacEntry::FREE; places]));
        Self::of(
            offloaded(kernel, mode, places),
            InMemory::new(program),
            version,
        )
    }

    /// Creates a pair from a controller and its reference model. Returns when the switch has a kernel half: hosts that the
    /// program learns before are in a table that grows, and displace others later than in the reference model.
    pub fn of(controller: Running, mut reference: InMemory, version: Version) -> Self {
        let mut real = connect(&controller);
        join(&mut real, version, 1);
        join(&mut reference, version, 1);
        wait_for_kernel_half(&controller, &mut real, version);
        Self {
            controller,
            real,
            reference,
            version,
            expected: Vec::new(),
        }
    }

    /// Sends input to both controllers, to the real one as this piece.
    pub fn send(&mut self, bytes: &[u8]) {
        self.expect(bytes);
        self.real.send(bytes);
    }

    /// Sends input to the reference model.
    pub fn expect(&mut self, bytes: &[u8]) {
        self.reference.send(bytes);
        loop {
            // If much output waits, further input waits until some of it has been read.
            let said = self.reference.take();
            if said.is_empty() {
                return;
            }
            self.expected.extend(said);
        }
    }

    /// Waits until as much output as expected has arrived, and compares.
    pub fn compare(&mut self) {
        let mut said = Vec::new();
        while said.len() < self.expected.len() {
            said.extend(self.real.receive());
        }
        assert_same(&said, &self.expected);
        self.expected.clear();
    }

    pub fn counters(&self) -> std::sync::Arc<SwitchCounters> {
        let id = DatapathId(1);
        self.controller
            .network()
            .counters(id)
            .expect("it is connected")
    }

    /// Checks that no further output follows.
    pub fn finish(mut self) {
        self.compare();
        let (mut said, mut expected) = (Vec::new(), Vec::new());
        settle(&mut self.real, &mut said, self.version);
        settle(&mut self.reference, &mut expected, self.version);
        assert_same(&said, &expected);
        drop(self.real);
        self.controller.stop().unwrap();
    }
}

/// Waits until a session is free: another thread clears those that other switches have returned.
fn wait_for_kernel_half(controller: &Running, real: &mut TcpStream, version: Version) {
    let start = Instant::now();
    while controller.network().kernel_half_totals().switches() == 0 {
        assert!(start.elapsed() < PATIENCE, "a session is free in time");
        settle(real, &mut Vec::new(), version);
    }
}

/// Fails if the outputs differ, and prints where.
pub fn assert_same(said: &[u8], expected: &[u8]) {
    if said == expected {
        return;
    }
    let at = said.iter().zip(expected).position(|(a, b)| a != b);
    let at = at.unwrap_or(said.len().min(expected.len()));
    let around = |bytes: &[u8]| {
        format!(
            "{:02x?}",
            &bytes[at.saturating_sub(80)..bytes.len().min(at + 80)]
        )
    };
    panic!(
        "byte {at} of {}, expected {} bytes:\n{}\nexpected\n{}",
        said.len(),
        expected.len(),
        around(said),
        around(expected)
    );
}
