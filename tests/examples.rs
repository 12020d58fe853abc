//! The examples do what they say, in a simulated network.

use std::sync::{Arc, Mutex};
use std::time::Duration;
use urtica::prelude::*;
use urtica::topology::spec::TopologySpec;
use urtica::wire::PortStats;
use urtica_net::{Net, NetConfig};

#[path = "../examples/packet_rate.rs"]
mod packet_rate;
#[expect(dead_code, reason = "an example has a `main`")]
#[path = "../examples/port_stats.rs"]
mod port_stats;

/// A network with this program, of which all hosts have pinged all.
fn pinged(spec: &str, controller: Controller) -> Net {
    let plan = spec.parse::<TopologySpec>().unwrap().plan().unwrap();
    let mut net = Net::new(&plan, NetConfig::default()).unwrap();
    net.start_controller(controller).unwrap();
    net.run_for(Duration::from_secs(1));
    assert!(net.ping_all().unwrap().is_complete());
    net
}

#[test]
fn packets_of_each_switch_are_told_every_ten_seconds() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let teller = Arc::clone(&told);
    let program = move |_: &SwitchInfo| {
        let told = Arc::clone(&teller);
        packet_rate::PacketRate {
            packets: 0,
            tell: move |switch, packets: u64| told.lock().unwrap().push((switch, packets)),
        }
    };
    let mut net = pinged("linear,2", Controller::new().program(program));
    net.run_for(Duration::from_secs(25));
    let told = told.lock().unwrap();
    for switch in [1, 2].map(DatapathId) {
        let of_switch = told.iter().filter(|(id, _)| *id == switch);
        let packets: Vec<_> = of_switch.map(|(_, packets)| *packets).collect();
        // All hosts have pinged in the first ten seconds, and nobody has sent anything since.
        assert!(
            packets.len() == 2 && packets[0] > 0,
            "{switch}: {packets:?}"
        );
        assert_eq!(packets[1], 0, "{switch}");
    }
}

#[test]
fn counters_of_all_ports_are_told_every_ten_seconds() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let teller = Arc::clone(&told);
    let tell =
        move |switch: DatapathId, port: PortStats| teller.lock().unwrap().push((switch, port));
    let mut net = pinged(
        "linear,2",
        Controller::new().program(port_stats::Poller(tell)),
    );
    net.run_for(Duration::from_secs(20));
    let told = told.lock().unwrap();
    for switch in [1, 2].map(DatapathId) {
        // Each has a host and a link.
        for port_no in [1, 2].map(PortNo) {
            let rows = told
                .iter()
                .filter(|(id, port)| (*id, port.port_no) == (switch, port_no));
            let received: Vec<u64> = rows.map(|(_, port)| port.rx_packets).collect();
            assert!(
                received.len() == 2 && received[0] > 0,
                "{switch} {port_no}: {received:?}"
            );
        }
    }
}
