//! The whole program against real peers: Open vSwitch, hosts in network namespaces, Mininet, os-ken
//! and tshark.
//!
//! Each test of the network has its own network namespace, with its Open vSwitch, its controller and the ends of its
//! links, so tests run in parallel and never touch the machine's own Open vSwitch. They need root and the programs that
//! `tools/setup` installs; otherwise they report this and pass, or fail if `CI=true` is set.

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
