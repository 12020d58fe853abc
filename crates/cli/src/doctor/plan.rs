//! What the user is going to run, and the doctor therefore looks at.

use super::DoctorArgs;
use super::finding::quoted;
use crate::Command;
use crate::config::{Effective, LoadError, Sources};
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use urtica_socket::{Address, DEFAULT_PORT, TlsConfig};

/// The other port at which a controller listens that is not told where: `Controller::new` has both.
const OLD_PORT: u16 = 6633;

/// The settings that the check of certificates looks at.
const TLS: [&str; 6] = [
    "listen",
    "private-key",
    "certificate",
    "ca-cert",
    "bootstrap-ca-cert",
    "crl",
];

/// The controller to be, and what belongs to it.
#[derive(Debug, Default)]
pub struct Plan {
    pub listen: Vec<Address>,
    pub tls: Option<TlsConfig>,
    /// Where HTTP is served, if it is.
    pub northbound: Option<SocketAddr>,
    /// Whether the kernel is to answer.
    pub wants_kernel: bool,
    /// How many switches connect.
    pub switches: u64,
    /// The network devices that are to be a switch's ports.
    pub devices: Vec<String>,
    pub config: Option<PathBuf>,
    /// The control programs, separated by commas.
    pub programs: String,
    /// What the command line says of it.
    pub options: Vec<(&'static str, String)>,
}

impl Plan {
    /// What command line, environment and file say together, as for `urtica run`, and what is wrong in them: the plan is then what the
    /// command line says.
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

    /// Whether TLS is spoken.
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
            // A value of its own is optional.
            "--northbound" => format!(" {name}={}", quoted(value)),
            _ => format!(" {name} {}", quoted(value)),
        });
        let options: String = options.collect();
        format!("urtica run {}{options}", quoted(&self.programs))
    }
}

/// What the command line says of the controller, by the names of its options.
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
