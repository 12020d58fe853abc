//! Networks for tests.

use std::time::Duration;
use urtica_controller::Controller;
use urtica_net::{Net, NetConfig};
use urtica_switch::{FailMode, Forwarding, SwitchConfig};
use urtica_topology::spec::{Plan, TopologySpec};

pub fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

pub fn plan(spec: &str) -> Plan {
    let spec: TopologySpec = spec.parse().unwrap();
    spec.plan().unwrap()
}

/// Returns a configuration of small switches without machine code, whose set-up is slow in a test.
pub fn config() -> NetConfig {
    let switch = SwitchConfig {
        forwarding: Forwarding::Plain,
        ..SwitchConfig::default()
    };
    NetConfig {
        switch,
        ..NetConfig::default()
    }
}

/// Creates a network of self-learning switches.
pub fn learning_net(spec: &str) -> Net {
    let mut config = config();
    config.switch.fail_mode = FailMode::Standalone;
    Net::new(&plan(spec), config).unwrap()
}

/// Creates a network with a controller that runs this app. Its switches have connected.
pub fn net_with(spec: &str, app: &str) -> Net {
    let mut net = Net::new(&plan(spec), config()).unwrap();
    let controller = urtica_apps::add_by_name(Controller::new(), app).unwrap();
    net.start_controller(controller).unwrap();
    assert!(settle(&mut net, ms(2_000)));
    net
}

/// Advances the time until the controller knows all switches, and they have received its initial messages. Returns `true` if
/// that happened within `bound`.
pub fn settle(net: &mut Net, bound: Duration) -> bool {
    let are_connected = net.run_until(|net| all_connected(net), bound);
    net.run_for(ms(20));
    are_connected
}

/// Returns `true` if the controller knows all switches.
pub fn all_connected(net: &Net) -> bool {
    let known = net
        .controller()
        .map_or(0, |network| network.switches().len());
    known == net.switches().len()
}
