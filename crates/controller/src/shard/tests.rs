//! Tests of two shards without threads, which control when a connection moves.

use super::*;
use crate::Program;
use crate::program_list::ProgramList;
use crate::role::Role;
use crate::session::SessionConfig;
use crate::stage::Tables;
use crate::{SwitchHandler, SwitchInfo};
use rustix::fd::OwnedFd;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use urtica_state::Snapshot;
use urtica_wire::{
    Capabilities, DatapathId, Experimenter, Features, List, Message, Version, split_frame,
};

mod kernel_half;

/// A handler that does nothing.
struct Quiet;

impl SwitchHandler for Quiet {}

struct Bench {
    network: Network,
    shards: [Shard; 2],
}

impl Bench {
    fn new() -> Self {
        Self::with_program(Arc::new(|_: &SwitchInfo| Quiet))
    }

    fn with_program(program: Arc<dyn Program>) -> Self {
        Self::with_programs(vec![program])
    }

    fn with_programs(programs: Vec<Arc<dyn Program>>) -> Self {
        let network = Network::new(2, Tables::Shared).unwrap();
        let queues = ConnectionQueue::for_shards(2);
        let shard = |index| {
            let network = network.clone();
            let programs = ProgramList::first(programs.clone(), None, &network);
            let programs = Arc::new(Snapshot::new(programs));
            Shard::new(index, network, Arc::clone(&queues), programs).unwrap()
        };
        let shards = [shard(0), shard(1)];
        Self { network, shards }
    }

    /// Connects a switch, which joins through the first shard.
    fn join(&mut self, token: Token, id: u64) -> UnixStream {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let now = Instant::now();
        let config = SessionConfig::default();
        let connection = Connection::new(
            OwnedFd::from(ours).into(),
            "a test".into(),
            token,
            config,
            now,
        );
        self.shards[0].adopt(Box::new(connection));
        let features = Message::FeaturesReply(Features {
            datapath_id: DatapathId(id),
            n_buffers: 0,
            n_tables: 1,
            auxiliary_id: 0,
            capabilities: Capabilities::empty(),
            actions: 0,
            ports: List::default(),
        });
        let mut said = vec![1, 0, 0, 8, 0, 0, 0, 0];
        features.encode(Version::Of10, 0, &mut said).unwrap();
        theirs.write_all(&said).unwrap();
        let key = self.shards[0].by_token[&token];
        self.shards[0].serve(key, EventFlags::IN);
        assert!(self.network.info(DatapathId(id)).is_some());
        theirs.set_nonblocking(true).unwrap();
        theirs
    }

    /// Keeps the switch with this token quiet until it has no load.
    fn age_load_of(&mut self, token: Token) {
        let key = self.shards[0].by_token[&token];
        for _ in 0..8 {
            self.shards[0].connections[key].age_load();
        }
    }

    /// Returns `true` if the first shard, which has one switch, is woken by it before the next tick, and serves the switch
    /// then.
    fn is_woken(&mut self) -> bool {
        let shard = &mut self.shards[0];
        shard.next_tick = Instant::now() + TICK;
        let mut events = Vec::with_capacity(EVENTS);
        shard.wait(&mut events).unwrap();
        for event in &events {
            assert_ne!(event.data.u64(), MAILBOX);
            shard.serve(event.data.u64() as usize, event.flags);
        }
        !events.is_empty()
    }

    fn connection(&self) -> &Connection {
        self.shards[0].connections.iter().next().unwrap().1
    }

    fn send(&self, id: u64, number: u32) {
        let message = Message::Experimenter(Experimenter {
            experimenter: number,
            data: &[],
        });
        self.network.send(DatapathId(id), &message).unwrap();
    }
}

/// Returns the numbers of the messages that a switch has received, and whether its connection was closed.
fn received(switch: &mut UnixStream) -> (Vec<u32>, bool) {
    let mut bytes = Vec::new();
    let closed = switch.read_to_end(&mut bytes).is_ok();
    let mut rest = bytes.as_slice();
    let mut numbers = Vec::new();
    while let Some((frame, after)) = split_frame(rest).unwrap() {
        if let Message::Experimenter(message) = Message::decode(frame).unwrap().1 {
            numbers.push(message.experimenter);
        }
        rest = after;
    }
    (numbers, closed)
}

