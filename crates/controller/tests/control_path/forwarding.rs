//! The messages that a handler's calls send, in both versions.

use crate::support::*;
use std::net::Ipv6Addr;
use urtica_controller::{
    EntryOptions, IDLE_5S, OWN_COOKIE_BITS, ProgramId, Running, Switch, SwitchHandler, SwitchInfo,
};
use urtica_wire::{
    Action, BufferId, DatapathId, EncodeError, Field, FlowMod, FlowModCommand, FlowModFlags,
    GROUP_ANY, Instruction, List, Match, Message, OxmField, PacketIn, PacketOut, PortNo, TABLE_ALL,
    Version,
};

/// Calls a function with each packet.
struct Doing(fn(&mut Switch, &PacketIn));

impl SwitchHandler for Doing {
    fn packet_in(&mut self, switch: &mut Switch, packet: &PacketIn) {
        (self.0)(switch, packet);
    }
}

/// A switch with a program that calls one function with each packet.
struct Bench {
    running: Running,
    switch: FakeSwitch,
}

impl Bench {
    fn new(version: Version, deal: fn(&mut Switch, &PacketIn)) -> Self {
        let running = controller(1)
            .program(move |_: &SwitchInfo| Doing(deal))
            .start()
            .unwrap();
        let switch = FakeSwitch::join(&running, version, 1);
        Self { running, switch }
    }

    fn packet(&mut self, packet: PacketIn) -> &mut Self {
        self.switch.send(0, &Message::PacketIn(packet));
        self
    }

    /// Returns the next message, whose xid must identify the program.
    fn receive(&mut self) -> Frame {
        let frame = self.switch.receive();
        assert_eq!(frame.header().xid >> 24, 1, "{frame:?}");
        assert_eq!(frame.header().version, self.switch.version.to_wire());
        frame
    }

    fn counters(&self) -> std::sync::Arc<urtica_controller::SwitchCounters> {
        self.running.network().counters(DatapathId(1)).unwrap()
    }

    /// Checks that nothing more was sent.
    fn end(mut self) {
        self.switch.assert_served();
        self.running.stop().unwrap();
    }
}

fn kept(buffer_id: u32) -> PacketIn<'static> {
    PacketIn {
        buffer_id: BufferId(buffer_id),
        total_len: 1000,
        ..packet_in(&UDP)
    }
}

fn cut_short() -> PacketIn<'static> {
    PacketIn {
        total_len: 1000,
        ..packet_in(&UDP)
    }
}

fn assert_packet_out(frame: &Frame, buffer_id: BufferId, port: PortNo, data: &[u8]) {
    let expected = PacketOut {
        buffer_id,
        in_port: PortNo(1),
        actions: List::from(vec![Action::output(port)]),
        data,
    };
    assert_eq!(frame.message(), Message::PacketOut(expected));
}

#[test]
fn forward_sends_the_packet_or_names_the_buffer() {
    for version in Version::ALL {
        let mut bench = Bench::new(version, |switch, packet| {
            switch.forward(packet, PortNo::FLOOD)
        });
        let frame = bench.packet(packet_in(&UDP)).receive();
        assert_packet_out(&frame, BufferId::NONE, PortNo::FLOOD, &UDP);
        let frame = bench.packet(kept(7)).receive();
        assert_packet_out(&frame, BufferId(7), PortNo::FLOOD, &[]);
        bench.packet(cut_short()).switch.assert_served();
        let counters = bench.counters();
        assert_eq!(
            (counters.truncated.get(), counters.packet_ins.get()),
            (1, 3)
        );
        assert_eq!(counters.sent.get(), 2);
        bench.end();
    }
}

