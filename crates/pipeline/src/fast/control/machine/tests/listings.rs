//! Compares listings with those in `golden/`, which have been reviewed. With `BLESS=1` in the environment, it writes them
//! instead.

use super::tables::word;
use super::*;
use crate::fast::control::machine::Assembler;
use crate::fast::datapath::key::{Base, KeyMask};
use crate::fast::datapath::kinds::Depth;
use crate::fast::datapath::table::{HashPart, LpmPart, Rule};
use std::path::Path;

#[track_caller]
fn assert_blessed(name: &str, code: &Code) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("src/fast/control/machine/tests/golden")
        .join(name);
    let listing = code.listing();
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&file, &listing).expect("the golden file can be written");
    }
    let blessed = std::fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(
        listing, blessed,
        "{name} has changed; if it is for the better, test again with BLESS=1"
    );
}

fn assembler() -> Assembler {
    Assembler::new(1 << 20, false)
}

/// The exact match on the destination address that a learning switch uses.
pub(super) fn eth_dst(is_far: bool) -> HashPart {
    HashPart {
        mask: KeyMask {
            require: Kinds::empty(),
            words: vec![word(Base::Data, 0, 0xffff_ffff_ffff)],
            depth: Depth::Ethernet,
        },
        room: 1,
        is_far,
        is_final: true,
    }
}

/// Addresses and ports of TCP over IPv4.
fn connection() -> HashPart {
    HashPart {
        mask: KeyMask {
            require: Kinds::IPV4 | Kinds::TCP,
            words: vec![
                word(Base::Network, 12, u64::MAX),
                word(Base::Transport, 0, 0xffff_ffff),
            ],
            depth: Depth::Transport,
        },
        room: 2,
        is_far: false,
        is_final: false,
    }
}

/// IPv4 routes.
pub(super) fn ipv4_dst(root_bits: u8, is_far: bool) -> LpmPart {
    LpmPart {
        require: Kinds::IPV4,
        depth: Depth::Network,
        field: word(Base::Network, 16, 0xffff_ffff),
        len: 4,
        root_bits,
        room: 0,
        is_far,
    }
}

/// The actions of a router.
pub(super) fn route() -> ActionProgram {
    let ops = [Op::SetEthDst, Op::SetEthSrc, Op::DecNwTtl];
    program(Kinds::IPV4, &ops, End::Output)
}

/// The actions of a load balancer.
fn translate() -> ActionProgram {
    let ops = [Op::SetIpv4Dst, Op::SetTransportDst, Op::DecNwTtl];
    program(Kinds::IPV4 | Kinds::UDP, &ops, End::Goto)
}

#[test]
fn hash_tables() {
    assert_blessed("hash.txt", &assembler().hash(&[eth_dst(false)]).unwrap());
    assert_blessed("hash_far.txt", &assembler().hash(&[eth_dst(true)]).unwrap());
    assert_blessed(
        "hash_several.txt",
        &assembler().hash(&[connection(), eth_dst(false)]).unwrap(),
    );
}

#[test]
fn tries() {
    assert_blessed("lpm.txt", &assembler().lpm(&ipv4_dst(16, false)).unwrap());
}

#[test]
fn action_lists() {
    assert_blessed("route.txt", &assembler().actions(&route()).unwrap());
    assert_blessed("translate.txt", &assembler().actions(&translate()).unwrap());
    let ops = [Op::PopVlan, Op::SetVlanVid];
    let in_vlans = program(Kinds::VLAN, &ops, End::InPort);
    assert_blessed(
        "vlan.txt",
        &Assembler::new(1 << 20, true).actions(&in_vlans).unwrap(),
    );
}

#[test]
fn direct_code() {
    let mut world = World::new();
    let output = program(Kinds::empty(), &[], End::Output);
    let run = assembler().plain().unwrap();
    let masks = [eth_dst(false).mask, eth_dst(false).mask, connection().mask];
    let rules: Vec<_> = masks
        .into_iter()
        .map(|mask| {
            let block = world.block(&[], &record(&run, 0, 1, &[]));
            Rule {
                values: (1..=mask.words.len() as u64)
                    .map(|word| word << 24)
                    .collect(),
                mask,
                record: world.record(block, 0),
            }
        })
        .collect();
    let pairs: Vec<_> = rules.iter().map(|rule| (rule, &output)).collect();
    assert_blessed("direct.txt", &assembler().direct(&pairs).unwrap());
}
