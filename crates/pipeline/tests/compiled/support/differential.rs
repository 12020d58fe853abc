//! A comparison of compiled pipelines with a plain one.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use urtica_pipeline::{
    Backend, Burst, CompileConfig, Compiled, Packet, PacketInCause, Pipeline, PipelineConfig,
    Reader, RemovedEntry, Sink, Step, TemplateKind, Verdict,
};
use urtica_wire::{
    ErrorCode, FlowMod, FlowStats, GROUP_ALL, GroupMod, GroupStats, METER_ALL, MacAddr, MeterMod,
    MeterStats, Port, PortConfig, PortNo, TableStats,
};

/// All backends.
pub const BACKENDS: &[Backend] = &[Backend::Interpreter, Backend::MachineCode];

/// The configuration of a comparison.
#[derive(Clone, Copy, Debug)]
pub struct ComparisonConfig {
    pub n_tables: u8,
    pub max_entries: u32,
    /// The limit for each compiled pipeline.
    pub max_bytes: usize,
    /// Whether packets that no entry matches are sent to the controller.
    pub misses_to_controller: bool,
    pub plans_beside: PlansBeside,
}

/// The compiled pipelines that search for better forms in a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlansBeside {
    None,
    /// Pipelines in which several threads may count.
    Shared,
    All,
}

impl Default for ComparisonConfig {
    fn default() -> Self {
        Self {
            n_tables: 4,
            max_entries: 1 << 20,
            max_bytes: 64 << 20,
            misses_to_controller: false,
            plans_beside: PlansBeside::None,
        }
    }
}

/// The outcome of one packet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    pub sent: Vec<(PortNo, u32, Vec<u8>)>,
    pub packet_ins: Vec<(PacketInCause, Vec<u8>)>,
    pub normal: Vec<(u32, Vec<u8>)>,
}

impl Sink for Outcome {
    fn transmit(&mut self, port: PortNo, packet: &Packet) {
        self.sent
            .push((port, packet.queue_id, packet.frame().to_vec()));
    }

    fn packet_in(&mut self, packet: &Packet, cause: PacketInCause) {
        self.packet_ins.push((cause, packet.frame().to_vec()));
    }

    fn normal(&mut self, packet: &Packet) {
        self.normal.push((packet.queue_id, packet.frame().to_vec()));
    }
}

/// A sink that records the plain form's outcome, and how a compiled pipeline searches the tables involved.
struct Recorder<'a> {
    outcome: Outcome,
    compiled: &'a Pipeline,
    looked_up: &'a mut BTreeMap<Vec<TemplateKind>, u64>,
}

impl Sink for Recorder<'_> {
    fn transmit(&mut self, port: PortNo, packet: &Packet) {
        self.outcome.transmit(port, packet);
    }

    fn packet_in(&mut self, packet: &Packet, cause: PacketInCause) {
        self.outcome.packet_in(packet, cause);
    }

    fn normal(&mut self, packet: &Packet) {
        self.outcome.normal(packet);
    }

    fn step(&mut self, step: Step<'_>) {
        if let Step::Table {
            table_id, packet, ..
        } = step
        {
            let templates = self.compiled.templates(table_id, packet);
            *self.looked_up.entry(templates).or_default() += 1;
        }
    }
}

/// A pipeline in its compiled form.
pub struct Subject {
    config: CompileConfig,
    pub pipeline: Pipeline,
    compiled: Arc<Compiled>,
    reader: Reader,
    burst: Burst,
}

/// The plain pipeline, and the compiled ones that are compared with it.
pub struct Comparison {
    pub plain: Pipeline,
    pub subjects: Vec<Subject>,
    pub now: Duration,
    /// Number of packets that reached a table of each template; for a cut table, with the template of the packet's sub-table.
    pub looked_up: BTreeMap<Vec<TemplateKind>, u64>,
    /// Number of packets compared.
    pub compared: u64,
    /// Number of packets that the compiled form left to the plain form.
    pub punted: u64,
}

/// All statistics.
type Counters = (
    Vec<FlowStats<'static>>,
    Vec<TableStats>,
    Vec<GroupStats<'static>>,
    Vec<MeterStats<'static>>,
);

