//! The amount of log that a peer can cause. A single test, since a process has one log.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tracing_subscriber::fmt::MakeWriter;
use urtica_controller::{Controller, Embedded, SwitchHandler, SwitchInfo};
use urtica_log::{BURST, BURST_IN_SUM, INTERVAL, PER_SECOND_IN_SUM};
use urtica_wire::{Capabilities, DatapathId, Features, List, Message, Version};

/// The number of repetitions of actions that cause log lines.
const TIMES: u64 = 10_000;

/// A log in memory.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn take(&self) -> Vec<String> {
        let bytes = std::mem::take(&mut *self.0.lock().unwrap());
        let text = String::from_utf8(bytes).unwrap();
        text.lines().map(str::to_owned).collect()
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

struct Quiet;

impl SwitchHandler for Quiet {}

/// Returns a switch's first messages, and one that the controller does not understand.
fn words(id: u64) -> Vec<u8> {
    let mut said = vec![1, 0, 0, 8, 0, 0, 0, 0];
    let features = Message::FeaturesReply(Features {
        datapath_id: DatapathId(id),
        n_buffers: 0,
        n_tables: 1,
        auxiliary_id: 0,
        capabilities: Capabilities::empty(),
        actions: 0,
        ports: List::default(),
    });
    features.encode(Version::Of10, 0, &mut said).unwrap();
    said.extend([1, 99, 0, 8, 0, 0, 0, 0]);
    said
}

/// Connects a switch from another port, which joins.
fn join(controller: &mut Embedded, port: u64, id: u64) {
    let now = Duration::from_millis(port);
    let peer = format!("tcp:192.0.2.1:{}", 1024 + port);
    let switch = controller.connect(peer, now);
    controller.handle_input(switch, &words(id), now).unwrap();
    controller.poll(now);
}

/// Connects a peer whose first message is not a hello, and has an unknown version.
fn be_refused(controller: &mut Embedded, port: u64) {
    let now = Duration::from_millis(port);
    let peer = format!("tcp:192.0.2.1:{}", 1024 + port);
    let switch = controller.connect(peer, now);
    let refused = controller.handle_input(switch, &[1, 1, 0, 12, 0, 0, 0, 0, 0, 0, 0, 0], now);
    assert!(refused.is_err());
}

#[test]
fn peers_cannot_flood_the_log() {
    let log = Log::default();
    tracing_subscriber::fmt()
        .with_writer(log.clone())
        .with_ansi(false)
        .init();
    let started = Instant::now();
    let mut controller = Controller::new()
        .program(|_: &SwitchInfo| Quiet)
        .embed()
        .unwrap();
    // One datapath id again and again causes INFO and WARN lines.
    (0..TIMES).for_each(|port| join(&mut controller, port, 7));
    // The number of further lines on a slow machine.
    let later = |started: Instant| (started.elapsed().as_secs() / INTERVAL.as_secs()) as usize;
    let lines = log.take();
    let most = 2 * (BURST as usize + later(started));
    assert!((1..=most).contains(&lines.len()), "{}", lines.len());
    // Many refused peers at one address.
    (0..TIMES).for_each(|port| be_refused(&mut controller, port));
    let lines = log.take();
    let most = BURST as usize + later(started);
    assert!((1..=most).contains(&lines.len()), "{}", lines.len());
    // Other switches are still logged.
    join(&mut controller, 0, 8);
    let lines = log.take();
    assert!(
        lines.iter().any(|line| line.contains("switch joined")),
        "{lines:?}"
    );
    // With new ids each time, a common limit per level applies.
    (0..TIMES).for_each(|id| join(&mut controller, id, 100 + id));
    let later = started.elapsed().as_secs() as usize * PER_SECOND_IN_SUM as usize;
    let most = 2 * (BURST_IN_SUM as usize + later);
    let lines = log.take();
    assert!((1..=most).contains(&lines.len()), "{}", lines.len());
}
