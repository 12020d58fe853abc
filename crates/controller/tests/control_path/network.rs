//! The network, as used by code outside of handlers and by handlers of other switches.

use crate::support::*;
use std::thread;
use std::time::Duration;
use urtica_controller::{RequestError, Running, Switch, SwitchHandler, SwitchInfo};
use urtica_wire::{
    Action, DatapathId, ErrorCode, Experimenter, FlowStatsRequest, GroupMod, GroupModCommand,
    GroupType, List, Message, MultipartFlags, MultipartReply, MultipartReplyBody, MultipartRequest,
    MultipartRequestBody, PacketIn, PacketOut, PortNo, PortStats, Version,
};

const ONE: DatapathId = DatapathId(1);

fn hub(shards: usize) -> Running {
    controller(shards)
        .program(|_: &SwitchInfo| Hub)
        .start()
        .unwrap()
}

fn port_stats_request() -> Message<'static> {
    Message::MultipartRequest(MultipartRequest {
        flags: MultipartFlags::empty(),
        body: MultipartRequestBody::PortStats(PortNo::ANY),
    })
}

fn port_stats(flags: MultipartFlags, ports: std::ops::Range<u32>) -> Message<'static> {
    let row = |number| PortStats {
        port_no: PortNo(number),
        rx_packets: u64::from(number) * 10,
        tx_packets: 0,
        rx_bytes: 0,
        tx_bytes: 0,
        rx_dropped: 0,
        tx_dropped: 0,
        rx_errors: 0,
        tx_errors: 0,
        rx_frame_err: 0,
        rx_over_err: 0,
        rx_crc_err: 0,
        collisions: 0,
        duration_sec: 0,
        duration_nsec: 0,
    };
    let body = MultipartReplyBody::PortStats(ports.map(row).collect());
    Message::MultipartReply(MultipartReply { flags, body })
}

#[test]
fn switches_are_known_while_they_are_connected() {
    let running = hub(2);
    let network = running.network();
    assert!(network.switches().is_empty() && network.info(ONE).is_none());
    let switches: Vec<_> = [3, 1, 2]
        .map(|id| FakeSwitch::join(&running, Version::Of13, id))
        .into_iter()
        .collect();
    assert_eq!(network.switches(), [1, 2, 3].map(DatapathId));
    eventually("its ports are known", || {
        network.info(ONE).unwrap().ports.len() == 3
    });
    let info = network.info(ONE).unwrap();
    assert_eq!(
        (info.version, info.n_buffers, info.n_tables),
        (Version::Of13, 256, 1)
    );
    let address = switches[1]
        .socket
        .local_addr()
        .unwrap()
        .as_socket()
        .unwrap();
    assert_eq!(info.peer, format!("tcp:{address}"));
    drop(switches);
    eventually("all are forgotten", || network.switches().is_empty());
    assert!(network.counters(ONE).is_none());
    let connections: Vec<_> = network
        .shard_counters()
        .map(|shard| shard.connections.get())
        .collect();
    assert_eq!(
        connections,
        [1, 2],
        "connections are distributed round robin"
    );
    running.stop().unwrap();
}

#[test]
fn messages_and_bytes_are_counted() {
    let running = hub(1);
    let mut switch = FakeSwitch::join(&running, Version::Of10, 1);
    let sent = encode(Version::Of10, 0, &Message::PacketIn(packet_in(&UDP)));
    let counters = running.network().counters(ONE).unwrap();
    let before = counters.received_bytes.get();
    for _ in 0..10 {
        switch.send_bytes(&sent);
        switch.receive();
    }
    let all = WORDS_TO_JOIN + 10;
    eventually("all are counted", || counters.received.get() == all);
    assert_eq!((counters.packet_ins.get(), counters.sent.get()), (10, 10));
    assert_eq!(
        counters.received_bytes.get() - before,
        10 * sent.len() as u64
    );
    assert!(
        counters
            .iter()
            .any(|(name, count)| (name, count) == ("packet_ins", 10))
    );
    let shard = running.network().shard_counters().next().unwrap();
    assert_eq!((shard.received.get(), shard.connections.get()), (all, 1));
    assert!(shard.reads.get() > 0 && shard.writes.get() > 0 && shard.waits.get() > 0);
    assert_eq!(shard.received_bytes.get(), counters.received_bytes.get());
    running.stop().unwrap();
}

