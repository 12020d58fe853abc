//! A controller's statistics requests to its switches.

use crate::support::{config, ms, plan};
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use urtica_controller::{Controller, Network, OWN_COOKIE_BITS, RequestError};
use urtica_net::Net;
use urtica_wire::{
    Action, Bucket, ControllerRole, DatapathId, EntryOptions, FlowStats, FlowStatsRequest,
    GroupMod, GroupModCommand, GroupType, Match, Message, MeterBand, MeterFlags, MeterMod,
    MeterModCommand, PortNo, Role, Version,
};

const COOKIE: u64 = 77;

/// Creates one switch with two hosts, which have pinged each other. Returns its controller's view of it, too.
fn asked(version: Version) -> (Net, Network, DatapathId) {
    let mut config = config();
    config.switch.versions = vec![version];
    let mut net = Net::new(&plan("single,2"), config).unwrap();
    let l2 = urtica_apps::add_by_name(Controller::new(), "l2").unwrap();
    net.start_controller(l2).unwrap();
    net.run_for(ms(1_000));
    assert!(net.ping_all().unwrap().is_complete());
    let switch = net.datapath_id(net.switch("s1").unwrap()).unwrap();
    let network = net.controller().unwrap().clone();
    (net, network, switch)
}

/// Lets the network run until a request is answered.
fn answer<T>(net: &mut Net, question: impl Future<Output = T>) -> T {
    let mut question = pin!(question);
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..1_000 {
        if let Poll::Ready(answer) = question.as_mut().poll(&mut context) {
            return answer;
        }
        net.run_for(ms(10));
    }
    panic!("no answer within 10 s");
}

#[test]
fn reports_ports_tables_and_entries_in_both_versions() {
    for version in Version::ALL {
        let (mut net, network, switch) = asked(version);
        let options = EntryOptions {
            cookie: COOKIE,
            ..EntryOptions::PERMANENT
        };
        let to_port_2 = [Action::output(PortNo(2))];
        let tcp = Match::any().eth_type(0x0800).ip_proto(6);
        network.install(switch, tcp, &to_port_2, options).unwrap();

        let ports = answer(&mut net, network.port_stats(switch)).unwrap();
        let heard = |port: u32| {
            let port = ports.iter().find(|stats| stats.port_no == PortNo(port));
            port.unwrap().rx_packets
        };
        assert!(heard(1) > 0 && heard(2) > 0, "{version:?}");
        let ports = answer(&mut net, network.port_descriptions(switch)).unwrap();
        let names = ports.iter().map(|port| port.name.to_str_lossy());
        assert_eq!(names.collect::<Vec<_>>(), ["s1-eth1", "s1-eth2"]);

        let all = FlowStatsRequest::default;
        let entries = answer(&mut net, network.flow_stats(switch, all())).unwrap();
        let is_ours = |row: &FlowStats| row.cookie & OWN_COOKIE_BITS == COOKIE;
        let ours: Vec<_> = entries.iter().filter(is_ours).collect();
        assert_eq!(ours.len(), 1, "{version:?}");
        assert_eq!(ours[0].packet_count, 0);
        let sum = answer(&mut net, network.aggregate_stats(switch, all())).unwrap();
        assert_eq!(sum.flow_count as usize, entries.count());
        let tables = answer(&mut net, network.table_stats(switch)).unwrap();
        let active: u32 = tables.iter().map(|table| table.active_count).sum();
        assert_eq!(active, sum.flow_count);

        let queues = answer(&mut net, network.queue_stats(switch)).unwrap();
        assert_eq!(queues, []);
        let description = answer(&mut net, network.description(switch)).unwrap();
        assert!(!description.manufacturer.is_empty(), "{description:?}");
    }
}

#[test]
fn reports_groups_meters_and_roles_in_1_3() {
    let (mut net, network, switch) = asked(Version::Of13);
    let buckets = vec![Bucket {
        weight: 0,
        watch_port: PortNo::ANY,
        watch_group: urtica_wire::GROUP_ANY,
        actions: vec![Action::output(PortNo(2))].into(),
    }];
    let group = GroupMod {
        command: GroupModCommand::Add,
        group_type: GroupType::All,
        group_id: 5,
        buckets: buckets.into(),
    };
    network.send(switch, &Message::GroupMod(group)).unwrap();
    let bands = vec![MeterBand::Drop {
        rate: 1_000,
        burst_size: 0,
    }];
    let meter = MeterMod {
        command: MeterModCommand::Add,
        flags: MeterFlags::KBPS,
        meter_id: 6,
        bands: bands.into(),
    };
    network.send(switch, &Message::MeterMod(meter)).unwrap();

    let groups = answer(&mut net, network.groups(switch)).unwrap();
    let outputs = groups.iter().map(|group| group.buckets.len());
    assert_eq!(outputs.collect::<Vec<_>>(), [1]);
    let groups = answer(&mut net, network.group_stats(switch)).unwrap();
    let ids = groups.iter().map(|group| group.group_id);
    assert_eq!(ids.collect::<Vec<_>>(), [5]);
    let features = answer(&mut net, network.group_features(switch)).unwrap();
    assert_ne!(features.types, 0);

    let meters = answer(&mut net, network.meters(switch)).unwrap();
    let bands = meters.iter().map(|meter| meter.bands.len());
    assert_eq!(bands.collect::<Vec<_>>(), [1]);
    let meters = answer(&mut net, network.meter_stats(switch)).unwrap();
    let ids = meters.iter().map(|meter| meter.meter_id);
    assert_eq!(ids.collect::<Vec<_>>(), [6]);
    let features = answer(&mut net, network.meter_features(switch)).unwrap();
    assert_ne!(features.max_meter, 0);

    let tables = answer(&mut net, network.table_features(switch)).unwrap();
    assert_ne!(tables.count(), 0);
    let role = Role {
        role: ControllerRole::NoChange,
        generation_id: 0,
    };
    let role = answer(&mut net, network.role(switch, role)).unwrap();
    assert_eq!(role.role, ControllerRole::Equal);
}

#[test]
fn rejects_requests_that_1_0_lacks_before_sending() {
    let (mut net, network, switch) = asked(Version::Of10);
    let refused = answer(&mut net, network.groups(switch)).err().unwrap();
    assert!(matches!(refused, RequestError::Encode(_)), "{refused}");
}

#[test]
fn an_unanswered_request_times_out() {
    let (mut net, network, switch) = asked(Version::Of13);
    let s1 = net.switch("s1").unwrap();
    net.stall_connection(s1, Duration::from_secs(10)).unwrap();
    let asked_at = net.now();
    let patient = network.with_deadline(Duration::from_secs(3));
    let ended = answer(&mut net, patient.port_stats(switch)).unwrap_err();
    assert_eq!(ended, RequestError::Timeout(Duration::from_secs(3)));
    let took = net.now() - asked_at;
    assert!(took < Duration::from_secs(4), "{took:?}");

    let unknown = DatapathId(99);
    let ended = answer(&mut net, network.port_stats(unknown)).unwrap_err();
    assert_eq!(ended, RequestError::UnknownSwitch(unknown));
}
