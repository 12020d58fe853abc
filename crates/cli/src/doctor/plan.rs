//! The planned controller, which the doctor checks.

use super::DoctorArgs;
use super::finding::quoted;
use crate::Command;
use crate::config::{Effective, LoadError, Sources};
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use urtica_socket::{Address, DEFAULT_PORT, TlsConfig};

/// The second default port of a controller, as in `Controller::new`.
const OLD_PORT: u16 = 6633;

/// The settings for the check of certificates.
const TLS: [&str; 6] = [
    "listen",
    "private-key",
    "certificate",
    "ca-cert",
    "bootstrap-ca-cert",
    "crl",
];

/// The planned controller and its environment.
#[derive(Debug, Default)]
pub struct Plan {
    pub listen: Vec<Address>,
    pub tls: Option<TlsConfig>,
    /// Where HTTP is served, if it is.
    pub northbound: Option<SocketAddr>,
    /// Whether a kernel half is required.
    pub wants_kernel: bool,
    /// The expected number of switches.
    pub switches: u64,
    /// The network devices that are to be a switch's ports.
    pub devices: Vec<String>,
    pub config: Option<PathBuf>,
    /// The control programs, separated by commas.
    pub programs: String,
    /// Its options on the command line.
    pub options: Vec<(&'static str, String)>,
}

impl Plan {
    /// Creates the plan from command line, environment and file, as for `urtica run`. After an error in them, only the
    /// command line is used.
    pub fn of(args: &DoctorArgs) -> (Self, Option<LoadError>) {
        let options = options_of_run(args);
        // A value behind '=' is taken by all options.
        let words = options
            .iter()
            .map(|(name, value)| format!("{name}={value}"));
        let words = ["urtica", "run"]
            .map(str::to_owned)
            .into_iter()
            .chain(words);
        let sources = Sources::of_run(words.map(OsString::from).collect());
        let loaded = sources.map(|sources| sources.load());
        let mut plan = Self {
            listen: args.listen.clone(),
            tls: args.tls.config(),
            switches: args.switches,
            devices: args.device.clone(),
            config: args.config.clone(),
            options,
            ..Self::default()
        };
        let error = match loaded {
            Some(Ok(effective)) => {
                // Faults of the file are found by the check of the file, those of TLS by the check of certificates.
                let refused = effective.check_settings().err().filter(|error| {
                    matches!(error, LoadError::Setting { option, .. } if !TLS.contains(option))
                });
                plan.take(effective);
                refused
            }
            Some(Err(error)) => Some(error),
            None => None,
        };
        if plan.listen.is_empty() {
            plan.listen = default_addresses(plan.tls.is_some());
        }
        if plan.programs.is_empty() {
            plan.programs = "l2".into();
        }
        (plan, error)
    }

    fn take(&mut self, effective: Effective) {
        let Command::Run(run) = effective.cli.command else {
            return;
        };
        self.programs = run.apps.join(",");
        self.wants_kernel = run.wants_kernel();
        self.northbound = run.northbound_address();
        let controller = run.controller_args();
        self.listen = controller.listen.clone();
        self.tls = controller.tls.config();
    }

    /// Returns `true` if TLS is used.
    pub fn speaks_tls(&self) -> bool {
        self.tls.is_some() || self.listen.iter().any(Address::is_tls)
    }

    /// The ports of TCP at which switches connect, with their addresses.
    pub fn sockets(&self) -> impl Iterator<Item = (SocketAddr, &Address)> {
        let addresses = self.listen.iter();
        addresses.filter_map(|address| Some((address.listen_addr()?, address)))
    }

    /// The command that runs the controller as the user wants it, but for these options, each with its value.
    pub fn run_with(&self, changed: &[(&str, &str)]) -> String {
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

/// Returns the controller's options on the command line, by name.
fn options_of_run(args: &DoctorArgs) -> Vec<(&'static str, String)> {
    let path = |path: &PathBuf| path.display().to_string();
    let options = [
        ("--config", args.config.as_ref().map(path)),
        ("--private-key", args.tls.private_key.as_ref().map(path)),
        ("--certificate", args.tls.certificate.as_ref().map(path)),
        ("--ca-cert", args.tls.ca_cert.as_ref().map(path)),
        ("--peer-name", args.tls.peer_name.clone()),
        ("--datapath-ids", args.datapath_ids.as_ref().map(path)),
        #[cfg(feature = "northbound")]
        (
            "--northbound",
            args.northbound.map(|address| address.to_string()),
        ),
        #[cfg(feature = "northbound")]
        (
            "--northbound-tokens",
            args.northbound_tokens.as_ref().map(path),
        ),
    ];
    let listen = args
        .listen
        .iter()
        .map(|address| ("--listen", address.to_string()));
    let options = options.into_iter();
    listen
        .chain(options.filter_map(|(name, value)| Some((name, value?))))
        .collect()
}

fn default_addresses(for_tls: bool) -> Vec<Address> {
    let ports = [DEFAULT_PORT, OLD_PORT];
    let address = |port| match for_tls {
        true => Address::PassiveSsl { host: None, port },
        false => Address::PassiveTcp { host: None, port },
    };
    ports.map(address).to_vec()
}
