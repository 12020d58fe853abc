//! Tests of changes that the compiled form follows only on request.

use std::sync::RwLock;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use urtica_pipeline::{
    Burst, CompileConfig, Packet, PacketInCause, Pipeline, PipelineConfig, Reader, RemovedEntry,
    Sink, Verdict,
};
use urtica_wire::{FlowMod, FlowModCommand, Port, PortNo};

#[derive(Default)]
struct Sent(Vec<PortNo>);

impl Sink for Sent {
    fn transmit(&mut self, port: PortNo, _packet: &Packet) {
        self.0.push(port);
    }

    fn packet_in(&mut self, _packet: &Packet, _cause: PacketInCause) {}

    fn normal(&mut self, _packet: &Packet) {}
}

fn change(pipeline: &mut Pipeline, command: FlowModCommand, text: &str) -> Vec<RemovedEntry> {
    let flow_mod = FlowMod::parse(command, text).expect(text);
    let mut removed = Vec::new();
    let changed = pipeline.flow_mod(&flow_mod, Duration::ZERO, &mut removed);
    changed.expect(text);
    removed
}

fn compiled_pipeline() -> (Pipeline, Reader) {
    let mut pipeline = Pipeline::new(PipelineConfig::default());
    for number in 1..=3 {
        let mac = urtica_wire::MacAddr::from_u64(number.into());
        pipeline.set_port(Port::new(PortNo(number), mac, "port"));
    }
    let compiled = pipeline.compile(CompileConfig::default());
    let reader = compiled.expect("there is memory").reader();
    (pipeline, reader)
}

/// Returns the compiled form's verdict on a frame.
fn verdict(reader: &mut Reader) -> Verdict {
    let mut burst = Burst::new();
    assert!(burst.push(PortNo(1), &[0; 60]));
    reader.process(&mut burst, Duration::ZERO);
    burst.iter().next().expect("there is one").verdict()
}

/// Returns the ports to which the plain form sends it.
fn plainly(pipeline: &Pipeline) -> Vec<PortNo> {
    let mut sent = Sent::default();
    let packet = Packet::new(PortNo(1), &[0; 60]);
    pipeline.process(packet, Duration::ZERO, &mut sent);
    sent.0
}

#[test]
fn the_plain_form_changes_at_once_and_the_compiled_one_on_request() {
    let (mut pipeline, mut reader) = compiled_pipeline();
    change(&mut pipeline, FlowModCommand::Add, "actions=output:2");
    assert_eq!(verdict(&mut reader), Verdict::Output(PortNo(2)));
    pipeline.defer_following(true);
    change(&mut pipeline, FlowModCommand::Modify, "actions=output:3");
    assert_eq!(plainly(&pipeline), [PortNo(3)]);
    assert_eq!(verdict(&mut reader), Verdict::Output(PortNo(2)));
    pipeline.follow();
    assert_eq!(verdict(&mut reader), Verdict::Output(PortNo(3)));
    change(&mut pipeline, FlowModCommand::Modify, "actions=output:2");
    pipeline.defer_following(false);
    assert_eq!(verdict(&mut reader), Verdict::Output(PortNo(2)));
}

#[test]
fn counts_of_both_forms_are_kept_during_a_change() {
    let (mut pipeline, mut reader) = compiled_pipeline();
    pipeline.defer_following(true);
    let add = "send_flow_rem,actions=output:2";
    change(&mut pipeline, FlowModCommand::Add, add);
    pipeline.follow();
    for _ in 0..100 {
        verdict(&mut reader);
        // An equal entry continues the counts; then another one replaces it.
        change(&mut pipeline, FlowModCommand::Add, add);
        verdict(&mut reader);
        plainly(&pipeline);
        pipeline.follow();
        plainly(&pipeline);
    }
    let removed = change(&mut pipeline, FlowModCommand::Delete, "");
    verdict(&mut reader);
    pipeline.follow();
    let told = removed[0].to_wire(Duration::ZERO);
    assert_eq!(told.packet_count, 401);
}

#[test]
fn a_change_also_follows_earlier_ones() {
    let (mut pipeline, mut reader) = compiled_pipeline();
    pipeline.defer_following(true);
    for number in 0..100 {
        let text = format!("dl_dst=02:00:00:00:00:{number:02x},actions=output:2");
        change(&mut pipeline, FlowModCommand::Add, &text);
    }
    for number in 0..100 {
        let text = format!("dl_dst=02:00:00:00:00:{number:02x}");
        change(&mut pipeline, FlowModCommand::Delete, &text);
    }
    change(
        &mut pipeline,
        FlowModCommand::Add,
        "priority=1,actions=output:3",
    );
    pipeline.follow();
    assert_eq!(verdict(&mut reader), Verdict::Output(PortNo(3)));
    assert_eq!(plainly(&pipeline), [PortNo(3)]);
}

/// One thread changes tables, one processes packets in the compiled form, and one in the plain form.
#[test]
fn readers_continue_while_changes_are_followed() {
    const CHANGES: u64 = 300;
    let (mut pipeline, mut reader) = compiled_pipeline();
    pipeline.defer_following(true);
    let entry = "priority=9,send_flow_rem,actions=output:2";
    change(&mut pipeline, FlowModCommand::Add, entry);
    pipeline.follow();
    let pipeline = RwLock::new(pipeline);
    let is_over = AtomicBool::new(false);
    let packets = std::thread::scope(|scope| {
        let compiled = scope.spawn(|| {
            let mut count = 0;
            while !is_over.load(Relaxed) {
                assert_eq!(verdict(&mut reader), Verdict::Output(PortNo(2)));
                count += 1;
            }
            count
        });
        let plain = scope.spawn(|| {
            let mut count = 0;
            while !is_over.load(Relaxed) {
                assert_eq!(plainly(&pipeline.read().unwrap()), [PortNo(2)]);
                count += 1;
            }
            count
        });
        for number in 0..CHANGES {
            let other = format!("priority=8,dl_src=02:00:00:00:00:{:02x}", number % 40);
            let replaced = [
                (FlowModCommand::Add, entry.to_owned()),
                (FlowModCommand::Add, format!("{other},actions=output:3")),
                (FlowModCommand::Delete, other),
            ];
            for (command, text) in replaced {
                change(&mut pipeline.write().unwrap(), command, &text);
                pipeline.read().unwrap().follow();
            }
        }
        is_over.store(true, Relaxed);
        let ended = [compiled, plain].map(|thread| thread.join().expect("no panic"));
        ended.iter().sum::<u64>()
    });
    let mut pipeline = pipeline.into_inner().unwrap();
    let removed = change(&mut pipeline, FlowModCommand::Delete, "");
    pipeline.follow();
    assert_eq!(removed[0].to_wire(Duration::ZERO).packet_count, packets);
}
