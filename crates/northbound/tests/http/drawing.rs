//! Drawings of the network.

use crate::lab::{Lab, Response, config, wait};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use urtica_northbound::{NorthboundConfig, Tokens};
use urtica_wire::Version;

const SVG: &str = "/api/v1/topology.svg";
const DOT: &str = "/api/v1/topology.dot";

fn drawn(lab: &Lab, path: &str) -> String {
    let response = lab.get(path);
    assert_eq!(response.status, 200, "{path}: {}", response.body);
    response.body
}

fn has(response: &Response, line: &str) -> bool {
    response.headers.lines().any(|given| given == line)
}

#[test]
fn the_network_is_drawn_with_its_links_and_hosts() {
    let lab = Lab::new("linear,2", Version::Of13, &["discovery", "hosts", "hub"]);
    wait("the link and the hosts are found", || {
        drawn(&lab, SVG).contains("2 switches, 2 hosts, 1 link (0 down)")
    });
    let svg = lab.get(SVG);
    for part in [
        ">0000000000000001</text>",
        ">00:00:00:00:00:02</text>",
        ">10.0.0.2</text>",
        "0000000000000001:2 – 0000000000000002:2",
    ] {
        assert!(svg.body.contains(part), "{part}: {}", svg.body);
    }
    for line in [
        "content-type: image/svg+xml",
        "cache-control: no-store",
        "x-content-type-options: nosniff",
    ] {
        assert!(has(&svg, line), "{line}: {}", svg.headers);
    }
    assert!(
        svg.headers
            .contains("content-security-policy: default-src 'none'")
    );
    let dot = lab.get(DOT);
    assert!(
        has(&dot, "content-type: text/vnd.graphviz; charset=utf-8"),
        "{}",
        dot.headers
    );
    let link = "\"0000000000000001\" -- \"0000000000000002\" [taillabel=\"2\", headlabel=\"2\"]";
    assert!(dot.body.contains(link), "{}", dot.body);
    assert_eq!(drawn(&lab, SVG), drawn(&lab, SVG));
}

#[test]
fn a_lost_link_is_dashed_until_it_is_found_again() {
    let lab = Lab::new("linear,3", Version::Of13, &["discovery", "hub"]);
    let is_drawn = |links: &str| wait(links, || drawn(&lab, SVG).contains(links));
    let set = |config: u8| {
        let body = format!("{{\"dpid\": 1, \"port_no\": 2, \"config\": {config}, \"mask\": 1}}");
        assert_eq!(lab.post("/stats/portdesc/modify", &body).status, 200);
    };
    is_drawn("2 links (0 down)");
    set(1);
    is_drawn("2 links (1 down)");
    let svg = drawn(&lab, SVG);
    assert_eq!(svg.matches("stroke-dasharray").count(), 1, "{svg}");
    assert!(
        svg.contains("0000000000000001:2 – 0000000000000002:2: down"),
        "{svg}"
    );
    assert!(drawn(&lab, DOT).contains("style=dashed"));
    set(0);
    is_drawn("2 links (0 down)");
}

#[test]
fn draws_networks_without_services() {
    let lab = Lab::new("linear,2", Version::Of10, &["hub"]);
    let svg = drawn(&lab, SVG);
    assert!(svg.contains("2 switches, 0 hosts, 0 links"), "{svg}");
    assert_eq!(lab.post(SVG, "").status, 405);
    assert_eq!(lab.send("HEAD", SVG, "", "").body, "");
}

#[test]
fn drawings_need_the_token() {
    let config = NorthboundConfig {
        tokens: Tokens::new(["0123456789abcdef"]),
        ..config()
    };
    let lab = Lab::with("single,1", Version::Of13, &["hub"], config, |northbound| {
        northbound
    });
    for path in [SVG, DOT] {
        assert_eq!(lab.get(path).status, 401);
        let token = "Authorization: Bearer 0123456789abcdef\r\n";
        assert_eq!(lab.send("GET", path, token, "").status, 200);
    }
}

/// Connects a switch with OpenFlow 1.0 whose local port has this name. It stays connected while the socket is open.
pub fn connect(address: SocketAddr, name: &str) -> TcpStream {
    let mut socket = TcpStream::connect(address).unwrap();
    let mut port = [0; 48];
    port[..2].copy_from_slice(&[0xff, 0xfe]);
    port[2..8].copy_from_slice(&[2, 0, 0, 0, 0, 9]);
    port[8..8 + name.len()].copy_from_slice(name.as_bytes());
    socket.write_all(&[1, 0, 0, 8, 0, 0, 0, 0]).unwrap();
    loop {
        let mut header = [0; 8];
        socket.read_exact(&mut header).unwrap();
        let mut body = vec![0; usize::from(u16::from_be_bytes([header[2], header[3]])) - 8];
        socket.read_exact(&mut body).unwrap();
        // The switch is connected after it has answered the features-request.
        if header[1] == 5 {
            let mut reply = vec![1, 6, 0, 80];
            reply.extend(&header[4..]);
            reply.extend([0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 1, 0, 0, 0]);
            reply.extend([0; 8]);
            reply.extend(port);
            socket.write_all(&reply).unwrap();
            return socket;
        }
    }
}

#[test]
fn names_of_switches_are_escaped() {
    let lab = Lab::new("single,1", Version::Of13, &["hub"]);
    let _switch = connect(lab.switches, "<a b=\"'&>");
    wait("the switch is drawn", || {
        drawn(&lab, SVG).contains("2 switches")
    });
    let svg = drawn(&lab, SVG);
    assert!(
        svg.contains(">&lt;a b=&quot;&#39;&amp;&gt;</text>"),
        "{svg}"
    );
    let dot = drawn(&lab, DOT);
    assert!(
        dot.contains(r#"[label="<a b=\"'&amp;>\n0000000000000009"];"#),
        "{dot}"
    );
}
