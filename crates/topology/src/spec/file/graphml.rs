//! Networks described in GraphML, as in the Internet Topology Zoo.
//!
//! Each node is a switch with one host at port 1, and each edge is a link:
//!
//! | in the file | in the network |
//! | --- | --- |
//! | nodes, in their order | the switches with datapath ids 1, 2, …, and the hosts `h1`, `h2`, … |
//! | a node's data `label` | the switch's name, with `-` instead of characters that names cannot contain; the second of two equal names gets its number. Without a label, it is `s` and the number |
//! | an edge's data `LinkSpeedRaw` | the link's bandwidth, in bits per second |
//! | several edges between two nodes | as many links; in a directed graph, an edge back belongs to an edge forth |
//!
//! Other data, ports and hyperedges are ignored.

use super::reader::{MAX_BANDWIDTH_BPS, MAX_NAME_BYTES, check_count};
use super::{Checked, Wrong, quantity};
use crate::PortId;
use crate::spec::builder::{default_ipv4, default_mac};
use crate::spec::plan::{
    HostPlan, LinkPlan, LinkProperties, MAX_HOSTS, MAX_LINKS, MAX_SWITCHES, Plan, SwitchPlan,
};
use roxmltree::{Document, Node};
use std::collections::{BTreeMap, BTreeSet};
use urtica_wire::{DatapathId, PortNo};

/// Returns `true` if a file's text is XML rather than TOML.
pub(super) fn is_xml(text: &str) -> bool {
    text.trim_start_matches('\u{feff}')
        .trim_start()
        .starts_with('<')
}

/// Reads the plan that a GraphML text describes.
pub(super) fn plan(text: &str) -> Checked<Plan> {
    let text_from = text.trim_start_matches('\u{feff}');
    let skipped = text.len() - text_from.len();
    let plan = check_depth(text_from)
        .and_then(|()| Document::parse(text_from).map_err(|error| malformed(text_from, &error)))
        .and_then(|document| Reader::new(&document)?.plan());
    plan.map_err(|wrong| Wrong {
        place: wrong.place.start + skipped..wrong.place.end + skipped,
        ..wrong
    })
}

/// The maximum depth of elements, since the XML library recurses.
const MAX_DEPTH: usize = 32;

/// Refuses elements that are nested deeper than in GraphML.
fn check_depth(text: &str) -> Checked<()> {
    let (mut depth, mut at) = (0_usize, 0);
    while let Some(start) = text[at..].find('<').map(|found| at + found) {
        let tag = &text[start..];
        let (length, change) = match tag.as_bytes().get(1) {
            _ if tag.starts_with("<!--") => (end_of(tag, "-->"), 0),
            _ if tag.starts_with("<![CDATA[") => (end_of(tag, "]]>"), 0),
            Some(b'?') => (end_of(tag, "?>"), 0),
            Some(b'!') => (end_of(tag, ">"), 0),
            Some(b'/') => (end_of(tag, ">"), -1),
            _ => {
                let length = end_of_tag(tag);
                (length, isize::from(!tag[..length].ends_with("/>")))
            }
        };
        depth = depth.saturating_add_signed(change);
        if depth > MAX_DEPTH {
            let problem = format!("elements are nested deeper than {MAX_DEPTH}; expected GraphML");
            return Err(Wrong::new(start..start, problem));
        }
        at = start + length;
    }
    Ok(())
}

/// Returns the position after `end`, or the end of the text.
fn end_of(text: &str, end: &str) -> usize {
    text.find(end).map_or(text.len(), |found| found + end.len())
}

/// Returns the position after a tag, whose quoted values may contain `>`.
fn end_of_tag(tag: &str) -> usize {
    let mut quote = None;
    for (at, byte) in tag.bytes().enumerate() {
        match (byte, quote) {
            (b'"' | b'\'', None) => quote = Some(byte),
            (_, Some(open)) if byte == open => quote = None,
            (b'>', None) => return at + 1,
            _ => {}
        }
    }
    tag.len()
}

/// Converts an error of the XML library, whose position consists of a line and a column.
fn malformed(text: &str, error: &roxmltree::Error) -> Wrong {
    let place = error.pos();
    let lines = text.split_inclusive('\n').map(str::len);
    let before: usize = lines.take(place.row.saturating_sub(1) as usize).sum();
    let columns = text[before..].char_indices();
    let column = columns
        .map(|(at, _)| at)
        .nth(place.col.saturating_sub(1) as usize);
    let at = column.map_or(text.len(), |column| before + column);
    // The library's message ends with the position.
    let message = error.to_string();
    let message = message
        .rsplit_once(" at ")
        .map_or(&*message, |(before, _)| before);
    Wrong::new(
        at..at,
        format!("this is not XML: {message}; expected GraphML"),
    )
}