#[test]
fn messages_of_another_thread_arrive_in_order() {
    for version in Version::ALL {
        let running = hub(1);
        let mut switch = FakeSwitch::join(&running, version, 1);
        let network = running.network().clone();
        let sender = thread::spawn(move || {
            for number in 0..1000_u32 {
                let message = Message::Experimenter(Experimenter {
                    experimenter: number,
                    data: &[0; 4],
                });
                network.send(ONE, &message).unwrap();
            }
        });
        for number in 0..1000 {
            let frame = switch.receive();
            let Message::Experimenter(message) = frame.message() else {
                panic!("expected an experimenter's message");
            };
            assert_eq!(message.experimenter, number);
        }
        sender.join().unwrap();
        running.stop().unwrap();
    }
}

#[test]
fn sending_fails_for_unknown_switches_and_unsupported_messages() {
    let running = hub(1);
    let _switch = FakeSwitch::join(&running, Version::Of10, 1);
    let network = running.network();
    let unknown = network.send(DatapathId(2), &Message::BarrierRequest);
    assert_eq!(unknown, Err(RequestError::UnknownSwitch(DatapathId(2))));
    let sentence = unknown.unwrap_err().to_string();
    assert_eq!(
        sentence,
        "no switch with datapath id 0000000000000002 is connected"
    );
    let group = Message::GroupMod(GroupMod {
        command: GroupModCommand::Delete,
        group_type: GroupType::All,
        group_id: 1,
        buckets: List::default(),
    });
    assert!(matches!(
        network.send(ONE, &group),
        Err(RequestError::Encode(_))
    ));
    let no_reply = network.request(ONE, &Message::BarrierReply).err().unwrap();
    assert_eq!(no_reply, RequestError::NoReply);
    running.stop().unwrap();
}

#[test]
fn replies_in_several_parts_are_joined() {
    for version in Version::ALL {
        let running = hub(1);
        let mut switch = FakeSwitch::join(&running, version, 1);
        let pending = running
            .network()
            .request(ONE, &port_stats_request())
            .unwrap();
        let request = switch.receive();
        assert_eq!(request.message(), port_stats_request());
        let xid = request.header().xid;
        switch.send(xid, &port_stats(MultipartFlags::MORE, 1..3));
        // A message in between is not mixed with the parts.
        switch.send(0, &Message::PacketIn(packet_in(&UDP)));
        switch.send(xid, &port_stats(MultipartFlags::MORE, 3..4));
        switch.send(xid, &port_stats(MultipartFlags::empty(), 4..6));
        let reply = pending.wait(DEADLINE).unwrap();
        let ports = reply.messages().flat_map(|message| match message {
            Message::MultipartReply(MultipartReply {
                body: MultipartReplyBody::PortStats(rows),
                ..
            }) => rows
                .iter()
                .map(|row| (row.port_no.0, row.rx_packets))
                .collect::<Vec<_>>(),
            other => panic!("expected port stats, not {other:?}"),
        });
        assert_eq!(
            ports.collect::<Vec<_>>(),
            [(1, 10), (2, 20), (3, 30), (4, 40), (5, 50)]
        );
        running.stop().unwrap();
    }
}

#[test]
fn mismatched_replies_are_errors() {
    let running = hub(1);
    let mut switch = FakeSwitch::join(&running, Version::Of13, 1);
    let network = running.network().clone();
    let asker = thread::spawn(move || {
        let all = FlowStatsRequest::default;
        let ports = || block_on(network.port_stats(ONE)).map(|ports| ports.len());
        let entries = || block_on(network.flow_stats(ONE, all())).map(|rows| rows.count());
        let sums = || block_on(network.aggregate_stats(ONE, all())).map(|sums| sums.flow_count);
        (ports(), ports(), entries(), sums())
    });
    let mut reply = |parts: &[Message]| {
        let xid = switch.receive().header().xid;
        parts.iter().for_each(|part| switch.send(xid, part));
    };
    let of_entries = Message::MultipartReply(MultipartReply {
        flags: MultipartFlags::empty(),
        body: MultipartReplyBody::Flow(List::default()),
    });
    let of_ports = port_stats(MultipartFlags::empty(), 0..0);
    reply(&[port_stats(MultipartFlags::MORE, 1..3), of_entries]);
    reply(std::slice::from_ref(&of_ports));
    reply(&[of_ports]);
    reply(&[Message::BarrierReply]);
    let wrong = RequestError::WrongReply;
    let (mixed, ports, entries, sums) = asker.join().unwrap();
    assert_eq!(mixed, Err(wrong("the counters of ports")));
    assert_eq!(ports, Ok(0));
    assert_eq!(entries, Err(wrong("flow entries")));
    assert_eq!(sums, Err(wrong("sums of flow entries")));
    running.stop().unwrap();
}

