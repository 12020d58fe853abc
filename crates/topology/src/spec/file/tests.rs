use crate::PortId;
use crate::spec::{HostPlan, LinkPlan, LinkProperties, Plan, SwitchPlan, TopologySpec};
use proptest::collection::{btree_set, vec};
use proptest::prelude::*;
use std::io::Write;
use std::net::Ipv4Addr;
use std::time::Duration;
use urtica_wire::{DatapathId, MacAddr, PortNo};

/// Two switches, for tests of links and hosts.
const TWO: &str = "[[switches]]\nname = 's1'\n[[switches]]\nname = 's2'\n";

fn refusal(text: &str) -> String {
    match Plan::from_toml(text) {
        Ok(plan) => panic!("{text} was taken for {plan:?}"),
        Err(error) => error.to_string(),
    }
}

/// Returns the example in this file's module.
fn example() -> String {
    let lines = include_str!("mod.rs")
        .lines()
        .map(|line| line.trim_start_matches("//!"));
    let lines = lines.skip_while(|line| !line.contains("```toml")).skip(1);
    let lines = lines.take_while(|line| !line.contains("```"));
    lines.map(|line| format!("{line}\n")).collect()
}

#[test]
fn the_example_is_read() {
    let plan = Plan::from_toml(&example()).expect("it is an example");
    let [s1, s2] = [1, 2].map(DatapathId);
    let names: Vec<_> = plan
        .switches
        .iter()
        .map(|switch| (switch.name.as_str(), switch.datapath_id))
        .collect();
    assert_eq!(names, [("s1", s1), ("s2", s2)]);
    assert_eq!(plan.hosts[0].attached, PortId::new(s1, PortNo(1)));
    let expected = LinkPlan {
        a: PortId::new(s1, PortNo(2)),
        b: PortId::new(s2, PortNo(2)),
        properties: LinkProperties {
            delay: Duration::from_millis(5),
            jitter: Duration::from_micros(500),
            loss: 0.01,
            bandwidth_bps: Some(10_000_000),
        },
    };
    assert_eq!(plan.links, [expected]);
    assert_eq!(plan.topology().directed_links().len(), 2);
}

#[test]
fn defaults_are_mininets() {
    let text = format!(
        "{TWO}[[hosts]]\nname = 'a'\nattached = 's1:1'\n[[hosts]]\nname = 'b'\nattached = 's2:1'\n"
    );
    let plan = Plan::from_toml(&text).unwrap();
    let hosts: Vec<_> = plan
        .hosts
        .iter()
        .map(|host| (host.mac.to_u64(), host.ipv4.octets()))
        .collect();
    assert_eq!(hosts, [(1, [10, 0, 0, 1]), (2, [10, 0, 0, 2])]);
    assert_eq!(Plan::from_toml("").unwrap(), Plan::default());
    let link = format!("{TWO}[[links]]\na = 's1:1'\nb = 's2:1'\nloss = 1\n");
    let properties = Plan::from_toml(&link).unwrap().links[0].properties;
    assert_eq!(
        properties,
        LinkProperties {
            loss: 1.0,
            ..LinkProperties::default()
        }
    );
}

#[test]
fn invalid_toml_is_refused_with_its_position() {
    for (text, sentence) in [
        ("x", "1:2: key with no value, expected `=`"),
        (
            "switches = 3",
            "1:12: invalid type: integer `3`, expected a sequence",
        ),
        (
            "[[switch]]\nname = 's1'",
            "1:3: unknown field `switch`, expected one of `switches`, `hosts`, `links`",
        ),
        (
            "[[switches]]\nname = 's1'\nports = 4",
            "3:1: unknown field `ports`, expected `name` or `datapath_id`",
        ),
        (
            "[[switches]]\nname = 's1'\n\n[[hosts]]\nattached = 's1:1'",
            "4:1: missing field `name`",
        ),
        (
            "[[switches]]\nname = 's1'\nname = 's1'",
            "3:1: duplicate key",
        ),
        (
            "[[switches]]\nname = 's1'\ndatapath_id = true",
            "3:15: invalid type: boolean `true`, expected a datapath id such as 1 or \"0000000000000001\"",
        ),
    ] {
        assert_eq!(refusal(text), sentence);
    }
}

