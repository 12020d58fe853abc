//! The cost of `--state` for a controller: the time until a barrier after new entries is answered, without a state file and
//! with each way of synchronising its journal.
//!
//! The rounds are interleaved. The output is the median, the minimum and the maximum, and the median as a multiple of the
//! median without a file. The file is in a temporary directory, so `TMPDIR` chooses the disk. With `--bench` there are 7
//! rounds of 10,000 entries before one barrier and of 500 entries with a barrier each, otherwise two tiny ones.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use urtica_socket::Address;
use urtica_switch::{Runner, StateFile, StateSync, Switch, SwitchConfig};
use urtica_wire::{
    Action, FlowMod, Instruction, List, Match, Message, OxmField, PortNo, Version, split_frame,
};

/// OpenFlow 1.3's first message.
const HELLO: [u8; 8] = [4, 0, 0, 8, 0, 0, 0, 1];
/// The Ethernet destination of the first entry; later entries count up from it.
const FIRST_ADDRESS: u64 = 0x0200_0000_0000;

/// The compared kinds; the first is the base of the ratios.
const KINDS: [(&str, Option<StateSync>); 3] = [
    ("without --state", None),
    ("--state-sync interval", Some(StateSync::Interval)),
    ("--state-sync barrier", Some(StateSync::Barrier)),
];

fn main() {
    let (rounds, load) = match std::env::args().any(|argument| argument == "--bench") {
        true => (
            7,
            Load {
                at_once: 10_000,
                one_by_one: 500,
            },
        ),
        false => (
            2,
            Load {
                at_once: 10,
                one_by_one: 2,
            },
        ),
    };
    let mut times: [Vec<Times>; KINDS.len()] = Default::default();
    for _ in 0..rounds {
        for ((_, sync), times) in KINDS.iter().zip(&mut times) {
            times.push(measure(*sync, &load));
        }
    }
    let Load {
        at_once,
        one_by_one,
    } = load;
    print(
        &format!("{at_once} entries, then a barrier"),
        &times,
        |times| times.at_once,
    );
    print(
        &format!("an entry and a barrier, {one_by_one} times: each"),
        &times,
        |times| times.each,
    );
}

/// The number of entries before one barrier, and the number of entries with a barrier each.
struct Load {
    at_once: u64,
    one_by_one: u64,
}

struct Times {
    at_once: Duration,
    each: Duration,
}

/// Measures a switch that saves its state with this synchronisation, or does not save it.
fn measure(sync: Option<StateSync>, load: &Load) -> Times {
    let folder = TempDir::new().expect("a temporary directory can be created");
    let listen: Address = "ptcp:0:127.0.0.1".parse().expect("an address");
    let mut runner =
        Runner::new(Switch::new(SwitchConfig::default()), &[listen]).expect("a listener");
    if let Some(sync) = sync {
        let file = StateFile::open(&folder.path().join("state")).expect("a new state file");
        runner = runner.with_state_synced(file, sync);
    }
    let address = runner.listen_addresses().find_map(Address::listen_addr);
    let stop = runner.stop_handle();
    let thread = std::thread::spawn(|| runner.run());
    let mut controller = Controller::connect(address.expect("it listens"));
    let at_once = controller.time(0..load.at_once);
    let start = Instant::now();
    for number in 0..load.one_by_one {
        controller.time(load.at_once + number..load.at_once + number + 1);
    }
    let each = start.elapsed() / load.one_by_one as u32;
    stop.stop();
    thread.join().expect("no panic").expect("an orderly end");
    Times { at_once, each }
}

struct Controller {
    stream: TcpStream,
    input: Vec<u8>,
}

impl Controller {
    fn connect(address: std::net::SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("the switch listens");
        stream.set_nodelay(true).expect("a TCP socket");
        let mut controller = Self {
            stream,
            input: Vec::new(),
        };
        controller.send(&HELLO);
        controller
    }

    /// Adds an entry for each of these addresses, and waits for the reply to a barrier after them.
    fn time(&mut self, addresses: std::ops::Range<u64>) -> Duration {
        let mut bytes = Vec::new();
        for address in addresses {
            add_entry(address, &mut bytes);
        }
        encode(&Message::BarrierRequest, &mut bytes);
        let start = Instant::now();
        self.send(&bytes);
        self.wait_for_barrier();
        start.elapsed()
    }

    fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("the switch reads");
    }

    fn wait_for_barrier(&mut self) {
        loop {
            while let Some((frame, rest)) = split_frame(&self.input).expect("OpenFlow") {
                let (_, message) = Message::decode(frame).expect("a message");
                assert!(!matches!(message, Message::Error(_)), "{message:?}");
                let is_reply = matches!(message, Message::BarrierReply);
                let used = self.input.len() - rest.len();
                self.input.drain(..used);
                if is_reply {
                    return;
                }
            }
            let mut more = [0; 4096];
            let len = self.stream.read(&mut more).expect("the switch answers");
            assert_ne!(len, 0, "the switch closed the connection");
            self.input.extend_from_slice(&more[..len]);
        }
    }
}

/// Appends an entry for this Ethernet destination to the messages in `bytes`.
fn add_entry(address: u64, bytes: &mut Vec<u8>) {
    let output = Action::Output {
        port: PortNo::FLOOD,
        max_len: 0,
    };
    let instructions = [Instruction::apply(vec![output])];
    let entry = FlowMod {
        match_: Match::any().with_exact(OxmField::EthDst, FIRST_ADDRESS + address),
        instructions: List::from(&instructions),
        ..FlowMod::default()
    };
    encode(&Message::FlowMod(entry), bytes);
}

fn encode(message: &Message<'_>, bytes: &mut Vec<u8>) {
    let encoded = message.encode(Version::Of13, 7, bytes);
    encoded.expect("a short message");
}

fn print(what: &str, times: &[Vec<Times>], part: impl Fn(&Times) -> Duration) {
    println!("{what}");
    let sorted = times.iter().map(|times| {
        let mut times: Vec<Duration> = times.iter().map(&part).collect();
        times.sort();
        times
    });
    let sorted: Vec<Vec<Duration>> = sorted.collect();
    let median = |times: &[Duration]| times[times.len() / 2];
    for ((name, _), times) in KINDS.iter().zip(&sorted) {
        let ratio = median(times).as_secs_f64() / median(&sorted[0]).as_secs_f64();
        let (least, most) = (times[0], times[times.len() - 1]);
        println!(
            "  {name:<24} {:>10.1?} ({least:.1?} to {most:.1?}), {ratio:.2} times",
            median(times)
        );
    }
}
