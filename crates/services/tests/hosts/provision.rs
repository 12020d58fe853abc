//! Flow paths, whole or not at all, whatever a switch does while they are set up.

use crate::net::{Entry, Fault, Net, ToSwitch, port};
use proptest::prelude::*;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use urtica_controller::Controller;
use urtica_services::{
    COOKIE_TAG, Flow, Outcome, ProvisionConfig, ProvisionError, Provisioned, Provisioner,
};
use urtica_topology::{Hop, Path};
use urtica_wire::{
    DatapathId, EntryOptions, ErrorCode, Experimenter, FlowRemoved, FlowRemovedReason, MacAddr,
    Match, Message, PortNo, Version,
};

const VERSIONS: [Version; 2] = [Version::Of10, Version::Of13];

/// Returns the path from the host at switch 1 along the line to the one at switch `length`.
fn line_path(length: u64) -> Path {
    let hop = |id| Hop {
        switch: DatapathId(id),
        in_port: PortNo(if id == 1 { 3 } else { 1 }),
        out_port: PortNo(if id == length { 3 } else { 2 }),
    };
    Path {
        hops: (1..=length).map(hop).collect(),
    }
}

fn to_host(number: u8) -> Match<'static> {
    Match::any().eth_dst(MacAddr::new([2, 0, 0, 0, 0, number]))
}

fn line(version: Version, length: u64) -> (Net, Provisioner) {
    let provisioner = Provisioner::new(ProvisionConfig::default());
    let controller = Controller::new().program(provisioner.clone());
    (Net::line(controller, version, length), provisioner)
}

/// Returns the outcome, which must be available.
fn outcome<T>(mut outcome: Outcome<T>) -> Result<T, ProvisionError> {
    let mut context = Context::from_waker(Waker::noop());
    match Pin::new(&mut outcome).poll(&mut context) {
        Poll::Ready(outcome) => outcome,
        Poll::Pending => panic!("the outcome was expected to be there"),
    }
}

fn provisioned(net: &mut Net, provisioner: &Provisioner, flow: Flow) -> Provisioned {
    let job = provisioner.provision(flow);
    net.settle();
    outcome(job).unwrap()
}

#[test]
fn paths_are_installed_from_the_egress_switch_with_barriers() {
    for version in VERSIONS {
        let (mut net, provisioner) = line(version, 4);
        net.told.clear();
        let path = provisioned(&mut net, &provisioner, Flow::new(line_path(4), to_host(1)));
        let cookie = path.cookie();
        let add = |id, out| {
            let out = vec![PortNo(out)];
            [(id, ToSwitch::Add { cookie, out }), (id, ToSwitch::Barrier)]
        };
        assert_eq!(
            net.told,
            [add(4, 3), add(3, 2), add(2, 2), add(1, 2)].concat()
        );
        assert!(provisioner.is_live(&path));
        assert_eq!(cookie, COOKIE_TAG | 1);
    }
}

#[test]
fn a_path_is_removed_from_the_ingress_switch() {
    for version in VERSIONS {
        let (mut net, provisioner) = line(version, 3);
        let path = provisioned(&mut net, &provisioner, Flow::new(line_path(3), to_host(1)));
        net.told.clear();
        let removing = provisioner.remove(&path);
        net.settle();
        outcome(removing).unwrap();
        let deletes = net
            .told
            .iter()
            .filter(|(_, told)| *told != ToSwitch::Barrier);
        assert_eq!(deletes.map(|(id, _)| *id).collect::<Vec<_>>(), [1, 2, 3]);
        assert!(net.switches_with(path.cookie()).is_empty());
        let again = provisioner.remove(&path);
        net.settle();
        outcome(again).expect("a path that is gone is no error");
        assert_eq!(provisioner.counts().removed, 1);
    }
}

const FAULTS: [Fault; 4] = [
    Fault::Refuse,
    Fault::LeaveBefore,
    Fault::LeaveAfter,
    Fault::FallSilent,
];

