//! The table on a simulated clock.

use super::*;
use crate::offload::fake::Fake;
use proptest::prelude::*;
use std::net::Ipv4Addr;
use std::time::Duration;
use urtica_wire::{DatapathId, PortNo};

const SECOND: Duration = Duration::from_secs(1);

/// A table, the time, and the effects.
struct Bench {
    table: HostTable,
    now: Instant,
}

fn port(switch: u64, port_no: u32) -> PortId {
    PortId::new(DatapathId(switch), PortNo(port_no))
}

fn mac(number: u8) -> MacAddr {
    MacAddr::new([2, 0, 0, 0, 0, number])
}

fn ip(number: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, number))
}

impl Bench {
    fn new(config: HostsConfig) -> Self {
        Self {
            table: HostTable::new(config),
            now: Instant::now(),
        }
    }

    fn wait(&mut self, duration: Duration) -> Effects {
        self.now += duration;
        self.table.handle_timeout(self.now)
    }

    /// Reports a frame without an address.
    fn frame(&self, host: u8, at: PortId) -> Effects {
        self.see(sighting(host, at))
    }

    /// Reports that a host claims an address.
    fn claim(&self, host: u8, at: PortId, address: IpAddr) -> Effects {
        self.see(Sighting {
            neighbour: Some(Neighbour::Announcement {
                address,
                is_router: None,
            }),
            ..sighting(host, at)
        })
    }

    fn see(&self, sighting: Sighting) -> Effects {
        match self.table.is_news(&sighting, self.now) {
            true => self.table.see(&sighting, self.now),
            false => Effects::default(),
        }
    }

    fn place(&self, host: u8) -> Option<PortId> {
        Some(self.table.find(mac(host))?.attached)
    }

    fn owner(&self, address: IpAddr) -> Option<MacAddr> {
        Some(self.table.find_address(address)?.mac)
    }
}

fn sighting(host: u8, port: PortId) -> Sighting {
    Sighting {
        port,
        mac: mac(host),
        vlan: None,
        neighbour: None,
        ip_src: None,
    }
}

/// Returns events as a word and the host's number.
fn names(effects: &Effects) -> Vec<(&'static str, u8)> {
    effects.events.iter().map(name).collect()
}

fn name(event: &HostEvent) -> (&'static str, u8) {
    let (name, host) = match event {
        HostEvent::Joined(host) => ("joined", host),
        HostEvent::Changed(host) => ("changed", host),
        HostEvent::Moved { host, .. } => ("moved", host),
        HostEvent::Left { host, .. } => ("left", host),
        HostEvent::AddressConflict { claimant, .. } => ("conflict", claimant),
        HostEvent::AddressMoved { to, .. } => ("address moved", to),
        HostEvent::Contested { host, .. } => ("contested", host),
        HostEvent::Flapping { host, .. } => ("flapping", host),
        HostEvent::Refused { .. } | HostEvent::Missed(_) => panic!("about no host: {event:?}"),
    };
    (name, host.mac.octets()[5])
}

#[test]
fn a_host_is_learnt_with_its_addresses() {
    let bench = Bench::new(HostsConfig::default());
    assert_eq!(names(&bench.frame(1, port(1, 1))), [("joined", 1)]);
    assert_eq!(names(&bench.frame(1, port(1, 1))), []);
    assert_eq!(names(&bench.claim(1, port(1, 1), ip(1))), [("changed", 1)]);
    assert_eq!(names(&bench.claim(1, port(1, 1), ip(1))), []);
    let host = bench.table.find_address(ip(1)).unwrap();
    assert_eq!((host.mac, host.attached), (mac(1), port(1, 1)));
    assert_eq!(host.addresses().collect::<Vec<_>>(), [ip(1)]);
}

