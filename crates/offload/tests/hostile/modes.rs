//! Controllers in each mode of `--offload`, with each program that has a part in the kernel in that mode.

use crate::plan::{CONFIG, Router};
use crate::switch::silent_controller;
use std::fmt;
use std::time::Duration;
use urtica_apps::L2;
use urtica_controller::{Controller, Running, SwitchInfo};
use urtica_offload::ring::RingKernel;
use urtica_offload::{
    DEFAULT_MAX_SWITCHES, Driven, Kernel, LearningSwitch, Mode, RouterKernel, Unavailable,
};
use urtica_services::{Discovery, DiscoveryConfig, Hosts, HostsConfig};

/// A control program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum App {
    /// The learning switch.
    L2,
    /// The learning switch behind discovery and hosts.
    Services,
    /// The router, with its services.
    L3,
}

/// A program in a mode of `--offload`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    pub app: App,
    pub mode: &'static str,
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} with --offload {}", self.app, self.mode)
    }
}

const fn form(app: App, mode: &'static str) -> Form {
    Form { app, mode }
}

/// All forms. Each program's first form is the default, which its others must equal.
pub const FORMS: [Form; 12] = [
    form(App::L2, "none"),
    form(App::L2, "auto"),
    form(App::L2, "kernel"),
    form(App::L2, "ring"),
    form(App::Services, "none"),
    form(App::Services, "driven"),
    form(App::Services, "ring"),
    form(App::L3, "none"),
    form(App::L3, "auto"),
    form(App::L3, "kernel"),
    form(App::L3, "driven"),
    form(App::L3, "ring"),
];

impl Form {
    /// Starts a controller of this form. If the machine does not accept the programs, prints a line, or fails with CI=true.
    pub fn start(self) -> Option<Running> {
        self.start_as(DEFAULT_MAX_SWITCHES, |controller| controller)
    }

    /// Starts it with kernel halves for this number of switches, and with other settings or an additional program.
    pub fn start_as(
        self,
        max_switches: u32,
        set: impl FnOnce(Controller) -> Controller,
    ) -> Option<Running> {
        let reason = match self.prepare(silent_controller(), max_switches) {
            Ok(controller) => {
                let address = "ptcp:0:127.0.0.1".parse().unwrap();
                let controller = set(controller).listen(address).shards(1);
                return Some(controller.start().unwrap());
            }
            Err(reason) => reason,
        };
        let is_ci = std::env::var("CI").is_ok_and(|ci| ci == "true");
        assert!(!is_ci, "{self} cannot be tested here: {reason}");
        println!("skipped: {self} cannot be tested here: {reason}");
        None
    }

    /// Adds the program, which immediately has a kernel half for every switch.
    fn prepare(self, controller: Controller, max_switches: u32) -> Result<Controller, Unavailable> {
        let controller = controller.kernel_half_after(Duration::ZERO, 0);
        let controller = match self.mode {
            "ring" => controller.input_rings(RingKernel::start()?.max_switches(max_switches)),
            _ => controller,
        };
        Ok(match self.app {
            App::L2 => match self.kernel_mode() {
                None => controller.program(l2),
                Some(mode) => {
                    let kernel = Kernel::start()?.max_switches(max_switches);
                    controller.program(LearningSwitch::new(kernel).mode(mode))
                }
            },
            App::Services => {
                let discovery = Discovery::new(DiscoveryConfig::default());
                let hosts = Hosts::new(&discovery, HostsConfig::default());
                let controller = self.drive(controller, &discovery, &hosts, max_switches)?;
                controller.program(discovery).program(hosts).program(l2)
            }
            App::L3 => {
                let kernel = self.kernel_mode().map(|mode| {
                    let kernel = RouterKernel::start()?;
                    Ok::<_, Unavailable>(kernel.mode(mode).max_switches(max_switches))
                });
                let router = Router::of(CONFIG, kernel.transpose()?);
                let (discovery, hosts) = (&router.discovery, &router.hosts);
                let controller = self.drive(controller, discovery, hosts, max_switches)?;
                router.add_to(controller)
            }
        })
    }

    fn kernel_mode(self) -> Option<Mode> {
        match self.mode {
            "auto" => Some(Mode::Auto),
            "kernel" => Some(Mode::Kernel),
            _ => None,
        }
    }

    /// Makes the kernel handle input of the services, in the form's mode.
    fn drive(
        self,
        controller: Controller,
        discovery: &Discovery,
        hosts: &Hosts,
        max_switches: u32,
    ) -> Result<Controller, Unavailable> {
        if self.mode != "driven" {
            return Ok(controller);
        }
        let driven = Driven::start()?.max_switches(max_switches);
        discovery.offload(driven.offload());
        hosts.offload(driven.offload());
        Ok(controller.kernel_halves(driven))
    }
}

fn l2(_: &SwitchInfo) -> L2 {
    L2::default()
}
