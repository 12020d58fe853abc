//! Roles of controllers at our switches, in simulated time.

use crate::support::{all_connected, config, ms, plan, settle};
use urtica_controller::{Controller, Network, Role, SessionConfig};
use urtica_net::Net;
use urtica_wire::{AsyncConfig, Version};

/// Creates two switches and two hosts, and a hub, which receives every packet, in this role.
fn hub(version: Version, role: Role) -> Net {
    let mut config = config();
    config.switch.versions = vec![version];
    let mut net = Net::new(&plan("linear,2"), config).unwrap();
    let controller = urtica_apps::add_by_name(Controller::new(), "hub").unwrap();
    net.start_controller(controller.role(role)).unwrap();
    assert!(settle(&mut net, ms(2_000)));
    net
}

/// Requests a role from all switches, and checks that they grant it.
fn change(net: &mut Net, network: &Network, role: Role) {
    let replies = network.set_role_of_all(role).unwrap();
    assert_eq!(replies.len(), 2);
    net.run_for(ms(100));
    for (id, reply) in replies {
        let outcome = reply.wait(ms(0));
        assert!(outcome.is_ok(), "{id}: {:?}", outcome.err());
    }
    expect_all(network, role);
}

fn expect_all(network: &Network, role: Role) {
    for id in network.switches() {
        assert_eq!(network.info(id).unwrap().role, role);
    }
}

#[test]
fn a_network_obeys_its_primary_and_no_secondary() {
    for version in Version::ALL {
        let mut net = hub(version, Role::Primary);
        let network = net.controller().unwrap().clone();
        expect_all(&network, Role::Primary);
        assert!(net.ping_all().unwrap().is_complete());
        change(&mut net, &network, Role::Secondary);
        assert!(!net.ping_all().unwrap().is_complete());
        change(&mut net, &network, Role::Equal);
        assert!(net.ping_all().unwrap().is_complete());
    }
}

#[test]
fn the_role_is_requested_again_after_a_reconnect() {
    let mut net = hub(Version::Of13, Role::Primary);
    let network = net.controller().unwrap().clone();
    change(&mut net, &network, Role::Secondary);
    let s1 = net.switch("s1").unwrap();
    net.break_connection(s1).unwrap();
    assert!(net.run_until(|net| all_connected(net), ms(5_000)));
    net.run_for(ms(100));
    expect_all(&network, Role::Secondary);
    change(&mut net, &network, Role::Primary);
    assert!(net.ping_all().unwrap().is_complete());
}

#[test]
fn a_secondary_receives_packet_ins_on_request() {
    for version in Version::ALL {
        let mut config = config();
        config.switch.versions = vec![version];
        let mut net = Net::new(&plan("linear,2"), config).unwrap();
        let mut session = SessionConfig::default();
        session.async_config = Some(AsyncConfig {
            packet_in_mask: [0b11, 0b11],
            port_status_mask: [0b111, 0b111],
            flow_removed_mask: [0b1111, 0],
        });
        let controller = urtica_apps::add_by_name(Controller::new(), "hub").unwrap();
        let controller = controller.session(session).role(Role::Primary);
        net.start_controller(controller).unwrap();
        assert!(settle(&mut net, ms(2_000)));
        let network = net.controller().unwrap().clone();
        let heard = || {
            let counters = network.counters(network.switches()[0]).unwrap();
            (counters.packet_ins.get(), counters.withheld.get())
        };
        // The switches have a table-miss entry, which a secondary cannot add.
        assert!(net.ping_all().unwrap().is_complete());
        change(&mut net, &network, Role::Secondary);
        let (packets, withheld) = heard();
        assert_eq!(withheld, 0);
        assert!(!net.ping_all().unwrap().is_complete());
        let (more, withheld) = heard();
        assert!(more > packets, "it receives them");
        assert_eq!(withheld, more - packets, "and answers none");
    }
}

#[test]
fn runs_with_roles_repeat() {
    let run = || {
        let mut net = hub(Version::Of13, Role::Primary);
        let network = net.controller().unwrap().clone();
        change(&mut net, &network, Role::Secondary);
        change(&mut net, &network, Role::Primary);
        net.ping_all().unwrap();
        let counters = network.switches().into_iter().map(|id| {
            let counters = network.counters(id).unwrap();
            counters.iter().collect::<Vec<_>>()
        });
        counters.collect::<Vec<_>>()
    };
    assert_eq!(run(), run());
}
