//! The parts of the interface that can change at run time: the tokens, and the services whose data it shows.

use crate::config::{NorthboundConfig, NorthboundError, Tokens};
use parking_lot::RwLock;
use serde::Serialize;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::sync::watch;
use urtica_services::{Discovery, Hosts};
use utoipa::ToSchema;

/// The running programs, and their services.
#[derive(Clone, Default)]
pub(crate) struct Sources {
    pub discovery: Option<Discovery>,
    pub hosts: Option<Hosts>,
    /// The names of the running programs.
    pub programs: Vec<String>,
}

/// An option of the controller that was set.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct Setting {
    pub name: String,
    pub values: Vec<String>,
}

/// The changeable state of an interface.
pub(crate) struct Live {
    settings: RwLock<Vec<Setting>>,
    address: SocketAddr,
    sources: watch::Sender<Arc<Sources>>,
    tokens: RwLock<Tokens>,
}

impl Live {
    pub fn new(config: &NorthboundConfig) -> Self {
        Self {
            settings: RwLock::default(),
            address: config.address,
            sources: watch::Sender::default(),
            tokens: RwLock::new(config.tokens.clone()),
        }
    }

    pub fn sources(&self) -> Arc<Sources> {
        Arc::clone(&self.sources.borrow())
    }

    /// Returns a receiver of the services, which is notified whenever they change.
    pub fn watch_sources(&self) -> watch::Receiver<Arc<Sources>> {
        self.sources.subscribe()
    }

    pub fn modify_sources(&self, modify: impl FnOnce(&mut Sources)) {
        self.sources
            .send_modify(|sources| modify(Arc::make_mut(sources)));
    }

    pub fn settings(&self) -> Vec<Setting> {
        self.settings.read().clone()
    }

    pub fn tokens(&self) -> Tokens {
        self.tokens.read().clone()
    }
}

/// Changes an interface while it runs, if its controller runs other programs or other tokens become valid. Clones change the
/// same interface.
///
/// ```no_run
/// use urtica_northbound::{Northbound, NorthboundConfig, Tokens};
///
/// let northbound = Northbound::bind(NorthboundConfig::default())?;
/// let handle = northbound.handle();
/// // While the controller runs:
/// handle.set_programs(["l2"], None, None);
/// handle.set_tokens(Tokens::new(["4f9ec7d0b6a1c5e2"]))?;
/// # Ok::<(), urtica_northbound::NorthboundError>(())
/// ```
#[derive(Clone)]
pub struct NorthboundHandle(pub(crate) Arc<Live>);

impl NorthboundHandle {
    /// Sets the names and services of the running programs. Clients that watch events are notified of links and hosts
    /// that are removed with a service, and of links and hosts that a new service has found.
    pub fn set_programs<S: Into<String>>(
        &self,
        names: impl IntoIterator<Item = S>,
        discovery: Option<&Discovery>,
        hosts: Option<&Hosts>,
    ) {
        let programs = names.into_iter().map(Into::into).collect();
        self.0.modify_sources(|sources| {
            *sources = Sources {
                discovery: discovery.cloned(),
                hosts: hosts.cloned(),
                programs,
            };
        });
    }

    /// Sets the settings that [`GET /api/v1/controller`](crate) returns to all clients that may read. They must not contain
    /// secrets.
    pub fn set_settings(&self, settings: impl IntoIterator<Item = (String, Vec<String>)>) {
        let settings = settings.into_iter();
        *self.0.settings.write() = settings
            .map(|(name, values)| Setting { name, values })
            .collect();
    }

    /// Sets the tokens for later requests. Requests that are being served and clients that watch events are not affected.
    ///
    /// # Errors
    /// [`NorthboundError::NoTokens`] if other machines could use the interface without a token. The old tokens stay valid.
    pub fn set_tokens(&self, tokens: Tokens) -> Result<(), NorthboundError> {
        let config = NorthboundConfig {
            address: self.0.address,
            tokens,
            ..NorthboundConfig::default()
        };
        config.check()?;
        *self.0.tokens.write() = config.tokens;
        Ok(())
    }
}
