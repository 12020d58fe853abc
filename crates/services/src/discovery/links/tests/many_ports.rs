//! Switches with many ports, which are handled a portion at a time.

use super::*;

/// More ports than a portion, but not a multiple of it.
const MANY_PORTS: u32 = 10 * PORTION as u32 + 7;

impl World {
    pub(super) fn join_with_many_ports(&mut self, switch: u64) {
        let ports: Vec<_> = (1..=MANY_PORTS)
            .map(|port_no| self.port(port_id(switch, port_no)))
            .collect();
        let (id, owner) = (DatapathId(switch), Owner(switch));
        self.owners.insert(id, owner);
        self.links.handle_switch_up(id, owner, &ports, self.now);
    }

    /// Runs the due timers, and returns the maximum number of probes of one call.
    pub(super) fn work_off(&mut self) -> usize {
        let mut most = 0;
        while self.links.poll_timeout().is_some_and(|due| due <= self.now) {
            self.links.handle_timeout(self.now);
            let probes = self.links.poll_probes();
            most = most.max(probes.len());
            self.sent
                .extend(probes.into_iter().map(|probe| (self.now, probe)));
        }
        most
    }

    /// Returns the ports that were probed since the last call, each once.
    pub(super) fn take_probed(&mut self) -> BTreeSet<PortId> {
        self.sent.drain(..).map(|(_, probe)| probe.from).collect()
    }
}

#[test]
fn each_call_handles_a_portion_of_many_ports() {
    let mut world = World::new();
    world.join_with_many_ports(1);
    assert_eq!(world.links.poll_probes().len(), PORTION, "the join");
    assert!(world.work_off() <= 2 * PORTION);
    assert_eq!(world.links.port_count(), MANY_PORTS as usize);
    let probed = world.take_probed();
    assert_eq!(probed.len(), MANY_PORTS as usize - PORTION);
    world.now += SECOND;
    assert!(world.work_off() <= PORTION, "probes while ports settle");

    // Another switch may be behind any of them.
    world.take_probed();
    world.join(2);
    let own_probes = std::mem::take(&mut world.sent);
    assert_eq!(own_probes.len(), PORTS as usize);
    assert!(world.work_off() <= PORTION, "ports in doubt");
    let probed = world.take_probed();
    let of_first = probed.iter().filter(|port| port.switch == DatapathId(1));
    assert_eq!(of_first.count(), MANY_PORTS as usize);

    world.part(1);
    assert_eq!(world.links.port_count(), PORTS as usize);
    assert!(world.links.timers.len() > 10 * PORTION, "cancelled later");
    world.work_off();
    let switch = |timer: &Timer| match timer {
        Timer::Probe(port) | Timer::AskAgain(port, _) => port.switch,
        Timer::Classify(port) | Timer::Expire(port) => port.switch,
        Timer::Damping(port, _) => port.switch,
    };
    let left: BTreeSet<_> = world.links.timers.keys().map(switch).collect();
    assert_eq!(left, BTreeSet::from([DatapathId(2)]));
}

#[test]
fn port_reports_replace_pending_additions() {
    let mut world = World::new();
    world.join_with_many_ports(1);
    let id = DatapathId(1);
    let (removed, down, changed) = (MANY_PORTS, MANY_PORTS - 1, MANY_PORTS - 2);
    world
        .links
        .handle_port_removed(id, Owner(1), PortNo(removed), world.now);
    world.set_port(port_id(1, down), false);
    let mut port = world.port(port_id(1, changed));
    port.hw_addr = MacAddr::new([2, 0, 0, 0, 0, 9]);
    world.links.handle_port(id, Owner(1), &port, world.now);
    world.work_off();
    assert_eq!(world.links.port_count(), MANY_PORTS as usize - 2);
    let found = world.links.ports.get(port_id(1, changed));
    assert_eq!(found.map(|found| found.hw_addr), Some(port.hw_addr));
    // A switch that leaves during the work leaves no state.
    world.join_with_many_ports(1);
    world.part(1);
    world.work_off();
    assert_eq!((world.links.port_count(), world.links.timers.len()), (0, 0));
}