/// A graph, and the parts of it that have been read.
struct Reader<'a, 'input> {
    graph: Node<'a, 'input>,
    /// The keys of the data to read.
    label: Option<&'a str>,
    speed: Option<&'a str>,
    /// The indices of switches, by the nodes' ids.
    switches: BTreeMap<&'a str, usize>,
    names: BTreeSet<String>,
    /// The number of ports in use at each switch.
    ports: Vec<u32>,
}

impl<'a, 'input> Reader<'a, 'input> {
    fn new(document: &'a Document<'input>) -> Checked<Self> {
        let root = document.root_element();
        let expected = "expected <graphml> with a <graph> of <node> and <edge> elements";
        if root.tag_name().name() != "graphml" {
            let found = root.tag_name().name();
            return Err(at(root, format!("this is <{found}>; {expected}")));
        }
        let graph = children(root, "graph").next();
        let graph = graph.ok_or_else(|| at(root, format!("there is no <graph>; {expected}")))?;
        let key = |element: &str, name: &str| {
            let mut keys = children(root, "key").filter(|key| {
                let of = key.attribute("for").unwrap_or("all");
                key.attribute("attr.name") == Some(name) && (of == element || of == "all")
            });
            keys.find_map(|key| key.attribute("id"))
        };
        Ok(Self {
            graph,
            label: key("node", "label"),
            speed: key("edge", "LinkSpeedRaw"),
            switches: BTreeMap::new(),
            names: BTreeSet::new(),
            ports: Vec::new(),
        })
    }

    fn plan(mut self) -> Checked<Plan> {
        let nodes: Vec<_> = children(self.graph, "node").collect();
        if nodes.is_empty() {
            return Err(at(
                self.graph,
                "there is no <node>; expected one for each switch",
            ));
        }
        check_count("switches", nodes.len(), MAX_SWITCHES.min(MAX_HOSTS))?;
        self.names = (1..=nodes.len()).map(host_name).collect();
        let mut plan = Plan::default();
        for (number, node) in (1..).zip(nodes) {
            plan.switches.push(self.switch(number, node)?);
            plan.hosts.push(self.host(number));
        }
        plan.links = self.links()?;
        check_count("links", plan.links.len(), MAX_LINKS)?;
        Ok(plan)
    }

    fn switch(&mut self, number: u32, node: Node<'a, 'input>) -> Checked<SwitchPlan> {
        let id = attribute(node, "id")?;
        let index = self.ports.len();
        if self.switches.insert(id, index).is_some() {
            let problem = format!("there is another node '{id}'; expected an id of its own");
            return Err(at(node, problem));
        }
        self.ports.push(0);
        Ok(SwitchPlan {
            name: self.name(number, node),
            datapath_id: DatapathId(number.into()),
        })
    }

    /// Returns a unique name.
    fn name(&mut self, number: u32, node: Node) -> String {
        let label = data(node, self.label).unwrap_or_default();
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let label = label.trim().chars();
        let label = label.map(|c| if is_plain(c) { c } else { '-' });
        let suffix = format!("-{number}");
        let label: String = label.take(MAX_NAME_BYTES - suffix.len()).collect();
        let label = match label.chars().all(|c| c == '-') {
            true => format!("s{number}"),
            false => label,
        };
        let mut candidates = [format!("{label}{suffix}"), format!("s{number}")]
            .into_iter()
            .chain((1..).map(|turn| format!("s{number}-{turn}")));
        let mut name = label;
        while !self.names.insert(name.clone()) {
            name = candidates.next().unwrap_or_default();
        }
        name
    }

    fn host(&mut self, number: u32) -> HostPlan {
        HostPlan {
            name: host_name(number as usize),
            mac: default_mac(number),
            ipv4: default_ipv4(number),
            attached: self.next_port(number as usize - 1),
        }
    }

