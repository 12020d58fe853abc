//! The options that every controller program has on its command line.

use crate::session::SessionConfig;
use crate::{Controller, Error, Role};
use clap::Parser;
use std::path::PathBuf;
use urtica_socket::{Address, TlsArgs};
use urtica_wire::Version;

/// Not a doc comment, since rustdoc would read the brackets as links.
const LISTEN_HELP: &str = "Listen here, in Open vSwitch's form: ptcp:[PORT][:HOST], pssl:[PORT][:HOST] or \
                           punix:FILE. May be repeated \
                           [default: ptcp:6653 and ptcp:6633; pssl: with the files for TLS]";

/// Options of a controller: addresses, shards, versions.
#[derive(Clone, Debug, clap::Args)]
#[non_exhaustive]
pub struct Args {
    /// Addresses to listen at; without any, [`urtica_socket::DEFAULT_PORT`] and the port that was used before it.
    #[arg(long, value_name = "ADDR", help = LISTEN_HELP)]
    pub listen: Vec<Address>,
    /// Number of shards (threads, each on its own core) that serve the switches [default: one per core].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub shards: Option<u16>,
    /// Accept only this version of OpenFlow: 1.0 or 1.3. May be repeated [default: both].
    #[arg(long, value_name = "VERSION")]
    pub openflow: Vec<Version>,
    /// Role to request from each switch, if it has several controllers: equal, primary or secondary [default: equal, without
    /// a request].
    #[arg(long, value_name = "ROLE")]
    pub role: Option<Role>,
    /// The files for TLS.
    #[command(flatten)]
    pub tls: TlsArgs,
    /// Datapath ids that certificates may use: a file with a line 'ID[,ID…] NAME' for each certificate.
    #[arg(
        long,
        value_name = "FILE",
        help_heading = "TLS, for ssl: and pssl: (docs/operating.md)"
    )]
    pub datapath_ids: Option<PathBuf>,
}

#[derive(Parser)]
struct Alone {
    #[command(flatten)]
    args: Args,
}

impl Controller {
    /// Creates a controller with the options of the command line: see [`Args`]. Prints help and exits on request, and if an
    /// option is invalid.
    pub fn from_args() -> Self {
        Args::parse_or_exit().into_controller()
    }
}

impl Args {
    /// Parses the command line of a program that has no other options. Prints help and exits on request, and if an option is
    /// invalid.
    pub fn parse_or_exit() -> Self {
        Alone::parse().args
    }

    /// Checks that a controller can start with these options: that the files for TLS and of datapath ids are usable, and that
    /// addresses for TLS have such files. Reads the files, but does not listen.
    ///
    /// # Errors
    /// [`Error::Tls`], [`Error::NoTls`], [`Error::Setting`].
    pub fn check(&self) -> Result<(), Error> {
        self.clone().into_controller().check_files()
    }

    /// Creates a controller with these options.
    pub fn into_controller(self) -> Controller {
        let mut session = SessionConfig::default();
        if !self.openflow.is_empty() {
            session.versions = self.openflow;
        }
        let mut controller = Controller::new().session(session);
        if let Some(role) = self.role {
            controller = controller.role(role);
        }
        if let Some(tls) = self.tls.config() {
            controller = controller.tls(tls);
        }
        if let Some(file) = self.datapath_ids {
            controller = controller.datapath_ids(file);
        }
        let controller = self.listen.into_iter().fold(controller, Controller::listen);
        match self.shards {
            Some(shards) => controller.shards(shards.into()),
            None => controller,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<Args, String> {
        let program = ["program"].iter().chain(arguments);
        Alone::try_parse_from(program)
            .map(|alone| alone.args)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn options_are_optional() {
        let args = parse(&[]).unwrap();
        assert!(args.listen.is_empty() && args.openflow.is_empty());
        assert_eq!(args.shards, None);
    }

    #[test]
    fn addresses_and_versions_may_be_repeated() {
        let args = parse(&[
            "--listen",
            "ptcp:6653",
            "--listen",
            "punix:of.sock",
            "--shards=3",
            "--openflow=1.0",
            "--openflow=OpenFlow13",
        ]);
        let args = args.unwrap();
        let listen: Vec<_> = args.listen.iter().map(Address::to_string).collect();
        assert_eq!(listen, ["ptcp:6653", "punix:of.sock"]);
        assert_eq!(args.shards, Some(3));
        assert_eq!(args.openflow, Version::ALL);
    }

    #[test]
    fn errors_name_the_expected_value() {
        for (option, value, expected) in [
            ("--listen", "localhost", "ptcp:[PORT][:HOST]"),
            ("--listen", "pssl:x", "from 0 to 65535"),
            ("--openflow", "1.1", "expected 1.0 or 1.3"),
            ("--shards", "0", "1..=1024"),
            ("--role", "leader", "expected equal, primary or secondary"),
        ] {
            let sentence = parse(&[option, value]).unwrap_err();
            assert!(sentence.contains(expected), "{option} {value}: {sentence}");
            assert!(sentence.contains(value), "{sentence}");
        }
    }
}
