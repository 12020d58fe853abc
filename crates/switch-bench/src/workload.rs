//! The measured pipelines and the replayed packets, whose bytes are equal on every machine.
//!
//! **What.** Pipelines, each a list of flow entries and an endless stream of packets; N distinct packets are N active
//! flows. Seven pipelines are from `ovs-bench`, which measures Open vSwitch on them: their files equal those that its
//! `pipelines.py` writes byte for byte, so that figures of both can be compared. Five more pipelines have groups and
//! meters, or are a mobile gateway. The other workloads are ClassBench's rule sets ([`classbench`]): a packet matches a
//! rule, each rule with equal probability.
//!
//! **How.** Every file is drawn from its own generator, seeded by [`SEED`] and the file's name, so that it is
//! independent of the other files. The generator and its drawing rules are Python's ([`PythonRandom`]), because the
//! files are defined by a Python program.
//!
//! **Cost.** A million packets take half a second and 180 MB, two thirds of it to remember the earlier draws.

mod classbench;
mod entries;
mod files;
mod network;
mod packets;
mod python_random;
mod routes;
mod trace;
mod weighted;

pub use classbench::{ClassBench, Header, RuleSet};
pub use entries::{Extras, l2 as l2_entries, route_entry};
pub use files::{write_flows, write_pcap};
pub use packets::{FRAME_SIZE, Frame};
pub use routes::{PROBE_ROUTE, route_updates};
pub use trace::Trace;

use python_random::PythonRandom;
use std::collections::HashSet;
use std::fmt;
use std::str::FromStr;

/// The first part of every generator's seed.
const SEED: &str = "ovs-bench 1";

/// The maximum number of active flows of a workload, whose numbers take 24 bits of an address.
pub const MAX_FLOWS: u32 = 1 << 24;

/// The port that receives packets.
pub const IN_PORT: u32 = 1;

/// The port by which all packets leave.
pub const OUT_PORT: u32 = 2;

/// The port by which every other probe leaves.
pub const PROBE_PORT: u32 = 3;

/// A pipeline with its packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Workload {
    /// One entry on the ingress port, which measures the cost of everything except look-ups.
    Port,
    /// A thousand Ethernet addresses.
    L2Of1k,
    /// A hundred thousand Ethernet addresses.
    L2Of100k,
    /// Ten thousand routes: longest prefix, new Ethernet addresses, TTL.
    L3,
    /// A hundred services with two back ends each, behind an access list.
    Lb,
    /// Ten customer edges with twenty users each: VLAN, address translation, routes; from users to the network.
    Gateway(Extras),
    /// The tables of a gateway without extras, from the network to users.
    GatewayDown,
    /// Five hundred subscribers with two bearers each behind twenty base stations: from the network to subscribers.
    Mobile(Extras),
    /// Rules on addresses, ports and protocol.
    Rules(ClassBench),
}

impl Workload {
    /// All pipelines, in the order of reports.
    pub const ALL: [Self; 12] = [
        Self::Port,
        Self::L2Of1k,
        Self::L2Of100k,
        Self::L3,
        Self::Lb,
        Self::Gateway(Extras::None),
        Self::GatewayDown,
        Self::Gateway(Extras::Groups),
        Self::Gateway(Extras::GroupsAndMeters),
        Self::Mobile(Extras::None),
        Self::Mobile(Extras::Groups),
        Self::Mobile(Extras::GroupsAndMeters),
    ];

    /// Returns its meters, groups and flow entries, each in the text form of `ovs-ofctl`.
    pub fn entries(self) -> Vec<String> {
        match self {
            Self::Port => vec![format!(
                "table=0,priority=10,in_port={IN_PORT},actions=output:{OUT_PORT}"
            )],
            Self::L2Of1k => entries::l2(1_000),
            Self::L2Of100k => entries::l2(100_000),
            Self::L3 => entries::l3(),
            Self::Lb => entries::lb(),
            Self::Gateway(extras) => entries::gateway(extras),
            Self::GatewayDown => entries::gateway(Extras::None),
            Self::Mobile(extras) => entries::mobile(extras),
            Self::Rules(set) => RuleSet::new(set).entries(),
        }
    }