#[test]
fn group_addresses_and_zero_are_no_hosts() {
    let bench = Bench::new(HostsConfig::default());
    for mac in [
        MacAddr::BROADCAST,
        MacAddr::ZERO,
        MacAddr::new([1, 0, 0x5e, 0, 0, 1]),
    ] {
        let forged = Sighting {
            mac,
            ..sighting(1, port(1, 1))
        };
        assert!(bench.see(forged).is_empty());
    }
    assert_eq!(bench.table.count(), 0);
}

#[test]
fn mac_addresses_in_two_vlans_are_two_hosts() {
    let bench = Bench::new(HostsConfig::default());
    for (vlan, port_no) in [(Some(20), 2), (Some(10), 1)] {
        bench.see(Sighting {
            vlan,
            ..sighting(1, port(1, port_no))
        });
    }
    let find = |vlan| bench.table.find_in(vlan, mac(1)).map(|host| host.attached);
    assert_eq!(find(Some(10)), Some(port(1, 1)));
    assert_eq!(find(Some(20)), Some(port(1, 2)));
    assert_eq!(find(None), None);
    assert_eq!(bench.place(1), Some(port(1, 1)), "the lowest VLAN");
}

#[test]
fn hosts_behind_ports_that_are_down_move_at_once() {
    let bench = Bench::new(HostsConfig::default());
    bench.claim(1, port(1, 1), ip(1));
    let effects = bench.table.port_down(port(1, 1), bench.now);
    assert_eq!(names(&effects), [("left", 1)]);
    assert_eq!(bench.owner(ip(1)), None);
    assert_eq!(names(&bench.frame(1, port(2, 1))), [("joined", 1)]);
}

#[test]
fn a_silent_host_moves_after_a_probe() {
    let mut bench = Bench::new(HostsConfig::default());
    bench.claim(1, port(1, 1), ip(1));
    let asked = bench.frame(1, port(2, 1));
    let probe = HostProbe {
        port: port(1, 1),
        vlan: None,
        mac: mac(1),
        address: ip(1),
    };
    assert_eq!(asked.probes, [probe]);
    assert_eq!(bench.frame(1, port(2, 1)).probes, [], "asked once");
    assert_eq!(bench.place(1), Some(port(1, 1)));
    assert_eq!(names(&bench.wait(SECOND)), [("moved", 1)]);
    assert_eq!(bench.place(1), Some(port(2, 1)));
    assert_eq!(bench.owner(ip(1)), Some(mac(1)));
}

#[test]
fn a_host_that_answers_keeps_its_location() {
    let mut bench = Bench::new(HostsConfig::default());
    bench.claim(1, port(1, 1), ip(1));
    for round in 0..3 {
        bench.frame(1, port(2, 1));
        // Time does not advance within a batch.
        bench.frame(1, port(1, 1));
        let told = names(&bench.wait(SECOND));
        let expected: &[_] = if round == 0 { &[("contested", 1)] } else { &[] };
        assert_eq!(told, expected, "told rarely");
        assert_eq!(bench.place(1), Some(port(1, 1)));
    }
}

#[test]
fn an_address_stays_with_an_owner_that_answers() {
    let mut bench = Bench::new(HostsConfig::default());
    bench.claim(1, port(1, 1), ip(1));
    let claimed = bench.claim(2, port(1, 2), ip(1));
    assert_eq!(names(&claimed), [("joined", 2), ("conflict", 2)]);
    assert_eq!(claimed.probes.len(), 1);
    assert_eq!(claimed.probes[0].port, port(1, 1));
    bench.frame(1, port(1, 1));
    assert_eq!(names(&bench.wait(SECOND)), []);
    assert_eq!(bench.owner(ip(1)), Some(mac(1)));
    assert!(
        bench
            .table
            .find(mac(2))
            .unwrap()
            .addresses()
            .next()
            .is_none()
    );
}

#[test]
fn a_silent_owners_address_is_taken_over_with_an_event() {
    let mut bench = Bench::new(HostsConfig::default());
    bench.claim(1, port(1, 1), ip(1));
    bench.claim(2, port(1, 2), ip(1));
    let told = names(&bench.wait(SECOND));
    assert_eq!(told, [("changed", 2), ("address moved", 2)]);
    assert_eq!(bench.owner(ip(1)), Some(mac(2)));
    assert!(!bench.table.find(mac(1)).unwrap().has(ip(1)));
}

