//! The order of programs, and the tables of their entries.

use crate::in_memory::*;
use crate::support::*;
use urtica_controller::{
    Background, ConnectionId, Controller, EntryOptions, IDLE_5S, Program, Stage, Switch,
    SwitchHandler, SwitchInfo,
};
use urtica_wire::{
    Action, BufferId, DatapathId, FlowMod, FlowModCommand, Instruction, List, Match, Message,
    PacketIn, PortNo, TABLE_ALL, Version,
};

const ONE: DatapathId = DatapathId(1);

/// A program of any stage.
struct Staged<F>(Stage, F);

impl<F, H> Program for Staged<F>
where
    F: Fn() -> H + Send + Sync,
    H: SwitchHandler + 'static,
{
    fn handler(&self, _: &SwitchInfo) -> Box<dyn SwitchHandler> {
        Box::new((self.1)())
    }

    fn stage(&self) -> Stage {
        self.0
    }
}

/// Calls all methods that add or delete entries, once for each packet.
struct Busy;

impl SwitchHandler for Busy {
    fn packet_in(&mut self, switch: &mut Switch, packet: &PacketIn) {
        let to_two = [Action::output(PortNo(2))];
        switch.forward_with_rule(packet, Match::exact(packet), PortNo(2), IDLE_5S);
        switch.forward_with_rule(packet, Match::any().in_port(PortNo(1)), PortNo(2), IDLE_5S);
        let _ = switch.install(Match::any(), &to_two, EntryOptions::PERMANENT);
        let _ = switch.delete(Match::any().in_port(PortNo(1)));
        let _ = switch.send(&Message::FlowMod(FlowMod::default()));
    }
}

/// Lets all packets pass from the start, by an entry.
struct Open;

impl SwitchHandler for Open {
    fn switch_up(&mut self, switch: &mut Switch) {
        let _ = switch.let_pass(Match::any(), EntryOptions::PERMANENT);
    }
}

/// Returns the flow mods among the messages, as (table, command).
fn flow_mods(frames: &[Frame]) -> Vec<(u8, FlowModCommand)> {
    let flow_mod = |frame: &Frame| match frame.message() {
        Message::FlowMod(flow_mod) => Some((flow_mod.table_id, flow_mod.command)),
        _ => None,
    };
    frames.iter().filter_map(flow_mod).collect()
}

fn packet_outs(frames: &[Frame]) -> usize {
    let is_packet_out = |frame: &&Frame| matches!(frame.message(), Message::PacketOut(_));
    frames.iter().filter(is_packet_out).count()
}

/// Returns the messages sent to a switch because of one packet.
fn answers(bench: &mut Bench, switch: ConnectionId, version: Version) -> Vec<Frame> {
    bench.take(switch);
    bench.packet_in(switch, version);
    bench.take(switch)
}

#[test]
fn programs_see_messages_by_stage_and_then_as_they_were_added() {
    let names = ["forward", "filter", "observe", "forward 2", "observe 2"];
    let stages = [
        Stage::Forward,
        Stage::Filter,
        Stage::Observe,
        Stage::Forward,
        Stage::Observe,
    ];
    let (recorders, record) = recorders(names);
    let controller = stages
        .into_iter()
        .zip(recorders)
        .fold(Controller::new(), |controller, (stage, recorder)| {
            controller.program(Staged(stage, move || recorder.clone()))
        });
    let mut bench = Bench::new(controller);
    bench.join(Version::Of10, 1);
    for name in ["observe", "observe 2", "filter", "forward", "forward 2"] {
        assert_eq!(record.next(), format!("{name}: up, 3 ports"));
    }
}

#[test]
fn without_a_filter_all_share_the_tables() {
    use FlowModCommand::{Add, Delete};
    let controller = Controller::new()
        .program(Staged(Stage::Forward, || Busy))
        .program(Staged(Stage::Observe, || Quiet));
    let mut bench = Bench::new(controller);
    let (switch, told) = bench.join_with_tables(Version::Of13, 1, 4);
    assert_eq!(flow_mods(&told), [(0, Add)]);
    let sent = answers(&mut bench, switch, Version::Of13);
    let expected = [(0, Add), (0, Add), (0, Add), (TABLE_ALL, Delete), (0, Add)];
    assert_eq!(flow_mods(&sent), expected);
}

#[test]
fn entries_behind_a_filter_are_in_the_next_table() {
    use FlowModCommand::{Add, Delete};
    for (stage, table) in [(Stage::Observe, 0), (Stage::Filter, 0), (Stage::Forward, 1)] {
        let controller = Controller::new()
            .program(Staged(Stage::Filter, || Quiet))
            .program(Staged(stage, || Busy));
        let mut bench = Bench::new(controller);
        let (switch, told) = bench.join_with_tables(Version::Of13, 1, 2);
        assert_eq!(
            flow_mods(&told),
            [(0, Add), (1, Add)],
            "both have a table-miss entry"
        );
        let sent = answers(&mut bench, switch, Version::Of13);
        let commands = [Add, Add, Add, Delete, Add].map(|command| (table, command));
        assert_eq!(flow_mods(&sent), commands, "{stage:?}");
        assert_eq!(packet_outs(&sent), 2);
    }
}

#[test]
fn entries_behind_a_filter_differ_only_in_the_table() {
    let rule = |controller: Controller| {
        let mut bench = Bench::new(controller.program(Staged(Stage::Forward, || Busy)));
        let switch = bench.join(Version::Of13, 1);
        answers(&mut bench, switch, Version::Of13).remove(0).0
    };
    let unguarded = rule(Controller::new());
    let mut guarded = rule(Controller::new().program(Staged(Stage::Filter, || Quiet)));
    // The xid identifies the second program, and counts the second table-miss entry; the cookie identifies the second
    // program.
    guarded[4..9].copy_from_slice(&unguarded[4..9]);
    let mut expected = unguarded;
    const TABLE_ID: usize = 24;
    assert_eq!(expected[TABLE_ID], 0);
    expected[TABLE_ID] = 1;
    assert_eq!(guarded, expected);
}

