//! The options of the northbound interface.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use urtica_apps::Services;
use urtica_controller::Controller;
use urtica_northbound::{Northbound, NorthboundConfig, NorthboundError, NorthboundHandle, Tokens};

/// Options of the northbound interface.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Options of the northbound interface")]
pub struct NorthboundArgs {
    /// Serve HTTP: a page for browsers, Ryu's REST paths, events, metrics for Prometheus. ADDR is an address and a port, or a
    /// port of the loopback address [default ADDR: 127.0.0.1:8080].
    #[arg(
        long,
        value_name = "ADDR",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "127.0.0.1:8080",
        value_parser = parse_address
    )]
    northbound: Option<SocketAddr>,
    /// Require one of the bearer tokens in this file, one per line, with `read-only` before tokens that may only read;
    /// necessary if other machines can reach ADDR.
    #[arg(long, value_name = "FILE", requires = "northbound")]
    northbound_tokens: Option<PathBuf>,
    /// Serve the files in DIR below /static/, even to clients without a token.
    #[arg(long, value_name = "DIR", requires = "northbound")]
    northbound_static: Option<PathBuf>,
}

/// Parses an address and a port, or a port of the loopback address.
pub fn parse_address(text: &str) -> Result<SocketAddr, String> {
    let port = || {
        text.parse()
            .map(|port: u16| SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
    };
    let address = text.parse().or_else(|_| port());
    address.map_err(|_| {
        "expected an address and a port, such as 127.0.0.1:8080 or [::1]:8080, or a port alone"
            .into()
    })
}

impl NorthboundArgs {
    /// Returns the options of an interface at this address, without tokens.
    pub fn at(address: SocketAddr) -> Self {
        Self {
            northbound: Some(address),
            northbound_tokens: None,
            northbound_static: None,
        }
    }

    /// Returns the address of the interface, if it is requested.
    pub fn address(&self) -> Option<SocketAddr> {
        self.northbound
    }

    /// Returns the interface's settings, or defaults if it is off.
    ///
    /// # Errors
    /// The reason why it cannot start, with the name of the option.
    pub fn config(&self) -> Result<NorthboundConfig, (&'static str, NorthboundError)> {
        let Some(address) = self.northbound else {
            return Ok(NorthboundConfig::default());
        };
        let tokens = self
            .tokens()
            .map_err(|error| ("northbound-tokens", error))?;
        let config = NorthboundConfig {
            address,
            tokens,
            static_files: self.northbound_static.clone(),
            ..NorthboundConfig::default()
        };
        config.check().map_err(|error| match error {
            error @ NorthboundError::NoFolder(_) => ("northbound-static", error),
            error => ("northbound", error),
        })?;
        Ok(config)
    }

    /// Reads the tokens of the file, if one is named.
    fn tokens(&self) -> Result<Tokens, NorthboundError> {
        let tokens = self.northbound_tokens.as_deref().map(Tokens::read);
        Ok(tokens.transpose()?.unwrap_or_default())
    }

    /// Sets the tokens of a running interface to those of these options.
    pub fn set_tokens(&self, handle: &NorthboundHandle) {
        // Without the option, the interface keeps running unchanged until a restart.
        if self.northbound.is_none() {
            return;
        }
        let set = self.tokens().and_then(|tokens| handle.set_tokens(tokens));
        if let Err(error) = set {
            tracing::error!("keeping the northbound interface's old tokens: {error}");
        }
    }

    /// Adds the interface, if requested.
    pub fn add_to(
        &self,
        controller: Controller,
        programs: &[String],
        services: &Services,
    ) -> Result<(Controller, Option<NorthboundHandle>), NorthboundError> {
        let Some(northbound) = self.bind(programs, services)? else {
            warn_of_missing_interface(programs);
            return Ok((controller, None));
        };
        let handle = northbound.handle();
        Ok((northbound.add_to(controller), Some(handle)))
    }

    /// Binds the interface of these programs; `None` if it is not requested.
    pub fn bind(
        &self,
        programs: &[String],
        services: &Services,
    ) -> Result<Option<Northbound>, NorthboundError> {
        if self.northbound.is_none() {
            return Ok(None);
        }
        let config = self.config().map_err(|(_, error)| error)?;
        let mut northbound = Northbound::bind(config)?
            .programs(programs)
            .ryu(&services.ryu);
        if let Some(discovery) = &services.discovery {
            northbound = northbound.discovery(discovery);
        }
        if let Some(hosts) = &services.hosts {
            northbound = northbound.hosts(hosts);
        }
        Ok(Some(northbound))
    }
}

/// Sets the programs of a running interface.
pub fn set_programs(handle: &NorthboundHandle, names: &[String], services: &Services) {
    let (discovery, hosts) = (services.discovery.as_ref(), services.hosts.as_ref());
    handle.set_programs(names, discovery, hosts);
}

/// Warns about programs that only execute requests, if there is no interface for requests.
fn warn_of_missing_interface(programs: &[String]) {
    let asked = programs.iter().find(|name| name.starts_with("rest_"));
    if let Some(name) = asked {
        tracing::warn!(
            "{name} carries out HTTP requests, but HTTP is off; expected --northbound, too"
        );
    }
}
