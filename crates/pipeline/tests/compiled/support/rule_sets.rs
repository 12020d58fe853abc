//! Rule sets like those of ClassBench, and packets for them: few addresses, whose prefixes of many lengths are matched
//! together with ports and protocols.

use super::choices::Choices;
use urtica_wire::{FlowMod, FlowModCommand, PortNo};

/// A kind of rule: frequency, prefix lengths of source and destination, destination ports, protocol.
pub type Shape = (usize, u32, u32, Ports, &'static str);

/// The destination ports of a rule.
#[derive(Clone, Copy, Debug)]
pub enum Ports {
    Any,
    Exact,
    /// 1,024 and above: six prefixes, each in a separate entry.
    High,
}

/// The typical rules of three kinds of rule sets. Lengths vary around these.
pub const ACCESS_LIST: &[Shape] = &[
    (40, 32, 32, Ports::Exact, "tcp"),
    (20, 31, 32, Ports::Exact, "tcp"),
    (10, 32, 22, Ports::High, "tcp"),
    (10, 24, 31, Ports::Any, "udp"),
    (10, 30, 23, Ports::Exact, "udp"),
    (10, 32, 24, Ports::Any, "ip"),
];
pub const FIREWALL: &[Shape] = &[
    (30, 0, 31, Ports::Exact, "tcp"),
    (20, 1, 32, Ports::Exact, "udp"),
    (20, 31, 0, Ports::High, "udp"),
    (10, 2, 32, Ports::Exact, "tcp"),
    (10, 32, 1, Ports::Any, "ip"),
    (10, 20, 20, Ports::High, "tcp"),
];
pub const CHAIN: &[Shape] = &[
    (20, 32, 32, Ports::Exact, "udp"),
    (20, 24, 32, Ports::High, "tcp"),
    (20, 23, 24, Ports::Any, "ip"),
    (20, 26, 31, Ports::Exact, "tcp"),
    (20, 24, 16, Ports::Any, "ip"),
];

/// Returns the entries of a rule set, with unique priorities.
pub fn rule_set(shapes: &[Shape], rules: usize, seed: u64) -> Vec<FlowMod<'static>> {
    let mut choices = Choices::from_seed(seed);
    let mut lines = Vec::new();
    for _ in 0..rules {
        let at = choices.below(shapes.iter().map(|shape| shape.0).sum());
        let mut sums = shapes.iter().scan(0, |sum, shape| {
            *sum += shape.0;
            Some((*sum, shape))
        });
        let found = sums
            .find(|&(sum, _)| at < sum)
            .expect("it is below the sum");
        add_rule(found.1, &mut choices, &mut lines);
    }
    let count = lines.len();
    let entries = lines.into_iter().enumerate().map(|(index, line)| {
        let line = format!(
            "priority={},{line},actions=output:{}",
            60000 - index,
            1 + index % 4
        );
        FlowMod::parse(FlowModCommand::Add, &line).expect("an entry")
    });
    assert!(count < 60000, "a priority for each");
    entries.collect()
}

fn add_rule(shape: &Shape, choices: &mut Choices, lines: &mut Vec<String>) {
    let &(_, source, destination, ports, protocol) = shape;
    let mut addresses = Vec::new();
    for (name, len) in [("nw_src", source), ("nw_dst", destination)] {
        let len = len.saturating_sub(choices.pick(&[0, 0, 0, 1, 2, 3]));
        if len > 0 {
            let address = std::net::Ipv4Addr::from_bits(address(choices));
            addresses.push(format!("{name}={address}/{len}"));
        }
    }
    let ports = match ports {
        Ports::Any => vec![String::new()],
        Ports::Exact => vec![format!("tp_dst={}", choices.pick(&PORTS))],
        Ports::High => (10..16)
            .map(|bit| format!("tp_dst={:#x}/{:#x}", 1 << bit, 0xffff << bit & 0xffff))
            .collect(),
    };
    for port in ports {
        let parts = [protocol.to_owned()].into_iter().chain(addresses.clone());
        let parts = parts.chain([port]).filter(|part| !part.is_empty());
        lines.push(parts.collect::<Vec<_>>().join(","));
    }
}

const PORTS: [u16; 6] = [80, 443, 53, 22, 8080, 4789];

/// An address. Addresses share first bytes, so that shorter prefixes contain longer ones.
fn address(choices: &mut Choices) -> u32 {
    u32::from_be_bytes([
        choices.pick(&[10, 10, 10, 77, 192]),
        choices.pick(&[0, 1, 1, 200]),
        choices.pick(&[0, 3, 7, 128, 129]),
        choices.byte(),
    ])
}

/// A packet that many of the entries match.
pub fn packet(choices: &mut Choices) -> (PortNo, Vec<u8>) {
    let protocol = choices.pick(&[6_u8, 6, 17, 1]);
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
    frame.extend([0x45, 0, 0, 46, 0, 0, 0x40, 0, 64, protocol, 0, 0]);
    frame.extend(address(choices).to_be_bytes());
    frame.extend(address(choices).to_be_bytes());
    frame.extend(choices.number(2).to_be_bytes()[14..].iter());
    let port = match choices.is_in(60) {
        true => choices.pick(&PORTS),
        false => choices.number(2) as u16,
    };
    frame.extend(port.to_be_bytes());
    frame.extend([0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x10, 1, 0, 0, 0, 0, 0]);
    frame.resize(60, 0);
    if protocol == 17 {
        frame[38..40].copy_from_slice(&[0, 26]);
    }
    (choices.port(), frame)
}
