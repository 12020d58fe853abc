//! A controller with services, and a switch as it sees one.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};
use urtica_apps::Routing;
use urtica_controller::{
    Controller, Program, Running, SessionConfig, Switch, SwitchHandler, SwitchInfo,
};
use urtica_offload::{Driven, Unavailable};
use urtica_services::{
    Discovery, DiscoveryConfig, Hosts, HostsConfig, NeighbourProxy, PortRole, Routes,
};
use urtica_topology::PortId;
use urtica_wire::{
    Capabilities, DatapathId, Features, Header, List, MacAddr, Message, MultipartFlags,
    MultipartReply, MultipartReplyBody, PacketIn, Port, PortNo, Version,
};

/// Maximum duration of any step on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Number of ports of a switch, all of which are host ports.
pub const PORTS: u32 = 6;

/// The port out of which the program behind the services sends the packets that reach it.
pub const BEHIND: PortNo = PortNo(5);

const FEATURES_REQUEST: u8 = 5;
const MULTIPART_REQUEST: u8 = 18;

/// Loads the programs; if that fails, prints a line, or fails with CI=true.
pub fn driven() -> Option<Driven> {
    or_skip(Driven::start())
}

/// Loads the programs with space for this number of hosts.
pub fn driven_for(hosts: u32) -> Option<Driven> {
    or_skip(Driven::start_for(hosts))
}

fn or_skip(started: Result<Driven, Unavailable>) -> Option<Driven> {
    match started {
        Ok(driven) => Some(driven),
        Err(reason) if std::env::var("CI").is_ok_and(|ci| ci == "true") => {
            panic!("the kernel half cannot be tested here: {reason}")
        }
        Err(reason) => {
            println!("skipped: the kernel half cannot be tested here: {reason}");
            None
        }
    }
}

/// Services whose timers have no effect during a test, unless the test sets others.
pub struct Services {
    pub discovery: Discovery,
    pub hosts: Hosts,
    pub proxy: NeighbourProxy,
    pub routes: Routes,
}

impl Services {
    pub fn new() -> Self {
        Self::with(DiscoveryConfig {
            probe_interval: Duration::from_secs(3600),
            ..DiscoveryConfig::default()
        })
    }

    pub fn with(config: DiscoveryConfig) -> Self {
        let discovery = Discovery::new(DiscoveryConfig {
            secret: Some([7; 32]),
            ..config
        });
        let config = HostsConfig {
            probe_timeout: Duration::from_secs(3600),
            max_age: Duration::from_secs(36_000),
            ..HostsConfig::default()
        };
        let hosts = Hosts::new(&discovery, config);
        let proxy = NeighbourProxy::new(&hosts);
        let routes = Routes::new(&discovery);
        Self {
            discovery,
            hosts,
            proxy,
            routes,
        }
    }

    pub fn offload_to(&self, driven: &Driven) {
        self.discovery.offload(driven.offload());
        self.hosts.offload(driven.offload());
        self.proxy.offload(driven.offload());
        self.routes.offload(driven.offload());
    }

    /// Creates a controller with the services and a program behind them. It sends no echo requests, so that tests control all
    /// messages.
    pub fn controller(&self, behind: impl Program + 'static) -> Controller {
        let mut session = SessionConfig::default();
        session.echo_interval = Duration::from_secs(3000);
        session.dead_interval = Duration::from_secs(6000);
        Controller::new()
            .kernel_half_after(Duration::ZERO, 0)
            .session(session)
            .program(self.discovery.clone())
            .program(self.hosts.clone())
            .program(self.proxy.clone())
            .program(self.routes.clone())
            .program(behind)
    }

    /// Creates shortest-path routing behind the services.
    pub fn routing(&self) -> Routing {
        Routing::new(&self.hosts, &self.routes)
    }

    /// Waits until all ports of a switch are host ports.
    pub fn wait_for_host_ports(&self, id: u64) {
        wait_for("all ports are for hosts", || {
            (1..=PORTS).all(|number| {
                let port = PortId::new(DatapathId(id), PortNo(number));
                self.discovery.port_role(port) == Some(PortRole::Host)
            })
        });
        wait_for("its routes are known", || {
            let next_hops = self.routes.next_hops().load();
            next_hops.topology().index_of(DatapathId(id)).is_some()
        });
    }
}

