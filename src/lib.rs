//! Urtica: an OpenFlow stack.
//!
//! This is the face of the project: what a control program of your own needs, under one name. A whole one:
//!
//! ```no_run
//! use urtica::prelude::*;
//!
//! #[derive(Default)]
//! struct Learning { table: MacTable }
//!
//! impl SwitchHandler for Learning {
//!     fn packet_in(&mut self, switch: &mut Switch, packet: &PacketIn) {
//!         self.table.learn(packet.eth_src(), packet.in_port(), switch.now_s());
//!         match self.table.port_of(packet.eth_dst(), switch.now_s()) {
//!             None => switch.forward(packet, PortNo::FLOOD),
//!             Some(port) => switch.forward_with_rule(packet, Match::exact(packet), port, IDLE_5S),
//!         }
//!     }
//! }
//!
//! urtica::main!(|_: &SwitchInfo| Learning::default());
//! ```
//! The crates behind it: [`wire`] (messages), [`controller`] (the framework), [`services`] (links, hosts, routes),
//! [`state`] (what programs share), [`topology`] (paths), [`apps`] (programs to copy from).
//!
//! # Features
//!
//! | feature | what it brings | by default |
//! | --- | --- | --- |
//! | `args` | [`main!`] and [`Controller::from_args`]: the options of a command line | yes |
//! | `services` | [`services`] and [`topology`] | yes |
//! | `apps` | [`apps`], and `MacTable` in the [`prelude`] | yes |
//! | `net` | a whole network in the program's own process, to test with | |
//! | `northbound` | the HTTP interface of a controller | |
//! | `switch` | the software switch, with its pipeline | |
//! | `bench` | emulated switches, and what they measure | |
//! | `tls` | TLS on `ssl:` and `pssl:`; to build it takes a C compiler | |
//! | `kernel-half` | what answers packet-ins in the kernel; to build it takes clang, libelf and zlib | |

#![forbid(unsafe_code)]

/// The examples of the guide, compiled with the tests.
#[cfg(all(doctest, feature = "apps", feature = "args"))]
#[doc = include_str!("../docs/controller.md")]
struct Guide;

#[cfg(all(doctest, feature = "apps", feature = "args"))]
#[doc = include_str!("../docs/controller-reference.md")]
struct Reference;

#[cfg(all(doctest, feature = "services"))]
#[doc = include_str!("../docs/discovery.md")]
struct DiscoveryGuide;

#[cfg(feature = "apps")]
pub use urtica_apps as apps;
#[cfg(feature = "bench")]
pub use urtica_bench as bench;
pub use urtica_controller as controller;
pub use urtica_log as log;
#[cfg(feature = "net")]
pub use urtica_net as net;
#[cfg(feature = "northbound")]
pub use urtica_northbound as northbound;
#[cfg(feature = "kernel-half")]
pub use urtica_offload as offload;
#[cfg(feature = "switch")]
pub use urtica_pipeline as pipeline;
#[cfg(feature = "services")]
pub use urtica_services as services;
pub use urtica_state as state;
#[cfg(feature = "switch")]
pub use urtica_switch as switch;
#[cfg(feature = "services")]
pub use urtica_topology as topology;
pub use urtica_wire as wire;

pub use urtica_controller::{Controller, Error};

/// The result of running a controller.
pub type Result<T> = std::result::Result<T, Error>;

/// `fn main` for a control program: runs it with the options of the command line, as [`Controller::from_args`] has them.
///
/// ```no_run
/// use urtica::prelude::*;
///
/// urtica::main!(|_: &SwitchInfo| on_packet(|switch, packet| switch.forward(packet, PortNo::ALL)));
/// ```
#[cfg(feature = "args")]
#[macro_export]
macro_rules! main {
    ($program:expr) => {
        fn main() -> $crate::Result<()> {
            $crate::Controller::from_args().run($program)
        }
    };
}

/// What nearly every control program uses, and all that the guide does.
pub mod prelude {
    #[cfg(feature = "apps")]
    pub use urtica_apps::{Learned, MacTable};
    pub use urtica_controller::{
        Actions, Background, Controller, EntryOptions, IDLE_5S, Network, NetworkEvent,
        OWN_COOKIE_BITS, PendingReply, Program, ProgramId, ProgramSlot, RequestError, Role,
        RoleRequest, Running, Stage, Switch, SwitchHandler, SwitchInfo, on_packet,
    };
    #[cfg(feature = "services")]
    pub use urtica_services::{
        Discovery, DiscoveryConfig, Hosts, HostsConfig, NeighbourProxy, NeighbourProxyConfig,
        ProvisionConfig, Provisioner, Routes,
    };
    pub use urtica_wire::packet::Headers;
    pub use urtica_wire::{
        Action, Bucket, BufferId, DatapathId, ErrorMessage, EtherType, Field, FlowMod,
        FlowModCommand, FlowModFlags, FlowRemoved, FlowStats, FlowStatsRequest, GroupMod,
        Instruction, IpProtocol, Ipv4Prefix, Ipv6Prefix, List, MacAddr, Match, Message, MeterBand,
        MeterMod, OxmField, PacketIn, PacketOut, PortNo, PortStats, PortStatus, Version,
    };
}
