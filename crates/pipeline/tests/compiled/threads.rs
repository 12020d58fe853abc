//! One thread changes tables while two process packets: each packet sees the tables either as before or as after a change,
//! and no packet is lost or counted twice.

use crate::support::differential::BACKENDS;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;
use urtica_pipeline::{
    Backend, Burst, CompileConfig, Compiled, Pipeline, PipelineConfig, RemovedEntry, TemplateKind,
    Verdict,
};
use urtica_wire::{
    Action, Field, FlowMod, FlowModCommand, FlowModFlags, Instruction, MacAddr, Match, OxmField,
    Port, PortNo,
};

const READERS: usize = 2;

/// Number of versions of the entry under test.
const VERSIONS: u64 = 70;

/// The cookie of entries that are added and removed in bulk.
const EXTRA: u64 = 7;

/// The fields that the entries of a table match.
#[derive(Clone, Copy)]
enum Kind {
    EthDst,
    Ipv4Dst,
    /// The Ethernet destination, and some of the bits of the source, which are 0. These bits differ for each destination.
    Both,
}

/// The other changes, besides those of the entry under test, which determine the table's templates.
#[derive(Clone, Copy)]
struct Scene {
    field: Kind,
    /// Number of entries that are added and removed; with some thousands or more, packets pause for them.
    extras: u64,
}

impl Scene {
    /// Returns the match of a host or network. No packet matches those with numbers from 3 on.
    fn to(self, number: u64) -> Match<'static> {
        match self.field {
            Kind::EthDst => Match::from(vec![Field::exact(OxmField::EthDst, number.into())]),
            Kind::Both => {
                let destination = if number < 10 {
                    number
                } else {
                    16 + number % 200
                };
                let mask = 0x01_0101 << ((number + number / 200) % 16);
                Match::from(vec![
                    Field::exact(OxmField::EthDst, destination.into()),
                    Field::masked(OxmField::EthSrc, 0, mask),
                ])
            }
            Kind::Ipv4Dst => {
                let network = 10_u128 << 24 | u128::from(number) << 8;
                let mask = 0xffff_ff00;
                Match::from(vec![
                    Field::exact(OxmField::EthType, 0x0800),
                    Field::masked(OxmField::Ipv4Dst, network, mask),
                ])
            }
        }
    }

    /// A match on other fields, which no packet matches.
    fn odd(self) -> (u16, Match<'static>) {
        let fields = match self.field {
            Kind::EthDst | Kind::Both => {
                vec![Field::masked(OxmField::EthSrc, 0xff << 40, 0xff << 40)]
            }
            Kind::Ipv4Dst => vec![
                Field::exact(OxmField::EthType, 0x0800),
                Field::masked(OxmField::Ipv4Dst, 11 << 24, 0xff00_0000),
            ],
        };
        (200, Match::from(fields))
    }

    fn frame(self, number: u8) -> Vec<u8> {
        let mut frame = vec![0, 0, 0, 0, 0, number, 0, 0, 0, 0, 0, 0, 8, 0];
        frame.extend([0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1]);
        frame.extend([10, 0, number, 9]);
        frame.resize(60, 0);
        frame
    }
}

/// The thread that makes changes.
struct Writer {
    scene: Scene,
    pipeline: Pipeline,
    /// The templates that the table has had.
    templates: BTreeSet<TemplateKind>,
    removed: Vec<RemovedEntry>,
    /// The version whose change has started, and the version whose change is complete.
    started: Arc<AtomicU64>,
    finished: Arc<AtomicU64>,
}

/// The counts of a reading thread.
#[derive(Default)]
struct Seen {
    steady: u64,
    changing: u64,
}

/// The packet's source identifies the version of the entry that it found.
fn version(version: u64) -> Vec<Action<'static>> {
    let tag = Action::SetField(Field::exact(OxmField::EthSrc, version.into()));
    vec![tag, Action::output(PortNo(1))]
}