fn pipeline(config: ComparisonConfig) -> Pipeline {
    let mut pipeline = Pipeline::new(PipelineConfig {
        n_tables: config.n_tables,
        max_entries: config.max_entries,
        ..PipelineConfig::default()
    });
    pipeline.set_misses_to_controller(config.misses_to_controller);
    for number in 1..=4 {
        pipeline.set_port(port(number, PortConfig::empty()));
    }
    pipeline.set_port(port(PortNo::LOCAL.0, PortConfig::empty()));
    pipeline
}

fn port(number: u32, config: PortConfig) -> Port {
    let mut port = Port::new(PortNo(number), MacAddr::from_u64(number.into()), "port");
    port.config = config;
    port
}

impl Subject {
    fn new(config: ComparisonConfig, backend: Backend, is_shared: bool) -> Self {
        let mut pipeline = pipeline(config);
        let config = CompileConfig {
            backend,
            is_shared,
            max_bytes: config.max_bytes,
            plans_beside: match config.plans_beside {
                PlansBeside::None => false,
                PlansBeside::Shared => is_shared,
                PlansBeside::All => true,
            },
            ..CompileConfig::default()
        };
        let compiled = pipeline.compile(config).expect("there is memory");
        Self {
            config,
            pipeline,
            reader: compiled.reader(),
            compiled,
            burst: Burst::new(),
        }
    }

    /// Returns the outcomes of frames that arrive together, and the number of frames that used the plain form.
    fn process(&mut self, frames: &[(PortNo, Vec<u8>)], now: Duration) -> (Vec<Outcome>, u64) {
        self.burst.clear();
        let deaf = PortConfig::PORT_DOWN | PortConfig::NO_RECV;
        let is_in_burst: Vec<_> = frames
            .iter()
            .map(|(in_port, frame)| {
                let port = self.pipeline.port(*in_port);
                !port.is_some_and(|port| port.config.intersects(deaf))
                    && self.burst.push(*in_port, frame)
            })
            .collect();
        self.reader.process(&mut self.burst, now);
        let mut punted = 0;
        let mut processed = self.burst.iter();
        let outcomes = frames
            .iter()
            .zip(is_in_burst)
            .map(|((in_port, frame), is_in_burst)| {
                let mut outcome = Outcome::default();
                let frame = match is_in_burst {
                    true => processed.next().expect("each frame comes out"),
                    false => {
                        let packet = Packet::new(*in_port, frame);
                        self.pipeline.process(packet, now, &mut outcome);
                        return outcome;
                    }
                };
                for sent in frame.sent() {
                    self.pipeline.send(sent, now, &mut outcome);
                }
                let mute = PortConfig::PORT_DOWN | PortConfig::NO_FWD;
                match frame.verdict() {
                    Verdict::Output(port) => {
                        let found = self.pipeline.port(port);
                        if found.is_some_and(|port| !port.config.intersects(mute)) {
                            outcome.sent.push((port, 0, frame.bytes().to_vec()));
                        }
                    }
                    Verdict::Drop => {}
                    Verdict::Punt => {
                        punted += 1;
                        self.pipeline.resume(frame, now, &mut outcome);
                    }
                }
                outcome
            })
            .collect();
        (outcomes, punted)
    }
}

impl Comparison {
    pub fn new(config: ComparisonConfig) -> Self {
        let subject = |&backend: &Backend| {
            [false, true].map(|is_shared| Subject::new(config, backend, is_shared))
        };
        Self {
            plain: pipeline(config),
            subjects: BACKENDS.iter().flat_map(subject).collect(),
            now: Duration::from_secs(1),
            looked_up: BTreeMap::new(),
            compared: 0,
            punted: 0,
        }
    }

    /// Sets whether packets that match no entry are left to the plain form.
    pub fn set_misses_punt(&self, misses_punt: bool) {
        for subject in &self.subjects {
            subject.compiled.set_misses_punt(misses_punt);
        }
    }

    /// Compiles all pipelines again.
    pub fn recompile(&mut self) {
        for subject in &mut self.subjects {
            let compiled = subject.pipeline.compile(subject.config);
            subject.compiled = compiled.expect("there is memory");
            subject.reader = subject.compiled.reader();
        }
    }