#[test]
fn buffered_packets_behind_a_filter_are_sent_separately() {
    let controller = Controller::new()
        .program(Staged(Stage::Filter, || Quiet))
        .program(Staged(Stage::Forward, || Busy));
    let mut bench = Bench::new(controller);
    let switch = bench.join(Version::Of13, 1);
    bench.take(switch);
    let kept = PacketIn {
        buffer_id: BufferId(7),
        ..packet_in(&UDP)
    };
    bench.input(switch, &encode(Version::Of13, 0, &Message::PacketIn(kept)));
    let sent = bench.take(switch);
    let Message::FlowMod(rule) = sent[0].message() else {
        panic!("expected a flow mod");
    };
    assert_eq!((rule.table_id, rule.buffer_id), (1, BufferId::NONE));
    let Message::PacketOut(out) = sent[1].message() else {
        panic!("expected a packet-out");
    };
    assert_eq!(out.buffer_id, BufferId(7));
    assert_eq!(out.actions, List::from(vec![Action::output(PortNo(2))]));
}

#[test]
fn a_filter_lets_packets_pass_to_the_next_table() {
    let mut bench = Bench::new(Controller::new().program(Staged(Stage::Filter, || Open)));
    let switch = bench.join(Version::Of13, 1);
    let sent = bench.take(switch);
    let Message::FlowMod(entry) = sent[0].message() else {
        panic!("expected a flow mod");
    };
    assert_eq!(entry.table_id, 0);
    let goto = [Instruction::GotoTable(1)];
    assert_eq!(entry.instructions, List::from(&goto));
}

#[test]
fn filters_receive_every_packet_in_1_0() {
    let ([seen], record) = recorders(["filter"]);
    let controller = Controller::new()
        .program(Staged(Stage::Filter, move || seen.clone()))
        .program(Staged(Stage::Forward, || Busy));
    let mut bench = Bench::new(controller);
    let switch = bench.join(Version::Of10, 1);
    assert_eq!(record.next(), "filter: up, 3 ports");
    let counters = bench.controller.network().counters(ONE).unwrap();
    for count in 1..=3 {
        let sent = answers(&mut bench, switch, Version::Of10);
        assert_eq!(
            flow_mods(&sent),
            [],
            "no entry takes packets past the filter"
        );
        assert_eq!(packet_outs(&sent), 2);
        assert_eq!(record.next(), "filter: packet of 46 from 1");
        assert_eq!(counters.unsendable.get(), 2 * count);
    }
}

#[test]
fn in_1_0_a_filters_own_entries_are_sent() {
    let controller = Controller::new().program(Staged(Stage::Filter, || Busy));
    let mut bench = Bench::new(controller);
    let switch = bench.join(Version::Of10, 1);
    let sent = answers(&mut bench, switch, Version::Of10);
    assert_eq!(flow_mods(&sent).len(), 5);
    let pass = bench
        .controller
        .network()
        .let_pass(ONE, Match::any(), EntryOptions::PERMANENT);
    let sentence = pass.unwrap_err().to_string();
    assert!(
        sentence.starts_with("OpenFlow 1.0 cannot express"),
        "{sentence}"
    );
}

#[test]
fn a_switch_with_one_table_has_one_table_miss_entry() {
    let controller = Controller::new().program(Staged(Stage::Filter, || Quiet));
    let mut bench = Bench::new(controller);
    let (_, told) = bench.join_with_tables(Version::Of13, 1, 1);
    assert_eq!(flow_mods(&told), [(0, FlowModCommand::Add)]);
}

/// Adds and deletes an entry from a background program when a switch comes up.
struct Adding(Stage);

impl Program for Adding {
    fn handler(&self, _: &SwitchInfo) -> Box<dyn SwitchHandler> {
        Box::new(Quiet)
    }

    fn stage(&self) -> Stage {
        self.0
    }

    fn start(&self, background: &Background) {
        let network = background.network().clone();
        background.spawn("beside", async move {
            while network.events().next().await.is_some() {
                network
                    .install(ONE, Match::any(), &[], EntryOptions::PERMANENT)
                    .unwrap();
                network.delete(ONE, Match::any()).unwrap();
                std::future::pending::<()>().await;
            }
        });
    }
}

#[test]
fn a_network_writes_to_the_table_of_its_stage() {
    use FlowModCommand::{Add, Delete};
    for (stage, table) in [(Stage::Filter, 0), (Stage::Forward, 1)] {
        let controller = Controller::new()
            .program(Staged(Stage::Filter, || Quiet))
            .program(Adding(stage));
        let mut bench = Bench::new(controller);
        let switch = bench.join(Version::Of13, 1);
        let sent = bench.take(switch);
        assert_eq!(flow_mods(&sent), [(table, Add), (table, Delete)]);
        // Entries from elsewhere are in the forwarding programs' table, unless another stage is selected.
        let network = bench.controller.network().clone();
        network.delete(ONE, Match::any()).unwrap();
        network
            .for_stage(Stage::Filter)
            .delete(ONE, Match::any())
            .unwrap();
        network
            .let_pass(ONE, Match::any(), EntryOptions::PERMANENT)
            .unwrap();
        bench.poll();
        let sent = bench.take(switch);
        assert_eq!(flow_mods(&sent), [(1, Delete), (0, Delete), (0, Add)]);
    }
}