impl Writer {
    fn change(&mut self, flow_mod: &FlowMod) {
        let result = self
            .pipeline
            .flow_mod(flow_mod, Duration::from_secs(1), &mut self.removed);
        result.expect("the flow mod is right");
        self.templates.extend(self.pipeline.template(0));
    }

    fn make(&mut self, command: FlowModCommand, entry: (u16, Match<'static>), number: u64) {
        let (priority, match_) = entry;
        let flow_mod = FlowMod {
            command,
            priority,
            match_,
            flags: FlowModFlags::SEND_FLOW_REM,
            instructions: vec![Instruction::apply(version(number))].into(),
            ..FlowMod::default()
        };
        self.change(&flow_mod);
    }

    fn entry_under_test(&self) -> (u16, Match<'static>) {
        (100, self.scene.to(2))
    }

    /// Adds the entry that never changes, and the entry for packets that match no other.
    fn prepare(&mut self) {
        self.make(FlowModCommand::Add, (100, self.scene.to(1)), 0);
        self.make(FlowModCommand::Add, (0, Match::any()), 0);
        self.make(FlowModCommand::Add, self.entry_under_test(), 0);
    }

    /// Replaces each version by the next in one change, and makes other changes that packets must not notice.
    fn run(&mut self) {
        use FlowModCommand::*;
        let mut next = 1;
        while next < VERSIONS {
            self.flip(next);
            let changing = self.entry_under_test();
            match next % 4 {
                0 | 1 => self.become_version(next, |writer| {
                    writer.make(ModifyStrict, changing, next);
                }),
                2 => self.become_version(next, |writer| writer.make(Add, changing, next)),
                _ => {
                    self.make(ModifyStrict, (0, Match::any()), next);
                    let gone = changing.clone();
                    self.become_version(next, |writer| writer.make(DeleteStrict, gone, next));
                    next += 1;
                    self.become_version(next, |writer| writer.make(Add, changing, next));
                }
            }
            next += 1;
        }
    }

    fn become_version(&mut self, number: u64, change: impl FnOnce(&mut Self)) {
        self.started.store(number, SeqCst);
        change(self);
        self.finished.store(number, SeqCst);
    }

    /// Makes a change that may change the template.
    fn flip(&mut self, round: u64) {
        use FlowModCommand::*;
        match round % 32 {
            1 => self.add_extras(),
            25 => self.change(&FlowMod {
                command: Delete,
                cookie: EXTRA,
                cookie_mask: u64::MAX,
                ..FlowMod::default()
            }),
            number if number % 6 == 4 => self.make(Add, self.scene.odd(), 0),
            number if number % 6 == 0 => self.make(DeleteStrict, self.scene.odd(), 0),
            number => {
                let strict = if number % 2 == 0 { Add } else { DeleteStrict };
                self.make(strict, (100, self.scene.to(3)), 0);
            }
        }
    }

    fn add_extras(&mut self) {
        for number in 0..self.scene.extras {
            self.change(&FlowMod {
                priority: 100,
                cookie: EXTRA,
                match_: self.scene.to(10 + number),
                instructions: vec![Instruction::apply(version(0))].into(),
                ..FlowMod::default()
            });
        }
    }

    /// Returns the number of packets counted by all entries, existing or removed.
    fn counted(&self, is_wanted: impl Fn(&Match) -> bool) -> u64 {
        let entries = self.pipeline.tables()[0].entries();
        let gone = self.removed.iter().map(|removed| &removed.entry);
        let wanted = entries
            .chain(gone)
            .filter(|entry| is_wanted(&entry.match_.to_wire()));
        wanted.map(|entry| entry.counted().packets).sum()
    }
}

/// Sends packets until stopped.
fn read(
    compiled: &Arc<Compiled>,
    scene: Scene,
    stop: &AtomicBool,
    versions: (&AtomicU64, &AtomicU64),
) -> Seen {
    let (started, finished) = versions;
    let mut reader = compiled.reader();
    let mut burst = Burst::new();
    let mut seen = Seen::default();
    let frames = [1, 2].map(|number| scene.frame(number));
    while !stop.load(SeqCst) {
        burst.clear();
        for round in 0..32 {
            assert!(burst.push(PortNo(2), &frames[round % 2]));
        }
        let earliest = finished.load(SeqCst);
        reader.process(&mut burst, Duration::from_secs(1));
        let latest = started.load(SeqCst);
        for (round, frame) in burst.iter().enumerate() {
            assert_eq!(frame.verdict(), Verdict::Output(PortNo(1)));
            let mut tag = [0; 8];
            tag[2..].copy_from_slice(&frame.bytes()[6..12]);
            let tag = u64::from_be_bytes(tag);
            match round % 2 {
                0 => assert_eq!(tag, 0, "the entry that is never touched"),
                _ => assert!(
                    (earliest..=latest).contains(&tag),
                    "version {tag}, not {earliest} to {latest}"
                ),
            }
        }
        // The changing thread needs a processor, too.
        std::thread::yield_now();
        seen.steady += 16;
        seen.changing += 16;
    }
    seen
}

fn play(backend: Backend, scene: Scene) {
    let mut pipeline = Pipeline::new(PipelineConfig {
        n_tables: 1,
        ..PipelineConfig::default()
    });
    for number in 1..=2 {
        let mac = MacAddr::from_u64(number.into());
        pipeline.set_port(Port::new(PortNo(number), mac, "port"));
    }
    let config = CompileConfig {
        backend,
        is_shared: true,
        max_bytes: 64 << 20,
        ..CompileConfig::default()
    };
    let compiled = pipeline.compile(config).expect("there is memory");
    let bytes_before = pipeline.compiled_bytes();
    let mut writer = Writer {
        scene,
        pipeline,
        templates: BTreeSet::new(),
        removed: Vec::new(),
        started: Arc::default(),
        finished: Arc::default(),
    };
    writer.prepare();
    let stop = AtomicBool::new(false);
    let (started, finished) = (writer.started.clone(), writer.finished.clone());
    let seen: Vec<Seen> = std::thread::scope(|scope| {
        let reader = || read(&compiled, scene, &stop, (&started, &finished));
        let readers: Vec<_> = (0..READERS).map(|_| scope.spawn(reader)).collect();
        writer.run();
        stop.store(true, SeqCst);
        readers
            .into_iter()
            .map(|reader| reader.join().expect("a reader saw what it should"))
            .collect()
    });
    let is_cut = writer.templates.contains(&TemplateKind::Decomposition);
    assert_eq!(is_cut, matches!(scene.field, Kind::Both));
    // A change frees the memory that the readers no longer use.
    writer.make(FlowModCommand::Add, (0, Match::any()), 0);
    let steady = writer.scene.to(1);
    let all: u64 = seen.iter().map(|seen| seen.steady).sum();
    assert_eq!(writer.counted(|match_| *match_ == steady), all);
    let all: u64 = seen.iter().map(|seen| seen.changing).sum();
    assert_eq!(writer.counted(|match_| *match_ != steady), all);
    let stats = writer.pipeline.table_stats().next().expect("a table");
    assert_eq!(
        (stats.lookup_count, stats.matched_count),
        (2 * all, 2 * all)
    );
    writer.change(&FlowMod {
        command: FlowModCommand::Delete,
        ..FlowMod::default()
    });
    assert_eq!(writer.pipeline.compiled_bytes(), bytes_before);
}

#[test]
fn concurrent_packets_use_the_old_or_the_new_tables() {
    for &backend in BACKENDS {
        for field in [Kind::EthDst, Kind::Ipv4Dst, Kind::Both] {
            for extras in [20, 4500] {
                play(backend, Scene { field, extras });
            }
        }
    }
}
