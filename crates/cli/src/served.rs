//! A network in this process whose controller serves HTTP. The controller runs on its own threads, as in `urtica run`, and
//! the network's switches connect to it by a socket. Requests of the page act on the network between two of its steps.

mod network;

use crate::say::say;
use network::Network;
use std::error::Error;
use std::time::Duration;
use tempfile::TempDir;
use urtica_controller::{Controller, Running};
use urtica_net::Net;
use urtica_northbound::{Emulation, EmulationRequests, Northbound};
use urtica_socket::Address;

/// A controller outside of the network's time. It stops on drop.
pub struct Served {
    address: Address,
    requests: EmulationRequests,
    /// The end of the traffic that requests have started, in the network's time.
    traffic_ends: Vec<Duration>,
    _running: Running,
    /// The folder of its socket.
    _folder: TempDir,
}

impl Served {
    /// Starts a controller with this interface, and prints its address.
    pub fn start(controller: Controller, northbound: Northbound) -> Result<Self, Box<dyn Error>> {
        let folder = TempDir::with_prefix("urtica-net-")?;
        let socket = folder.path().join("controller");
        let page = northbound.local_addr()?;
        let (emulation, requests) = Emulation::new();
        let northbound = northbound.emulation(emulation);
        let controller = controller.listen(Address::PassiveUnix(socket.clone()));
        let running = northbound.add_to(controller).start()?;
        say(format!("the network in a browser: http://{page}/"));
        Ok(Self {
            address: Address::Unix(socket),
            requests,
            traffic_ends: Vec::new(),
            _running: running,
            _folder: folder,
        })
    }

    /// Returns the address to which its switches connect.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Returns `true` while traffic that requests have started continues.
    pub fn has_traffic(&self, net: &Net) -> bool {
        self.traffic_ends.iter().any(|&end| end > net.now())
    }

    /// Executes the waiting requests.
    pub fn obey(&mut self, net: &mut Net) {
        self.requests.serve(&mut Network {
            net,
            traffic_ends: &mut self.traffic_ends,
        });
    }
}
