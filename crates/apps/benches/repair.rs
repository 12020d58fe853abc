//! The time in which routing repairs all flows over a cut link: on a torus with a host at each switch, with a flow from each
//! host to each other.
//!
//! The benchmark reports two times. The simulated time is from the arrival of the first port-status message to that of the
//! last flow mod; it includes the delay of control channels, but no computing. The other is the processor time of the whole
//! network in one process, including switches: an upper bound for the controller. With `--bench` the torus has 100 switches,
//! otherwise 9.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;
use urtica_apps::Options;
use urtica_controller::Controller;
use urtica_net::watch::{Event, Violation, Watcher};
use urtica_net::{Net, NetConfig};
use urtica_switch::{Forwarding, SwitchConfig};
use urtica_topology::spec::TopologySpec;

const STEP: Duration = Duration::from_micros(100);
const PORT_STATUS: u8 = 12;
const FLOW_MOD: u8 = 14;

/// The messages seen since the cut, with their times.
#[derive(Default)]
struct Seen {
    port_status: Option<Duration>,
    last_flow_mod: Option<Duration>,
    flow_mods: u64,
}

#[derive(Clone, Default)]
struct Stopwatch(Rc<RefCell<Seen>>);

impl Watcher for Stopwatch {
    fn see(&mut self, now: Duration, event: &Event<'_>) -> Result<(), Violation> {
        let mut seen = self.0.borrow_mut();
        match event {
            Event::ToController(_, bytes) if types(bytes).any(|kind| kind == PORT_STATUS) => {
                seen.port_status.get_or_insert(now);
            }
            Event::ToSwitch(_, bytes) => {
                let flow_mods = types(bytes).filter(|kind| *kind == FLOW_MOD).count();
                if flow_mods > 0 {
                    seen.last_flow_mod = Some(now);
                    seen.flow_mods += flow_mods as u64;
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// Returns the processor time of this thread so far.
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Returns the types of the messages in bytes that arrived together.
fn types(bytes: &[u8]) -> impl Iterator<Item = u8> + '_ {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let (frame, after) = urtica_wire::split_frame(rest).ok()??;
        rest = after;
        Some(frame[1])
    })
}

fn main() {
    let is_full = std::env::args().any(|argument| argument == "--bench");
    let spec = if is_full { "torus,10,10" } else { "torus,3,3" };
    let mut net = routed(spec);
    let report = net.ping_all().expect("nobody stops the network");
    println!("{spec}: {report}");
    for (a, b) in [("s1x1", "s1x2"), ("s2x1", "s3x1")] {
        cut(&mut net, a, b);
    }
}

fn routed(spec: &str) -> Net {
    let plan = spec.parse::<TopologySpec>().and_then(|spec| spec.plan());
    let switch = SwitchConfig {
        forwarding: Forwarding::Plain,
        ..SwitchConfig::default()
    };
    let config = NetConfig {
        switch,
        ..NetConfig::default()
    };
    let mut net = Net::new(&plan.expect("a topology"), config).expect("a network");
    let mut options = Options::default();
    options.discovery.secret = Some([7; 32]);
    let controller = urtica_apps::add_all(Controller::new(), &["routing"], &options);
    net.start_controller(controller.expect("known names"))
        .expect("a controller");
    net.run_for(Duration::from_secs(1));
    net
}

fn cut(net: &mut Net, a: &str, b: &str) {
    let stopwatch = Stopwatch::default();
    net.watch(stopwatch.clone());
    let link = net.link(a, b).expect("neighbours");
    net.cut(link).expect("a link");
    let mut computing = Duration::ZERO;
    let end = net.now() + Duration::from_millis(200);
    while net.now() < end {
        let begin = cpu_time();
        net.run_for(STEP);
        let seen = stopwatch.0.borrow();
        let is_over = |last: Duration| net.now() > last + Duration::from_millis(5);
        if seen.port_status.is_some() && !seen.last_flow_mod.is_some_and(is_over) {
            computing += cpu_time() - begin;
        }
    }
    let seen = stopwatch.0.borrow();
    let (Some(first), Some(last)) = (seen.port_status, seen.last_flow_mod) else {
        return println!("{a} to {b}: no flow took that link");
    };
    println!(
        "{a} to {b}: {} flow mods, {:?} of simulated time, {computing:?} of computing",
        seen.flow_mods,
        last - first
    );
}
