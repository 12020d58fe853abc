//! The controller that the user wants to run.

use crate::finding::quoted;
use std::net::SocketAddr;
use urtica_socket::{Address, DEFAULT_PORT, TlsConfig};

/// The second default port of a controller: `Controller::new` listens on both.
const OLD_PORT: u16 = 6633;

/// The planned controller and its environment.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Plan {
    /// The addresses at which switches connect.
    pub listen: Vec<Address>,
    /// The files for TLS.
    pub tls: Option<TlsConfig>,
    /// The address of HTTP, if it is served.
    pub northbound: Option<SocketAddr>,
    /// Whether the kernel should answer packet-ins.
    pub wants_kernel: bool,
    /// The number of switches.
    pub switches: u64,
    /// The network devices for a switch's ports.
    pub devices: Vec<String>,
    /// The control programs, separated by commas.
    pub programs: String,
    /// The options of the command line, with their values.
    pub options: Vec<(&'static str, String)>,
}

impl Plan {
    /// Creates the plan of a controller that listens at these addresses and runs `l2`. Without an address it listens at
    /// the default addresses of `urtica run`.
    pub fn new(listen: Vec<Address>, tls: Option<TlsConfig>) -> Self {
        Self {
            listen: match listen.is_empty() {
                true => default_addresses(tls.is_some()),
                false => listen,
            },
            tls,
            programs: "l2".to_owned(),
            ..Self::default()
        }
    }

    /// Returns `true` if the controller uses TLS.
    pub(crate) fn speaks_tls(&self) -> bool {
        self.tls.is_some() || self.listen.iter().any(Address::is_tls)
    }

    /// Returns the TCP ports to which switches connect, with their addresses.
    pub(crate) fn sockets(&self) -> impl Iterator<Item = (SocketAddr, &Address)> {
        let addresses = self.listen.iter();
        addresses.filter_map(|address| Some((address.listen_addr()?, address)))
    }

    /// Returns the command that runs the planned controller with these options changed, each with its value.
    pub(crate) fn run_with(&self, changed: &[(&str, &str)]) -> String {
        let given = self
            .options
            .iter()
            .map(|(name, value)| (*name, value.as_str()));
        let kept = given.filter(|(name, _)| changed.iter().all(|(other, _)| name != other));
        let options = kept.chain(changed.iter().copied());
        let options = options.map(|(name, value)| match name {
            // Its value is optional.
            "--northbound" => format!(" {name}={}", quoted(value)),
            _ => format!(" {name} {}", quoted(value)),
        });
        let options: String = options.collect();
        format!("urtica run {}{options}", quoted(&self.programs))
    }
}

fn default_addresses(for_tls: bool) -> Vec<Address> {
    let ports = [DEFAULT_PORT, OLD_PORT];
    let address = |port| match for_tls {
        true => Address::PassiveSsl { host: None, port },
        false => Address::PassiveTcp { host: None, port },
    };
    ports.map(address).to_vec()
}