/// Returns the buffer and the flow mod of the next message, which must be a flow mod for the test's packet; checks all but
/// match and actions.
fn receive_rule(bench: &mut Bench) -> (BufferId, FlowMod<'static>) {
    let frame = bench.receive();
    let Message::FlowMod(flow_mod) = frame.message() else {
        panic!("expected a flow mod, not {frame:?}");
    };
    let actions = [Action::output(PortNo(2))];
    assert_eq!(
        flow_mod.instructions,
        List::from(vec![Instruction::apply(&actions)])
    );
    for (field, value) in [
        (OxmField::InPort, 1),
        (OxmField::EthSrc, 1),
        (OxmField::EthDst, 2),
        (OxmField::UdpSrc, 7),
        (OxmField::UdpDst, 9),
    ] {
        assert_eq!(flow_mod.match_.get(field).unwrap().0, value, "{field:?}");
    }
    let rest = FlowMod {
        command: flow_mod.command,
        table_id: flow_mod.table_id,
        cookie: flow_mod.cookie,
        idle_timeout: flow_mod.idle_timeout,
        hard_timeout: flow_mod.hard_timeout,
        priority: flow_mod.priority,
        flags: flow_mod.flags,
        ..FlowMod::default()
    };
    (flow_mod.buffer_id, rest)
}

/// The cookie bits of the first program's entries.
const OF_PROGRAM_1: u64 = 1 << 56;

#[test]
fn forward_with_rule_adds_an_entry_and_sends_the_packet() {
    for version in Version::ALL {
        let mut bench = Bench::new(version, |switch, packet| {
            let options = EntryOptions {
                hard_timeout: 60,
                cookie: 0xc0,
                flags: FlowModFlags::SEND_FLOW_REM,
                ..IDLE_5S.priority(100)
            };
            switch.forward_with_rule(packet, Match::exact(packet), PortNo(2), options);
        });
        let expected = FlowMod {
            cookie: 0xc0 | OF_PROGRAM_1,
            idle_timeout: 5,
            hard_timeout: 60,
            priority: 100,
            flags: FlowModFlags::SEND_FLOW_REM,
            ..FlowMod::default()
        };
        // Buffered: the entry forwards it.
        bench.packet(kept(7));
        assert_eq!(receive_rule(&mut bench), (BufferId(7), expected.clone()));
        // Not buffered: a packet-out follows.
        bench.packet(packet_in(&UDP));
        assert_eq!(receive_rule(&mut bench), (BufferId::NONE, expected.clone()));
        assert_packet_out(&bench.receive(), BufferId::NONE, PortNo(2), &UDP);
        // Truncated: this packet is lost, but later ones are not.
        bench.packet(cut_short());
        assert_eq!(receive_rule(&mut bench), (BufferId::NONE, expected));
        bench.switch.assert_served();
        assert_eq!(bench.counters().truncated.get(), 1);
        bench.end();
    }
}

#[test]
fn forward_with_rule_accepts_any_match() {
    for version in Version::ALL {
        let mut bench = Bench::new(version, |switch, packet| {
            let towards = Match::any().eth_dst(packet.eth_dst());
            switch.forward_with_rule(packet, towards, PortNo(2), EntryOptions::PERMANENT);
        });
        let frame = bench.packet(kept(7)).receive();
        let Message::FlowMod(flow_mod) = frame.message() else {
            panic!("expected a flow mod");
        };
        assert_eq!(flow_mod.buffer_id, BufferId(7));
        assert_eq!((flow_mod.idle_timeout, flow_mod.priority), (0, 0x8000));
        assert_eq!(flow_mod.match_.fields().count(), 1);
        bench.end();
    }
}

/// Actions that set the destination, and send the packet out of port 2.
const REWRITE: [Action; 2] = [
    Action::SetField(Field::Basic {
        field: OxmField::EthDst,
        value: 3,
        mask: 0xffff_ffff_ffff,
    }),
    Action::output(PortNo(2)),
];

fn assert_rewriting_packet_out(frame: &Frame, buffer_id: BufferId, in_port: PortNo, data: &[u8]) {
    let expected = PacketOut {
        buffer_id,
        in_port,
        actions: List::from(&REWRITE),
        data,
    };
    assert_eq!(frame.message(), Message::PacketOut(expected));
}