    /// Returns a frame for each of `flows` flows, in the order of the replay. Frames are distinct, except in rule sets,
    /// where some rules match only one packet.
    pub(crate) fn population(self, flows: u32) -> Vec<Frame> {
        let mut random = PythonRandom::new(&format!("{SEED}/{}-{flows}", self.without_extras()));
        let mut packets = self.packets();
        if let Self::Rules(_) = self {
            return (0..flows).map(|_| packets(&mut random)).collect();
        }
        let mut frames = Vec::with_capacity(flows as usize);
        let mut seen = HashSet::with_capacity(flows as usize);
        while frames.len() < flows as usize {
            let frame = packets(&mut random);
            if seen.insert(frame) {
                frames.push(frame);
            }
        }
        random.shuffle(&mut frames);
        frames
    }

    /// Returns the workload that has these packets and entries without groups and meters.
    fn without_extras(self) -> Self {
        match self {
            Self::Gateway(_) => Self::Gateway(Extras::None),
            Self::Mobile(_) => Self::Mobile(Extras::None),
            other => other,
        }
    }

    /// Returns the generator of packets.
    fn packets(self) -> Box<dyn FnMut(&mut PythonRandom) -> Frame> {
        match self {
            Self::Port | Self::L2Of1k => Box::new(packets::l2(1_000)),
            Self::L2Of100k => Box::new(packets::l2(100_000)),
            Self::L3 => Box::new(packets::l3()),
            Self::Lb => Box::new(packets::lb),
            Self::Gateway(_) => Box::new(packets::gateway()),
            Self::GatewayDown => Box::new(packets::gateway_down()),
            Self::Mobile(_) => Box::new(packets::mobile()),
            Self::Rules(set) => {
                let rules = RuleSet::new(set);
                Box::new(move |random| packets::with_header(&rules.packet(random)))
            }
        }
    }

    /// Returns the rules from which the entries are made, if any.
    pub(crate) fn rules(self) -> Option<RuleSet> {
        match self {
            Self::Rules(set) => Some(RuleSet::new(set)),
            _ => None,
        }
    }

    /// Returns the table of routes, if any.
    pub fn route_table(self) -> Option<u8> {
        match self {
            Self::L3 => Some(0),
            Self::Gateway(Extras::None) => Some(entries::GATEWAY_ROUTE_TABLE),
            _ => None,
        }
    }

    /// Returns a packet that uses [`PROBE_ROUTE`] in the table of routes.
    pub(crate) fn probe(self) -> Option<Frame> {
        match self {
            Self::L3 => Some(packets::l3_probe()),
            Self::Gateway(Extras::None) => Some(packets::gateway_probe()),
            _ => None,
        }
    }
}

impl fmt::Display for Workload {
    /// Formats the workload's name on the command line and in file names.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Port => "port",
            Self::L2Of1k => "l2-1k",
            Self::L2Of100k => "l2-100k",
            Self::L3 => "l3",
            Self::Lb => "lb",
            Self::Gateway(Extras::None) => "gateway",
            Self::GatewayDown => "gateway-down",
            Self::Gateway(Extras::Groups) => "gateway-groups",
            Self::Gateway(Extras::GroupsAndMeters) => "gateway-groups-meters",
            Self::Mobile(Extras::None) => "mobile",
            Self::Mobile(Extras::Groups) => "mobile-groups",
            Self::Mobile(Extras::GroupsAndMeters) => "mobile-groups-meters",
            Self::Rules(set) => return set.fmt(f),
        })
    }
}

/// The error for a text that is not a workload.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "there is no pipeline '{text}'; expected all, or some of {pipelines}, and ClassBench's rule sets: acl1 to acl5, fw1 to fw5, \
     ipc1 and ipc2 with -1k, -10k or -100k, as in acl1-10k",
    pipelines = Workload::ALL.map(|workload| workload.to_string()).join(",")
)]
pub struct ParseWorkloadError {
    text: String,
}

impl FromStr for Workload {
    type Err = ParseWorkloadError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut pipelines = Self::ALL.into_iter();
        let pipeline = pipelines.find(|workload| workload.to_string() == text);
        let rules = || text.parse().map(Self::Rules).ok();
        pipeline.or_else(rules).ok_or_else(|| ParseWorkloadError {
            text: text.to_owned(),
        })
    }
}