/// Returns the error that names the switch and its fault.
fn is_about(error: &ProvisionError, switch: DatapathId, fault: Fault) -> bool {
    let expected = match fault {
        Fault::Refuse => ProvisionError::Refused {
            switch,
            code: ErrorCode::FlowModFailedTableFull,
        },
        Fault::LeaveBefore | Fault::LeaveAfter => ProvisionError::Left { switch },
        Fault::FallSilent => ProvisionError::Timeout {
            switch,
            after: ProvisionConfig::default().timeout,
        },
    };
    *error == expected
}

/// Time for every time-out, pause and second attempt.
const LONG: Duration = Duration::from_secs(300);

proptest! {
    /// For every switch, every fault, and with or without a path to replace: afterwards the new path has no entry left, and the
    /// old one has all of its entries.
    #[test]
    fn a_failure_at_any_switch_leaves_no_entries(
        length in 1_u64..6,
        at in 0_u64..6,
        fault in proptest::sample::select(&FAULTS[..]),
        version in proptest::sample::select(&VERSIONS[..]),
        replaces: bool,
        returns_early: bool,
    ) {
        let at = at % length + 1;
        let (mut net, provisioner) = line(version, length);
        let old = replaces.then(|| provisioned(&mut net, &provisioner, Flow::new(line_path(length), to_host(1))));
        net.set_fault(at, fault);
        let flow = Flow::new(line_path(length), to_host(1));
        let job = match &old {
            Some(old) => provisioner.replace(old, flow),
            None => provisioner.provision(flow),
        };
        net.settle();
        if returns_early && matches!(fault, Fault::LeaveBefore | Fault::LeaveAfter) {
            net.connect(at);
        }
        net.advance(LONG);
        let error = outcome(job).unwrap_err();
        prop_assert!(is_about(&error, DatapathId(at), fault), "{error}");
        if matches!(fault, Fault::LeaveBefore | Fault::LeaveAfter) && !returns_early {
            net.connect(at);
            net.advance(LONG);
        }
        let kept = old.as_ref().map(Provisioned::cookie);
        for id in 1..=length {
            let cookies: Vec<_> = net.table(id).iter().map(|entry| entry.cookie).collect();
            prop_assert_eq!(cookies, kept.into_iter().collect::<Vec<_>>(), "at switch {}", id);
        }
        prop_assert_eq!(provisioner.counts().paths, usize::from(replaces));
        prop_assert_eq!(provisioner.counts().jobs, 0);
    }
}

#[test]
fn switches_that_leave_during_installation_roll_back_the_path() {
    for version in VERSIONS {
        for returns in [false, true] {
            let (mut net, provisioner) = line(version, 3);
            net.silence(1);
            let job = provisioner.provision(Flow::new(line_path(3), to_host(1)));
            net.settle();
            net.disconnect(3);
            if returns {
                net.connect(3);
            }
            net.speak(1);
            let switch = DatapathId(3);
            assert_eq!(outcome(job), Err(ProvisionError::Left { switch }));
            if !returns {
                net.connect(3);
            }
            for id in 1..=3 {
                assert!(net.table(id).is_empty(), "at switch {id}");
            }
        }
    }
}

#[test]
fn a_switch_that_returns_during_a_rollback_is_cleaned() {
    for version in VERSIONS {
        let (mut net, provisioner) = line(version, 3);
        net.silence(1);
        let job = provisioner.provision(Flow::new(line_path(3), to_host(1)));
        net.settle();
        net.silence(3);
        net.disconnect(2);
        net.speak(1);
        // The rollback has passed switch 2, and waits for switch 3.
        net.connect(2);
        net.speak(3);
        assert!(outcome(job).is_err());
        assert!((1..=3).all(|id| net.table(id).is_empty()));

        let path = provisioned(&mut net, &provisioner, Flow::new(line_path(3), to_host(1)));
        net.silence(3);
        net.disconnect(1);
        let removing = provisioner.remove(&path);
        net.settle();
        net.connect(1);
        net.speak(3);
        outcome(removing).unwrap();
        assert!((1..=3).all(|id| net.table(id).is_empty()));
    }
}

#[test]
fn paths_wait_for_busy_switches() {
    for version in VERSIONS {
        let (mut net, provisioner) = line(version, 1);
        let network = net.controller.network().clone();
        let much = Message::Experimenter(Experimenter {
            experimenter: 1,
            data: &[0; 60_000],
        });
        while network.send(DatapathId(1), &much).is_ok() {}
        let path = provisioned(&mut net, &provisioner, Flow::new(line_path(1), to_host(1)));
        assert_eq!(net.switches_with(path.cookie()), [1].into());
    }
}

