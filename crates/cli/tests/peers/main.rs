//! The whole program against real peers: Open vSwitch, hosts in network namespaces, Mininet, os-ken
//! and tshark.
//!
//! Each test of the network has a network namespace of its own, in which its Open vSwitch, its
//! controller and the ends of its links live, so tests run side by side and never touch the
//! machine's own Open vSwitch. They need root and what `tools/setup` installs; without these they
//! say so and pass, except where `CI=true` is set.

mod bulk;
mod capture;
mod conformance;
mod controller;
mod doctor;
mod figures;
mod firewall;
mod flows;
mod guides;
mod hold;
mod l2;
mod l3;
mod mininet;
mod namespace;
mod net;
mod northbound;
mod openvswitch;
mod pki;
mod process;
mod require;
mod roles;
mod switch;
mod tls;
mod vectors;
