//! The controller of a network that serves HTTP: it runs as `urtica run` does, on threads of its own, and the network's switches
//! connect to it by a socket.

use crate::say::say;
use std::error::Error;
use tempfile::TempDir;
use urtica_controller::{Controller, Running};
use urtica_northbound::Northbound;
use urtica_socket::Address;

/// A controller outside of the network's time. It ends when this is dropped.
pub(super) struct Outside {
    address: Address,
    _running: Running,
    /// The path of its socket.
    _folder: TempDir,
}

impl Outside {
    /// Starts a controller with this interface.
    pub fn start(controller: Controller, northbound: Northbound) -> Result<Self, Box<dyn Error>> {
        let folder = TempDir::with_prefix("urtica-net-")?;
        let socket = folder.path().join("controller");
        let page = northbound.local_addr()?;
        let controller = controller.listen(Address::PassiveUnix(socket.clone()));
        let running = northbound.add_to(controller).start()?;
        say(format!("the network in a browser: http://{page}/"));
        Ok(Self {
            address: Address::Unix(socket),
            _running: running,
            _folder: folder,
        })
    }

    /// The address to which its switches connect.
    pub fn address(&self) -> &Address {
        &self.address
    }
}
