//! Programs that are being set up, and the services that they bring along.

use super::{Options, Row, forwarders};
use crate::RyuApps;
use std::sync::Arc;
use urtica_controller::{Named, Program};
use urtica_services::{Discovery, Hosts, NeighbourProxy, ProvisionConfig, Provisioner, Routes};

/// The services that programs have brought along: for what tells about them, such as an HTTP interface.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct Services {
    /// Links between switches.
    pub discovery: Option<Discovery>,
    /// Where hosts are.
    pub hosts: Option<Hosts>,
    /// Answers to those who ask for a host's address.
    pub neighbour_proxy: Option<NeighbourProxy>,
    /// Paths that are set up, all or nothing.
    pub provisioner: Option<Provisioner>,
    /// Shortest paths.
    pub routes: Option<Routes>,
    /// What Ryu's REST applications were: they know themselves whether they run.
    pub ryu: RyuApps,
}

/// A program of the registry, as it was set up.
#[derive(Clone)]
pub(super) struct App {
    pub name: &'static str,
    /// What the controller runs for it; none where it runs already, and goes on.
    pub programs: Vec<Arc<dyn Program>>,
    /// Why it is set up as it is.
    pub reasons: Reasons,
    /// What its options and files were.
    pub settings: String,
}

/// Whether other programs build on the one with this name, which has no settings.
pub(super) fn is_service(name: &str) -> bool {
    let services = [
        "discovery",
        "hosts",
        "neighbour-proxy",
        "provisioner",
        "routes",
    ];
    services.contains(&name)
}

/// What decides how a program is set up, beside its options.
#[derive(Clone, Default)]
pub(super) struct Reasons {
    /// The services that it uses.
    pub services: Vec<&'static str>,
    /// The programs that it asked about, and whether the user requested them.
    pub named: Vec<(String, bool)>,
    /// Whether it asked for a forwarding program before it; there was none.
    pub minds_forwarders: bool,
}

/// Programs being set up, and their services so far.
pub(crate) struct Setup<'a> {
    /// What the user requested.
    named: Vec<&'static str>,
    /// The program being added.
    current: &'static str,
    reasons: Reasons,
    /// In the order in which they are to be added to a controller.
    pub(super) apps: Vec<App>,
    pub(super) services: Services,
    /// The services that run already.
    running: Services,
    /// What the user said about programs.
    pub options: &'a Options,
}

impl<'a> Setup<'a> {
    /// Nothing is set up, and of the services these run already.
    pub(super) fn new(rows: &[&Row], options: &'a Options, running: Services) -> Self {
        Self {
            named: rows.iter().map(|row| row.name).collect(),
            current: "",
            reasons: Reasons::default(),
            apps: Vec::new(),
            services: Services {
                ryu: running.ryu.clone(),
                ..Services::default()
            },
            running,
            options,
        }
    }

    /// Sets up a program.
    pub(super) fn add_row(&mut self, row: &Row) -> Result<(), String> {
        self.current = row.name;
        self.reasons = Reasons::default();
        self.check_forwarders()?;
        // Before the program reads its files, so that a change meanwhile counts as one.
        let settings = self.options.of_program(row.name);
        (row.add)(self)?;
        let reasons = std::mem::take(&mut self.reasons);
        if let Some(app) = self.apps.iter_mut().find(|app| app.name == row.name) {
            app.reasons = reasons;
            app.settings = settings;
        }
        Ok(())
    }

