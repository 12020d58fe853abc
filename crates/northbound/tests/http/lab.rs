//! A controller with the interface, a simulated network that is connected to it, and a client.

use serde_json::Value;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use urtica_apps::{Options, add_all_with_services};
use urtica_controller::{Address, Controller, Network, Running};
use urtica_net::{Net, NetConfig};
use urtica_northbound::{Northbound, NorthboundConfig};
use urtica_topology::spec::TopologySpec;
use urtica_wire::Version;

/// The timeout of all waits. If it expires, the test fails.
pub const BOUND: Duration = Duration::from_secs(120);

/// The interval at which hosts announce themselves.
const ANNOUNCED_EVERY: Duration = Duration::from_secs(1);

/// A controller, its interface, and a network.
pub struct Lab {
    running: Option<Running>,
    pub address: SocketAddr,
    /// The address to which switches connect.
    pub switches: SocketAddr,
    stop: Arc<AtomicBool>,
    net: Option<JoinHandle<()>>,
}

/// Returns the configuration for tests, with a port that the system chooses.
pub fn config() -> NorthboundConfig {
    NorthboundConfig {
        address: "127.0.0.1:0".parse().unwrap(),
        ..NorthboundConfig::default()
    }
}

impl Lab {
    /// Creates a network with this plan and OpenFlow version, controlled by these programs.
    pub fn new(plan: &str, version: Version, programs: &[&str]) -> Self {
        Self::with(plan, version, programs, config(), |northbound| northbound)
    }

    /// Like [`Lab::new`], with this configuration of the interface, which `set_up` changes.
    pub fn with(
        plan: &str,
        version: Version,
        programs: &[&str],
        config: NorthboundConfig,
        set_up: impl FnOnce(Northbound) -> Northbound,
    ) -> Self {
        Self::beside(Controller::new(), plan, version, programs, config, set_up)
    }

    /// Like [`Lab::with`], with a controller that already has programs.
    pub fn beside(
        controller: Controller,
        plan: &str,
        version: Version,
        programs: &[&str],
        config: NorthboundConfig,
        set_up: impl FnOnce(Northbound) -> Northbound,
    ) -> Self {
        let controller = controller
            .listen("ptcp:0:127.0.0.1".parse().unwrap())
            .shards(1);
        let (controller, services) =
            add_all_with_services(controller, programs, &Options::default()).unwrap();
        let mut northbound = Northbound::bind(config)
            .unwrap()
            .programs(programs.iter().copied())
            .ryu(&services.ryu);
        if let Some(discovery) = &services.discovery {
            northbound = northbound.discovery(discovery);
        }
        if let Some(hosts) = &services.hosts {
            northbound = northbound.hosts(hosts);
        }
        let address = northbound.local_addr().unwrap();
        let running = set_up(northbound).add_to(controller).start().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let plan = plan.parse::<TopologySpec>().unwrap().plan().unwrap();
        let count = plan.switches.len();
        let Address::PassiveTcp { port, .. } = running.addresses()[0] else {
            panic!("expected a TCP port");
        };
        let net = thread::spawn({
            let stop = Arc::clone(&stop);
            move || {
                let mut config = NetConfig::default();
                config.switch.versions = vec![version];
                let mut net = Net::new(&plan, config).unwrap();
                net.connect_to(&format!("tcp:127.0.0.1:{port}").parse().unwrap())
                    .unwrap();
                // Hosts announce themselves repeatedly, since the controller only learns of them once it has switches.
                while !net.run_until(|_| stop.load(Ordering::Relaxed), ANNOUNCED_EVERY) {
                    net.announce_hosts();
                }
            }
        });
        let lab = Self {
            running: Some(running),
            address,
            switches: SocketAddr::from(([127, 0, 0, 1], port)),
            stop,
            net: Some(net),
        };
        wait("all switches are up", || lab.up() == count);
        lab
    }

    fn up(&self) -> usize {
        let network = self.network();
        let infos = network
            .switches()
            .into_iter()
            .filter_map(|id| network.info(id));
        infos.filter(|info| !info.ports.is_empty()).count()
    }

    pub fn network(&self) -> &Network {
        self.running.as_ref().unwrap().network()
    }

    /// Sends a GET request.
    pub fn get(&self, path: &str) -> Response {
        self.send("GET", path, "", "")
    }

    /// Returns the response to a GET request, which must succeed.
    pub fn json(&self, path: &str) -> Value {
        let response = self.get(path);
        assert_eq!(response.status, 200, "{path}: {}", response.body);
        response.json()
    }

    /// Sends a POST request.
    pub fn post(&self, path: &str, body: &str) -> Response {
        self.send("POST", path, "", body)
    }

    /// Sends a PUT request.
    pub fn put(&self, path: &str, body: &str) -> Response {
        self.send("PUT", path, "", body)
    }

    /// Sends a DELETE request.
    pub fn delete(&self, path: &str, body: &str) -> Response {
        self.send("DELETE", path, "", body)
    }

    /// Sends a request with these headers, each of which ends with a line break.
    pub fn send(&self, method: &str, path: &str, headers: &str, body: &str) -> Response {
        let mut socket = TcpStream::connect(self.address).unwrap();
        socket.set_read_timeout(Some(BOUND)).unwrap();
        let (host, length) = (self.address, body.len());
        let host = match headers.to_ascii_lowercase().contains("host:") {
            true => String::new(),
            false => format!("Host: {host}\r\n"),
        };
        let request = format!(
            "{method} {path} HTTP/1.1\r\n{host}Connection: close\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
        );
        // The response may arrive before the whole request was sent.
        let _ = socket.write_all(request.as_bytes());
        Response::read(&mut socket)
    }

    /// Stops the controller, while the network continues to run.
    pub fn stop_controller(&mut self) {
        self.running.take().unwrap().stop().unwrap();
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        drop(self.running.take());
        let ended = self.net.take().unwrap().join();
        assert!(thread::panicking() || ended.is_ok());
    }
}

/// Waits until the condition is met.
pub fn wait(what: &str, is_so: impl Fn() -> bool) {
    let since = Instant::now();
    while !is_so() {
        assert!(since.elapsed() < BOUND, "not within {BOUND:?}: {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// A response of the interface.
#[derive(Debug)]
pub struct Response {
    pub status: u16,
    pub headers: String,
    pub body: String,
}

impl Response {
    pub fn read(socket: &mut TcpStream) -> Self {
        let mut bytes = Vec::new();
        // A reset after the response is not an error.
        let _ = socket.read_to_end(&mut bytes);
        let text = String::from_utf8(bytes).unwrap();
        let (headers, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = headers
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        let is_chunked = headers
            .to_ascii_lowercase()
            .contains("transfer-encoding: chunked");
        Self {
            status: status.unwrap_or_else(|| panic!("no response: {text:?}")),
            headers: headers.to_owned(),
            body: if is_chunked {
                dechunk(body)
            } else {
                body.to_owned()
            },
        }
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

fn dechunk(mut body: &str) -> String {
    let mut whole = String::new();
    while let Some((length, rest)) = body.split_once("\r\n") {
        let length = usize::from_str_radix(length, 16).unwrap();
        if length == 0 {
            return whole;
        }
        whole.push_str(&rest[..length]);
        body = rest[length..].strip_prefix("\r\n").unwrap();
    }
    panic!("the body ends before its last chunk");
}
