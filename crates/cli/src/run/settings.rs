//! Combinations of valid settings with which `urtica run` cannot start.
//!
//! One function has all of these checks, for `urtica run`, `urtica check`, `urtica doctor` and SIGHUP.

use super::args::{Offload, RunArgs, kernel_mode};
use std::fmt::Display;
use std::path::Path;
use urtica_config::Refused;
use urtica_controller::Error;

impl RunArgs {
    /// Returns the settings with which the controller cannot start. Reads the files that they name, but changes
    /// nothing. Programs' settings are checked by [`urtica_apps::Apps::new`].
    pub fn refused(&self) -> Vec<Refused> {
        let mut refused = Vec::new();
        if let Err(error) = self.controller.check() {
            refused.push(refused_setting(self.option_of(&error), error));
        }
        #[cfg(feature = "northbound")]
        if let Err((option, error)) = self.northbound.config() {
            refused.push(refused_setting(option, error));
        }
        let control = self.control.as_deref().map(check_socket);
        if let Some(Err(problem)) = control {
            refused.push(refused_setting("control", format!("--control: {problem}")));
        }
        if let Err(problem) = refuse_hold(self) {
            refused.push(refused_setting("hold", problem));
        }
        // A file may leave its programs to the command line.
        if !self.apps.is_empty() {
            let offload = kernel_mode(self).map(drop);
            if let Err(problem) = offload.and_then(|()| refuse_unseen(self)) {
                refused.push(refused_setting("offload", problem));
            }
        }
        refused
    }

    /// Returns the option that an error of the controller is about.
    fn option_of(&self, error: &Error) -> &'static str {
        match error {
            Error::NoTls(_) => "listen",
            #[cfg(feature = "tls")]
            Error::Tls(urtica_socket::TlsError::File { path, .. }) => {
                let tls = &self.controller.tls;
                let files = [
                    ("certificate", &tls.certificate),
                    ("ca-cert", &tls.ca_cert),
                    ("bootstrap-ca-cert", &tls.bootstrap_ca_cert),
                    ("crl", &tls.crl),
                ];
                let file = files.iter().find(|(_, file)| file.as_ref() == Some(path));
                file.map_or("private-key", |(option, _)| option)
            }
            Error::Tls(_) => "private-key",
            _ => "datapath-ids",
        }
    }
}

/// Refuses `--hold` with options that do not support it.
fn refuse_hold(args: &RunArgs) -> Result<(), String> {
    match args.hold.is_given() && args.offload == Offload::Ring {
        true => Err(
            "--hold does not work with --offload ring: a program that is killed loses the input in its rings; expected one of \
             them"
                .into(),
        ),
        false => Ok(()),
    }
}

/// Refuses programs that must see packets that the kernel would handle.
fn refuse_unseen(args: &RunArgs) -> Result<(), String> {
    match urtica_apps::find_watchful(&args.apps) {
        Some(name) if args.offload == Offload::Driven => Err(format!(
            "--offload driven: {name} must see the packets that the kernel would handle; expected programs without it, \
             or --offload none"
        )),
        _ => Ok(()),
    }
}

/// Refuses a socket that cannot be created.
fn check_socket(file: &Path) -> Result<(), String> {
    let folder = file.parent().filter(|folder| *folder != Path::new(""));
    let folder = folder.unwrap_or(Path::new("."));
    let shown = file.display();
    match std::fs::metadata(folder) {
        Ok(found) if found.is_dir() => match file.is_dir() {
            false => Ok(()),
            true => Err(format!("{shown} is a folder; expected a socket file")),
        },
        Ok(_) => Err(format!(
            "cannot listen at {shown}: {} is not a folder; expected one that exists",
            folder.display()
        )),
        Err(error) => Err(format!(
            "cannot listen at {shown}: the folder {} cannot be used: {error}; expected one that exists",
            folder.display()
        )),
    }
}

fn refused_setting(option: &'static str, problem: impl Display) -> Refused {
    Refused {
        option,
        problem: problem.to_string(),
    }
}