#[test]
fn newest_wins_grants_claims_immediately_and_ends_flapping() {
    let mut bench = Bench::new(HostsConfig {
        on_conflict: ConflictPolicy::NewestWins,
        ..HostsConfig::default()
    });
    bench.claim(1, port(1, 1), ip(1));
    let told = names(&bench.claim(2, port(1, 2), ip(1)));
    assert_eq!(told.last(), Some(&("address moved", 2)));
    for (count, to) in [2, 1, 2, 1, 2].into_iter().enumerate() {
        assert_eq!(
            names(&bench.frame(1, port(to, 1))),
            [("moved", 1)],
            "{count}"
        );
    }
    let told = names(&bench.frame(1, port(1, 1)));
    assert_eq!(told, [("moved", 1), ("flapping", 1)]);
    assert_eq!(names(&bench.frame(1, port(2, 1))), []);
    bench.wait(HostsConfig::default().hold);
    assert_eq!(names(&bench.frame(1, port(2, 1))), [("moved", 1)]);
}

#[test]
fn a_late_link_port_returns_its_hosts() {
    let mut bench = Bench::new(HostsConfig::default());
    bench.frame(1, port(1, 1));
    // Its frames are flooded to the next switch, whose port is not known to be a link port yet.
    bench.frame(1, port(2, 1));
    bench.frame(2, port(2, 1));
    assert_eq!(names(&bench.wait(SECOND)), [("moved", 1)]);
    let effects = bench.table.correct(|at| at == port(2, 1), bench.now);
    assert_eq!(names(&effects), [("moved", 1), ("left", 2)]);
    assert_eq!(bench.place(1), Some(port(1, 1)));
    assert_eq!(bench.place(2), None);
}

#[test]
fn claims_at_a_late_link_port_are_dropped() {
    let mut bench = Bench::new(HostsConfig::default());
    bench.frame(1, port(1, 1));
    bench.frame(1, port(2, 1));
    bench.table.correct(|at| at == port(2, 1), bench.now);
    assert_eq!(names(&bench.wait(SECOND)), []);
    assert_eq!(bench.place(1), Some(port(1, 1)));
}

#[test]
fn a_flood_of_forged_hosts_fills_only_its_port() {
    let config = HostsConfig {
        max_hosts_per_port: 10,
        max_hosts: 25,
        ..HostsConfig::default()
    };
    let bench = Bench::new(config);
    bench.claim(1, port(1, 1), ip(1));
    for host in 100..200 {
        let effects = bench.frame(host, port(1, 2));
        let is_told = effects
            .events
            .iter()
            .any(|event| matches!(event, HostEvent::Refused { known: 10, .. }));
        assert_eq!(is_told, host == 110, "told once");
    }
    assert_eq!(bench.table.refused(), 90);
    assert_eq!(names(&bench.frame(2, port(1, 1))), [("joined", 2)]);
    assert_eq!(bench.owner(ip(1)), Some(mac(1)));
    assert_eq!(bench.table.count(), 12);
    for host in 200..250 {
        bench.frame(host, port(1, 3));
        bench.frame(host, port(1, 4));
    }
    assert_eq!(bench.table.count(), 25);
    assert_eq!(
        bench.place(1),
        Some(port(1, 1)),
        "the largest share loses hosts"
    );
}

