//! A pipeline with three tables and four ports, which is changed by text, and a sink that records its output.

use std::time::Duration;
use urtica_pipeline::{Packet, PacketInCause, Pipeline, PipelineConfig, RemovedEntry, Sink, Step};
use urtica_wire::text::Actions;
use urtica_wire::{
    Action, ErrorCode, FlowMod, FlowModCommand, FlowStatsRequest, GroupMod, GroupModCommand,
    MacAddr, MeterMod, MeterModCommand, PacketInReason, Port, PortConfig, PortNo, PortState,
};

/// The ingress port of packets.
pub const IN: PortNo = PortNo(1);

/// A pipeline under test, with a time that the test sets.
pub struct Bed {
    pub pipeline: Pipeline,
    pub now: Duration,
    pub removed: Vec<RemovedEntry>,
}

impl Bed {
    pub fn new() -> Self {
        let mut pipeline = Pipeline::new(PipelineConfig {
            n_tables: 3,
            max_entries: 8,
            max_groups: 40,
            max_meters: 4,
        });
        for number in 1..=4 {
            pipeline.set_port(port(number));
        }
        Self {
            pipeline,
            now: Duration::from_secs(1000),
            removed: Vec::new(),
        }
    }

    /// Creates a pipeline with these entries, added one after the other.
    #[track_caller]
    pub fn with(flows: &[&str]) -> Self {
        let mut bed = Self::new();
        for flow in flows {
            bed.add(flow);
        }
        bed
    }

    pub fn wait(&mut self, milliseconds: u64) {
        self.now += Duration::from_millis(milliseconds);
    }

    /// Executes a flow mod in the text form of `ovs-ofctl`.
    #[track_caller]
    pub fn try_flow(&mut self, command: FlowModCommand, text: &str) -> Result<(), ErrorCode> {
        let flow_mod = FlowMod::parse(command, text).expect(text);
        self.try_flow_mod(&flow_mod)
    }

    pub fn try_flow_mod(&mut self, flow_mod: &FlowMod) -> Result<(), ErrorCode> {
        self.pipeline
            .flow_mod(flow_mod, self.now, &mut self.removed)
    }

    #[track_caller]
    pub fn flow(&mut self, command: FlowModCommand, text: &str) {
        self.try_flow(command, text).expect(text);
    }

    #[track_caller]
    pub fn add(&mut self, text: &str) {
        self.flow(FlowModCommand::Add, text);
    }

    /// Returns the error of an invalid add, and asserts that nothing has changed.
    #[track_caller]
    pub fn refused(&mut self, text: &str) -> ErrorCode {
        let before = self.dump();
        let code = self.try_flow(FlowModCommand::Add, text).expect_err(text);
        assert_eq!(self.dump(), before, "{text}");
        code
    }

    #[track_caller]
    pub fn try_group(&mut self, command: GroupModCommand, text: &str) -> Result<(), ErrorCode> {
        let group_mod = GroupMod::parse(command, text).expect(text);
        self.pipeline
            .group_mod(&group_mod, self.now, &mut self.removed)
    }

    #[track_caller]
    pub fn add_group(&mut self, text: &str) {
        self.try_group(GroupModCommand::Add, text).expect(text);
    }

    #[track_caller]
    pub fn try_meter(&mut self, command: MeterModCommand, text: &str) -> Result<(), ErrorCode> {
        let meter_mod = MeterMod::parse(command, text).expect(text);
        self.pipeline
            .meter_mod(&meter_mod, self.now, &mut self.removed)
    }

    #[track_caller]
    pub fn add_meter(&mut self, text: &str) {
        self.try_meter(MeterModCommand::Add, text).expect(text);
    }

    /// Sets a port's configuration and state.
    pub fn set_port(&mut self, number: u32, config: PortConfig, state: PortState) {
        self.pipeline.set_port(Port {
            config,
            state,
            ..port(number)
        });
    }

    /// Returns the output for a packet that [`IN`] receives.
    pub fn send(&self, frame: &[u8]) -> Recorder {
        let mut sink = Recorder::default();
        let packet = Packet::new(IN, frame);
        self.pipeline.process(packet, self.now, &mut sink);
        sink
    }

    /// Returns the output of a packet-out.
    #[track_caller]
    pub fn packet_out(&self, in_port: PortNo, frame: &[u8], actions: &str) -> Recorder {
        let mut sink = Recorder::default();
        let packet = Packet::new(in_port, frame);
        let actions = actions.parse::<Actions>().expect(actions).0;
        assert_eq!(self.pipeline.check_packet_out(&actions), Ok(()));
        let actions: Vec<Action> = actions.iter().collect();
        self.pipeline
            .packet_out(packet, &actions, self.now, &mut sink);
        sink
    }

    pub fn expire(&mut self) {
        self.pipeline.expire(self.now, &mut self.removed);
    }

    /// Returns all entries as text, with their counters.
    pub fn dump(&self) -> Vec<String> {
        self.dump_of(&FlowStatsRequest::default())
    }

