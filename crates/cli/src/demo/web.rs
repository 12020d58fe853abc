//! The demonstration in a browser: the network runs in real time, and the page shows and controls it.

use super::lab::{self, Result};
use super::pings::PingRound;
use super::traffic::Traffic;
use crate::northbound::NorthboundArgs;
use crate::say::say;
use crate::served::Served;
use std::env;
use std::net::SocketAddr;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use urtica_apps as apps;
use urtica_controller::Controller;
use urtica_net::{HostId, Net};
use urtica_topology::spec::TopologySpec;

/// The programs of the controller.
const PROGRAMS: [&str; 3] = ["discovery", "hosts", "routing"];

/// The time that the network runs between two checks for requests and signals.
const LOOK: Duration = Duration::from_millis(5);

const NEXT: &str = "Select a link to cut it, a switch to stop it; open 'Emulated network' to ping. Ctrl-C ends it.";

const WITHOUT_PAGE: &str =
    "This program was built without the page; the address says how to build it.";

/// The phases of hosts: silence until all switches have a controller, then pings between all, then conversations.
enum Phase {
    Joining,
    Pinging(PingRound),
    Talking(Traffic),
}

/// Runs until it is stopped.
///
/// # Errors
/// If nothing can listen at the address, or the network cannot be shown.
pub fn run(
    spec: &TopologySpec,
    seed: u64,
    address: SocketAddr,
    stop: Arc<AtomicBool>,
) -> Result<ExitCode> {
    let (_, mut net) = lab::build(spec, seed)?;
    let northbound = NorthboundArgs::at(address);
    let mut served = serve(spec, &net, &northbound)?;
    net.follow_the_clock();
    net.connect_to(served.address())?;
    net.interrupt_when({
        let stop = Arc::clone(&stop);
        move || stop.load(Relaxed)
    });
    let mut phase = Phase::Joining;
    while !stop.load(Relaxed) {
        net.run_for(LOOK);
        served.obey(&mut net);
        if let Some(broken) = net.broken() {
            return Err(broken.clone().into());
        }
        let keeps_flows = served.has_traffic(&net);
        phase = phase.advance(&mut net, seed, keeps_flows)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Starts the controller, prints the address of its page, and opens the page.
fn serve(spec: &TopologySpec, net: &Net, northbound: &NorthboundArgs) -> Result<Served> {
    let names = PROGRAMS.map(str::to_owned);
    let (controller, services) =
        apps::add_all_with_services(Controller::new(), &names, &apps::Options::default())?;
    let northbound = northbound.bind(&names, &services)?;
    let northbound = northbound.ok_or("the northbound interface was not requested")?;
    let page = northbound.local_addr()?;
    say(format!(
        "{spec}: {} switches, {} hosts, {} links, and a controller with discovery, hosts and routing",
        net.switches().len(),
        net.hosts().len(),
        net.links().len()
    ));
    let served = Served::start(controller, northbound)?;
    say(if cfg!(feature = "web") {
        NEXT
    } else {
        WITHOUT_PAGE
    });
    open(&format!("http://{page}/"));
    Ok(served)
}

impl Phase {
    /// Performs the due step, and returns the phase after it. Keeps old flows if the page has started some, since removing
    /// flows would stop the page's, too.
    fn advance(self, net: &mut Net, seed: u64, keeps_flows: bool) -> Result<Self> {
        Ok(match self {
            Self::Joining if is_connected(net) => Self::Pinging(PingRound::new(net)),
            Self::Joining => Self::Joining,
            Self::Pinging(round) if round.is_done(net.now()) => {
                Self::Talking(Traffic::new(seed, net.now()))
            }
            Self::Pinging(mut round) => {
                round.advance(net)?;
                Self::Pinging(round)
            }
            Self::Talking(mut traffic) => {
                let hosts: Vec<HostId> = net.hosts().collect();
                traffic.advance(net, &hosts)?;
                if !keeps_flows {
                    traffic.clear_away(net);
                }
                Self::Talking(traffic)
            }
        })
    }
}

/// Returns `true` if all switches have a controller.
fn is_connected(net: &Net) -> bool {
    net.switches()
        .all(|switch| net.has_controller(switch).unwrap_or(false))
}

/// Opens a browser, if this session has one. Ignores failures, since the address is printed in any case.
fn open(url: &str) {
    let has_display = ["DISPLAY", "WAYLAND_DISPLAY"]
        .iter()
        .any(|name| env::var_os(name).is_some_and(|value| !value.is_empty()));
    let browser = env::var_os("BROWSER").filter(|browser| !browser.is_empty());
    let opener = browser.or_else(|| has_display.then(|| "xdg-open".into()));
    if let Some(opener) = opener {
        let mut command = Command::new(opener);
        let quiet = command
            .arg(url)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let _ = quiet.spawn();
    }
}