#[test]
fn a_packet_goes_through_the_actions_of_its_entry() {
    for version in Version::ALL {
        let mut bench = Bench::new(version, |switch, packet| {
            switch.forward_with_rule(packet, Match::exact(packet), &REWRITE, IDLE_5S);
        });
        let receive_entry = |bench: &mut Bench, buffer_id| {
            let frame = bench.receive();
            let Message::FlowMod(flow_mod) = frame.message() else {
                panic!("expected a flow mod, not {frame:?}");
            };
            assert_eq!(flow_mod.buffer_id, buffer_id);
            let instructions = vec![Instruction::apply(&REWRITE)];
            assert_eq!(flow_mod.instructions, List::from(instructions));
            assert_eq!(flow_mod.match_.get(OxmField::UdpDst).unwrap().0, 9);
        };
        bench.packet(kept(7));
        receive_entry(&mut bench, BufferId(7));
        bench.packet(packet_in(&UDP));
        receive_entry(&mut bench, BufferId::NONE);
        assert_rewriting_packet_out(&bench.receive(), BufferId::NONE, PortNo(1), &UDP);
        bench.packet(cut_short());
        receive_entry(&mut bench, BufferId::NONE);
        bench.switch.assert_served();
        assert_eq!(bench.counters().truncated.get(), 1);
        bench.end();
    }
}

#[test]
fn packets_are_sent_through_lists_of_actions() {
    for version in Version::ALL {
        let mut bench = Bench::new(version, |switch, packet| {
            switch.forward(packet, &REWRITE);
            switch.send_packet(&UDP, &REWRITE).unwrap();
        });
        bench.packet(kept(7));
        assert_rewriting_packet_out(&bench.receive(), BufferId(7), PortNo(1), &[]);
        let made = bench.receive();
        assert_rewriting_packet_out(&made, BufferId::NONE, PortNo::CONTROLLER, &UDP);
        let network = bench.running.network();
        network.send_packet(DatapathId(1), &UDP, &REWRITE).unwrap();
        let made = bench.switch.receive();
        assert_rewriting_packet_out(&made, BufferId::NONE, PortNo::CONTROLLER, &UDP);
        bench.end();
    }
}

#[test]
fn install_adds_an_entry_and_without_actions_one_that_drops() {
    for version in Version::ALL {
        let mut bench = Bench::new(version, |switch, packet| {
            let match_ = Match::any().in_port(packet.in_port());
            let actions = [Action::output(PortNo(2)), Action::output(PortNo(3))];
            switch
                .install(match_.clone(), &actions, EntryOptions::idle(9))
                .unwrap();
            switch
                .install(match_, &[], EntryOptions::PERMANENT)
                .unwrap();
        });
        bench.packet(kept(7));
        for (count, idle_timeout) in [(2, 9), (0, 0)] {
            let frame = bench.receive();
            let Message::FlowMod(flow_mod) = frame.message() else {
                panic!("expected a flow mod");
            };
            assert_eq!(flow_mod.command, FlowModCommand::Add);
            assert_eq!(flow_mod.match_.get(OxmField::InPort).unwrap().0, 1);
            assert_eq!(
                (flow_mod.idle_timeout, flow_mod.buffer_id),
                (idle_timeout, BufferId::NONE)
            );
            let actions: usize = flow_mod
                .instructions
                .iter()
                .map(|instruction| match instruction {
                    Instruction::ApplyActions(actions) => actions.len(),
                    other => panic!("{other:?}"),
                })
                .sum();
            assert_eq!(actions, count);
        }
        bench.end();
    }
}

