//! Networks with positions.

use super::{Host, Link, Network, Switch, layout};
use serde::Serialize;

/// The length of a link. Boxes of nodes are wider than high, so horizontal links are longer.
const UNIT: [f64; 2] = [150.0, 100.0];

/// The space around the centres of the outermost nodes.
const MARGIN: [i64; 2] = [80, 50];

/// A network with a position for each switch and host. Serde serializes it as data.
///
/// Positions are in pixels from the left and the top.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Picture {
    pub(super) width: i64,
    pub(super) height: i64,
    pub(super) switches: Vec<Placed<Switch>>,
    pub(super) hosts: Vec<Placed<Host>>,
    pub(super) links: Vec<Link>,
}

/// A switch or host, and the centre of its box.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(super) struct Placed<T> {
    #[serde(flatten)]
    pub node: T,
    pub x: i64,
    pub y: i64,
}

impl Picture {
    /// Lays a network out.
    pub fn new(network: &Network) -> Self {
        let Network {
            switches,
            hosts,
            links,
        } = network;
        let of_links = links
            .iter()
            .map(|link| [network.at(link.a), network.at(link.b)]);
        let of_hosts = (switches.len()..)
            .zip(hosts)
            .map(|(node, host)| [network.at(host.attached), node]);
        let edges: Vec<_> = of_links.chain(of_hosts).collect();
        let points = layout::place(switches.len() + hosts.len(), &edges);
        let points = points.iter().map(|point| {
            let pixel = |at: f64, axis: usize| MARGIN[axis] + (at * UNIT[axis]).round() as i64;
            (pixel(point.x, 0), pixel(point.y, 1))
        });
        let points: Vec<_> = points.collect();
        let (of_switches, of_hosts) = points.split_at(switches.len());
        Self {
            width: MARGIN[0]
                + points
                    .iter()
                    .map(|point| point.0)
                    .max()
                    .unwrap_or(MARGIN[0]),
            height: MARGIN[1]
                + points
                    .iter()
                    .map(|point| point.1)
                    .max()
                    .unwrap_or(MARGIN[1]),
            switches: placed(switches, of_switches),
            hosts: placed(hosts, of_hosts),
            links: links.clone(),
        }
    }
}

fn placed<T: Clone>(nodes: &[T], points: &[(i64, i64)]) -> Vec<Placed<T>> {
    let placed = nodes.iter().zip(points).map(|(node, &(x, y))| Placed {
        node: node.clone(),
        x,
        y,
    });
    placed.collect()
}
