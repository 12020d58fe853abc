//! The router that all tests use, and its hosts.

use std::net::Ipv4Addr;
use urtica_apps::{L3, L3Config};
use urtica_controller::Controller;
use urtica_offload::{Mode, RouterKernel};
use urtica_services::{
    Discovery, DiscoveryConfig, Hosts, HostsConfig, ProvisionConfig, Provisioner, Routes,
};
use urtica_wire::MacAddr;
use urtica_wire::packet::{Arp, Ethernet, Ipv4, ether_type, ethernet};

use crate::switch::silent_controller;

/// Three subnets, and a router in the first one that leads to others.
pub const CONFIG: &str = r#"
[[interface]]
address = "10.0.1.254/24"
mac = "02:00:00:00:01:fe"

[[interface]]
address = "10.0.2.254/24"
mac = "02:00:00:00:02:fe"

[[interface]]
address = "10.0.3.254/24"
mac = "02:00:00:00:03:fe"

[[route]]
to = "192.168.0.0/16"
via = "10.0.1.1"
"#;

/// The number of hosts, which are numbered from 1, and the number of ports of the switch that they are attached to.
pub const HOSTS: u8 = 24;
pub const PORTS: u32 = 8;

/// The xid of all messages of the router, which is the fifth program.
pub const XID: u32 = 5 << 24;

/// Loads the programs; if that fails, prints a line, or fails with CI=true.
pub fn router_kernel(mode: Mode) -> Option<RouterKernel> {
    match RouterKernel::start() {
        Ok(kernel) => Some(kernel.mode(mode)),
        Err(reason) => {
            assert!(std::env::var("CI").as_deref() != Ok("true"), "{reason}");
            println!("skipped: the kernel half cannot be tested here: {reason}");
            None
        }
    }
}

/// Creates a controller that runs the router with its services, and the hosts service.
pub fn router(kernel: Option<RouterKernel>) -> (Controller, Hosts) {
    router_of(CONFIG, kernel)
}

/// Creates such a controller with another plan of subnets.
pub fn router_of(config: &str, kernel: Option<RouterKernel>) -> (Controller, Hosts) {
    let router = Router::of(config, kernel);
    let hosts = router.hosts.clone();
    (router.add_to(silent_controller()), hosts)
}

/// The router and its services.
pub struct Router {
    pub discovery: Discovery,
    pub hosts: Hosts,
    routes: Routes,
    provisioner: Provisioner,
    l3: L3,
}

impl Router {
    /// Creates the router and its services with this plan of subnets.
    pub fn of(config: &str, kernel: Option<RouterKernel>) -> Self {
        let discovery = Discovery::new(DiscoveryConfig::default());
        let hosts = Hosts::new(&discovery, HostsConfig::default());
        let routes = Routes::new(&discovery);
        let provisioner = Provisioner::new(ProvisionConfig::default());
        let config: L3Config = config.parse().unwrap();
        let l3 = L3::new(&discovery, &hosts, &routes, &provisioner, config);
        let l3 = match kernel {
            Some(kernel) => l3.in_kernel(std::sync::Arc::new(kernel)),
            None => l3,
        };
        Self {
            discovery,
            hosts,
            routes,
            provisioner,
            l3,
        }
    }

    /// Adds the services to a controller, and the router last.
    pub fn add_to(self, controller: Controller) -> Controller {
        controller
            .program(self.discovery)
            .program(self.hosts)
            .program(self.routes)
            .program(self.provisioner)
            .program(self.l3)
    }
}

/// Returns the subnet of a host.
pub fn subnet_of(host: u8) -> u8 {
    host % 3 + 1
}

pub fn ip_of(host: u8) -> Ipv4Addr {
    match host {
        1 => Ipv4Addr::new(10, 0, 1, 1),
        _ => Ipv4Addr::new(10, 0, subnet_of(host), host),
    }
}

pub fn mac_of(host: u8) -> MacAddr {
    MacAddr::new([2, 0, 0, 0, 0, host])
}

pub fn port_of(host: u8) -> u32 {
    u32::from(host) % PORTS + 1
}

pub fn gateway_ip(subnet: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, subnet, 254)
}

pub fn gateway_mac(subnet: u8) -> MacAddr {
    MacAddr::new([2, 0, 0, 0, subnet, 0xfe])
}

/// Returns the gateway that a host uses.
pub fn gateway_of(host: u8) -> MacAddr {
    gateway_mac(ip_of(host).octets()[2])
}

pub fn frame(src: MacAddr, dst: MacAddr, ether_type: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    let header = Ethernet {
        dst,
        src,
        ether_type,
    };
    header.write(&mut frame);
    frame.extend_from_slice(payload);
    ethernet::pad_frame(&mut frame, 0);
    frame
}

/// Returns a host's request for an address, which also announces its own.
pub fn question(host: u8, address: Ipv4Addr) -> Vec<u8> {
    let mut request = Vec::new();
    Arp::request(mac_of(host), ip_of(host), address).write(&mut request);
    frame(mac_of(host), MacAddr::BROADCAST, ether_type::ARP, &request)
}

/// Returns a host's request for its gateway.
pub fn question_for_gateway(host: u8) -> Vec<u8> {
    question(host, gateway_ip(ip_of(host).octets()[2]))
}

/// Returns a packet that a host sends to its gateway.
pub fn handed(host: u8, header: &Ipv4, payload: &[u8]) -> Vec<u8> {
    let mut packet = Vec::new();
    header.write(&mut packet, payload).unwrap();
    frame(mac_of(host), gateway_of(host), ether_type::IPV4, &packet)
}

/// Returns the header of a datagram from a host to an address.
pub fn header(host: u8, dst: Ipv4Addr) -> Ipv4 {
    const UDP: u8 = 17;
    Ipv4::new(ip_of(host), dst, UDP)
}