#[test]
fn messages_in_the_mailbox_move_with_their_switch() {
    let mut bench = Bench::new();
    let mut switch = bench.join(1, 7);
    let mut other = bench.join(2, 8);
    bench.send(7, 1);
    bench.send(8, 10);
    bench.send(7, 2);
    bench.shards[0].give(1, 0.5);
    // Of two connections with equal load, the later one moves.
    assert!(bench.shards[0].by_token.contains_key(&1));
    assert!(!bench.shards[0].by_token.contains_key(&2));
    bench.send(8, 11);
    for shard in &mut bench.shards {
        assert!(shard.handle_commands().is_continue());
    }
    assert_eq!(received(&mut switch), (vec![1, 2], false));
    assert_eq!(received(&mut other), (vec![10, 11], false));
}

#[test]
fn shards_give_at_most_the_requested_share() {
    let mut bench = Bench::new();
    let mut busy = bench.join(1, 7);
    let _quiet = bench.join(2, 8);
    let echo_replies = [1, 3, 0, 8, 0, 0, 0, 0].repeat(10);
    busy.write_all(&echo_replies).unwrap();
    let key = bench.shards[0].by_token[&1];
    bench.shards[0].serve(key, EventFlags::IN);
    bench.shards[0].give(1, 0.05);
    assert_eq!(bench.shards[0].connections.len(), 2);
    bench.shards[0].give(1, 0.5);
    assert!(bench.shards[0].by_token.contains_key(&1));
    assert!(!bench.shards[0].by_token.contains_key(&2));
}

#[test]
fn recently_idle_switches_stay() {
    let mut bench = Bench::new();
    let _switch = bench.join(1, 7);
    bench.age_load_of(1);
    bench.shards[0].give(1, 1.0);
    assert!(bench.shards[0].by_token.contains_key(&1));
}

#[test]
fn messages_of_the_batch_that_moves_a_switch_are_sent_first() {
    let mut bench = Bench::new();
    let mut switch = bench.join(1, 7);
    let give = Command::Give { to: 1, share: 1.0 };
    assert!(bench.shards[0].mailbox().push(give).is_ok());
    bench.send(7, 1);
    assert!(bench.shards[0].handle_commands().is_continue());
    bench.send(7, 2);
    assert!(bench.shards[0].handle_commands().is_continue());
    assert!(bench.shards[1].handle_commands().is_continue());
    assert_eq!(received(&mut switch), (vec![1, 2], false));
    assert!(bench.shards[1].by_token.contains_key(&1));
}

#[test]
fn moved_older_connections_do_not_reclaim_their_datapath_id() {
    let mut bench = Bench::new();
    let mut older = bench.join(1, 7);
    let mut newer = bench.join(2, 7);
    // The command that closes the older connection waits in the mailbox. The newer one has no load, so that the older one is
    // handed over.
    bench.age_load_of(2);
    bench.shards[0].give(1, 1.0);
    assert!(bench.shards[1].handle_commands().is_continue());
    assert!(
        received(&mut older).1,
        "the older connection is closed where it went"
    );
    bench.send(7, 1);
    assert!(bench.shards[0].handle_commands().is_continue());
    assert_eq!(received(&mut newer), (vec![1], false));
}

#[test]
fn switches_stay_if_the_other_shard_has_ended() {
    let mut bench = Bench::new();
    let mut switch = bench.join(1, 7);
    assert!(bench.shards[1].mailbox().close().is_empty());
    bench.send(7, 1);
    bench.shards[0].give(1, 1.0);
    bench.send(7, 2);
    assert!(bench.shards[0].handle_commands().is_continue());
    assert_eq!(received(&mut switch), (vec![1, 2], false));
    assert!(bench.shards[0].by_token.contains_key(&1));
}

#[test]
fn switches_moved_to_an_ending_shard_are_closed() {
    let mut bench = Bench::new();
    let mut switch = bench.join(1, 7);
    assert!(bench.shards[1].mailbox().push(Command::Stop).is_ok());
    bench.shards[0].give(1, 1.0);
    let [_, ending] = bench.shards;
    ending.run(Duration::ZERO).unwrap();
    assert!(received(&mut switch).1);
    assert!(bench.network.switches().is_empty());
}

