//! Programs that are added, removed and replaced while the controller runs.

use crate::in_memory::*;
use crate::support::*;
use std::sync::Arc;
use std::time::Duration;
use urtica_controller::{
    Background, ConnectionId, Controller, EntryOptions, Error, OWN_COOKIE_BITS, Program, ProgramId,
    ProgramSlot, Stage, Switch, SwitchHandler, SwitchInfo,
};
use urtica_wire::{
    Action, DatapathId, FlowMod, FlowModCommand, FlowModFlags, FlowStats, Instruction, Match,
    Message, MultipartFlags, MultipartReply, MultipartReplyBody, MultipartRequestBody, PacketIn,
    PortNo, TABLE_ALL, Version,
};

const ONE: DatapathId = DatapathId(1);

/// Longer than a program must be quiet.
const QUIET: Duration = Duration::from_secs(3);

/// Forwards packets to these hosts out of a port, by permanent entries; optionally from a background program.
#[derive(Clone)]
struct Entries {
    hosts: Vec<u8>,
    out_port: u32,
    clears: bool,
    in_background: bool,
}

impl Entries {
    fn new(hosts: impl IntoIterator<Item = u8>, out_port: u32) -> Self {
        Self {
            hosts: hosts.into_iter().collect(),
            out_port,
            clears: false,
            in_background: false,
        }
    }

    fn slot(&self, id: ProgramId) -> ProgramSlot {
        ProgramSlot::Replace(id, Arc::new(self.clone()))
    }
}

fn to_host(host: u8) -> Match<'static> {
    Match::any().eth_dst([2, 0, 0, 0, 0, host].into())
}

impl SwitchHandler for Entries {
    fn switch_up(&mut self, switch: &mut Switch) {
        if self.in_background {
            return;
        }
        if self.clears {
            let _ = switch.delete(Match::any());
        }
        for host in &self.hosts {
            let out = PortNo(self.out_port);
            let _ = switch.install(to_host(*host), out, EntryOptions::PERMANENT);
        }
    }
}

impl Program for Entries {
    fn handler(&self, _: &SwitchInfo) -> Box<dyn SwitchHandler> {
        Box::new(self.clone())
    }

    fn start(&self, background: &Background) {
        if !self.in_background {
            return;
        }
        let (entries, own) = (self.clone(), background.clone());
        background.spawn("entries", async move {
            for host in &entries.hosts {
                let out = PortNo(entries.out_port);
                let options = EntryOptions::PERMANENT;
                let _ = own.network().install(ONE, to_host(*host), out, options);
            }
            std::future::pending::<()>().await;
        });
    }
}

/// A program of any stage that records events.
struct Recording(Recorder, Stage);

impl Program for Recording {
    fn handler(&self, _: &SwitchInfo) -> Box<dyn SwitchHandler> {
        Box::new(self.0.clone())
    }

    fn start(&self, background: &Background) {
        let dropped = Dropped(self.0.clone());
        background.spawn("recording", async move {
            std::future::pending::<()>().await;
            drop(dropped);
        });
    }

    fn stage(&self) -> Stage {
        self.1
    }
}

/// Records its end.
struct Dropped(Recorder);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.tell("background dropped");
    }
}

fn forwarding(recorder: &Recorder) -> Arc<dyn Program> {
    Arc::new(Recording(recorder.clone(), Stage::Forward))
}

/// Returns the flow mods among the sent messages, as (command, host).
fn told(frames: &[Frame]) -> Vec<(FlowModCommand, u128)> {
    let flow_mod = |frame: &Frame| match frame.message() {
        Message::FlowMod(flow_mod) => {
            let host = flow_mod.match_.get(urtica_wire::OxmField::EthDst);
            Some((flow_mod.command, host.map_or(0, |(host, _)| host & 0xff)))
        }
        _ => None,
    };
    let mut told: Vec<_> = frames.iter().filter_map(flow_mod).collect();
    told.sort_by_key(|(command, host)| (format!("{command:?}"), *host));
    told
}