    /// Returns the entries that a request selects as text, with their counters.
    #[track_caller]
    pub fn dump_of(&self, request: &FlowStatsRequest) -> Vec<String> {
        let entries = self.pipeline.flow_stats(request).expect("a good request");
        let stats = entries.iter().map(|entry| entry.to_stats(self.now));
        stats
            .map(|stats| {
                let flow = FlowMod {
                    table_id: stats.table_id,
                    cookie: stats.cookie,
                    priority: stats.priority,
                    idle_timeout: stats.idle_timeout,
                    hard_timeout: stats.hard_timeout,
                    flags: stats.flags,
                    match_: stats.match_,
                    instructions: stats.instructions,
                    ..FlowMod::default()
                };
                format!("{} packets: {flow}", stats.packet_count)
            })
            .collect()
    }
}

pub fn port(number: u32) -> Port {
    Port::new(PortNo(number), MacAddr::from_u64(number.into()), "port")
}

/// A TCP packet over IPv4 and Ethernet.
#[derive(Clone, Copy)]
pub struct Tcp {
    pub eth_src: u8,
    pub eth_dst: u8,
    pub dscp: u8,
    pub ttl: u8,
    pub ipv4_src: u8,
    pub ipv4_dst: u8,
    pub tcp_src: u16,
    pub tcp_dst: u16,
}

pub const TCP: Tcp = Tcp {
    eth_src: 1,
    eth_dst: 2,
    dscp: 0,
    ttl: 64,
    ipv4_src: 1,
    ipv4_dst: 2,
    tcp_src: 1000,
    tcp_dst: 80,
};

impl Tcp {
    /// Returns the frame: 54 bytes and six of padding.
    pub fn frame(self) -> Vec<u8> {
        let mut frame = vec![
            0,
            0,
            0,
            0,
            0,
            self.eth_dst,
            0,
            0,
            0,
            0,
            0,
            self.eth_src,
            8,
            0,
        ];
        frame.extend([0x45, self.dscp << 2, 0, 40, 0, 0, 0, 0, self.ttl, 6, 0, 0]);
        frame.extend([10, 0, 0, self.ipv4_src, 10, 0, 0, self.ipv4_dst]);
        frame.extend(self.tcp_src.to_be_bytes());
        frame.extend(self.tcp_dst.to_be_bytes());
        frame.extend([0, 0, 0, 0, 0, 0, 0, 0, 0x50, 0, 0, 0, 0, 0, 0, 0]);
        frame.extend([0; 6]);
        frame
    }
}

/// A packet for tests in which only ports and metadata matter.
pub fn any_frame() -> Vec<u8> {
    TCP.frame()
}

/// The output of a pipeline.
#[derive(Default)]
pub struct Recorder {
    pub sent: Vec<(PortNo, u32, Vec<u8>)>,
    pub packet_ins: Vec<(PacketInCause, Vec<u8>)>,
    pub normal: usize,
    pub steps: Vec<String>,
}

impl Recorder {
    /// Returns the ports that packets left by, in order.
    pub fn ports(&self) -> Vec<u32> {
        self.sent.iter().map(|(port, ..)| port.0).collect()
    }

    /// Returns the only packet that left by a port.
    #[track_caller]
    pub fn frame_at(&self, port: u32) -> &[u8] {
        let mut frames = self.sent.iter().filter(|(sent, ..)| sent.0 == port);
        let (_, _, frame) = frames.next().expect("a packet");
        assert!(frames.next().is_none(), "one packet at port {port}");
        frame
    }

    /// Returns the reasons of packets sent to the controller.
    pub fn reasons(&self) -> Vec<PacketInReason> {
        self.packet_ins
            .iter()
            .map(|(cause, _)| cause.reason)
            .collect()
    }

    /// Returns whether there was no output at all.
    pub fn is_dropped(&self) -> bool {
        self.sent.is_empty() && self.packet_ins.is_empty() && self.normal == 0
    }
}

impl Sink for Recorder {
    fn transmit(&mut self, port: PortNo, packet: &Packet) {
        let frame = packet.frame().to_vec();
        self.sent.push((port, packet.queue_id, frame));
    }

    fn packet_in(&mut self, packet: &Packet, cause: PacketInCause) {
        self.packet_ins.push((cause, packet.frame().to_vec()));
    }

    fn normal(&mut self, _: &Packet) {
        self.normal += 1;
    }

    fn step(&mut self, step: Step<'_>) {
        self.steps.push(match step {
            Step::Table {
                table_id, entry, ..
            } => {
                let priority = entry.map(|entry| entry.priority);
                format!("table {table_id} {priority:?}")
            }
            Step::Meter { meter_id, verdict } => format!("meter {meter_id} {verdict:?}"),
            Step::Action { action, .. } => format!("{action}"),
            Step::ActionSet(set) => format!("set of {}", set.actions().len()),
            Step::Bucket { group_id, .. } => format!("bucket of {group_id}"),
            other => format!("{other:?}"),
        });
    }
}