    /// Goes on with a program that runs, and with the services that it uses, if nothing has changed for it. Returns whether it does.
    pub(super) fn keep_row(&mut self, row: &Row, app: &App) -> Result<bool, String> {
        self.current = row.name;
        self.check_forwarders()?;
        let reasons = &app.reasons;
        let is_same = |(name, was_named): &(String, bool)| self.is_among_named(name) == *was_named;
        let has_forwarder = reasons.minds_forwarders && self.find_forwarder_before().is_some();
        if !reasons.named.iter().all(is_same) || has_forwarder {
            return Ok(false);
        }
        for service in &reasons.services {
            self.use_service(service);
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
                settings: String::new(),
            }),
        }
    }

    /// Whether the user requested this program, before or after the one being added.
    pub fn is_named(&mut self, name: &str) -> bool {
        let is_named = self.is_among_named(name);
        self.reasons.named.push((name.to_owned(), is_named));
        is_named
    }

    fn is_among_named(&self, name: &str) -> bool {
        self.named.contains(&name)
    }

    /// A program that forwards everything, which the user named before the one being added.
    pub fn forwarder_before(&mut self) -> Option<&'static str> {
        self.reasons.minds_forwarders = true;
        self.find_forwarder_before()
    }

    fn find_forwarder_before(&self) -> Option<&'static str> {
        let earlier = self.named.iter().take_while(|name| **name != self.current);
        let mut earlier = earlier.copied();
        earlier.find(|name| forwarders().any(|forwarder| forwarder == *name))
    }

    /// Only one program may forward everything.
    fn check_forwarders(&self) -> Result<(), String> {
        match self.find_forwarder_before() {
            Some(earlier) if forwarders().any(|name| name == self.current) => Err(format!(
                "{earlier} forwards whatever comes, too, so that all would come twice; expected one of the two"
            )),
            _ => Ok(()),
        }
    }

    /// Link discovery and safe flooding.
    pub fn discovery(&mut self) -> Discovery {
        let config = self.options.discovery.clone();
        self.service(
            "discovery",
            |services| &mut services.discovery,
            || Discovery::new(config),
        )
    }

    /// Host tracking.
    pub fn hosts(&mut self) -> Hosts {
        let (discovery, config) = (self.discovery(), self.options.hosts.clone());
        self.service(
            "hosts",
            |services| &mut services.hosts,
            || Hosts::new(&discovery, config),
        )
    }

    /// Answers to ARP requests and neighbour solicitations.
    pub fn neighbour_proxy(&mut self) -> NeighbourProxy {
        let hosts = self.hosts();
        self.service(
            "neighbour-proxy",
            |services| &mut services.neighbour_proxy,
            || NeighbourProxy::new(&hosts),
        )
    }

    /// The same, unless `l3` was named: then hosts send requests for its gateways, which the proxy does not know, and must
    /// not resolve hosts of other subnets.
    pub fn answer_for_hosts(&mut self) {
        if !self.is_named("l3") {
            self.neighbour_proxy();
        }
    }

    /// Shortest paths.
    pub fn routes(&mut self) -> Routes {
        let discovery = self.discovery();
        self.service(
            "routes",
            |services| &mut services.routes,
            || Routes::new(&discovery),
        )
    }

    /// Paths that are installed before their first packet, or not at all.
    pub fn provisioner(&mut self) -> Provisioner {
        self.service(
            "provisioner",
            |services| &mut services.provisioner,
            || Provisioner::new(ProvisionConfig::default()),
        )
    }

    /// What stands for Ryu's REST applications. Who tells them what to do may have them from an earlier list of programs.
    pub fn ryu(&self) -> &RyuApps {
        &self.services.ryu
    }

    /// Has a service that a program uses, which goes on, go on.
    fn use_service(&mut self, name: &str) {
        match name {
            "discovery" => drop(self.discovery()),
            "hosts" => drop(self.hosts()),
            "neighbour-proxy" => drop(self.neighbour_proxy()),
            "routes" => drop(self.routes()),
            "provisioner" => drop(self.provisioner()),
            other => debug_assert!(false, "{other} is no service"),
        }
    }

    /// A service: the one that is set up, or the one that runs, or a new one.
    fn service<S: Program + Clone + 'static>(
        &mut self,
        name: &'static str,
        place: fn(&mut Services) -> &mut Option<S>,
        make: impl FnOnce() -> S,
    ) -> S {
        if !self.reasons.services.contains(&name) {
            self.reasons.services.push(name);
        }
        if let Some(service) = place(&mut self.services) {
            return service.clone();
        }
        let service = match place(&mut self.running).take() {
            Some(service) => {
                self.keep(&App {
                    name,
                    programs: Vec::new(),
                    reasons: Reasons::default(),
                    settings: String::new(),
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
            tracing::info!("{} brings {name} along", self.current);
        }
        self.add_as(name, service);
    }
}
