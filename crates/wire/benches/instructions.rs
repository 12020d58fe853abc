//! The instructions of a flow mod of five fields and two actions, as a control program builds and sends it.
//!
//! Callgrind counts them (`valgrind` must be installed) in a short run and in a longer one, so that the set-up cancels.
//! `cargo bench -p urtica-wire --bench instructions`, with a part of a name to select cases; under `cargo test` each runs
//! briefly. The exact writer, which copies a template, is the lower bound.

#[path = "support/callgrind.rs"]
mod callgrind;

use std::hint::black_box;
use std::net::Ipv4Addr;
use urtica_wire::{
    Action, EntryOptions, EtherType, FlowMod, Instruction, IpProtocol, List, MacAddr, Match,
    Message, PortNo, Version,
};

/// The number of rounds of the shorter run; the longer one has three times as many.
const ROUNDS: u32 = 1000;

/// A case: its name, and the function that runs it `rounds` times.
type Case = (&'static str, fn(Version, u32));

const CASES: [Case; 6] = [
    ("build a match", |_, rounds| {
        repeat(rounds, |number, _| {
            black_box(match_(number));
        });
    }),
    ("build, vectors", |_, rounds| {
        repeat(rounds, |number, _| {
            black_box(flow_mod(number, vectors(number)));
        });
    }),
    ("build and write, vectors", |version, rounds| {
        repeat(rounds, |number, out| {
            write(flow_mod(number, vectors(number)), version, out);
        });
    }),
    ("build and write, arrays", |version, rounds| {
        repeat(rounds, |number, out| {
            let actions = actions(number);
            let instructions = [Instruction::apply(&actions)];
            write(flow_mod(number, List::from(&instructions)), version, out);
        });
    }),
    ("write", |version, rounds| {
        let message = Message::FlowMod(flow_mod(1, vectors(1)));
        repeat(rounds, |number, out| {
            let written = black_box(&message).encode(version, number, out);
            written.expect("both versions have it");
        });
    }),
    ("read", |version, rounds| {
        let mut frame = Vec::new();
        write(flow_mod(1, vectors(1)), version, &mut frame);
        repeat(rounds, |_, _| {
            // Borrowed, because the cost of moving the result would count, too.
            assert!(black_box(&Message::decode(black_box(&frame))).is_ok());
        });
    }),
];

fn repeat(rounds: u32, mut case: impl FnMut(u32, &mut Vec<u8>)) {
    let mut out = Vec::with_capacity(4096);
    for number in 0..rounds {
        out.clear();
        case(black_box(number), &mut out);
    }
}

fn match_(number: u32) -> Match<'static> {
    Match::any()
        .in_port(PortNo(1))
        .eth_type(EtherType::IPV4)
        .ip_proto(IpProtocol::TCP)
        .ipv4_dst(Ipv4Addr::from_bits(number))
        .tcp_dst(80)
}

fn actions(number: u32) -> [Action<'static>; 2] {
    let next_hop = MacAddr::new([2, 0, 0, 0, 0, number as u8]);
    [Action::set_eth_dst(next_hop), Action::output(PortNo(2))]
}

fn vectors(number: u32) -> List<'static, Instruction<'static>> {
    List::from(vec![Instruction::apply(actions(number).to_vec())])
}

fn flow_mod<'a>(number: u32, instructions: List<'a, Instruction<'a>>) -> FlowMod<'a> {
    FlowMod {
        match_: match_(number),
        instructions,
        ..EntryOptions::idle(5).flow_mod()
    }
}

fn write(flow_mod: FlowMod, version: Version, out: &mut Vec<u8>) {
    let written = Message::FlowMod(flow_mod).encode(version, 1, out);
    written.expect("both versions have it");
}

/// Returns the instructions of a round, if they can be counted.
fn per_round(version: Version, name: &str) -> Option<f64> {
    let count = |rounds: u32| {
        callgrind::instructions(&["--run", &version.to_string(), name, &rounds.to_string()])
    };
    let (few, many) = (count(ROUNDS)?, count(3 * ROUNDS)?);
    Some((many - few) as f64 / f64::from(2 * ROUNDS))
}

fn measure(wanted: &str) {
    for version in Version::ALL {
        println!("instructions for each flow mod, OpenFlow {version}");
        for (name, _) in CASES.iter().filter(|case| case.0.contains(wanted)) {
            match per_round(version, name) {
                Some(count) => println!("  {name:<26} {count:>7.1}"),
                None => return println!("  cannot count: valgrind is not installed"),
            }
        }
    }
}

fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let case = |name: &str| CASES.iter().find(|case| case.0 == name);
    match &arguments[..] {
        [flag, version, name, rounds] if flag == "--run" => {
            let version = Version::ALL
                .into_iter()
                .find(|of| of.to_string() == *version);
            let (version, case) = version.zip(case(name)).expect("a version and a case");
            case.1(version, rounds.parse().expect("a number"));
        }
        _ if arguments.iter().any(|argument| argument == "--bench") => {
            let part = arguments.iter().find(|argument| !argument.starts_with('-'));
            measure(part.map_or("", |part| part));
        }
        _ => {
            for version in Version::ALL {
                CASES.iter().for_each(|case| case.1(version, 2));
            }
        }
    }
}
