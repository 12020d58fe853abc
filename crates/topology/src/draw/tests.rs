//! Tests of drawings as text.

use super::*;
use crate::spec::TopologySpec;
use serde_json::json;
use urtica_wire::PortNo;

fn network(spec: &str) -> Network {
    let plan = spec.parse::<TopologySpec>().unwrap().plan().unwrap();
    Network::from(&plan)
}

fn port(switch: u64, number: u32) -> PortId {
    PortId::new(DatapathId(switch), PortNo(number))
}

fn switch(id: u64, name: Option<&str>) -> Switch {
    Switch {
        id: DatapathId(id),
        name: name.map(str::to_owned),
    }
}

fn host(name: &str, attached: PortId) -> Host {
    Host {
        attached,
        name: name.to_owned(),
        addresses: Vec::new(),
    }
}

fn link(a: PortId, b: PortId, is_up: bool) -> Link {
    Link { a, b, is_up }
}

fn count(text: &str, part: &str) -> usize {
    text.matches(part).count()
}

#[test]
fn a_network_is_written_for_graphviz() {
    assert_eq!(
        network("linear,2").to_dot(),
        r#"graph network {
  node [shape=box];
  "0000000000000001" [label="s1\n0000000000000001"];
  "0000000000000002" [label="s2\n0000000000000002"];
  host1 [shape=ellipse, label="h1\n10.0.0.1\n00:00:00:00:00:01"];
  "0000000000000001" -- host1 [taillabel="1"];
  host2 [shape=ellipse, label="h2\n10.0.0.2\n00:00:00:00:00:02"];
  "0000000000000002" -- host2 [taillabel="1"];
  "0000000000000001" -- "0000000000000002" [taillabel="2", headlabel="2"];
}
"#
    );
}

#[test]
fn everything_is_in_the_picture_once() {
    for spec in [
        "single,1",
        "linear,5",
        "tree,depth=3,fanout=3",
        "torus,3,3",
        "fattree,4",
        "mesh,6",
    ] {
        let network = network(spec);
        let svg = Picture::new(&network).to_svg();
        let boxes = network.switches.len() + network.hosts.len();
        assert_eq!(count(&svg, "<g>"), boxes, "{spec}");
        assert_eq!(
            count(&svg, "<path "),
            network.links.len() + network.hosts.len(),
            "{spec}"
        );
        for name in network
            .switches
            .iter()
            .filter_map(|switch| switch.name.as_ref())
        {
            assert_eq!(count(&svg, &format!(">{name}</text>")), 1, "{spec}: {name}");
        }
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{spec}");
    }
}

#[test]
fn boxes_are_apart_and_within_the_picture() {
    for spec in [
        "linear,9",
        "tree,depth=3,fanout=3",
        "torus,4,4",
        "fattree,4",
        "ring,10",
        "single,60",
    ] {
        let picture = Picture::new(&network(spec));
        let switches = picture.switches.iter().map(|switch| (switch.x, switch.y));
        let hosts = picture.hosts.iter().map(|host| (host.x, host.y));
        let middles: Vec<_> = switches.chain(hosts).collect();
        for &(x, y) in &middles {
            assert!((56..=picture.width - 56).contains(&x), "{spec}");
            assert!((18..=picture.height - 18).contains(&y), "{spec}");
        }
        let overlapping = (1..middles.len()).filter(|&at| {
            let (x, y) = middles[at];
            middles[..at]
                .iter()
                .any(|other| (other.0 - x).abs() < 60 && (other.1 - y).abs() < 30)
        });
        let overlapping = overlapping.count();
        assert!(
            overlapping <= middles.len() / 10,
            "{spec}: {overlapping} of {}",
            middles.len()
        );
    }
}

#[test]
fn the_order_of_the_parts_does_not_matter() {
    let plan = "torus,3,3".parse::<TopologySpec>().unwrap().plan().unwrap();
    let mut other = plan.clone();
    other.switches.reverse();
    other.hosts.reverse();
    other.links.reverse();
    for link in &mut other.links {
        std::mem::swap(&mut link.a, &mut link.b);
    }
    let [one, other] = [Network::from(&plan), Network::from(&other)];
    assert_eq!(one, other);
    assert_eq!(Picture::new(&one).to_svg(), Picture::new(&other).to_svg());
}