/// Answers the request for a program's entries among these messages with entries for these hosts.
fn tell_entries(
    bench: &mut Bench,
    switch: ConnectionId,
    version: Version,
    asked: &[Frame],
    program: ProgramId,
    hosts: impl IntoIterator<Item = (u8, u32)>,
) {
    let question = asked.iter().find(|frame| match frame.message() {
        Message::MultipartRequest(request) => match request.body {
            MultipartRequestBody::Flow(flow) => {
                version == Version::Of10
                    || (flow.cookie, flow.cookie_mask) == (program.cookie(0), !OWN_COOKIE_BITS)
            }
            _ => false,
        },
        _ => false,
    });
    let question = question.expect("the switch is asked for the program's entries");
    let bytes = told_entries(version, question.header().xid, program, hosts);
    bench.input(switch, &bytes);
}

/// Returns a switch's reply to the request for a program's entries, with entries for these hosts.
fn told_entries(
    version: Version,
    xid: u32,
    program: ProgramId,
    hosts: impl IntoIterator<Item = (u8, u32)>,
) -> Vec<u8> {
    let rows: Vec<_> = hosts.into_iter().collect();
    let actions: Vec<_> = rows
        .iter()
        .map(|(_, port)| [Action::output(PortNo(*port))])
        .collect();
    let rows = rows
        .iter()
        .zip(&actions)
        .map(|((host, _), actions)| FlowStats {
            table_id: 0,
            duration_sec: 9,
            duration_nsec: 0,
            priority: 0x8000,
            idle_timeout: 0,
            hard_timeout: 0,
            flags: FlowModFlags::empty(),
            cookie: program.cookie(0),
            packet_count: 7,
            byte_count: 700,
            match_: to_host(*host),
            instructions: vec![Instruction::apply(actions)].into(),
        });
    let body = MultipartReplyBody::Flow(rows.collect());
    let flags = MultipartFlags::empty();
    let reply = Message::MultipartReply(MultipartReply { flags, body });
    encode(version, xid, &reply)
}

/// Waits until programs are quiet; returns the messages sent to the switch during that time.
fn settle(bench: &mut Bench, switch: ConnectionId) -> Vec<Frame> {
    let mut sent = bench.take(switch);
    bench.run_until(bench.now + QUIET);
    let now = bench.now;
    assert!(bench.controller.handle_timeout(now).is_empty());
    bench.poll();
    sent.extend(bench.take(switch));
    sent
}

#[test]
fn programs_are_added_and_removed_without_effect_on_others() {
    let ([a, b, c], record) = recorders(["a", "b", "c"]);
    let mut bench = Bench::new(
        Controller::new()
            .program(Recording(a.clone(), Stage::Forward))
            .program(Recording(b, Stage::Forward)),
    );
    let switch = bench.join(Version::Of13, 1);
    assert_eq!(
        [record.next(), record.next()],
        ["a: up, 3 ports", "b: up, 3 ports"]
    );
    let [first, second] = bench.controller.program_ids()[..] else {
        panic!("expected two programs");
    };
    let slots = [ProgramSlot::Add(forwarding(&c)), ProgramSlot::Keep(second)];
    let ids = bench.controller.set_programs(&slots, bench.now).unwrap();
    assert_eq!(ids, [first, second], "a number that is free is used again");
    for expected in [
        "a: background dropped",
        "a: down 0000000000000001",
        "c: up, 3 ports",
    ] {
        assert_eq!(record.next(), expected);
    }
    bench.packet_in(switch, Version::Of13);
    for expected in ["c: packet of 46 from 1", "b: packet of 46 from 1"] {
        assert_eq!(record.next(), expected);
    }
    // A switch that joins later sees these programs.
    bench.join(Version::Of10, 2);
    assert_eq!(
        [record.next(), record.next()],
        ["c: up, 3 ports", "b: up, 3 ports"]
    );
    assert!(record.is_empty());
    assert!(bench.is_connected(1));
}

