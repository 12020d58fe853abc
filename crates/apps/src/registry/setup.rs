//! Programs that are being set up, and the services that they need.

use super::about::{About, Forwards, Service};
use super::settings::Settings;
use crate::bandwidth::Bandwidth;
use crate::ryu::RyuApps;
use std::sync::Arc;
use urtica_controller::{Named, Program};
use urtica_services::{
    Discovery, DiscoveryConfig, Hosts, HostsConfig, NeighbourProxy, ProvisionConfig, Provisioner,
    Routes,
};

/// The services that programs have added: for an HTTP interface, for instance.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct Services {
    /// The discovery of links between switches.
    pub discovery: Option<Discovery>,
    /// The table of hosts and their ports.
    pub hosts: Option<Hosts>,
    /// The proxy that answers requests for hosts' addresses.
    pub neighbour_proxy: Option<NeighbourProxy>,
    /// The provisioner of paths.
    pub provisioner: Option<Provisioner>,
    /// The shortest paths between switches.
    pub routes: Option<Routes>,
    /// The reservations of bandwidth, if `bandwidth` runs.
    pub bandwidth: Option<Bandwidth>,
    /// The replacements of Ryu's REST applications; each reports whether it runs.
    pub ryu: RyuApps,
}

/// A program of the registry that was set up.
#[derive(Clone)]
pub(super) struct App {
    pub name: &'static str,
    /// Its programs in the controller; empty if it already runs, and continues.
    pub programs: Vec<Arc<dyn Program>>,
    /// The facts on which its set-up depends.
    pub reasons: Reasons,
    /// Its options and files; `None` if the user did not name it.
    pub settings: Option<Settings>,
}

/// The facts on which a program's set-up depends, besides its options.
#[derive(Clone, Default)]
pub(super) struct Reasons {
    /// The services that the program uses.
    pub services: Vec<Service>,
    /// The programs for which it has checked whether the user requested them, and the result.
    pub named: Vec<(&'static str, bool)>,
    /// Whether it has checked that no program before it forwards all packets.
    pub minds_forwarders: bool,
    /// Whether a program has gateways, if it has checked that.
    pub has_gateways: Option<bool>,
    /// Whether it shows reservations of bandwidth to others.
    pub shows_bandwidth: bool,
}

/// The settings of services, which belong to no single program.
#[derive(Clone, Default)]
pub(super) struct ServiceConfigs {
    pub discovery: DiscoveryConfig,
    pub hosts: HostsConfig,
}

/// Programs being set up, and their services so far.
pub(crate) struct Setup {
    /// The requested programs.
    named: Vec<About>,
    /// The program being added.
    current: &'static str,
    reasons: Reasons,
    /// The programs set up so far, in the order in which they are added to a controller.
    pub(super) apps: Vec<App>,
    pub(super) services: Services,
    /// The services that run already.
    running: Services,
    configs: ServiceConfigs,
}

impl Setup {
    /// Creates an empty set-up. The `running` services run already.
    pub(super) fn new(named: Vec<About>, configs: ServiceConfigs, running: Services) -> Self {
        Self {
            named,
            current: "",
            reasons: Reasons::default(),
            apps: Vec::new(),
            services: Services {
                ryu: running.ryu.clone(),
                ..Services::default()
            },
            running,
            configs,
        }
    }

    /// Sets up a program with these settings, as specified by its row.
    pub(super) fn add_row(
        &mut self,
        about: &About,
        settings: Settings,
        add: impl FnOnce(&mut Self) -> Result<(), String>,
    ) -> Result<(), String> {
        self.current = about.name;
        self.reasons = Reasons::default();
        self.check_forwarders(about)?;
        add(self)?;
        let reasons = std::mem::take(&mut self.reasons);
        if let Some(app) = self.apps.iter_mut().find(|app| app.name == about.name) {
            app.reasons = reasons;
            app.settings = Some(settings);
        }
        Ok(())
    }

    /// Keeps a running program, and the services that it uses, if no fact of its set-up has changed. Returns `true` if it has
    /// kept the program.
    pub(super) fn keep_row(&mut self, about: &About, app: &App) -> Result<bool, String> {
        self.current = about.name;
        self.check_forwarders(about)?;
        let reasons = &app.reasons;
        let is_same = |&(name, was_named): &(&str, bool)| self.is_among_named(name) == was_named;
        let has_forwarder = reasons.minds_forwarders && self.find_forwarder_before().is_some();
        let has_same_gateways = reasons
            .has_gateways
            .is_none_or(|had| had == self.has_gateways());
        if !reasons.named.iter().all(is_same) || has_forwarder || !has_same_gateways {
            return Ok(false);
        }
        for service in &reasons.services {
            self.use_service(*service);
        }
        if reasons.shows_bandwidth {
            self.services.bandwidth = self.running.bandwidth.take();
        }
        self.keep(app);
        Ok(true)
    }

    fn keep(&mut self, app: &App) {
        self.apps.push(App {
            programs: Vec::new(),
            ..app.clone()
        });
    }

    /// Adds a program.
    pub fn add(&mut self, program: impl Program + 'static) {
        self.add_as(self.current, program);
    }