#[test]
fn a_full_table_has_space_for_hosts_of_other_switches() {
    let config = HostsConfig {
        max_hosts_per_port: 10,
        max_hosts: 40,
        ..HostsConfig::default()
    };
    let bench = Bench::new(config);
    bench.claim(1, port(1, 1), ip(1));
    // As if from eight ports of one switch.
    for host in 100..180 {
        bench.frame(host, port(1, u32::from(host) / 10));
    }
    assert_eq!(bench.table.count(), 40);
    for host in 10..20 {
        bench.frame(host, port(2, 1));
        assert_eq!(bench.place(host), Some(port(2, 1)));
    }
    for host in 180..255 {
        bench.frame(host, port(1, u32::from(host) / 10));
    }
    assert_eq!(bench.table.count(), 40);
    assert_eq!(bench.place(1), Some(port(1, 1)), "at a small share");
    for host in 10..20 {
        assert_eq!(bench.place(host), Some(port(2, 1)));
    }
}

#[test]
fn a_host_with_an_address_is_displaced_last() {
    let config = HostsConfig {
        max_hosts: 3,
        ..HostsConfig::default()
    };
    let bench = Bench::new(config);
    bench.claim(1, port(1, 1), ip(1));
    bench.frame(2, port(1, 1));
    bench.frame(3, port(1, 1));
    bench.frame(2, port(1, 1));
    assert_eq!(
        names(&bench.frame(4, port(2, 1))),
        [("left", 3), ("joined", 4)]
    );
    assert_eq!(
        names(&bench.frame(5, port(3, 1))),
        [("left", 2), ("joined", 5)]
    );
    let effects = bench.frame(6, port(4, 1));
    assert_eq!(bench.place(6), None, "{effects:?}: shares are equal");
    assert_eq!(bench.place(1), Some(port(1, 1)));
}

#[test]
fn a_host_beyond_its_limit_loses_its_oldest_address() {
    let bench = Bench::new(HostsConfig {
        max_addresses: 2,
        ..HostsConfig::default()
    });
    for number in 1..=3 {
        bench.claim(1, port(1, 1), ip(number));
    }
    assert_eq!(bench.owner(ip(1)), None);
    let host = bench.table.find(mac(1)).unwrap();
    assert_eq!(host.addresses().collect::<Vec<_>>(), [ip(2), ip(3)]);
}

#[test]
fn a_silent_host_is_probed_and_then_removed() {
    let mut bench = Bench::new(HostsConfig::default());
    bench.claim(1, port(1, 1), ip(1));
    bench.frame(2, port(1, 2));
    let effects = bench.wait(HostsConfig::default().max_age);
    assert_eq!(
        names(&effects),
        [("left", 2)],
        "it has no address to be asked for"
    );
    assert_eq!(effects.probes.len(), 1);
    for _ in 1..AGE_PROBES {
        let effects = bench.wait(SECOND);
        assert_eq!((names(&effects), effects.probes.len()), (vec![], 1));
    }
    assert_eq!(names(&bench.wait(SECOND)), [("left", 1)]);
    assert_eq!(bench.table.next_timeout(), None);
}

#[test]
fn answering_hosts_do_not_age() {
    let mut bench = Bench::new(HostsConfig::default());
    bench.claim(1, port(1, 1), ip(1));
    for _ in 0..5 {
        let asked = bench.wait(HostsConfig::default().max_age + SECOND);
        assert_eq!(asked.probes.len(), 1);
        bench.frame(1, port(1, 1));
        let effects = bench.wait(SECOND);
        assert!(effects.is_empty(), "{effects:?}");
    }
}

#[test]
fn addresses_of_data_are_learnt_only_if_unclaimed() {
    let bench = Bench::new(HostsConfig::default());
    bench.claim(1, port(1, 1), ip(1));
    for address in [ip(1), ip(9)] {
        bench.see(Sighting {
            ip_src: Some(address),
            ..sighting(2, port(1, 2))
        });
    }
    assert_eq!(bench.owner(ip(1)), Some(mac(1)));
    assert_eq!(bench.owner(ip(9)), Some(mac(2)));
}