#[test]
fn delete_is_non_strict_in_all_tables() {
    for (version, table_id) in [(Version::Of10, 0), (Version::Of13, TABLE_ALL)] {
        let mut bench = Bench::new(version, |switch, packet| {
            switch
                .delete(Match::any().eth_src(packet.eth_src()))
                .unwrap();
        });
        let frame = bench.packet(kept(7)).receive();
        let Message::FlowMod(flow_mod) = frame.message() else {
            panic!("expected a flow mod");
        };
        assert_eq!(
            (flow_mod.command, flow_mod.table_id),
            (FlowModCommand::Delete, table_id)
        );
        assert_eq!(
            (flow_mod.out_port, flow_mod.out_group),
            (PortNo::ANY, GROUP_ANY)
        );
        assert_eq!(flow_mod.match_.fields().count(), 1);
        bench.end();
    }
}

/// Returns the cookie and mask of the next message, which must be a flow mod.
fn receive_cookie(switch: &mut FakeSwitch) -> (u64, u64) {
    let frame = switch.receive();
    match frame.message() {
        Message::FlowMod(flow_mod) => (flow_mod.cookie, flow_mod.cookie_mask),
        _ => panic!("expected a flow mod, not {frame:?}"),
    }
}

#[test]
fn entries_identify_their_program() {
    for version in Version::ALL {
        let mut bench = Bench::new(version, |switch, packet| {
            // The top byte is the framework's.
            let options = EntryOptions {
                cookie: 0x7700_0000_0000_00c0,
                ..IDLE_5S
            };
            assert_eq!(switch.program().number(), 1);
            switch.forward_with_rule(packet, Match::exact(packet), PortNo(2), options);
            switch.forward_with_rule(packet, Match::any(), PortNo(2), options);
            switch.install(Match::any(), PortNo(2), options).unwrap();
            let network = switch.network();
            network
                .install(DatapathId(1), Match::any(), &[], options)
                .unwrap();
        });
        bench.packet(kept(7));
        for _ in 0..4 {
            let (cookie, _) = receive_cookie(&mut bench.switch);
            assert_eq!(cookie, 0xc0 | OF_PROGRAM_1);
            let program = ProgramId::of_cookie(cookie).unwrap();
            assert_eq!(program.number(), 1);
        }
        let network = bench.running.network();
        network
            .install(DatapathId(1), Match::any(), &[], IDLE_5S)
            .unwrap();
        let (cookie, _) = receive_cookie(&mut bench.switch);
        assert_eq!(ProgramId::of_cookie(cookie), Some(ProgramId::OUTSIDE));
        bench.end();
    }
}

#[test]
fn a_delete_names_the_entries_of_one_program() {
    const PROGRAM: u64 = !OWN_COOKIE_BITS;
    let mut bench = Bench::new(Version::Of13, |switch, _| {
        switch.delete(Match::any()).unwrap();
        switch.delete_of(ProgramId::OUTSIDE, Match::any()).unwrap();
        switch
            .network()
            .delete(DatapathId(1), Match::any())
            .unwrap();
    });
    bench.packet(kept(7));
    let outside = u64::from(ProgramId::OUTSIDE.number()) << 56;
    for cookie in [OF_PROGRAM_1, outside, OF_PROGRAM_1] {
        assert_eq!(receive_cookie(&mut bench.switch), (cookie, PROGRAM));
    }
    let network = bench.running.network();
    network.delete(DatapathId(1), Match::any()).unwrap();
    assert_eq!(receive_cookie(&mut bench.switch), (outside, PROGRAM));
    bench.end();
}

