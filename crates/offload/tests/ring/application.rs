//! A program that reads a ring, and answers each message with all fields of its record.

use crate::support::skip;
use crate::switch::PATIENCE;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread::JoinHandle;
use std::time::Duration;
use urtica_controller::SessionConfig;
use urtica_offload::ring::{
    KernelCounts, MessageType, Record, Replies, Ring, RingError, RingSettings, Rings,
};
use urtica_wire::{BufferId, Message, PortNo, Version};

/// State that the threads and a test share.
#[derive(Default)]
pub struct Shared {
    is_stopping: AtomicBool,
    pub is_paused: AtomicBool,
    pub records: AtomicU64,
    counts: parking_lot::Mutex<KernelCounts>,
}

/// A program with a thread for each ring.
pub struct Application {
    pub rings: Rings,
    pub shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

/// Starts rings of this size; returns `None` if this machine does not support them.
pub fn start(rings: usize, ring_bytes: usize) -> Option<Rings> {
    let settings = RingSettings {
        rings,
        ring_bytes,
        session: quiet_sessions(),
    };
    match Rings::start(&["ptcp:0:127.0.0.1".parse().unwrap()], settings) {
        Ok(rings) => Some(rings),
        Err(RingError::Unavailable(reason)) => {
            skip(&reason);
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Returns settings of sessions that send no echo requests, so that tests control all messages.
fn quiet_sessions() -> SessionConfig {
    let mut session = SessionConfig::default();
    session.echo_interval = Duration::from_secs(3000);
    session.dead_interval = Duration::from_secs(6000);
    session
}

impl Application {
    /// Runs one thread for each ring, subscribed to these types.
    pub fn run(rings: Rings, types: &[MessageType]) -> Self {
        let shared = Arc::new(Shared::default());
        let threads = (0..rings.count()).map(|number| {
            let mut ring = rings.register(number).unwrap();
            types.iter().for_each(|&kind| ring.subscribe(kind).unwrap());
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || {
                while !shared.is_stopping.load(SeqCst) {
                    serve(&mut ring, &shared);
                }
            })
        });
        Self {
            threads: threads.collect(),
            rings,
            shared,
        }
    }

    pub fn connect(&self) -> TcpStream {
        connect(&self.rings)
    }

    /// Returns the kernel's counts as of the last turn of a thread.
    pub fn counts(&self) -> KernelCounts {
        *self.shared.counts.lock()
    }

    pub fn stop(self) {
        self.shared.is_stopping.store(true, SeqCst);
        for thread in self.threads {
            thread.join().unwrap();
        }
    }
}

/// Connects a switch over loopback.
pub fn connect(rings: &Rings) -> TcpStream {
    let address = rings.addresses()[0].to_string();
    let address = address.strip_prefix("ptcp:").unwrap();
    let (port, host) = address.split_once(':').unwrap();
    let socket = TcpStream::connect((host, port.parse().unwrap())).unwrap();
    socket.set_nodelay(true).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

/// Runs one turn of the loop.
pub fn serve(ring: &mut Ring, shared: &Shared) {
    if shared.is_paused.load(SeqCst) {
        std::thread::sleep(Duration::from_millis(1));
        return;
    }
    ring.poll(Duration::from_millis(10)).unwrap();
    while let Some((record, mut replies)) = ring.next_record() {
        shared.records.fetch_add(1, SeqCst);
        answer(&record, &mut replies);
    }
    ring.flush();
    *shared.counts.lock() = ring.counts();
}

fn answer(record: &Record, replies: &mut Replies) {
    let all = description(
        record.buffer_id(),
        record.in_port(),
        record.frame_range().start,
        record.frame(),
        record.message(),
    );
    replies
        .write(record.xid(), &Message::EchoReply(&all))
        .unwrap();
}

/// Returns the answer computed from the message alone, as by a program without rings; `None` if the message is not for the
/// program.
pub fn expected_answer(message: &[u8], version: Version, types: &[MessageType]) -> Option<Vec<u8>> {
    let is_subscribed = types.iter().any(|&kind| kind as u8 == message[1]);
    if !is_subscribed || message[0] != version.to_wire() {
        return None;
    }
    let (header, decoded) = Message::decode(message).ok()?;
    let all = match &decoded {
        Message::PacketIn(packet) => description(
            packet.buffer_id,
            packet.in_port,
            message.len() - packet.data.len(),
            packet.data,
            message,
        ),
        _ => description(BufferId::NONE, PortNo::ANY, 0, &[], message),
    };
    let mut answer = Vec::new();
    Message::EchoReply(&all)
        .encode(version, header.xid, &mut answer)
        .unwrap();
    Some(answer)
}

fn description(
    buffer_id: BufferId,
    in_port: PortNo,
    frame_at: usize,
    frame: &[u8],
    message: &[u8],
) -> Vec<u8> {
    let mut all = Vec::new();
    for number in [buffer_id.0, in_port.0, frame_at as u32, frame.len() as u32] {
        all.extend(number.to_be_bytes());
    }
    all.extend_from_slice(message);
    all
}