#[test]
fn invalid_paths_are_errors() {
    let (mut net, provisioner) = line(Version::Of13, 2);
    let mut refusal = |path: Path| {
        let job = provisioner.provision(Flow::new(path, to_host(1)));
        net.settle();
        outcome(job).unwrap_err().to_string()
    };
    assert_eq!(
        refusal(Path { hops: Vec::new() }),
        "the path has no hops; expected at least one switch"
    );
    assert_eq!(
        refusal(line_path(3)),
        "switch 0000000000000003 of the path is not connected"
    );
    let mut circle = line_path(2);
    circle.hops.extend(line_path(1).hops);
    assert_eq!(
        refusal(circle),
        "the path passes switch 0000000000000001 twice; expected each switch once at most"
    );
    let mut beyond = line_path(2);
    beyond.hops[1].out_port = PortNo(9);
    assert_eq!(
        refusal(beyond),
        "the path uses port 0000000000000002:9, which that switch does not have"
    );
    assert!(
        net.told
            .iter()
            .all(|(_, told)| !matches!(told, ToSwitch::Add { .. }))
    );
}

#[test]
fn a_provisioner_that_does_not_run_is_an_error() {
    let provisioner = Provisioner::new(ProvisionConfig::default());
    let job = provisioner.provision(Flow::new(line_path(1), to_host(1)));
    assert_eq!(outcome(job), Err(ProvisionError::NotRunning));
}

#[test]
fn a_transaction_provisions_nothing() {
    let (mut net, provisioner) = line(Version::Of13, 1);
    let job =
        urtica_state::atomically(
            |_| Ok(provisioner.provision(Flow::new(line_path(1), to_host(1)))),
        );
    net.settle();
    assert_eq!(outcome(job), Err(ProvisionError::InTransaction));
    assert_eq!(provisioner.counts().paths, 0);
}

#[test]
fn jobs_and_paths_are_bounded() {
    let provisioner = Provisioner::new(ProvisionConfig {
        max_jobs: 2,
        max_flows: 1,
        ..ProvisionConfig::default()
    });
    let controller = Controller::new().program(provisioner.clone());
    let mut net = Net::line(controller, Version::Of13, 1);
    let [first, second, third] =
        [1, 2, 3].map(|host| provisioner.provision(Flow::new(line_path(1), to_host(host))));
    net.settle();
    assert!(outcome(first).is_ok());
    let error = outcome(second).unwrap_err();
    assert_eq!(error, ProvisionError::TooManyFlows { max_flows: 1 });
    let error = outcome(third).unwrap_err();
    assert_eq!(error, ProvisionError::TooManyJobs { max_jobs: 2 });
}

#[test]
fn match_and_priority_belong_to_one_path() {
    for version in VERSIONS {
        let (mut net, provisioner) = line(version, 2);
        let first = provisioned(&mut net, &provisioner, Flow::new(line_path(2), to_host(1)));
        let job = provisioner.provision(Flow::new(line_path(2), to_host(1)));
        net.settle();
        let taken = ProvisionError::Taken {
            switch: DatapathId(1),
            cookie: first.cookie(),
        };
        assert_eq!(outcome(job), Err(taken));
        let flow = Flow::new(line_path(2), to_host(1));
        let other = flow.options(EntryOptions::PERMANENT.priority(7));
        provisioned(&mut net, &provisioner, other);
        assert_eq!(net.table(1).len(), 2);
    }
}

#[test]
fn paths_replace_others_without_a_gap() {
    for version in VERSIONS {
        let (mut net, provisioner) = line(version, 3);
        let old = provisioned(&mut net, &provisioner, Flow::new(line_path(3), to_host(1)));
        net.told.clear();
        let job = provisioner.replace(&old, Flow::new(line_path(2), to_host(1)));
        net.settle();
        let new = outcome(job).unwrap();
        let order = net.told.iter().filter_map(|(id, told)| match told {
            ToSwitch::Add { .. } => Some(("add", *id)),
            ToSwitch::Delete { .. } => Some(("delete", *id)),
            _ => None,
        });
        assert_eq!(
            order.collect::<Vec<_>>(),
            [("add", 2), ("add", 1), ("delete", 3)]
        );
        assert_eq!(net.switches_with(new.cookie()), [1, 2].into());
        assert!(net.switches_with(old.cookie()).is_empty());
        assert!(!provisioner.is_live(&old) && provisioner.is_live(&new));
    }
}

