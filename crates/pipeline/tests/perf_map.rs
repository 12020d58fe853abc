//! Tests the names of machine code in the file that `perf` reads.
#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

use std::time::Duration;
use urtica_pipeline::{CompileConfig, Pipeline, PipelineConfig, write_perf_map};
use urtica_wire::{FlowMod, FlowModCommand, MacAddr, Port, PortNo};

#[test]
fn code_is_listed_with_address_and_name() {
    write_perf_map().unwrap();
    let mut pipeline = Pipeline::new(PipelineConfig::default());
    let port = Port::new(PortNo(1), MacAddr::from_u64(1), "port");
    pipeline.set_port(port);
    pipeline.compile(CompileConfig::default()).unwrap();
    for host in 0..100 {
        let text = format!("dl_dst=02:00:00:00:00:{host:02x},actions=output:1");
        let flow_mod = FlowMod::parse(FlowModCommand::Add, &text).unwrap();
        let added = pipeline.flow_mod(&flow_mod, Duration::ZERO, &mut Vec::new());
        added.unwrap();
    }
    let path = format!("/tmp/perf-{}.map", std::process::id());
    let map = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let mut pieces: Vec<(usize, usize, &str)> = map
        .lines()
        .map(|line| {
            let mut words = line.splitn(3, ' ');
            let mut number = || usize::from_str_radix(words.next().unwrap(), 16).unwrap();
            (number(), number(), words.next().unwrap())
        })
        .collect();
    for kind in [
        "urtica plain form",
        "urtica direct code",
        "urtica compound hash",
    ] {
        assert!(
            pieces.iter().any(|&(.., name)| name == kind),
            "{kind}: {map}"
        );
    }
    assert!(
        pieces
            .iter()
            .any(|(.., name)| name.starts_with("urtica actions"))
    );
    assert!(
        pieces.len() < 50,
        "what entries share is listed once: {map}"
    );
    pieces.sort_unstable();
    assert!(pieces.iter().all(|&(start, len, _)| start > 0 && len > 0));
}