    fn links(&mut self) -> Checked<Vec<LinkPlan>> {
        let is_directed = self.graph.attribute("edgedefault") == Some("directed");
        // Edges for which no edge back was found yet.
        let mut unpaired: BTreeMap<(usize, usize), usize> = BTreeMap::new();
        let mut links = Vec::new();
        for edge in children(self.graph, "edge") {
            let (a, b) = (self.end(edge, "source")?, self.end(edge, "target")?);
            if a == b {
                return Err(at(
                    edge,
                    "this edge connects a node with itself; expected two nodes",
                ));
            }
            if is_directed {
                if let Some(count) = unpaired.get_mut(&(b, a)).filter(|count| **count > 0) {
                    *count -= 1;
                    continue;
                }
                *unpaired.entry((a, b)).or_default() += 1;
            }
            links.push(LinkPlan {
                a: self.next_port(a),
                b: self.next_port(b),
                properties: LinkProperties {
                    bandwidth_bps: self.bandwidth_bps(edge)?,
                    ..LinkProperties::default()
                },
            });
        }
        Ok(links)
    }

    /// Returns the index of the switch at an edge's end.
    fn end(&self, edge: Node<'a, 'input>, name: &str) -> Checked<usize> {
        let id = attribute(edge, name)?;
        let switch = self.switches.get(id).copied();
        switch.ok_or_else(|| {
            let problem = format!("there is no node '{id}'; expected the id of a <node>");
            at(edge, problem)
        })
    }

    fn bandwidth_bps(&self, edge: Node) -> Checked<Option<u64>> {
        let Some(text) = data(edge, self.speed) else {
            return Ok(None);
        };
        let text = text.trim();
        // Whole numbers may be in the notation of floating-point numbers, such as 1e9.
        let speed = text.parse::<f64>().ok();
        let speed = speed.filter(|speed| (1.0..=MAX_BANDWIDTH_BPS as f64).contains(speed));
        let speed = speed.ok_or_else(|| {
            let most = quantity::bandwidth_text(MAX_BANDWIDTH_BPS);
            let problem = format!(
                "the LinkSpeedRaw '{text}' is not a bandwidth; expected bits per second, from 1 to {most}"
            );
            at(edge, problem)
        })?;
        Ok(Some(speed as u64))
    }

    fn next_port(&mut self, switch: usize) -> PortId {
        self.ports[switch] += 1;
        PortId::new(DatapathId(switch as u64 + 1), PortNo(self.ports[switch]))
    }
}

fn host_name(number: usize) -> String {
    format!("h{number}")
}

fn children<'a, 'input>(
    parent: Node<'a, 'input>,
    name: &'static str,
) -> impl Iterator<Item = Node<'a, 'input>> {
    let children = parent.children();
    children.filter(move |child| child.is_element() && child.tag_name().name() == name)
}

/// Returns the text of an element's data with this key.
fn data<'a>(element: Node<'a, '_>, key: Option<&str>) -> Option<&'a str> {
    let key = key?;
    let mut data = children(element, "data");
    data.find(|data| data.attribute("key") == Some(key))?.text()
}

fn attribute<'a>(element: Node<'a, '_>, name: &str) -> Checked<&'a str> {
    element.attribute(name).ok_or_else(|| {
        let tag = element.tag_name().name();
        at(element, format!("this <{tag}> has no {name}; expected one"))
    })
}