/// Starts a controller at one address, with its services in the kernel.
pub fn start(driven: &Driven, controller: Controller) -> Running {
    controller
        .kernel_halves(driven.clone())
        .listen("ptcp:0:127.0.0.1".parse().unwrap())
        .shards(1)
        .start()
        .unwrap()
}

pub fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Sends all packets that reach it out of one port, so that their order can be checked.
pub struct Behind;

impl SwitchHandler for Behind {
    fn packet_in(&mut self, switch: &mut Switch, packet: &PacketIn) {
        switch.forward(packet, BEHIND);
    }
}

/// Creates the program behind the services.
pub fn behind(_: &SwitchInfo) -> Behind {
    Behind
}

/// The messages between a switch and its controller.
pub trait Channel {
    fn send(&mut self, bytes: &[u8]);

    /// Receives at least one more byte.
    fn receive(&mut self) -> Vec<u8>;
}

impl Channel for TcpStream {
    fn send(&mut self, bytes: &[u8]) {
        self.write_all(bytes).unwrap();
    }

    fn receive(&mut self) -> Vec<u8> {
        let mut bytes = vec![0; 65536];
        let count = self.read(&mut bytes).expect("something comes in time");
        assert!(count > 0, "the controller has closed the connection");
        bytes.truncate(count);
        bytes
    }
}

/// Connects a switch over loopback.
pub fn connect(controller: &Running) -> TcpStream {
    let address = controller.addresses()[0].to_string();
    let address = address.strip_prefix("ptcp:").unwrap();
    let (port, host) = address.split_once(':').unwrap();
    let socket = TcpStream::connect((host, port.parse().unwrap())).unwrap();
    socket.set_nodelay(true).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

/// Joins as a switch of this version with all ports. Returns when the controller has sent the messages that it sends to every
/// switch.
pub fn join(channel: &mut impl Channel, version: Version, id: u64) {
    let ports: Vec<_> = (1..=PORTS)
        .map(|number| {
            let mac = MacAddr::from_u64(0x0600_0000_0000 + u64::from(number));
            Port::new(PortNo(number), mac, &format!("eth{number}"))
        })
        .collect();
    channel.send(&[version.to_wire(), 0, 0, 8, 0, 0, 0, 1]);
    let features = Message::FeaturesReply(Features {
        datapath_id: DatapathId(id),
        n_buffers: 256,
        n_tables: 1,
        auxiliary_id: 0,
        capabilities: Capabilities::empty(),
        actions: 0,
        ports: match version {
            Version::Of10 => List::from(&ports[..]),
            Version::Of13 => List::default(),
        },
    });
    let mut said = Vec::new();
    let request = wait_for_message(channel, &mut said, |header| {
        header.message_type == FEATURES_REQUEST
    });
    send(channel, version, request.xid, &features);
    if version == Version::Of13 {
        let request = wait_for_message(channel, &mut said, |header| {
            header.message_type == MULTIPART_REQUEST
        });
        let ports = Message::MultipartReply(MultipartReply {
            flags: MultipartFlags::empty(),
            body: MultipartReplyBody::PortDesc(List::from(&ports[..])),
        });
        send(channel, version, request.xid, &ports);
    }
    settle(channel, &mut said, version);
}

pub fn send(channel: &mut impl Channel, version: Version, xid: u32, message: &Message) {
    let mut bytes = Vec::new();
    message.encode(version, xid, &mut bytes).unwrap();
    channel.send(&bytes);
}

/// Sends an echo request and waits for its reply, so that all earlier messages have been handled.
pub fn settle(channel: &mut impl Channel, said: &mut Vec<u8>, version: Version) {
    const XID: u32 = 0x5e77_1e00;
    send(channel, version, XID, &Message::EchoRequest(b"settle"));
    wait_for_message(channel, said, |header| {
        header.message_type == 3 && header.xid == XID
    });
}

/// Receives until a matching message has arrived; all messages are appended to `said`.
fn wait_for_message(
    channel: &mut impl Channel,
    said: &mut Vec<u8>,
    is_it: impl Fn(&Header) -> bool,
) -> Header {
    loop {
        let found = messages(said).find_map(|message| Header::peek(message).filter(&is_it));
        if let Some(header) = found {
            return header;
        }
        said.extend(channel.receive());
    }
}

/// Returns the complete messages in `bytes`.
pub fn messages(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let header = Header::peek(rest)?;
        let (message, after) = rest.split_at_checked(header.length.into())?;
        rest = after;
        Some(message)
    })
}