/// A long echo request.
const ECHO_REQUEST: [u8; 1000] = {
    let mut frame = [0; 1000];
    [frame[0], frame[1], frame[2], frame[3]] = [1, 2, 3, 0xe8];
    frame
};

/// Sends as much as is accepted of a stream of echo requests, from byte `next`. Returns the number of bytes sent.
fn ask(switch: &mut UnixStream, next: usize) -> usize {
    let mut taken = 0;
    loop {
        let place = (next + taken) % ECHO_REQUEST.len();
        match switch.write(&ECHO_REQUEST[place..]) {
            Ok(count) => taken += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return taken,
            Err(error) => panic!("{error}"),
        }
    }
}

/// Appends the bytes that a switch has received to `got`.
fn read_all(switch: &mut UnixStream, got: &mut Vec<u8>) {
    let end = switch.read_to_end(got).unwrap_err();
    assert_eq!(end.kind(), ErrorKind::WouldBlock);
}

#[test]
fn switches_that_do_not_read_cause_no_wake_ups() {
    let mut bench = Bench::new();
    let mut switch = bench.join(1, 7);
    received(&mut switch);
    assert!(!bench.is_woken(), "there is nothing to do");
    let mut asked = 0;
    loop {
        let more = ask(&mut switch, asked);
        asked += more;
        if more == 0 {
            break;
        }
        bench.is_woken();
    }
    assert!(bench.connection().is_stalled());
    assert!(!bench.is_woken(), "what it says is not looked at");
    let mut got = Vec::new();
    while {
        read_all(&mut switch, &mut got);
        bench.is_woken()
    } {}
    assert_eq!(got.len() / ECHO_REQUEST.len(), asked / ECHO_REQUEST.len());
}

#[test]
fn busy_switches_wake_the_shard_when_they_send_or_read() {
    let mut bench = Bench::new();
    let mut switch = bench.join(1, 7);
    received(&mut switch);
    let large = Message::Experimenter(Experimenter {
        experimenter: 1,
        data: &[0; 60_000],
    });
    let mut sent = 0;
    while bench.network.send(DatapathId(7), &large).is_ok() {
        sent += 1;
    }
    assert!(bench.shards[0].handle_commands().is_continue());
    assert!(bench.connection().is_waiting() && !bench.connection().is_stalled());
    assert!(!bench.is_woken(), "it neither speaks nor reads");
    switch.write_all(&ECHO_REQUEST).unwrap();
    assert!(bench.is_woken(), "it speaks");
    assert!(bench.connection().is_stalled(), "now its reply waits, too");
    let mut got = Vec::new();
    read_all(&mut switch, &mut got);
    assert!(bench.is_woken(), "it reads");
    while {
        read_all(&mut switch, &mut got);
        bench.is_woken()
    } {}
    let mut rest = &got[..];
    let mut frames = 0;
    while let Some((_, after)) = split_frame(rest).unwrap() {
        (frames, rest) = (frames + 1, after);
    }
    assert_eq!((frames, rest.len()), (sent + 1, 0));
    assert!(!bench.connection().is_waiting());
}

/// Each command for a switch may leave output for the next command of the batch.
#[test]
fn switches_are_served_after_any_commands_of_one_batch() {
    let commands: [fn(&Bench); 3] = [
        |bench| bench.send(7, 1),
        |bench| drop(bench.network.set_role(DatapathId(7), Role::Primary)),
        |bench| {
            let pushed = bench.shards[0].mailbox().push(Command::FollowPrograms);
            assert!(pushed.is_ok());
        },
    ];
    for (first, second) in (0..9).map(|pair| (pair / 3, pair % 3)) {
        let mut bench = Bench::new();
        let mut switch = bench.join(1, 7);
        commands[first](&bench);
        commands[second](&bench);
        assert!(bench.shards[0].handle_commands().is_continue());
        let mut got = Vec::new();
        read_all(&mut switch, &mut got);
        switch.write_all(&ECHO_REQUEST).unwrap();
        bench.is_woken();
        got.clear();
        read_all(&mut switch, &mut got);
        assert_eq!(
            got.len(),
            ECHO_REQUEST.len(),
            "after commands {first} and {second}"
        );
        assert!(!bench.is_woken(), "after commands {first} and {second}");
    }
}
