//! Invalid settings are refused at the start, with an error message.

use std::time::Duration;
use urtica_controller::{Controller, Program};
use urtica_services::{
    Discovery, DiscoveryConfig, Hosts, HostsConfig, NeighbourProxy, NeighbourProxyConfig,
    ProvisionConfig, Provisioner,
};

/// Returns the error of a controller with this program.
fn refusal(program: impl Program + 'static) -> String {
    let embedded = Controller::new().program(program).embed();
    embedded.err().expect("it is refused").to_string()
}

#[test]
fn settings_must_allow_space_and_time() {
    let hosts = |config| {
        let discovery = Discovery::new(DiscoveryConfig::default());
        Hosts::new(&discovery, config)
    };
    let of_hosts = |config: HostsConfig| refusal(hosts(config));
    let default = HostsConfig::default;
    for (config, expected) in [
        (
            HostsConfig {
                max_hosts: 0,
                ..default()
            },
            "HostsConfig::max_hosts is 0: expected 1 or more",
        ),
        (
            HostsConfig {
                probe_timeout: Duration::ZERO,
                ..default()
            },
            "HostsConfig::probe_timeout is 0: expected a time longer than that",
        ),
    ] {
        assert_eq!(of_hosts(config), expected);
    }
    let config = NeighbourProxyConfig {
        burst: 0,
        ..NeighbourProxyConfig::default()
    };
    let refused = refusal(NeighbourProxy::with_config(&hosts(default()), config));
    assert_eq!(
        refused,
        "NeighbourProxyConfig::burst is 0: expected 1 or more"
    );
    let refused = refusal(Provisioner::new(ProvisionConfig {
        timeout: Duration::ZERO,
        ..ProvisionConfig::default()
    }));
    assert_eq!(
        refused,
        "ProvisionConfig::timeout is 0: expected a time longer than that"
    );
}
