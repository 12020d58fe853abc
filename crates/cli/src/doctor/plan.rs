//! The planned controller, by the doctor's options.

use super::DoctorArgs;
use crate::Command;
use crate::config::{Effective, sources};
use std::ffi::OsString;
use std::path::PathBuf;
use urtica_config::LoadError;
use urtica_doctor::Plan;

/// The settings for the check of certificates.
const TLS: [&str; 6] = [
    "listen",
    "private-key",
    "certificate",
    "ca-cert",
    "bootstrap-ca-cert",
    "crl",
];

/// Creates the plan from command line, environment and file, as for `urtica run`. After an error in them, only the
/// command line is used.
pub fn of(args: &DoctorArgs) -> (Plan, Option<LoadError>) {
    let options = options_of_run(args);
    // All options accept a value after '='.
    let words = options
        .iter()
        .map(|(name, value)| format!("{name}={value}"));
    let words = ["urtica", "run"]
        .map(str::to_owned)
        .into_iter()
        .chain(words);
    let sources = sources(words.map(OsString::from).collect());
    let (plan, error) = match sources.map(|sources| Effective::load(&sources)) {
        Some(Ok(effective)) => {
            // Faults of the file are found by the check of the file, and faults of TLS by the check of certificates.
            let refused = effective.check_settings().err().filter(
                |error| matches!(error, LoadError::Setting { option, .. } if !TLS.contains(option)),
            );
            (plan_of(effective), refused)
        }
        Some(Err(error)) => (None, Some(error)),
        None => (None, None),
    };
    let mut plan = plan.unwrap_or_else(|| Plan::new(args.listen.clone(), args.tls.config()));
    plan.switches = args.switches;
    plan.devices = args.device.clone();
    plan.options = options;
    (plan, error)
}

fn plan_of(effective: Effective) -> Option<Plan> {
    let Command::Run(run) = effective.cli.command else {
        return None;
    };
    let controller = run.controller_args();
    let mut plan = Plan::new(controller.listen.clone(), controller.tls.config());
    let programs = run.apps.join(",");
    if !programs.is_empty() {
        plan.programs = programs;
    }
    plan.wants_kernel = run.wants_kernel();
    plan.northbound = run.northbound_address();
    Some(plan)
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