#[test]
fn replies_in_any_order_reach_their_requests() {
    let running = hub(1);
    let mut switch = FakeSwitch::join(&running, Version::Of13, 1);
    let network = running.network();
    let echo = network.request(ONE, &Message::EchoRequest(b"a")).unwrap();
    let barrier = network.barrier(ONE).unwrap();
    let config = network.request(ONE, &Message::GetConfigRequest).unwrap();
    let xids = [(); 3].map(|()| switch.read_frame().unwrap().header().xid);
    switch.send(xids[2], &error(ErrorCode::BadRequestEperm));
    switch.send(xids[1], &Message::BarrierReply);
    switch.send(xids[0], &Message::EchoReply(b"a"));
    let echo = echo.wait(DEADLINE).unwrap();
    assert!(echo.messages().eq([Message::EchoReply(b"a")]));
    let barrier = barrier.wait(DEADLINE).unwrap();
    assert!(barrier.messages().eq([Message::BarrierReply]));
    let refused = config.wait(DEADLINE).unwrap_err();
    assert_eq!(refused, RequestError::Refused(ErrorCode::BadRequestEperm));
    assert_eq!(refused.to_string(), "the switch refused with OFPBRC_EPERM");
    running.stop().unwrap();
}

#[test]
fn a_reply_can_be_awaited() {
    let running = hub(1);
    let mut switch = FakeSwitch::join(&running, Version::Of13, 1);
    let network = running.network().clone();
    let asker = thread::spawn(move || {
        block_on(async {
            network.barrier(ONE).unwrap().await.unwrap();
            network.barrier(ONE).unwrap().await
        })
    });
    let xid = switch.receive().header().xid;
    switch.send(xid, &Message::BarrierReply);
    assert_eq!(switch.receive().message(), Message::BarrierRequest);
    drop(switch);
    let left = asker.join().unwrap().unwrap_err();
    assert_eq!(left, RequestError::Disconnected);
    running.stop().unwrap();
}

#[test]
fn late_replies_are_errors_and_ignored() {
    let running = hub(1);
    let mut switch = FakeSwitch::join(&running, Version::Of13, 1);
    let soon = Duration::from_millis(20);
    let late = running
        .network()
        .barrier(ONE)
        .unwrap()
        .wait(soon)
        .unwrap_err();
    assert_eq!(late, RequestError::Timeout(soon));
    let xid = switch.receive().header().xid;
    switch.send(xid, &Message::BarrierReply);
    switch.assert_served();
    running.stop().unwrap();
}

#[test]
fn replies_can_be_awaited_without_timeout() {
    let running = hub(1);
    let mut switch = FakeSwitch::join(&running, Version::Of13, 1);
    let pending = running.network().barrier(ONE).unwrap();
    let asker = thread::spawn(move || pending.wait(Duration::MAX));
    let xid = switch.receive().header().xid;
    switch.send(xid, &Message::BarrierReply);
    assert!(asker.join().unwrap().is_ok());
    running.stop().unwrap();
}

#[test]
fn stopping_ends_waiting_requests() {
    let running = hub(1);
    let mut switch = FakeSwitch::join(&running, Version::Of13, 1);
    let network = running.network().clone();
    let pending = network.barrier(ONE).unwrap();
    assert_eq!(switch.receive().message(), Message::BarrierRequest);
    running.stop().unwrap();
    assert_eq!(
        pending.wait(DEADLINE).unwrap_err(),
        RequestError::Disconnected
    );
    let unknown = network.barrier(ONE).err().unwrap();
    assert_eq!(unknown, RequestError::UnknownSwitch(ONE));
}

/// Sends each packet out of port 9 of switch 2.
struct Tunnel;

impl SwitchHandler for Tunnel {
    fn packet_in(&mut self, switch: &mut Switch, packet: &PacketIn) {
        let out = PacketOut {
            buffer_id: urtica_wire::BufferId::NONE,
            in_port: PortNo::CONTROLLER,
            actions: List::from(vec![Action::output(PortNo(9))]),
            data: packet.data,
        };
        switch
            .network()
            .send(DatapathId(2), &Message::PacketOut(out))
            .unwrap();
    }
}

#[test]
fn a_handler_can_send_to_another_switch_on_its_shard_or_another() {
    for shards in [1, 2] {
        let running = controller(shards)
            .program(|_: &SwitchInfo| Tunnel)
            .start()
            .unwrap();
        let mut from = FakeSwitch::join(&running, Version::Of10, 1);
        let mut to = FakeSwitch::join(&running, Version::Of13, 2);
        for _ in 0..100 {
            from.send(0, &Message::PacketIn(packet_in(&UDP)));
        }
        for _ in 0..100 {
            let frame = to.receive();
            let Message::PacketOut(out) = frame.message() else {
                panic!("expected a packet-out");
            };
            assert_eq!(out.data, UDP);
            assert_eq!(out.actions, List::from(vec![Action::output(PortNo(9))]));
        }
        from.assert_served();
        running.stop().unwrap();
    }
}