/// A step of a test.
#[derive(Clone, Copy, Debug)]
enum Step {
    See(u8, u8, Option<u8>),
    Wait(u16),
    PortDown(u8),
    SwitchLeft(u8),
    Correct(u8),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => (0..6_u8, 0..6_u8, proptest::option::of(0..5_u8)).prop_map(|(host, at, ip)| Step::See(host, at, ip)),
        4 => (0..2_000_u16).prop_map(Step::Wait),
        1 => (0..6_u8).prop_map(Step::PortDown),
        1 => (0..3_u8).prop_map(Step::SwitchLeft),
        1 => (0..6_u8).prop_map(Step::Correct),
    ];
    proptest::collection::vec(step, 0..80)
}

/// Returns one of two ports on each of three switches.
fn port_of(number: u8) -> PortId {
    port(u64::from(number / 2), u32::from(number % 2) + 1)
}

/// Checks that the maps are consistent, and within the bounds.
fn check(bench: &Bench) {
    let HostsConfig {
        max_hosts,
        max_hosts_per_port,
        max_addresses,
        ..
    } = *bench.table.config();
    let hosts = bench.table.all();
    let writer = bench.table.lock();
    assert_eq!(hosts.len(), writer.count);
    assert!(hosts.len() <= max_hosts);
    let at_ports: usize = writer.at_port.values().map(BTreeSet::len).sum();
    assert_eq!(at_ports, hosts.len());
    assert!(
        writer
            .at_port
            .values()
            .all(|at| (1..=max_hosts_per_port).contains(&at.len()))
    );
    for host in &hosts {
        assert!(writer.at_port[&host.attached].contains(&host.id()));
        assert!(host.ipv4s.len() <= max_addresses);
        for address in host.addresses() {
            let owner = bench.table.find_address_in(host.vlan, address).unwrap();
            assert!(Arc::ptr_eq(&owner, host), "both maps lead to one host");
        }
    }
    let owned: usize = hosts.iter().map(|host| host.ipv4s.len()).sum();
    assert_eq!(
        bench.table.by_address.len(),
        owned,
        "nobody else has an address"
    );
    let ages = writer.timers.keys().filter_map(|timer| match timer {
        Timer::Age(id) => Some(*id),
        _ => None,
    });
    let ids: BTreeSet<_> = hosts.iter().map(|host| host.id()).collect();
    assert_eq!(ages.collect::<BTreeSet<_>>(), ids, "everybody ages");
}

proptest! {
    #[test]
    fn all_maps_agree(steps in steps(), newest_wins: bool) {
        let mut bench = Bench::new(HostsConfig {
            max_hosts: 5,
            max_hosts_per_port: 3,
            max_addresses: 2,
            max_age: Duration::from_secs(4),
            on_conflict: if newest_wins { ConflictPolicy::NewestWins } else { ConflictPolicy::OwnerWhileAlive },
            ..HostsConfig::default()
        });
        for step in steps {
            match step {
                Step::See(host, at, None) => drop(bench.frame(host, port_of(at))),
                Step::See(host, at, Some(address)) => drop(bench.claim(host, port_of(at), ip(address))),
                Step::Wait(ms) => drop(bench.wait(Duration::from_millis(ms.into()))),
                Step::PortDown(at) => drop(bench.table.port_down(port_of(at), bench.now)),
                Step::SwitchLeft(id) => drop(bench.table.switch_left(DatapathId(id.into()), bench.now)),
                Step::Correct(link) => drop(bench.table.correct(|at| at == port_of(link), bench.now)),
            }
            check(&bench);
        }
    }

    /// A host that answers all probes keeps its location and address, whatever others claim.
    #[test]
    fn a_host_that_answers_keeps_its_location_and_address(steps in steps()) {
        let mut bench = Bench::new(HostsConfig::default());
        let (victim, home, address) = (99, port(9, 9), ip(200));
        bench.claim(victim, home, address);
        for step in steps {
            let effects = match step {
                Step::See(_, at, None) => bench.frame(victim, port_of(at)),
                Step::See(host, at, Some(_)) => bench.claim(host, port_of(at), address),
                Step::Wait(ms) => bench.wait(Duration::from_millis(ms.into())),
                _ => Effects::default(),
            };
            for probe in effects.probes {
                if probe.port == home {
                    bench.frame(victim, home);
                }
            }
            prop_assert_eq!(bench.place(victim), Some(home));
            prop_assert_eq!(bench.owner(address), Some(mac(victim)));
        }
    }
}