    /// Makes a change to all pipelines; results and removed entries must be equal.
    #[track_caller]
    fn change<T: std::fmt::Debug + PartialEq>(
        &mut self,
        change: impl Fn(&mut Pipeline, Duration, &mut Vec<RemovedEntry>) -> T,
    ) -> T {
        let now = self.now;
        let made = |pipeline: &mut Pipeline| {
            let mut removed = Vec::new();
            let result = change(pipeline, now, &mut removed);
            let removed: Vec<_> = removed.iter().map(|removed| removed.to_wire(now)).collect();
            (result, removed)
        };
        let expected = made(&mut self.plain);
        for subject in &mut self.subjects {
            let config = subject.config;
            assert_eq!(made(&mut subject.pipeline), expected, "{config:?}");
        }
        expected.0
    }

    #[track_caller]
    pub fn flow_mod(&mut self, flow_mod: &FlowMod) -> Result<(), ErrorCode> {
        self.change(|pipeline, now, removed| pipeline.flow_mod(flow_mod, now, removed))
    }

    #[track_caller]
    pub fn flow_mod_of10(&mut self, flow_mod: &FlowMod) -> Result<(), ErrorCode> {
        self.change(|pipeline, now, removed| pipeline.flow_mod_of10(flow_mod, now, removed))
    }

    #[track_caller]
    pub fn group_mod(&mut self, group_mod: &GroupMod) {
        let _ = self.change(|pipeline, now, removed| pipeline.group_mod(group_mod, now, removed));
    }

    #[track_caller]
    pub fn meter_mod(&mut self, meter_mod: &MeterMod) {
        let _ = self.change(|pipeline, now, removed| pipeline.meter_mod(meter_mod, now, removed));
    }

    #[track_caller]
    pub fn set_port(&mut self, number: u32, config: PortConfig) {
        self.change(|pipeline, _, _| pipeline.set_port(port(number, config)));
    }

    /// Adds a queue to a port.
    #[track_caller]
    pub fn set_queue(&mut self, number: u32, queue_id: u32) {
        self.change(|pipeline, _, _| pipeline.set_queues(PortNo(number), [queue_id]));
    }

    /// Lets time pass.
    #[track_caller]
    pub fn wait(&mut self, time: Duration) {
        self.now += time;
        self.change(|pipeline, now, removed| pipeline.expire(now, removed));
    }

    /// Sends frames together, and compares the outcome of each.
    #[track_caller]
    pub fn send(&mut self, frames: &[(PortNo, Vec<u8>)]) {
        let templates: Vec<_> = (0..self.plain.config().n_tables)
            .map(|table_id| self.subjects[0].pipeline.template(table_id))
            .collect();
        let mut expected = Vec::with_capacity(frames.len());
        for (in_port, frame) in frames {
            let mut recorder = Recorder {
                outcome: Outcome::default(),
                compiled: &self.subjects[0].pipeline,
                looked_up: &mut self.looked_up,
            };
            let packet = Packet::new(*in_port, frame);
            self.plain.process(packet, self.now, &mut recorder);
            expected.push(recorder.outcome);
        }
        for subject in &mut self.subjects {
            let (outcomes, punted) = subject.process(frames, self.now);
            self.punted += punted;
            self.compared += frames.len() as u64;
            for ((outcome, expected), frame) in outcomes.iter().zip(&expected).zip(frames) {
                let config = subject.config;
                assert_eq!(outcome, expected, "{config:?} {frame:02x?} {templates:?}");
            }
        }
    }

    /// Compares all counters.
    #[track_caller]
    pub fn compare_counters(&self) {
        let expected = self.counters(&self.plain);
        for subject in &self.subjects {
            let counters = self.counters(&subject.pipeline);
            let config = subject.config;
            for (counted, expected) in counters.0.iter().zip(&expected.0) {
                assert_eq!(counted, expected, "{config:?}");
            }
            assert_eq!(counters.0.len(), expected.0.len(), "{config:?}");
            assert_eq!(counters.1, expected.1, "{config:?}");
            assert_eq!(counters.2, expected.2, "{config:?}");
            assert_eq!(counters.3, expected.3, "{config:?}");
        }
    }

    fn counters(&self, pipeline: &Pipeline) -> Counters {
        let entries = pipeline.tables().iter().flat_map(|table| table.entries());
        let meters = pipeline.meter_stats(METER_ALL, self.now);
        (
            entries.map(|entry| entry.to_stats(self.now)).collect(),
            pipeline.table_stats().collect(),
            pipeline.group_stats(GROUP_ALL, self.now),
            meters.expect("all meters can be asked for"),
        )
    }
}