#[test]
fn removed_programs_lose_their_entries() {
    let mut bench = Bench::new(
        Controller::new()
            .program(Entries::new([1, 2], 1))
            .program(Entries::new([3], 1)),
    );
    let switch = bench.join(Version::Of13, 1);
    let [first, second] = bench.controller.program_ids()[..] else {
        panic!("expected two programs");
    };
    bench.take(switch);
    let slots = [ProgramSlot::Keep(second)];
    bench.controller.set_programs(&slots, bench.now).unwrap();
    let sent = bench.take(switch);
    let [frame] = &sent[..] else {
        panic!("expected one message, not {sent:?}");
    };
    let Message::FlowMod(deletion) = frame.message() else {
        panic!("expected a flow mod");
    };
    let FlowMod {
        command,
        table_id,
        cookie,
        cookie_mask,
        ..
    } = deletion;
    assert_eq!((command, table_id), (FlowModCommand::Delete, TABLE_ALL));
    assert_eq!((cookie, cookie_mask), (first.cookie(0), !OWN_COOKIE_BITS));
    assert!(told(&settle(&mut bench, switch)).is_empty());
}

#[test]
fn entries_are_deleted_one_by_one_in_1_0() {
    let mut bench = Bench::new(
        Controller::new()
            .program(Entries::new([1, 2], 1))
            .program(Entries::new([3], 1)),
    );
    let switch = bench.join(Version::Of10, 1);
    let [first, second] = bench.controller.program_ids()[..] else {
        panic!("expected two programs");
    };
    bench.take(switch);
    let slots = [ProgramSlot::Keep(second)];
    bench.controller.set_programs(&slots, bench.now).unwrap();
    let asked = bench.take(switch);
    assert!(told(&asked).is_empty());
    let hosts = [(1, 1), (2, 1)];
    tell_entries(&mut bench, switch, Version::Of10, &asked, first, hosts);
    let expected = [1, 2].map(|host| (FlowModCommand::DeleteStrict, host));
    assert_eq!(told(&settle(&mut bench, switch)), expected);
}

#[test]
fn replacing_programs_send_only_different_entries() {
    use FlowModCommand::{Add, DeleteStrict};
    for clears in [false, true] {
        for in_background in [false, true] {
            let old = Entries::new([1, 2, 3], 1);
            let mut bench = Bench::new(Controller::new().program(old));
            let switch = bench.join(Version::Of13, 1);
            bench.take(switch);
            let id = bench.controller.program_ids()[0];
            let new = Entries {
                clears,
                in_background,
                ..Entries::new([2, 3, 4], 1)
            };
            let ids = bench.controller.set_programs(&[new.slot(id)], bench.now);
            assert_eq!(ids.unwrap(), [id]);
            bench.poll();
            let asked = bench.take(switch);
            assert!(told(&asked).is_empty(), "the switch is asked first");
            let hosts = [(1, 1), (2, 1), (3, 7)];
            tell_entries(&mut bench, switch, Version::Of13, &asked, id, hosts);
            bench.poll();
            let changed = [(Add, 3), (Add, 4)];
            assert_eq!(told(&bench.take(switch)), changed, "clears: {clears}");
            assert_eq!(told(&settle(&mut bench, switch)), [(DeleteStrict, 1)]);
            assert!(told(&settle(&mut bench, switch)).is_empty());
        }
    }
}