/// Creates a table whose hosts' packets may be settled elsewhere.
fn offloaded(config: HostsConfig) -> (Bench, Arc<Fake>) {
    let bench = Bench::new(config);
    let fake = Arc::new(Fake::default());
    assert!(bench.table.offload().set(fake.clone()).is_ok());
    (bench, fake)
}

#[test]
fn hosts_seen_only_by_the_offload_are_kept() {
    let (mut bench, fake) = offloaded(HostsConfig::default());
    bench.claim(1, port(1, 1), ip(1));
    for _ in 0..100 {
        let effects = bench.wait(100 * SECOND);
        assert!(effects.is_empty(), "{effects:?}");
        fake.settle_of(mac(1), bench.now);
    }
    let effects: Vec<_> = (0..10).map(|_| bench.wait(100 * SECOND)).collect();
    assert!(
        effects
            .iter()
            .any(|effects| names(effects) == [("left", 1)])
    );
    assert_eq!(fake.hosts(), []);
    assert_eq!(fake.owners(), []);
}

#[test]
fn hosts_that_answer_the_offload_keep_location_and_address() {
    for answers in [true, false] {
        let (mut bench, fake) = offloaded(HostsConfig::default());
        bench.claim(1, port(1, 1), ip(1));
        // The host was heard before the claim, which does not count.
        fake.settle_of(mac(1), bench.now);
        assert_eq!(bench.claim(2, port(1, 3), ip(1)).probes.len(), 1);
        if answers {
            fake.settle_of(mac(1), bench.now);
        }
        let effects = bench.wait(2 * SECOND);
        let (expected, owner) = match answers {
            true => (vec![], 1),
            false => (vec![("changed", 2), ("address moved", 2)], 2),
        };
        assert_eq!(names(&effects), expected);
        assert_eq!(fake.owners(), [(ip(1), mac(owner))]);

        assert_eq!(bench.frame(owner, port(1, 2)).probes.len(), 1);
        if answers {
            fake.settle_of(mac(owner), bench.now);
        }
        let expected = if answers { "contested" } else { "moved" };
        assert_eq!(names(&bench.wait(2 * SECOND)), [(expected, owner)]);
    }
}

proptest! {
    /// The offload's copies always equal the table.
    #[test]
    fn offloaded_hosts_equal_the_table(
        steps in prop::collection::vec((0..5_u8, 1..6_u8, 1..4_u32, 1..8_u8), 1..60),
        newest_wins in any::<bool>(),
    ) {
        let on_conflict = match newest_wins {
            true => ConflictPolicy::NewestWins,
            false => ConflictPolicy::OwnerWhileAlive,
        };
        let config = HostsConfig { max_addresses: 2, max_hosts: 4, on_conflict, ..HostsConfig::default() };
        let (mut bench, fake) = offloaded(config);
        for (step, host, port_no, address) in steps {
            match step {
                0 => drop(bench.frame(host, port(1, port_no))),
                1 | 2 => drop(bench.claim(host, port(1, port_no), ip(address))),
                3 => drop(bench.wait(u32::from(address) * 70 * SECOND)),
                _ => drop(bench.table.port_down(port(1, port_no), bench.now)),
            }
            let hosts = bench.table.all();
            let places: Vec<_> = hosts.iter().map(|host| (host.mac, host.attached)).collect();
            prop_assert_eq!(fake.hosts(), places);
            let mut owners: Vec<_> = hosts
                .iter()
                .flat_map(|host| host.addresses().map(|address| (address, host.mac)))
                .collect();
            owners.sort();
            prop_assert_eq!(fake.owners(), owners);
        }
    }
}
