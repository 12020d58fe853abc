//! Switches that report false counters, or send invalid replies, while `elephants` runs.

use crate::support::{frame, ms, options};
use std::time::Duration;
use urtica_apps::{Elephants, ElephantsConfig};
use urtica_controller::{ConnectionId, Controller, Embedded};
use urtica_services::{Discovery, Hosts, HostsConfig, ProvisionConfig, Provisioner, Routes};
use urtica_wire::packet::ether_type;
use urtica_wire::{
    Action, BufferId, Capabilities, DatapathId, Features, FlowModFlags, FlowStats, List, MacAddr,
    Match, Message, MultipartFlags, MultipartReply, MultipartReplyBody, MultipartRequestBody,
    OxmField, PacketIn, PacketInReason, Port, PortNo, Version, split_frame,
};

const VERSION: Version = Version::Of13;

/// The ports of each switch that lead to the other switch; hosts are at the other ports.
const TRUNKS: [u32; 2] = [2, 3];
const HOST_PORTS: [u32; 3] = [1, 4, 5];

/// The first switch's report of the bytes that its flows have sent.
#[derive(Clone, Debug)]
enum Claim {
    /// The byte counts of entries for these pairs.
    Bytes(Vec<(Match<'static>, u64)>),
    /// The bytes per millisecond of each of its hosts to one of the other switch.
    Rate(u64),
    /// The body of a multipart reply.
    Body(Vec<u8>),
    /// Endless parts, each of which announces another.
    Endless,
    Nothing,
}

/// Two switches with two links between them, and a controller that runs elephants.
struct Liars {
    controller: Embedded,
    elephants: Elephants,
    connections: [ConnectionId; 2],
    now: Duration,
    claim: Claim,
    /// The number of requests to the first switch.
    asked: u32,
}

/// Returns the host at the n-th host port of a switch. The hash of these addresses does not spread flows evenly.
fn host(switch: usize, n: usize) -> u64 {
    (switch * 100 + n + 1) as u64
}

fn pair(src: u64, dst: u64) -> Match<'static> {
    Match::any()
        .eth_src(MacAddr::from_u64(src))
        .eth_dst(MacAddr::from_u64(dst))
        .with_exact(OxmField::VlanVid, 0_u16)
}

fn stats(match_: Match<'static>, byte_count: u64) -> FlowStats<'static> {
    FlowStats {
        table_id: 0,
        duration_sec: u32::MAX,
        duration_nsec: u32::MAX,
        priority: 0x8000,
        idle_timeout: 60,
        hard_timeout: 0,
        flags: FlowModFlags::empty(),
        cookie: u64::MAX,
        packet_count: 0,
        byte_count,
        match_,
        instructions: List::default(),
    }
}

impl Liars {
    /// Creates a network in which all hosts are known.
    fn new() -> Self {
        let discovery = Discovery::new(options().discovery);
        let hosts = Hosts::new(&discovery, HostsConfig::default());
        let routes = Routes::new(&discovery);
        let provisioner = Provisioner::new(ProvisionConfig::default());
        let config = ElephantsConfig {
            interval: ms(1_000),
            ..ElephantsConfig::default()
        };
        let elephants = Elephants::new(&hosts, &routes, &provisioner, config);
        let controller = Controller::new()
            .program(discovery)
            .program(hosts)
            .program(routes)
            .program(provisioner)
            .program(elephants.clone());
        let mut controller = controller.embed().unwrap();
        let connections = ["s1", "s2"].map(|name| controller.connect(name.into(), Duration::ZERO));
        let mut liars = Self {
            controller,
            elephants,
            connections,
            now: Duration::ZERO,
            claim: Claim::Nothing,
            asked: 0,
        };
        for switch in 0..2 {
            liars.send(switch, 0, &Message::Hello(Default::default()));
        }
        liars.advance(ms(1_000));
        for (switch, n) in [0, 1]
            .into_iter()
            .flat_map(|switch| (0..3).map(move |n| (switch, n)))
        {
            let hello = frame(
                host(switch, n),
                MacAddr::BROADCAST.to_u64(),
                ether_type::IPV4,
                &[],
            );
            liars.send_packet_in(switch, HOST_PORTS[n], &hello);
        }
        liars.advance(ms(100));
        liars
    }

    /// Makes the first switch report a claim for several requests, and checks that the requests continue.
    fn claim(&mut self, claim: Claim) {
        let before = self.asked;
        self.claim = claim;
        self.advance(Duration::from_secs(10));
        assert_eq!(self.controller.background_counters().panics(), 0);
        assert!(
            self.asked >= before + 3,
            "{:?}: requests continue",
            self.claim
        );
    }

    /// Advances the time, from one timeout of the controller to the next.
    fn advance(&mut self, time: Duration) {
        let end = self.now + time;
        self.settle();
        while let Some(next) = self.controller.next_timeout().filter(|next| *next <= end) {
            self.now = self.now.max(next);
            self.settle();
        }
        self.now = end;
    }

    fn settle(&mut self) {
        loop {
            self.controller.handle_timeout(self.now);
            let outputs = self
                .connections
                .map(|connection| self.controller.output(connection).map(std::mem::take));
            let outputs = outputs.map(|output| output.expect("nobody is turned away"));
            if outputs.iter().all(Vec::is_empty) {
                return;
            }
            for (switch, output) in outputs.iter().enumerate() {
                let mut rest = &output[..];
                while let Ok(Some((frame, after))) = split_frame(rest) {
                    let (header, message) = Message::decode(frame).unwrap();
                    self.handle(switch, header.xid, message);
                    rest = after;
                }
            }
        }
    }

    fn handle(&mut self, switch: usize, xid: u32, message: Message) {
        match message {
            Message::FeaturesRequest => {
                let features = Features {
                    datapath_id: DatapathId(switch as u64 + 1),
                    n_buffers: 0,
                    n_tables: 1,
                    auxiliary_id: 0,
                    capabilities: Capabilities::empty(),
                    actions: 0,
                    ports: List::default(),
                };
                self.send(switch, xid, &Message::FeaturesReply(features));
            }
            Message::MultipartRequest(request) => match request.body {
                MultipartRequestBody::PortDesc => {
                    let port = |number| {
                        let mac = MacAddr::from_u64(
                            0x0600_0000_0000 + (switch as u64 * 10) + number as u64,
                        );
                        Port::new(PortNo(number), mac, &format!("eth{number}"))
                    };
                    let ports: Vec<_> = (1..=5).map(port).collect();
                    self.reply(
                        switch,
                        xid,
                        MultipartFlags::empty(),
                        MultipartReplyBody::PortDesc(ports.into()),
                    );
                }
                MultipartRequestBody::Flow(wanted) if wanted.cookie_mask == 0 && switch == 0 => {
                    self.asked += 1;
                    self.lie(xid);
                }
                _ => self.tell(switch, xid, Vec::new()),
            },
            Message::BarrierRequest => self.send(switch, xid, &Message::BarrierReply),
            Message::EchoRequest(data) => self.send(switch, xid, &Message::EchoReply(data)),
            Message::PacketOut(packet_out) => {
                let outputs: Vec<_> = packet_out.actions.iter().collect();
                for action in outputs {
                    if let Action::Output { port, .. } = action {
                        if TRUNKS.contains(&port.0) {
                            self.send_packet_in(1 - switch, port.0, packet_out.data);
                        }
                    }
                }
            }
            _ => {}
        }
    }

    fn lie(&mut self, xid: u32) {
        match self.claim.clone() {
            Claim::Bytes(entries) => {
                let entries = entries.into_iter();
                self.tell(
                    0,
                    xid,
                    entries
                        .map(|(match_, bytes)| stats(match_, bytes))
                        .collect(),
                );
            }
            Claim::Rate(bytes_per_ms) => {
                let bytes = self.now.as_millis() as u64 * bytes_per_ms;
                let pairs = (0..3).map(|n| pair(host(0, n), host(1, n)));
                self.tell(0, xid, pairs.map(|pair| stats(pair, bytes)).collect());
            }
            Claim::Body(body) => {
                let mut message = vec![VERSION.to_wire(), 19];
                message.extend((8 + body.len() as u16).to_be_bytes());
                message.extend(xid.to_be_bytes());
                message.extend(body);
                self.send_bytes(0, &message);
            }
            Claim::Endless => {
                for _ in 0..100 {
                    let entries = (0..100).map(|n| stats(pair(host(0, 0), n), u64::MAX));
                    let body = MultipartReplyBody::Flow(entries.collect());
                    self.reply(0, xid, MultipartFlags::MORE, body);
                }
            }
            Claim::Nothing => {}
        }
    }

    fn tell(&mut self, switch: usize, xid: u32, entries: Vec<FlowStats<'static>>) {
        let body = MultipartReplyBody::Flow(entries.into_iter().collect());
        self.reply(switch, xid, MultipartFlags::empty(), body);
    }

    fn reply(&mut self, switch: usize, xid: u32, flags: MultipartFlags, body: MultipartReplyBody) {
        let reply = MultipartReply { flags, body };
        self.send(switch, xid, &Message::MultipartReply(reply));
    }

    fn send_packet_in(&mut self, switch: usize, port_no: u32, data: &[u8]) {
        let packet_in = PacketIn {
            buffer_id: BufferId::NONE,
            total_len: data.len() as u16,
            reason: PacketInReason::NoMatch,
            table_id: 0,
            cookie: u64::MAX,
            in_port: PortNo(port_no),
            match_: Match::any().in_port(PortNo(port_no)),
            data,
        };
        self.send(switch, 0, &Message::PacketIn(packet_in));
    }

    fn send(&mut self, switch: usize, xid: u32, message: &Message) {
        let mut bytes = Vec::new();
        message.encode(VERSION, xid, &mut bytes).unwrap();
        self.send_bytes(switch, &bytes);
    }

    fn send_bytes(&mut self, switch: usize, bytes: &[u8]) {
        let taken = self
            .controller
            .handle_input(self.connections[switch], bytes, self.now);
        taken.expect("nobody is turned away");
    }
}

/// Checks that the controller still uses the switch's reports: three hosts fill their links over two links with the bandwidth
/// of one host each, so flows are moved, and return.
fn is_heard(liars: &mut Liars) {
    liars.claim(Claim::Rate(125_000));
    assert!(liars.elephants.moved() > 0);
    liars.claim(Claim::Rate(0));
    assert_eq!(liars.elephants.moved(), 0);
}

#[test]
fn truthful_announcements_are_accepted() {
    is_heard(&mut Liars::new());
}

#[test]
fn impossible_counts_cause_no_lasting_move() {
    let mut liars = Liars::new();
    let known = pair(host(0, 0), host(1, 0));
    let entries = |match_: &Match<'static>, bytes| Claim::Bytes(vec![(match_.clone(), bytes)]);
    for claim in [
        entries(&known, u64::MAX),
        entries(&known, 0),
        entries(&known, u64::MAX / 2),
        // Two entries of a pair whose sum overflows the counter.
        Claim::Bytes(vec![(known.clone(), u64::MAX), (known.clone(), u64::MAX)]),
        // To itself, to an unknown host, from an unknown host, and from a host of the other switch.
        entries(&pair(host(0, 0), host(0, 0)), u64::MAX),
        entries(&pair(host(0, 0), 77), u64::MAX),
        entries(&pair(77, host(1, 0)), u64::MAX),
        entries(&pair(host(1, 0), host(0, 0)), u64::MAX),
        // An entry of no pair.
        entries(&Match::any(), u64::MAX),
        Claim::Bytes(Vec::new()),
        // The largest possible rate.
        Claim::Rate(u64::MAX / 1_000_000),
    ] {
        liars.claim(claim);
    }
    is_heard(&mut liars);
}

#[test]
fn invalid_replies_are_ignored() {
    let mut liars = Liars::new();
    let flow_stats = [0, 1, 0, 0, 0, 0, 0, 0];
    for claim in [
        Claim::Body(Vec::new()),
        Claim::Body(flow_stats[..5].to_vec()),
        // Entries whose length is 0, too short, or beyond the end.
        Claim::Body([&flow_stats[..], &[0; 56]].concat()),
        Claim::Body([&flow_stats[..], &[0, 8], &[0; 54]].concat()),
        Claim::Body([&flow_stats[..], &[0xff; 56]].concat()),
        // A reply to another request.
        Claim::Body([&[0, 3, 0, 0, 0, 0, 0, 0][..], &[0; 24]].concat()),
        Claim::Endless,
        Claim::Nothing,
    ] {
        liars.claim(claim);
    }
    is_heard(&mut liars);
}