#[test]
fn unreported_entries_are_all_sent_again() {
    use FlowModCommand::{Add, Delete};
    let mut bench = Bench::new(Controller::new().program(Entries::new([1, 2], 1)));
    let switch = bench.join(Version::Of13, 1);
    bench.take(switch);
    let id = bench.controller.program_ids()[0];
    let new = Entries::new([2, 3], 1);
    bench
        .controller
        .set_programs(&[new.slot(id)], bench.now)
        .unwrap();
    let asked = bench.take(switch);
    let xid = asked[0].header().xid;
    let refusal = error(urtica_wire::ErrorCode::BadRequestBadMultipart);
    let warned = logged(|| bench.input(switch, &encode(Version::Of13, xid, &refusal)));
    assert!(
        warned
            .iter()
            .any(|line| line.contains("cannot read a changed program's entries")),
        "{warned:?}"
    );
    bench.poll();
    let sent = bench.take(switch);
    let all = [(Add, 2), (Add, 3), (Delete, 0)];
    assert_eq!(told(&sent), all);
    let first = sent.iter().find_map(|frame| match frame.message() {
        Message::FlowMod(flow_mod) => Some(flow_mod.command),
        _ => None,
    });
    assert_eq!(first, Some(Delete), "before the others");
}

/// Adds an entry with a time-out for each packet.
struct Reactive;

impl SwitchHandler for Reactive {
    fn packet_in(&mut self, switch: &mut Switch, packet: &PacketIn) {
        let options = EntryOptions::idle(5);
        switch.forward_with_rule(packet, to_host(9), PortNo(2), options);
    }
}

#[test]
fn packets_are_answered_while_entries_are_settled() {
    let mut bench = Bench::new(Controller::new().program(|_: &SwitchInfo| Reactive));
    let switch = bench.join(Version::Of13, 1);
    bench.take(switch);
    let id = bench.controller.program_ids()[0];
    let again: Arc<dyn Program> = Arc::new(|_: &SwitchInfo| Reactive);
    let slots = [ProgramSlot::Replace(id, again)];
    bench.controller.set_programs(&slots, bench.now).unwrap();
    let asked = bench.take(switch);
    bench.packet_in(switch, Version::Of13);
    assert_eq!(told(&bench.take(switch)), [(FlowModCommand::Add, 9)]);
    // The entry that was just added is reported as well, and stays.
    let hosts = [(9, 2), (8, 2)];
    tell_entries(&mut bench, switch, Version::Of13, &asked, id, hosts);
    bench.packet_in(switch, Version::Of13);
    assert_eq!(told(&bench.take(switch)), [(FlowModCommand::Add, 9)]);
    let gone = [(FlowModCommand::DeleteStrict, 8)];
    assert_eq!(told(&settle(&mut bench, switch)), gone);
}

#[test]
fn handlers_keep_their_timer_and_position() {
    let ([first, second], record) = recorders(["first", "second"]);
    let mut bench = Bench::new(Controller::new().program(Recording(second, Stage::Forward)));
    let switch = bench.join(Version::Of13, 1);
    assert_eq!(record.next(), "second: up, 3 ports");
    let id = bench.controller.program_ids()[0];
    let observing: Arc<dyn Program> = Arc::new(Recording(first, Stage::Observe));
    let slots = [ProgramSlot::Keep(id), ProgramSlot::Add(observing)];
    bench.controller.set_programs(&slots, bench.now).unwrap();
    assert_eq!(record.next(), "first: up, 3 ports");
    bench.packet_in(switch, Version::Of13);
    for expected in ["first: packet of 46 from 1", "second: packet of 46 from 1"] {
        assert_eq!(record.next(), expected);
    }
}