#[test]
fn links_that_are_down_are_dashed_and_parallel_links_apart() {
    let links = [
        link(port(1, 1), port(2, 1), true),
        link(port(2, 2), port(1, 2), false),
        link(port(1, 3), port(1, 4), true),
    ];
    let network = Network::new([switch(1, None), switch(2, Some("two"))], [], links);
    let svg = Picture::new(&network).to_svg();
    assert_eq!(count(&svg, "stroke-dasharray"), 1, "{svg}");
    assert!(
        svg.contains("<title>0000000000000001:2 – 0000000000000002:2: down</title>"),
        "{svg}"
    );
    assert!(
        svg.contains("<title>2 switches, 0 hosts, 3 links (1 down)</title>"),
        "{svg}"
    );
    assert_eq!((count(&svg, " Q"), count(&svg, " C")), (2, 1), "{svg}");
    assert_eq!(count(&network.to_dot(), "style=dashed"), 1);
}

#[test]
fn parts_at_unknown_switches_are_left_out() {
    let links = [link(port(1, 1), port(9, 1), true)];
    let hosts = [host("h1", port(1, 2)), host("h9", port(9, 2))];
    let network = Network::new([switch(1, None), switch(1, Some("again"))], hosts, links);
    assert_eq!((network.switches.len(), network.hosts.len()), (1, 1));
    assert_eq!(network.links, []);
    assert!(
        Picture::new(&Network::default())
            .to_svg()
            .contains("0 switches")
    );
}

#[test]
fn names_are_escaped() {
    const NAMES: [&str; 5] = [
        "<script>alert(1)</script>",
        "a\" onload=\"alert(1)",
        "]]>&lt;\u{0}\u{202e}",
        "\\N\"]; evil [label=\"x",
        "'\n\\",
    ];
    let switches = (1..).zip(NAMES).map(|(id, name)| switch(id, Some(name)));
    let mut hosts: Vec<_> = (1..)
        .zip(NAMES)
        .map(|(id, name)| host(name, port(id, 1)))
        .collect();
    hosts[0].addresses.push(NAMES[0].to_owned());
    let network = Network::new(switches, hosts, []);
    let svg = Picture::new(&network).to_svg();
    assert!(
        !svg.contains("<script") && !svg.contains("onload=\""),
        "{svg}"
    );
    assert!(!svg.contains(['\u{0}', '\u{202e}']), "{svg}");
    assert_eq!(count(&svg, "<"), count(&svg, ">"), "{svg}");
    let dot = network.to_dot();
    // A line for each node and each link, regardless of their names, and three lines around them.
    assert_eq!(dot.lines().count(), 3 + 3 * NAMES.len(), "{dot}");
    for line in dot.lines() {
        let escaped = line.replace("\\\\", "").replace("\\\"", "");
        let outside: Vec<_> = escaped.split('"').step_by(2).collect();
        assert_eq!(count(&escaped, "\"") % 2, 0, "{line}");
        assert!(!outside.concat().contains("evil"), "{line}");
    }
}

#[test]
fn a_picture_serialises_as_data() {
    let network = Network::new(
        [switch(1, Some("\"s1\"")), switch(2, None)],
        [host("h1", port(1, 3))],
        [link(port(1, 1), port(2, 1), true)],
    );
    let data = serde_json::to_value(Picture::new(&network)).unwrap();
    assert!(data["width"].is_u64() && data["height"].is_u64(), "{data}");
    let switch = &data["switches"][0];
    assert_eq!(
        (&switch["id"], &switch["name"]),
        (&json!("0000000000000001"), &json!("\"s1\""))
    );
    assert!(switch["x"].is_u64() && switch["y"].is_u64(), "{data}");
    assert_eq!(data["switches"][1]["name"], json!(null));
    let host = &data["hosts"][0];
    assert_eq!(
        (&host["name"], &host["port"]),
        (&json!("h1"), &json!("0000000000000001:3"))
    );
    let link = json!({"a": "0000000000000001:1", "b": "0000000000000002:1", "up": true});
    assert_eq!(data["links"], json!([link]));
}