#[test]
fn invalid_switches_and_hosts_are_refused() {
    let switch = |name: &str| format!("[[switches]]\nname = '{name}'\n");
    let host = |fields: &str| {
        format!("[[switches]]\nname = 's1'\n[[hosts]]\nname = 'h1'\nattached = 's1:1'\n{fields}")
    };
    for (text, sentence) in [
        (
            switch("s 1"),
            "2:8: 's 1' is not a name; expected 1 to 64 letters, digits, '-', '_' and '.'",
        ),
        (
            switch(""),
            "2:8: '' is not a name; expected 1 to 64 letters, digits, '-', '_' and '.'",
        ),
        (
            switch("core"),
            "2:8: 'core' has no number in it; expected a datapath_id",
        ),
        (
            switch("s1") + &switch("s1"),
            "4:8: the name s1 is in use in line 2, too; expected another",
        ),
        (
            switch("s1") + &switch("t1"),
            "4:8: the datapath id 0000000000000001 is in use in line 2, too; expected another",
        ),
        (
            switch("s1") + "datapath_id = -1",
            "3:15: '-1' is not a datapath id; expected a decimal number, 0x and hex digits, 16 hex digits, or eight \
             pairs of them with colons",
        ),
        (
            host("mac = '1:2'"),
            "6:7: '1:2' is not a MAC address: expected six pairs of hex digits separated by ':' or '-', such as \
             02:00:00:00:00:01",
        ),
        (
            host("mac = 'ff:ff:ff:ff:ff:ff'"),
            "6:7: ff:ff:ff:ff:ff:ff is not a host's address; expected a unicast address",
        ),
        (
            host("ipv4 = '10.0.0'"),
            "6:8: '10.0.0' is not an IPv4 address; expected one such as 10.0.0.1",
        ),
        (
            host("mac = '00:00:00:00:00:02'\n[[hosts]]\nname = 'h2'\nattached = 's1:2'"),
            "8:8: the MAC address 00:00:00:00:00:02 is in use in line 6, too; expected another",
        ),
        (
            host("[[hosts]]\nname = 'h2'\nattached = 's1:2'\nipv4 = '10.0.0.1'"),
            "9:8: the IPv4 address 10.0.0.1 is in use in line 4, too; expected another",
        ),
        (
            host("[[hosts]]\nname = 'h1'\nattached = 's1:2'"),
            "7:8: the name h1 is in use in line 4, too; expected another",
        ),
    ] {
        assert_eq!(refusal(&text), sentence);
    }
}

