//! Switches that move between shards while they are busy: no message is lost or reordered.

use crate::support::*;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use urtica_controller::{Network, Running, SwitchInfo};
use urtica_wire::{BufferId, DatapathId, Experimenter, Message, PacketIn, Version};

/// The number of packets that a switch sends before it awaits the answers.
const WINDOW: u32 = 500;

/// The number of messages from elsewhere that may be on their way to a switch, far below the limit.
const IN_FLIGHT: u32 = 1000;

/// The state shared by a switch and the sender of messages to it.
#[derive(Default)]
struct Load {
    is_over: AtomicBool,
    /// The number of messages from elsewhere that have arrived, in order.
    arrived: AtomicU32,
    /// The total number of these messages, once no more are sent.
    sent: OnceLock<u32>,
}

impl Load {
    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// Sends packets and checks the answers until the end; then awaits the remaining messages from elsewhere.
    fn keep_busy(&self, switch: &mut FakeSwitch) {
        let (mut number, mut answered) = (0, 0);
        while !self.is_over() {
            let mut batch = Vec::new();
            for _ in 0..WINDOW {
                batch.extend(encode(switch.version, 0, &numbered(number)));
                number += 1;
            }
            switch.send_bytes(&batch);
            while answered < number {
                self.check(&switch.receive(), &mut answered);
            }
        }
        let sent = self.await_sent();
        while self.arrived.load(Ordering::Acquire) < sent {
            self.check(&switch.receive(), &mut answered);
        }
    }

    fn await_sent(&self) -> u32 {
        loop {
            match self.sent.get() {
                Some(sent) => return *sent,
                None => thread::yield_now(),
            }
        }
    }

    fn check(&self, frame: &Frame, answered: &mut u32) {
        match frame.message() {
            Message::PacketOut(out) => {
                assert_eq!(out.buffer_id, BufferId(*answered));
                *answered += 1;
            }
            Message::Experimenter(message) => {
                let arrived = self.arrived.fetch_add(1, Ordering::AcqRel);
                assert_eq!(message.experimenter, arrived);
            }
            other => panic!("unexpected: {other:?}"),
        }
    }

    /// Sends numbered messages to the switch until the end.
    fn send_from_elsewhere(&self, network: &Network, to: DatapathId) {
        let mut number = 0;
        while !self.is_over() {
            if number - self.arrived.load(Ordering::Acquire) < IN_FLIGHT {
                let message = Message::Experimenter(Experimenter {
                    experimenter: number,
                    data: &[0; 4],
                });
                network.send(to, &message).unwrap();
                number += 1;
            } else {
                thread::yield_now();
            }
        }
        self.sent.set(number).unwrap();
    }
}

/// Returns a packet that the switch has buffered under this number, which the answer contains.
fn numbered(number: u32) -> Message<'static> {
    Message::PacketIn(PacketIn {
        buffer_id: BufferId(number),
        ..packet_in(&UDP)
    })
}

fn departures(running: &Running) -> u64 {
    let shards = running.network().shard_counters();
    shards.map(|shard| shard.departures.get()).sum()
}

#[test]
fn busy_switches_move_to_the_idle_shard_without_loss() {
    let running = controller(2).program(|_: &SwitchInfo| Hub).start().unwrap();
    // Connections are distributed round-robin: the busy switches, with odd numbers, share a shard.
    let switches = (0..8).map(|id| (id, FakeSwitch::join(&running, Version::Of10, id)));
    let (busy, _idle): (Vec<_>, Vec<_>) = switches.partition(|(id, _)| id % 2 == 1);
    let busy_ids: Vec<_> = busy.iter().map(|(id, _)| DatapathId(*id)).collect();
    let workers = busy.into_iter().map(|(id, mut switch)| {
        let (load, network) = (Arc::new(Load::default()), running.network().clone());
        let shared = load.clone();
        let worker = thread::spawn(move || {
            thread::scope(|scope| {
                scope.spawn(|| shared.send_from_elsewhere(&network, DatapathId(id)));
                shared.keep_busy(&mut switch);
            });
            switch
        });
        (load, worker)
    });
    let workers: Vec<_> = workers.collect();
    eventually("a switch moves", || departures(&running) >= 1);
    for (load, _) in &workers {
        load.is_over.store(true, Ordering::Release);
    }
    let mut busy: Vec<_> = workers
        .into_iter()
        .map(|(_, worker)| worker.join().unwrap())
        .collect();
    // The other switches answer no echo requests, and may have been disconnected if this took long.
    let connected = |id: &DatapathId| running.network().info(*id).is_some();
    assert!(busy_ids.iter().all(connected));
    busy.iter_mut().for_each(FakeSwitch::assert_served);
    running.stop().unwrap();
}
