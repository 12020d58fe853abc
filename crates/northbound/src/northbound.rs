//! The interface as a controller uses it.

use crate::app::App;
use crate::config::{NorthboundConfig, NorthboundError};
use crate::emulation::Emulation;
use crate::error::ApiError;
use crate::live::{Live, NorthboundHandle};
use crate::{api, events, guard, metrics, openapi, ryu, server, web};
use axum::Router;
use axum::http::{Method, StatusCode, Uri};
use axum::middleware;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use urtica_apps::RyuApps;
use urtica_controller::{Background, Controller};
use urtica_services::{Discovery, Hosts};

/// The HTTP interface of a controller.
///
/// ```no_run
/// use urtica_controller::{Controller, SwitchInfo, on_packet};
/// use urtica_northbound::{Northbound, NorthboundConfig};
/// use urtica_wire::PortNo;
///
/// let northbound = Northbound::bind(NorthboundConfig::default())?;
/// northbound
///     .add_to(Controller::new())
///     .run(|_: &SwitchInfo| on_packet(|switch, packet| switch.forward(packet, PortNo::FLOOD)))?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
/// It listens from [`Northbound::bind`] on, and responds when the controller runs. It has no handler, so messages of switches
/// do not pass through it. Timing packet-ins for the metrics costs two clock readings for each read from a switch.
pub struct Northbound {
    config: NorthboundConfig,
    listener: TcpListener,
    live: Arc<Live>,
    ryu: RyuApps,
    emulation: Option<Emulation>,
    router: Router,
}

impl Northbound {
    /// Starts to listen.
    ///
    /// # Errors
    /// If listening fails, or if other machines could use the interface without a token.
    pub fn bind(config: NorthboundConfig) -> Result<Self, NorthboundError> {
        let address = config.address;
        config.check()?;
        let failed = |error| NorthboundError::Listen { address, error };
        let listener = TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        Ok(Self {
            live: Arc::new(Live::new(&config)),
            ryu: RyuApps::default(),
            emulation: None,
            config,
            listener,
            router: Router::new(),
        })
    }

    /// Returns the address at which it listens.
    ///
    /// # Errors
    /// If the system does not know it.
    pub fn local_addr(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Adds links and paths. Without this, their lists are empty.
    pub fn discovery(self, discovery: &Discovery) -> Self {
        let discovery = Some(discovery.clone());
        self.live
            .modify_sources(|sources| sources.discovery = discovery);
        self
    }

    /// Adds hosts. Without this, their list is empty.
    pub fn hosts(self, hosts: &Hosts) -> Self {
        let hosts = Some(hosts.clone());
        self.live.modify_sources(|sources| sources.hosts = hosts);
        self
    }

    /// Lets requests control the programs that replace Ryu's REST applications. Without this, these programs have no switches.
    pub fn ryu(mut self, ryu: &RyuApps) -> Self {
        self.ryu = ryu.clone();
        self
    }

    /// Lets requests cut links, stop switches, and start pings and traffic in the controller's network, which this program
    /// emulates. Without this, such requests are refused.
    pub fn emulation(self, emulation: Emulation) -> Self {
        Self {
            emulation: Some(emulation),
            ..self
        }
    }

    /// Sets the names of the running programs.
    pub fn programs<S: Into<String>>(self, names: impl IntoIterator<Item = S>) -> Self {
        let programs = names.into_iter().map(Into::into).collect();
        self.live
            .modify_sources(|sources| sources.programs = programs);
        self
    }

    /// Returns a handle that changes the interface while it runs.
    pub fn handle(&self) -> NorthboundHandle {
        NorthboundHandle(Arc::clone(&self.live))
    }

    /// Adds a program's own paths, which are subject to the tokens and limits of the interface.
    ///
    /// ```no_run
    /// use axum::{Router, routing::get};
    /// use urtica_northbound::{Northbound, NorthboundConfig};
    ///
    /// let own = Router::new().route("/banned", get(async || "nobody"));
    /// let northbound = Northbound::bind(NorthboundConfig::default())?.merge(own);
    /// # let _ = northbound;
    /// # Ok::<(), urtica_northbound::NorthboundError>(())
    /// ```
    ///
    /// # Panics
    /// If the interface already has one of the paths.
    pub fn merge(mut self, router: Router) -> Self {
        self.router = self.router.merge(router);
        self
    }

    /// Adds the interface to a controller, with which it starts and stops.
    ///
    /// # Panics
    /// If a [merged](Self::merge) path is one of the interface's own.
    pub fn add_to(self, controller: Controller) -> Controller {
        let controller = controller.time_packet_ins(true);
        controller.background(move |background| self.start(background))
    }

    fn start(self, background: &Background) {
        let address = self.listener.local_addr().unwrap_or(self.config.address);
        let app = Arc::new(App::new(
            self.config,
            background,
            self.live,
            self.ryu,
            self.emulation,
        ));
        let config = Arc::new(app.config.clone());
        let router = router(Arc::clone(&app), self.router);
        tracing::info!(%address, "the northbound interface listens");
        background.spawn("northbound", async move {
            let served = tokio::select! {
                served = server::serve(self.listener, config, router) => served,
                never = app.lost_links.follow(&app.live) => match never {},
            };
            if let Err(error) = served {
                tracing::error!(%error, "the northbound interface failed; the controller keeps running");
            }
        });
    }
}

fn router(app: Arc<App>, own: Router) -> Router {
    Router::new()
        .merge(ryu::ofctl::routes())
        .merge(ryu::topology::routes())
        .merge(ryu::conf_switch::routes())
        .merge(ryu::firewall::routes())
        .merge(ryu::qos::routes())
        .merge(ryu::router::routes())
        .merge(api::routes())
        .merge(events::routes())
        .merge(metrics::routes())
        .merge(openapi::routes())
        .merge(web::routes())
        .merge(web::static_files(app.config.static_files.as_deref()))
        .with_state(Arc::clone(&app))
        .merge(own)
        .fallback(no_such_path)
        .method_not_allowed_fallback(no_such_method)
        .layer(middleware::from_fn_with_state(app, guard::check))
}

async fn no_such_path(uri: Uri) -> ApiError {
    ApiError::field(
        "the path",
        uri.path(),
        "one that GET /openapi.json or docs/northbound.md lists",
    )
    .with_status(StatusCode::NOT_FOUND)
    .example("/stats/switches")
}

async fn no_such_method(method: Method, uri: Uri) -> ApiError {
    let error = format!(
        "{} does not support {method}: expected a method that the header Allow lists",
        uri.path()
    );
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, error)
}