#[test]
fn invalid_links_are_refused() {
    let link = |a: &str, more: &str| format!("{TWO}[[links]]\nb = 's2:2'\na = '{a}'\n{more}");
    for (text, sentence) in [
        (
            link("s1", ""),
            "7:5: 's1' is not a port; expected a switch's name, ':' and a number, such as s1:2",
        ),
        (
            link("s1:0", ""),
            "7:5: 's1:0' is not a port; expected a number from 1 to 4294967040 after the ':'",
        ),
        (
            link("s1:x", ""),
            "7:5: 's1:x' is not a port; expected a number from 1 to 4294967040 after the ':'",
        ),
        (
            link("s3:1", ""),
            "7:5: there is no switch 's3'; expected the name of one in [[switches]]",
        ),
        (
            link("s2:2", ""),
            "6:5: the port s2:2 is in use in line 7, too; expected another",
        ),
        (
            link("s1:1", "loss = 1.5"),
            "8:8: the loss 1.5 is not a probability; expected a number from 0 to 1",
        ),
        (
            link("s1:1", "loss = -1"),
            "8:8: the loss -1 is not a probability; expected a number from 0 to 1",
        ),
        (
            link("s1:1", "loss = nan"),
            "8:8: the loss NaN is not a probability; expected a number from 0 to 1",
        ),
        (
            link("s1:1", "loss = 'x'"),
            "8:8: invalid type: string \"x\", expected a number from 0 to 1",
        ),
        (
            link("s1:1", "delay = '5'"),
            "8:9: '5' is not a duration; expected a number and ns, us, ms or s, such as 5ms",
        ),
        (
            link("s1:1", "delay = '2h'"),
            "8:9: '2h' is not a duration; expected a number and ns, us, ms or s, such as 5ms",
        ),
        (
            link("s1:1", "delay = '3601s'"),
            "8:9: '3601s' is too long; expected at most 3600s",
        ),
        (
            link("s1:1", "delay = '5ms'\njitter = '6ms'"),
            "9:10: the jitter 6ms is more than the delay 5ms; expected at most as much",
        ),
        (
            link("s1:1", "bandwidth = '10MB'"),
            "8:13: '10MB' is not a bandwidth; expected a number and bit, kbit, Mbit or Gbit, such as 10Mbit",
        ),
        (
            link("s1:1", "bandwidth = '0bit'"),
            "8:13: the bandwidth '0bit' cannot be; expected from 1bit to 10000Gbit",
        ),
        (
            link("s1:1", "bandwidth = '10001Gbit'"),
            "8:13: the bandwidth '10001Gbit' cannot be; expected from 1bit to 10000Gbit",
        ),
        (
            link("s1:1", "latency = '5ms'"),
            "8:1: unknown field `latency`, expected one of `a`, `b`, `delay`, `jitter`, `loss`, `bandwidth`",
        ),
    ] {
        assert_eq!(refusal(&text), sentence);
    }
}

#[test]
fn too_many_switches_are_refused() {
    let text: String = (0..=10_000)
        .map(|number| format!("[[switches]]\nname = 's{number}'\n"))
        .collect();
    assert_eq!(
        refusal(&text),
        "1:1: there are 10001 switches; expected at most 10000"
    );
}

#[test]
fn columns_are_counted_in_characters() {
    assert_eq!(
        refusal("# ä\n\"ä\" = 1"),
        "2:1: unknown field `ä`, expected one of `switches`, `hosts`, `links`"
    );
    assert_eq!(
        refusal("'ä' . 'ö' x"),
        "1:11: key with no value, expected `=`"
    );
}

#[test]
fn a_file_is_read_and_named_in_errors() {
    let mut file = tempfile::NamedTempFile::with_suffix(".toml").unwrap();
    let spec = TopologySpec::File(file.path().to_owned());
    file.write_all(TWO.as_bytes()).unwrap();
    assert_eq!(spec.plan().unwrap().switches.len(), 2);
    file.write_all(b"name = 's3'").unwrap();
    let path = file.path().display().to_string();
    assert_eq!(
        spec.plan().unwrap_err().to_string(),
        format!("{path}:5:1: duplicate key")
    );
    file.write_all(b"\xff").unwrap();
    let sentence = format!("cannot read the topology {path}: stream did not contain valid UTF-8");
    assert_eq!(spec.plan().unwrap_err().to_string(), sentence);
}

#[test]
fn missing_and_endless_files_are_refused() {
    let absent = TopologySpec::File("/nowhere/net.toml".into())
        .plan()
        .unwrap_err();
    assert_eq!(
        absent.to_string(),
        "cannot read the topology /nowhere/net.toml: No such file or directory (os error 2)"
    );
    let endless = TopologySpec::File("/dev/zero".into()).plan().unwrap_err();
    assert_eq!(
        endless.to_string(),
        "cannot read the topology /dev/zero: it is longer than 33554432 bytes"
    );
}