#[test]
fn paths_in_change_are_refused() {
    let (mut net, provisioner) = line(Version::Of13, 1);
    let old = provisioned(&mut net, &provisioner, Flow::new(line_path(1), to_host(1)));
    let replacing = provisioner.replace(&old, Flow::new(line_path(1), to_host(1)));
    let removing = provisioner.remove(&old);
    net.settle();
    let new = outcome(replacing).unwrap();
    let changing = ProvisionError::Changing {
        cookie: old.cookie(),
    };
    assert_eq!(outcome(removing), Err(changing));
    assert!(provisioner.is_live(&new));
}

#[test]
fn the_first_expired_entry_removes_its_path() {
    for version in VERSIONS {
        let (mut net, provisioner) = line(version, 3);
        let flow = Flow::new(line_path(3), to_host(1)).options(EntryOptions::idle(1));
        let path = provisioned(&mut net, &provisioner, flow);
        net.expire(2, path.cookie());
        assert!(net.switches_with(path.cookie()).is_empty());
        assert!(!provisioner.is_live(&path));
    }
}

/// Returns the message that a switch sends when an entry of a path has timed out.
fn flow_removed(cookie: u64) -> Message<'static> {
    Message::FlowRemoved(FlowRemoved {
        cookie,
        priority: 0x8000,
        reason: FlowRemovedReason::IdleTimeout,
        table_id: 0,
        duration_sec: 1,
        duration_nsec: 0,
        idle_timeout: 1,
        hard_timeout: 0,
        packet_count: 0,
        byte_count: 0,
        match_: to_host(1),
    })
}

#[test]
fn reports_of_switches_off_the_path_are_ignored() {
    for version in VERSIONS {
        let (mut net, provisioner) = line(version, 3);
        let flow = Flow::new(line_path(2), to_host(1)).options(EntryOptions::idle(1));
        let path = provisioned(&mut net, &provisioner, flow);
        net.told.clear();
        for number in 0..10_000 {
            net.send_message(3, 0, &flow_removed(COOKIE_TAG | number));
        }
        net.settle();
        assert!(provisioner.is_live(&path));
        assert_eq!(net.switches_with(path.cookie()), [1, 2].into());
        assert_eq!(net.told, []);
    }
}