    fn add_as(&mut self, name: &'static str, program: impl Program + 'static) {
        let program: Arc<dyn Program> = Arc::new(Named::new(name, program));
        match self.apps.iter_mut().find(|app| app.name == name) {
            Some(app) => app.programs.push(program),
            None => self.apps.push(App {
                name,
                programs: vec![program],
                reasons: Reasons::default(),
                settings: None,
            }),
        }
    }

    /// Shows the program's reservations to others.
    pub fn show_bandwidth(&mut self, bandwidth: Bandwidth) {
        self.reasons.shows_bandwidth = true;
        self.services.bandwidth = Some(bandwidth);
    }

    /// Returns `true` if the user requested this program, before or after the one being added.
    pub fn is_named(&mut self, name: &'static str) -> bool {
        let is_named = self.is_among_named(name);
        self.reasons.named.push((name, is_named));
        is_named
    }

    fn is_among_named(&self, name: &str) -> bool {
        self.named.iter().any(|about| about.name == name)
    }

    /// Returns a program that forwards all packets, if the user named one before the one being added.
    pub fn forwarder_before(&mut self) -> Option<&'static str> {
        self.reasons.minds_forwarders = true;
        self.find_forwarder_before()
    }

    fn find_forwarder_before(&self) -> Option<&'static str> {
        let named = self.named.iter();
        let mut earlier = named.take_while(|about| about.name != self.current);
        let forwarder = earlier.find(|about| about.forwards == Forwards::All);
        forwarder.map(|about| about.name)
    }

    /// Checks that only one program forwards all packets.
    fn check_forwarders(&self, about: &About) -> Result<(), String> {
        match self.find_forwarder_before() {
            Some(earlier) if about.forwards == Forwards::All => Err(format!(
                "{earlier} forwards all packets, too, so that each would arrive twice; expected one of the two"
            )),
            _ => Ok(()),
        }
    }

    /// Returns the service for link discovery and safe flooding.
    pub fn discovery(&mut self) -> Discovery {
        let config = self.configs.discovery.clone();
        self.service(
            Service::Discovery,
            |services| &mut services.discovery,
            || Discovery::new(config),
        )
    }

    /// Returns the service for host tracking.
    pub fn hosts(&mut self) -> Hosts {
        let (discovery, config) = (self.discovery(), self.configs.hosts.clone());
        self.service(
            Service::Hosts,
            |services| &mut services.hosts,
            || Hosts::new(&discovery, config),
        )
    }

    /// Returns the service that answers ARP requests and neighbour solicitations.
    pub fn neighbour_proxy(&mut self) -> NeighbourProxy {
        let hosts = self.hosts();
        self.service(
            Service::NeighbourProxy,
            |services| &mut services.neighbour_proxy,
            || NeighbourProxy::new(&hosts),
        )
    }

    /// Adds the neighbour proxy, unless a program with gateways was named: then hosts send requests for gateways, which are
    /// unknown to the proxy, and must not resolve hosts of other subnets. Returns whether it was added.
    pub fn answer_for_hosts(&mut self) -> bool {
        let has_gateways = self.has_gateways();
        self.reasons.has_gateways = Some(has_gateways);
        if !has_gateways {
            self.neighbour_proxy();
        }
        !has_gateways
    }

    fn has_gateways(&self) -> bool {
        self.named.iter().any(|about| about.has_gateways)
    }

    /// Returns the service for shortest paths.
    pub fn routes(&mut self) -> Routes {
        let discovery = self.discovery();
        self.service(
            Service::Routes,
            |services| &mut services.routes,
            || Routes::new(&discovery),
        )
    }

    /// Returns the service that installs paths before their first packet, or not at all.
    pub fn provisioner(&mut self) -> Provisioner {
        self.service(
            Service::Provisioner,
            |services| &mut services.provisioner,
            || Provisioner::new(ProvisionConfig::default()),
        )
    }

    /// Returns the replacements of Ryu's REST applications. An interface may have them from an earlier list of programs.
    pub fn ryu(&self) -> &RyuApps {
        &self.services.ryu
    }

    /// Keeps a service that a kept program uses.
    fn use_service(&mut self, service: Service) {
        match service {
            Service::Discovery => drop(self.discovery()),
            Service::Hosts => drop(self.hosts()),
            Service::NeighbourProxy => drop(self.neighbour_proxy()),
            Service::Routes => drop(self.routes()),
            Service::Provisioner => drop(self.provisioner()),
        }
    }

    /// Returns a service: the one that is set up, or the running one, or a new one.
    fn service<S: Program + Clone + 'static>(
        &mut self,
        service: Service,
        place: fn(&mut Services) -> &mut Option<S>,
        make: impl FnOnce() -> S,
    ) -> S {
        if !self.reasons.services.contains(&service) {
            self.reasons.services.push(service);
        }
        let name = service.name();
        if let Some(service) = place(&mut self.services) {
            return service.clone();
        }
        let service = match place(&mut self.running).take() {
            Some(service) => {
                self.keep(&App {
                    name,
                    programs: Vec::new(),
                    reasons: Reasons::default(),
                    settings: None,
                });
                service
            }
            None => {
                let service = make();
                self.bring(name, service.clone());
                service
            }
        };
        place(&mut self.services).insert(service).clone()
    }

    /// Adds a service, and logs it if the user did not name it.
    fn bring(&mut self, name: &'static str, service: impl Program + 'static) {
        if !self.is_among_named(name) {
            tracing::info!("{} needs {name}; adding it", self.current);
        }
        self.add_as(name, service);
    }
}
