//! The command-line options for TLS that all programs share.

use crate::{Address, NoTlsConfig, Tls, TlsConfig, TlsError};
use std::path::PathBuf;

/// Options for TLS: those of Open vSwitch's programs, and the expected peer's name.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "TLS, for ssl: and pssl: (docs/operating.md)")]
pub struct TlsArgs {
    /// Private key
    #[arg(long, value_name = "FILE", requires_all = ["certificate", "authorities"])]
    pub private_key: Option<PathBuf>,
    /// Certificate
    #[arg(long, value_name = "FILE", requires_all = ["private_key", "authorities"])]
    pub certificate: Option<PathBuf>,
    /// CA certificates that sign the peers' certificates
    #[arg(long, value_name = "FILE", group = "authorities", requires_all = ["private_key", "certificate"])]
    pub ca_cert: Option<PathBuf>,
    /// Like --ca-cert, but if the file does not exist, save the CA certificate that the first peer shows there, whoever the
    /// peer is
    #[arg(long, value_name = "FILE", group = "authorities", requires_all = ["private_key", "certificate"])]
    pub bootstrap_ca_cert: Option<PathBuf>,
    /// Certificate revocation lists, one of each CA
    #[arg(long, value_name = "FILE", requires = "private_key")]
    pub crl: Option<PathBuf>,
    /// Accept only the peer with this certificate name, or this fingerprint: sha256:… [default: any peer with a signed
    /// certificate]
    #[arg(long, value_name = "NAME", requires = "private_key")]
    pub peer_name: Option<String>,
}

/// An error in the options for TLS.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsArgsError {
    /// Required options are missing.
    #[error(transparent)]
    NoConfig(#[from] NoTlsConfig),
    /// A file cannot be used.
    #[error(transparent)]
    Files(#[from] TlsError),
}

impl TlsArgs {
    /// Returns the files given on the command line, if any.
    pub fn config(&self) -> Option<TlsConfig> {
        let authorities = self.ca_cert.as_ref().or(self.bootstrap_ca_cert.as_ref());
        let (key, certificate) = (self.private_key.as_ref()?, self.certificate.as_ref()?);
        let config = TlsConfig::new(key, certificate, authorities?)
            .bootstrap(self.bootstrap_ca_cert.is_some())
            .crl(self.crl.clone())
            .peer_name(self.peer_name.clone());
        Some(config)
    }

    /// Loads the files needed for connections at these addresses; `None` if none of the addresses uses TLS.
    ///
    /// # Errors
    /// [`TlsArgsError`].
    pub fn load_for<'a>(
        &self,
        addresses: impl IntoIterator<Item = &'a Address>,
    ) -> Result<Option<Tls>, TlsArgsError> {
        let needs = addresses.into_iter().find(|address| address.is_tls());
        match (needs, self.config()) {
            (_, Some(config)) => Ok(Some(Tls::load(config)?)),
            (Some(address), None) => Err(NoTlsConfig(address.clone()).into()),
            (None, None) => Ok(None),
        }
    }
}

#[cfg(all(test, feature = "tls"))]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Alone {
        #[command(flatten)]
        args: TlsArgs,
    }

    fn parse(arguments: &[&str]) -> Result<TlsArgs, String> {
        let program = ["program"].iter().chain(arguments);
        let alone = Alone::try_parse_from(program).map_err(|error| error.to_string())?;
        Ok(alone.args)
    }

    #[test]
    fn requires_all_three_files() {
        let all = parse(&["--private-key=k", "--certificate=c", "--ca-cert=a"]).unwrap();
        let config = all.config().unwrap();
        assert_eq!(config.ca_cert, PathBuf::from("a"));
        assert_eq!(parse(&[]).unwrap().config(), None);
        for (some, missing) in [
            ("--private-key=k", "--ca-cert"),
            ("--certificate=c", "--private-key"),
            ("--ca-cert=a", "--certificate"),
            ("--peer-name=n", "--private-key"),
            ("--crl=l", "--private-key"),
            ("--bootstrap-ca-cert=a", "--certificate"),
        ] {
            let sentence = parse(&[some]).unwrap_err();
            assert!(sentence.contains(missing), "{sentence}");
        }
    }

    #[test]
    fn ca_cert_and_bootstrap_ca_cert_conflict() {
        let own = ["--private-key=k", "--certificate=c"];
        let first = parse(&[own[0], own[1], "--bootstrap-ca-cert=a", "--crl=l"]);
        let config = first.unwrap().config().unwrap();
        let expected = TlsConfig::new("k", "c", "a").bootstrap(true);
        assert_eq!(config, expected.crl(Some("l".into())));
        let both = parse(&[own[0], own[1], "--bootstrap-ca-cert=a", "--ca-cert=b"]);
        assert!(both.unwrap_err().contains("cannot be used with"));
    }

    #[test]
    fn tls_addresses_require_files() {
        let none = parse(&[]).unwrap();
        let plain: Address = "ptcp:".parse().unwrap();
        assert!(none.load_for([&plain]).unwrap().is_none());
        let tls: Address = "pssl:6653".parse().unwrap();
        let error = none.load_for([&plain, &tls]).err().unwrap().to_string();
        for words in ["pssl:6653", "--private-key", "ovs-pki req+sign"] {
            assert!(error.contains(words), "{error}");
        }
        let given = parse(&[
            "--private-key=/none/k",
            "--certificate=/none/c",
            "--ca-cert=/none/a",
        ]);
        let error = given.unwrap().load_for([&plain]).err().unwrap().to_string();
        assert!(error.contains("/none/c cannot be read"), "{error}");
    }
}