#[test]
fn repeated_reports_of_a_lost_entry_remove_a_path_once() {
    for version in VERSIONS {
        let (mut net, provisioner) = line(version, 3);
        let flow = Flow::new(line_path(3), to_host(1)).options(EntryOptions::idle(1));
        let path = provisioned(&mut net, &provisioner, flow);
        net.told.clear();
        for _ in 0..10_000 {
            net.send_message(2, 0, &flow_removed(path.cookie()));
        }
        net.settle();
        assert!(!provisioner.is_live(&path));
        let deletes = net
            .told
            .iter()
            .filter(|(_, told)| *told != ToSwitch::Barrier);
        assert_eq!(deletes.map(|(id, _)| *id).collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(provisioner.counts().removed, 1);
    }
}

#[test]
fn an_entry_that_expires_early_removes_its_path() {
    for version in VERSIONS {
        for replaces in [false, true] {
            let (mut net, provisioner) = line(version, 3);
            let flow = || Flow::new(line_path(3), to_host(1)).options(EntryOptions::idle(1));
            let old = replaces.then(|| provisioned(&mut net, &provisioner, flow()));
            net.silence(1);
            let job = match &old {
                Some(old) => provisioner.replace(old, flow()),
                None => provisioner.provision(flow()),
            };
            net.settle();
            let cookie = net.table(3)[0].cookie;
            net.expire(3, cookie);
            net.speak(1);
            let path = outcome(job).expect("all switches have confirmed it");
            assert!(!provisioner.is_live(&path));
            assert!((1..=3).all(|id| net.table(id).is_empty()));
            assert_eq!(provisioner.counts().paths, 0);
        }
    }
}

#[test]
fn a_path_that_lost_an_entry_during_its_replacement_is_removed() {
    for version in VERSIONS {
        let (mut net, provisioner) = line(version, 3);
        let flow = |length| Flow::new(line_path(length), to_host(1)).options(EntryOptions::idle(1));
        let old = provisioned(&mut net, &provisioner, flow(3));
        net.silence(1);
        let job = provisioner.replace(&old, flow(2));
        net.settle();
        net.expire(3, old.cookie());
        // The new path fails.
        net.disconnect(2);
        net.connect(2);
        net.speak(1);
        net.advance(LONG);
        assert!(outcome(job).is_err());
        assert!(!provisioner.is_live(&old));
        assert!((1..=3).all(|id| net.table(id).is_empty()));
    }
}

#[test]
fn jobs_wait_until_their_switch_is_clean() {
    for version in VERSIONS {
        for leaves in [false, true] {
            let (mut net, provisioner) = line(version, 2);
            net.disconnect(2);
            net.install_foreign(
                2,
                Entry {
                    cookie: COOKIE_TAG | 77,
                    table_id: 0,
                    priority: 0x8000,
                    match_: to_host(7),
                    out: Vec::new(),
                },
            );
            net.silence(2);
            net.connect(2);
            net.told.clear();
            let job = provisioner.provision(Flow::new(line_path(2), to_host(1)));
            net.settle();
            assert_eq!(net.told, [], "the old entry is not known to be gone");
            match leaves {
                true => net.disconnect(2),
                false => net.speak(2),
            }
            match leaves {
                true => assert!(outcome(job).is_err()),
                false => assert!(provisioner.is_live(&outcome(job).unwrap())),
            }
        }
    }
}

#[test]
fn switches_that_refuse_deletions_are_cleaned_eventually() {
    for version in VERSIONS {
        let (mut net, provisioner) = line(version, 2);
        let path = provisioned(&mut net, &provisioner, Flow::new(line_path(2), to_host(1)));
        net.refuse_deletes(2, true);
        let removing = provisioner.remove(&path);
        net.advance(Duration::from_secs(60));
        outcome(removing).unwrap();
        assert_eq!(net.switches_with(path.cookie()), [2].into());
        // Paths of other switches need not wait for that.
        provisioned(&mut net, &provisioner, Flow::new(line_path(2), to_host(2)));
        net.refuse_deletes(2, false);
        net.advance(Duration::from_secs(5));
        assert!(net.switches_with(path.cookie()).is_empty(), "{version:?}");
    }
}

#[test]
fn a_switch_that_joins_repeatedly_is_cleaned_once_at_a_time() {
    let (mut net, provisioner) = line(Version::Of13, 2);
    let path = provisioned(&mut net, &provisioner, Flow::new(line_path(2), to_host(1)));
    for _ in 0..100 {
        net.disconnect(2);
        net.clear_table(2);
        net.connect(2);
    }
    net.advance(LONG);
    assert_eq!(net.switches_with(path.cookie()), [1, 2].into());
    // A new path finds the switch clean at once.
    provisioned(&mut net, &provisioner, Flow::new(line_path(2), to_host(2)));
}

#[test]
fn a_joining_switch_loses_stale_entries_and_keeps_others() {
    for version in VERSIONS {
        let (mut net, provisioner) = line(version, 2);
        let path = provisioned(&mut net, &provisioner, Flow::new(line_path(2), to_host(1)));
        net.disconnect(2);
        let stale = |cookie, host| Entry {
            cookie,
            table_id: 0,
            priority: 0x8000,
            match_: to_host(host),
            out: Vec::new(),
        };
        net.install_foreign(2, stale(COOKIE_TAG | 77, 7));
        net.install_foreign(2, stale(0x5555, 8));
        net.connect(2);
        net.advance(LONG);
        let mut cookies: Vec<_> = net.table(2).iter().map(|entry| entry.cookie).collect();
        cookies.sort_unstable();
        assert_eq!(cookies, [0x5555, path.cookie()]);
        assert_eq!(provisioner.counts().stale_entries, 1);
    }
}

#[test]
fn a_new_run_does_not_adopt_old_entries() {
    for version in VERSIONS {
        let provisioner = Provisioner::new(ProvisionConfig::default());
        let controller = Controller::new().program(provisioner.clone());
        let mut net = Net::new(controller);
        net.add_switch(1, version, 3);
        let old = Entry {
            cookie: COOKIE_TAG | 1,
            table_id: 0,
            priority: 0x8000,
            match_: to_host(9),
            out: Vec::new(),
        };
        net.install_foreign(1, old);
        net.connect(1);
        let path = provisioned(&mut net, &provisioner, Flow::new(line_path(1), to_host(1)));
        assert_eq!(path.cookie(), COOKIE_TAG | 1);
        let matches: Vec<_> = net.table(1).into_iter().map(|entry| entry.match_).collect();
        assert_eq!(matches, [to_host(1)]);
    }
}

#[test]
fn a_switch_that_lost_its_table_gets_its_entries_back() {
    for version in VERSIONS {
        let (mut net, provisioner) = line(version, 2);
        let path = provisioned(&mut net, &provisioner, Flow::new(line_path(2), to_host(1)));
        net.disconnect(2);
        net.clear_table(2);
        net.connect(2);
        net.advance(LONG);
        assert_eq!(net.switches_with(path.cookie()), [1, 2].into());
    }
}

#[test]
fn returning_switches_lose_removed_paths() {
    for version in VERSIONS {
        let (mut net, provisioner) = line(version, 2);
        let path = provisioned(&mut net, &provisioner, Flow::new(line_path(2), to_host(1)));
        net.disconnect(2);
        let removing = provisioner.remove(&path);
        net.settle();
        outcome(removing).unwrap();
        assert_eq!(net.switches_with(path.cookie()), [2].into());
        net.connect(2);
        net.advance(LONG);
        assert!(net.switches_with(path.cookie()).is_empty());
    }
}

#[test]
fn many_paths_are_set_up_concurrently() {
    let (mut net, provisioner) = line(Version::Of13, 3);
    net.set_fault(3, Fault::FallSilent);
    let stuck = provisioner.provision(Flow::new(line_path(3), to_host(1)));
    let others: Vec<_> = (2..200)
        .map(|host| provisioner.provision(Flow::new(line_path(2), to_host(host))))
        .collect();
    net.settle();
    for other in others {
        outcome(other).expect("a path that does not pass the silent switch");
    }
    net.advance(LONG);
    assert!(outcome(stuck).is_err());
}

#[test]
fn waiting_packets_leave_once_the_path_is_installed() {
    use urtica_controller::{Switch, SwitchHandler, SwitchInfo};
    use urtica_wire::PacketIn;

    /// Sets up a path for each packet, and sends the packet along it.
    struct Forwarding(Provisioner);
    impl SwitchHandler for Forwarding {
        fn packet_in(&mut self, _: &mut Switch, packet: &PacketIn) {
            let flow = Flow::new(line_path(2), to_host(1)).releasing(packet);
            let _goes_on_without_us = self.0.provision(flow);
        }
    }
    for version in VERSIONS {
        let provisioner = Provisioner::new(ProvisionConfig::default());
        let own = provisioner.clone();
        let controller = Controller::new()
            .program(provisioner.clone())
            .program(move |_: &SwitchInfo| Forwarding(own.clone()));
        let mut net = Net::line(controller, version, 2);
        net.told.clear();
        let frame = [7; 60];
        net.packet_in(port(1, 3), &frame);
        let packet_outs: Vec<_> = net
            .told
            .iter()
            .filter(|(_, told)| matches!(told, ToSwitch::PacketOut { .. }))
            .cloned()
            .collect();
        let released = ToSwitch::PacketOut {
            out: vec![PortNo(2)],
            data: frame.to_vec(),
        };
        assert_eq!(packet_outs[0], (1, released));
        let last_barrier = net
            .told
            .iter()
            .rposition(|told| *told == (1, ToSwitch::Barrier));
        let release = net.told.iter().position(|told| *told == packet_outs[0]);
        assert!(
            release
                > net
                    .told
                    .iter()
                    .position(|told| *told == (1, ToSwitch::Barrier))
        );
        assert!(last_barrier.is_some());
    }
}