#[test]
fn programs_that_cannot_run_change_nothing() {
    let ([a, b], record) = recorders(["a", "b"]);
    let mut bench = Bench::new(Controller::new().program(Recording(a, Stage::Forward)));
    bench.join(Version::Of13, 1);
    assert_eq!(record.next(), "a: up, 3 ports");
    let id = bench.controller.program_ids()[0];
    let other = ProgramId::of_cookie(9 << 56).unwrap();
    let filter: Arc<dyn Program> = Arc::new(Recording(b.clone(), Stage::Filter));
    let keep = || ProgramSlot::Keep(id);
    for (slots, expected) in [
        (vec![], "expected at least one"),
        (vec![ProgramSlot::Keep(other)], "program 9 is not running"),
        (vec![keep(), keep()], "named twice"),
        (
            vec![keep(), ProgramSlot::Add(filter)],
            "restart the controller",
        ),
    ] {
        let error: Error = bench
            .controller
            .set_programs(&slots, bench.now)
            .unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
    assert!(record.is_empty());
    assert_eq!(bench.controller.program_ids(), [id]);
}

#[test]
fn all_shards_change_programs_without_disconnections() {
    let ([a, b], record) = recorders(["a", "b"]);
    let running = controller(2)
        .program(Recording(a, Stage::Forward))
        .start()
        .unwrap();
    let mut switches: Vec<_> = (1..=4)
        .map(|id| FakeSwitch::join(&running, Version::Of10, id))
        .collect();
    (0..4).for_each(|_| assert_eq!(record.next(), "a: up, 3 ports"));
    let id = running.program_ids()[0];
    let slots = [ProgramSlot::Keep(id), ProgramSlot::Add(forwarding(&b))];
    let ids = running.set_programs(&slots).unwrap();
    (0..4).for_each(|_| assert_eq!(record.next(), "b: up, 3 ports"));
    running.set_programs(&[ProgramSlot::Keep(ids[1])]).unwrap();
    assert_eq!(record.next(), "a: background dropped");
    let mut down: Vec<_> = (0..4).map(|_| record.next()).collect();
    down.sort();
    let expected = (1..=4).map(|id| format!("a: down {id:016x}"));
    assert!(down.into_iter().eq(expected));
    for switch in &mut switches {
        // A 1.0 switch is asked for the entries of the removed program.
        let question = switch.receive();
        assert!(matches!(question.message(), Message::MultipartRequest(_)));
        switch.assert_served();
    }
    running.stop().unwrap();
}

#[test]
fn previews_report_changes_without_sending_them() {
    let running = controller(1)
        .program(Entries::new([1, 2], 1))
        .start()
        .unwrap();
    let mut switch = FakeSwitch::join(&running, Version::Of13, 1);
    for _ in 0..2 {
        assert!(matches!(switch.receive().message(), Message::FlowMod(_)));
    }
    let id = running.program_ids()[0];
    let changed = Entries {
        in_background: true,
        ..Entries::new([2, 3], 1)
    };
    let added: Arc<dyn Program> = Arc::new(Entries::new([4], 2));
    let slots = [changed.slot(id), ProgramSlot::Add(added)];
    let changes = std::thread::scope(|scope| {
        let preview = scope.spawn(|| running.preview_programs(&slots).unwrap());
        let question = switch.receive();
        assert!(matches!(question.message(), Message::MultipartRequest(_)));
        let hosts = [(1, 1), (2, 1)];
        let reply = told_entries(Version::Of13, question.header().xid, id, hosts);
        switch.send_bytes(&reply);
        let (ids, changes) = preview.join().unwrap();
        assert_eq!(ids.len(), 2);
        changes
    });
    let mut told: Vec<_> = changes
        .iter()
        .map(|change| match change.message() {
            Message::FlowMod(flow_mod) => {
                let host = flow_mod.match_.get(urtica_wire::OxmField::EthDst);
                (
                    change.program == id,
                    flow_mod.command,
                    host.map(|(host, _)| host & 0xff),
                )
            }
            other => panic!("expected flow mods, not {other:?}"),
        })
        .collect();
    told.sort_by_key(|(_, _, host)| *host);
    let expected = [
        (true, FlowModCommand::DeleteStrict, Some(1)),
        (true, FlowModCommand::Add, Some(3)),
        (false, FlowModCommand::Add, Some(4)),
    ];
    assert_eq!(told, expected);
    assert_eq!(running.program_ids(), [id], "nothing runs that did not");
    switch.assert_served();
    running.stop().unwrap();
}