fn at(element: Node, problem: impl Into<String>) -> Wrong {
    let start = element.range().start;
    Wrong::new(start..start, problem)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::PlanError;
    use proptest::prelude::*;

    fn file(edgedefault: &str, graph: &str) -> String {
        format!(
            r#"<?xml version="1.0" encoding="utf-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key attr.name="label" attr.type="string" for="node" id="d1"/>
  <key attr.name="LinkSpeedRaw" attr.type="double" for="edge" id="d2"/>
  <graph edgedefault="{edgedefault}">
{graph}
  </graph>
</graphml>
"#
        )
    }

    const NODES: &str = r#"<node id="0"><data key="d1">North City</data></node>
<node id="1"><data key="d1">h2</data></node>
<node id="2"><data key="d1">North City</data></node>
<node id="3"/>"#;

    fn error(text: &str) -> String {
        let error: PlanError = Plan::from_graphml(text).expect_err(text);
        error.to_string()
    }

    #[test]
    fn nodes_are_switches_with_hosts_and_edges_are_links() {
        let edges = r#"<edge source="0" target="1"><data key="d2">1e9</data></edge>
<edge source="1" target="0"/><edge source="2" target="3"/>"#;
        let plan = Plan::from_graphml(&file("undirected", &format!("{NODES}{edges}"))).unwrap();
        let names = plan.switches.iter().map(|switch| switch.name.as_str());
        let expected = ["North-City", "h2-2", "North-City-3", "s4"];
        assert_eq!(names.collect::<Vec<_>>(), expected);
        let ids = plan.switches.iter().map(|switch| switch.datapath_id.0);
        assert!(ids.eq(1..=4));
        let port = |switch, port| PortId::new(DatapathId(switch), PortNo(port));
        let hosts = plan.hosts.iter().map(|host| (&*host.name, host.attached));
        let expected = (1..=4).map(|number| port(number, 1));
        assert!(hosts.eq(["h1", "h2", "h3", "h4"].into_iter().zip(expected)));
        let links = plan.links.iter();
        let links = links.map(|link| (link.a, link.b, link.properties.bandwidth_bps));
        let expected = [
            (port(1, 2), port(2, 2), Some(1_000_000_000)),
            (port(2, 3), port(1, 3), None),
            (port(3, 2), port(4, 2), None),
        ];
        assert!(links.eq(expected));
        // A plan that was read is valid, and can be written.
        assert_eq!(Plan::from_toml(&plan.to_toml()), Ok(plan));
    }

    #[test]
    fn opposite_edges_of_a_directed_graph_are_one_link() {
        let edges = r#"<edge source="0" target="1"/><edge source="1" target="0"/><edge source="1" target="0"/>"#;
        let plan = Plan::from_graphml(&file("directed", &format!("{NODES}{edges}"))).unwrap();
        assert_eq!(plan.links.len(), 2);
    }

    #[test]
    fn errors_have_position_and_expected_input() {
        for (text, expected) in [
            (
                "<svg/>".to_owned(),
                "1:1: this is <svg>; expected <graphml>",
            ),
            (
                "<graphml/>".to_owned(),
                "1:1: there is no <graph>; expected",
            ),
            ("<graphml>\n <graph>".to_owned(), "this is not XML"),
            (file("undirected", ""), "5:3: there is no <node>; expected"),
            (
                file("undirected", "<node/>"),
                "6:1: this <node> has no id; expected one",
            ),
            (
                file("undirected", "<node id='a'/>\n<node id='a'/>"),
                "7:1: there is another node 'a'",
            ),
            (
                file(
                    "undirected",
                    "<node id='a'/>\n <edge source='a' target='b'/>",
                ),
                "7:2: there is no node 'b'; expected the id of a <node>",
            ),
            (
                file(
                    "undirected",
                    "<node id='a'/>\n<edge source='a' target='a'/>",
                ),
                "7:1: this edge connects a node with itself; expected two nodes",
            ),
            (
                file(
                    "undirected",
                    &format!(
                        "{NODES}<edge source='0' target='1'><data key='d2'>fast</data></edge>"
                    ),
                ),
                "the LinkSpeedRaw 'fast' is not a bandwidth; expected bits per second",
            ),
        ] {
            let error = error(&text);
            assert!(error.contains(expected), "{error}\n{expected}");
        }
    }

    #[test]
    fn deep_nesting_is_an_error() {
        let deep = "<a>".repeat(1_000_000);
        let expected = "1:97: elements are nested deeper than 32; expected GraphML";
        assert_eq!(error(&deep), expected);
        let quoted = r#"<a b="/>">"#.repeat(33);
        assert!(error(&quoted).contains("nested deeper"));
        // Comments, declarations and empty elements do not count.
        let flat = "<!-- <a> --><a/><?a?>".repeat(100);
        assert!(!error(&format!("<graphml>{flat}")).contains("nested"));
        assert!(error("<!DOCTYPE a [<!ENTITY b 'c'>]><graphml/>").contains("DTD"));
    }

    #[test]
    fn malformed_xml_is_an_error_with_a_position() {
        assert!(error("<graphml>\n<graph x></graph></graphml>").starts_with("2:"));
        assert!(error("\u{feff}<").starts_with("1:"));
    }

    proptest! {
        #[test]
        fn reading_never_panics(cut in 0usize..600, junk in "\\PC{0,8}", label in "\\PC{0,90}") {
            let label = label.replace(['<', '&'], "x");
            let nodes = format!("<node id='a'><data key='d1'>{label}</data></node>\n<node id='b'/>");
            let whole = file("undirected", &format!("{nodes}<edge source='a' target='b'/>"));
            let plan = Plan::from_graphml(&whole).unwrap();
            prop_assert_eq!(Plan::from_toml(&plan.to_toml()), Ok(plan));
            let cut = (0..=cut.min(whole.len())).rev().find(|at| whole.is_char_boundary(*at));
            let (before, after) = whole.split_at(cut.unwrap_or(0));
            let _ = Plan::from_graphml(&format!("{before}{junk}{after}"));
        }
    }
}