fn any_properties() -> impl Strategy<Value = LinkProperties> {
    let nanos = prop_oneof![
        Just(0),
        0..3_600_000_000_000_u64,
        (0..3_600_000_u64).prop_map(|millis| millis * 1_000_000)
    ];
    let bandwidth = prop::option::of(prop_oneof![
        1..10_000_000_000_000_u64,
        (1..10_000_u64).prop_map(|giga| giga * 1_000_000_000)
    ]);
    (
        nanos,
        0.0..=1.0_f64,
        prop_oneof![Just(0.0), 0.0..=1.0_f64],
        bandwidth,
    )
        .prop_map(|(nanos, share, loss, bandwidth_bps)| LinkProperties {
            delay: Duration::from_nanos(nanos),
            jitter: Duration::from_nanos((nanos as f64 * share) as u64),
            loss,
            bandwidth_bps,
        })
}

/// Plans in which every name, address and port is used once.
fn any_plan() -> impl Strategy<Value = Plan> {
    let ids = btree_set(any::<u64>().prop_map(DatapathId), 1..6);
    let ports = btree_set((any::<usize>(), 1..=PortNo::MAX.0), 0..20);
    let macs =
        btree_set(1..1_u64 << 40, 20).prop_map(|macs| macs.into_iter().map(MacAddr::from_u64));
    let addresses = btree_set(any::<u32>().prop_map(Ipv4Addr::from_bits), 20);
    (
        ids,
        ports,
        macs,
        addresses,
        vec(any_properties(), 10),
        0..20_usize,
    )
        .prop_map(|(ids, ports, macs, addresses, properties, host_count)| {
            let ids: Vec<_> = ids.into_iter().collect();
            let mut ports: Vec<_> = ports
                .into_iter()
                .map(|(at, port_no)| PortId::new(ids[at % ids.len()], PortNo(port_no)))
                .collect();
            ports.sort();
            ports.dedup();
            let (attached, linked) = ports.split_at(host_count.min(ports.len()));
            let host = |(number, ((&attached, mac), ipv4))| HostPlan {
                name: format!("h-{number}"),
                mac,
                ipv4,
                attached,
            };
            let switch = |(number, datapath_id)| SwitchPlan {
                name: format!("S_{number}.x"),
                datapath_id,
            };
            let link = |(ends, &properties): (&[PortId], _)| LinkPlan {
                a: ends[0],
                b: ends[1],
                properties,
            };
            Plan {
                hosts: attached
                    .iter()
                    .zip(macs)
                    .zip(addresses)
                    .enumerate()
                    .map(host)
                    .collect(),
                links: linked.chunks_exact(2).zip(&properties).map(link).collect(),
                switches: ids.into_iter().enumerate().map(switch).collect(),
            }
        })
}

proptest! {
    #[test]
    fn plans_round_trip(plan in any_plan()) {
        prop_assert_eq!(Plan::from_toml(&plan.to_toml()), Ok(plan));
    }

    #[test]
    fn reading_never_panics(text: String) {
        let _ = Plan::from_toml(&text);
    }

    /// The example with a character removed, doubled or replaced is either read or refused, and a plan that was read can be
    /// written.
    #[test]
    fn damaged_files_never_panic(place: prop::sample::Index, by in "\\PC{0,2}") {
        let example = example();
        let mut characters: Vec<_> = example.chars().collect();
        let place = place.index(characters.len());
        characters.splice(place..=place, by.chars());
        if let Ok(plan) = Plan::from_toml(&characters.into_iter().collect::<String>()) {
            prop_assert_eq!(Plan::from_toml(&plan.to_toml()), Ok(plan));
        }
    }
}

#[test]
fn named_specs_round_trip() {
    for spec in [
        "single,3",
        "linear,3,2",
        "tree,2,3",
        "torus,3,3",
        "fattree,4",
        "ring,3",
        "mesh,4",
    ] {
        let plan = spec.parse::<TopologySpec>().unwrap().plan().unwrap();
        assert_eq!(Plan::from_toml(&plan.to_toml()), Ok(plan), "{spec}");
    }
}