#[test]
fn permanent_entries_of_others_survive_in_1_0() {
    let mut bench = Bench::new(Version::Of10, |switch, _| {
        switch
            .install(Match::any(), PortNo(2), EntryOptions::PERMANENT)
            .unwrap();
        switch.delete(Match::any()).unwrap();
    });
    let network = bench.running.network().clone();
    let lldp = Match::any().eth_type(0x88cc);
    network
        .install(DatapathId(1), lldp, PortNo(3), EntryOptions::PERMANENT)
        .unwrap();
    let installed = bench.switch.receive();
    bench.packet(kept(7));
    let (ours, deletion) = (bench.receive(), bench.receive());
    let xid = deletion.header().xid;
    for (frame, command) in [
        (ours, FlowModCommand::Add),
        (deletion, FlowModCommand::Delete),
    ] {
        let Message::FlowMod(flow_mod) = frame.message() else {
            panic!("expected a flow mod, not {frame:?}");
        };
        assert_eq!(flow_mod.command, command);
    }
    let again = bench.switch.receive();
    assert_eq!(again.message(), installed.message());
    assert_eq!(again.header().xid, xid, "an error is for who has deleted");

    // The program has deleted its own entry: none is added again.
    network.delete(DatapathId(1), Match::any()).unwrap();
    bench.switch.receive();
    bench.switch.assert_served();
    assert_eq!(bench.counters().unprotected.get(), 0);
    bench.end();
}

#[test]
fn own_cookies_select_their_entries() {
    let mut bench = Bench::new(Version::Of13, |switch, _| {
        let deletion = FlowMod::delete_by_cookie(0xc0);
        switch.send(&Message::FlowMod(deletion.clone())).unwrap();
        let of_ours = FlowMod {
            cookie: switch.program().cookie(0xc0),
            ..deletion
        };
        switch.send(&Message::FlowMod(of_ours)).unwrap();
    });
    bench.packet(kept(7));
    let anyones = (0xc0, OWN_COOKIE_BITS);
    assert_eq!(receive_cookie(&mut bench.switch), anyones);
    let ours = (0xc0 | OF_PROGRAM_1, u64::MAX);
    assert_eq!(receive_cookie(&mut bench.switch), ours);
    bench.end();
}

#[test]
fn send_returns_the_xid_that_is_sent() {
    for version in Version::ALL {
        let mut bench = Bench::new(version, |switch, _| {
            let xid = switch.send(&Message::BarrierRequest).unwrap();
            switch
                .send(&Message::EchoRequest(&xid.to_be_bytes()))
                .unwrap();
        });
        let barrier = bench.packet(kept(7)).receive();
        assert_eq!(barrier.message(), Message::BarrierRequest);
        let echo = bench.switch.read_frame().unwrap();
        let xid = barrier.header().xid.to_be_bytes();
        assert_eq!(echo.message(), Message::EchoRequest(&xid));
        bench.end();
    }
}

#[test]
fn packets_are_sent_even_if_the_entry_cannot_be() {
    let whole = (packet_in(&UDP), &UDP[..]);
    for (packet, data) in [(kept(7), &[][..]), whole] {
        let mut bench = Bench::new(Version::Of10, |switch, packet| {
            let ipv6 = Match::any().eth_type(0x86dd).ipv6_dst(Ipv6Addr::LOCALHOST);
            switch.forward_with_rule(packet, ipv6, PortNo(2), IDLE_5S);
        });
        let buffer_id = packet.buffer_id;
        let frame = bench.packet(packet).receive();
        assert_packet_out(&frame, buffer_id, PortNo(2), data);
        assert_eq!(bench.counters().unsendable.get(), 1);
        bench.end();
    }
}

#[test]
fn inexpressible_messages_are_errors() {
    let mut bench = Bench::new(Version::Of10, |switch, packet| {
        let ipv6 = Match::any().eth_type(0x86dd).ipv6_src(Ipv6Addr::LOCALHOST);
        let refused = switch.install(ipv6, &[], EntryOptions::PERMANENT);
        assert!(matches!(refused, Err(EncodeError::Unsupported { .. })));
        assert!(switch.send(&Message::GetAsyncRequest).is_err());
        // 1.0's ports have 16 bits.
        switch.forward(packet, PortNo(0x1_0000));
        switch.forward_with_rule(packet, Match::exact(packet), PortNo(0x1_0000), IDLE_5S);
    });
    bench.packet(kept(7)).switch.assert_served();
    let counters = bench.counters();
    assert_eq!((counters.unsendable.get(), counters.sent.get()), (3, 0));
    bench.end();
}
