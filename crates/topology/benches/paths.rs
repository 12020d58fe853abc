//! The cost of paths through a network, compared with petgraph.
//!
//! `cargo bench -p urtica-topology` measures; under `cargo test` each runs once. Our code and petgraph's are interleaved,
//! so that other load on the machine affects both; the figures are medians of the rounds. All data is in the caches,
//! unlike in a controller with occasional queries. petgraph is compared if it has an algorithm: after a change it
//! computes everything again, and its graph is built before the clock starts. It has no k shortest paths without loops.

use petgraph::algo::{astar, min_spanning_tree};
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::{Bfs, EdgeRef, Reversed};
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};
use urtica_topology::spec::{Plan, TopologySpec};
use urtica_topology::{
    DirectedLink, NextHops, PortId, SpanningTree, Topology, k_shortest, shortest,
};

/// The duration of measuring each of both.
const MEASURED: Duration = Duration::from_millis(500);

/// The minimum length of a round, which makes the cost of reading the clock negligible.
const ROUND: Duration = Duration::from_micros(50);

fn main() {
    let bench = Bench {
        is_measuring: std::env::args().any(|argument| argument == "--bench"),
    };
    println!("{:<52}{:>12}{:>12}{:>8}", "", "ours", "petgraph", "ratio");
    paths(&bench, "tree,depth=3,fanout=3");
    paths(&bench, "fattree,16");
    all_pairs(&bench, "fattree,16");
    trees(&bench, "fattree,16");
    changes(&bench, "fattree,16");
}

fn paths(bench: &Bench, spec: &str) {
    let network = Network::new(spec);
    let (from, to) = network.farthest();
    let next_hops = NextHops::new(network.topology.clone());
    let mut petgraph = || network.petgraph_path(from, to);
    bench.compare(
        &format!("{spec}: a shortest path"),
        || shortest::path(&network.topology, from, to),
        &mut petgraph,
    );
    bench.compare(
        &format!("{spec}: a path by next hops"),
        || next_hops.path(from, to, 1),
        &mut petgraph,
    );
    bench.measure(&format!("{spec}: the 8 shortest paths"), || {
        k_shortest::paths(&network.topology, from, to)
            .take(8)
            .count()
    });
}

fn all_pairs(bench: &Bench, spec: &str) {
    let network = Network::new(spec);
    let next_hops = NextHops::new(network.topology.clone());
    let (from, to) = network.farthest();
    let mut petgraph = || network.petgraph_distances();
    bench.compare(
        &format!("{spec}: all next hops"),
        || NextHops::new(network.topology.clone()),
        &mut petgraph,
    );
    let above = network.topology.link_from(PortId {
        port_no: urtica_wire::PortNo(9),
        ..from
    });
    let edge = above.expect("hosts have the first eight ports of an edge switch");
    let above = network.topology.link_from(PortId {
        port_no: urtica_wire::PortNo(9),
        ..edge.to
    });
    let core = above.expect("edge switches have the first eight of an aggregation switch");
    let topology = &network.topology;
    let cases = [
        ("without an edge switch's link", cut(topology, edge)),
        ("without a core switch's link", cut(topology, core)),
        (
            "without a core switch",
            topology.without_switch(core.to.switch),
        ),
        ("without an edge switch", topology.without_switch(to.switch)),
    ];
    for (what, after) in cases {
        let after = Arc::new(after);
        bench.compare(
            &format!("{spec}: {what}"),
            || next_hops.updated(after.clone()),
            &mut petgraph,
        );
    }
}

fn cut(topology: &Topology, link: DirectedLink) -> Topology {
    topology.without_link(link).without_link(link.reversed())
}

fn trees(bench: &Bench, spec: &str) {
    let network = Network::new(spec);
    bench.compare(
        &format!("{spec}: the spanning tree"),
        || SpanningTree::new(&network.topology),
        || min_spanning_tree(&network.graph).count(),
    );
}

fn changes(bench: &Bench, spec: &str) {
    let Network { plan, topology, .. } = Network::new(spec);
    let link = topology.directed_links()[topology.directed_links().len() / 2];
    bench.measure(&format!("{spec}: a topology"), || plan.topology());
    bench.measure(&format!("{spec}: a topology without a link"), || {
        topology.without_link(link)
    });
    bench.measure(&format!("{spec}: the plan"), || {
        spec.parse::<TopologySpec>().and_then(|spec| spec.plan())
    });
}

/// A network, for our code and for petgraph. Its nodes have the switches' numbers.
struct Network {
    plan: Plan,
    topology: Arc<Topology>,
    graph: DiGraph<(), u32>,
}

impl Network {
    fn new(spec: &str) -> Self {
        let spec: TopologySpec = spec.parse().expect("the topology is known");
        let plan = spec.plan().expect("the size is fine");
        let topology = plan.topology();
        let mut graph = DiGraph::new();
        for _ in topology.switches() {
            graph.add_node(());
        }
        for link in topology.directed_links() {
            let nodes = [link.from, link.to].map(|port| node(&topology, port));
            graph.add_edge(nodes[0], nodes[1], 1);
        }
        Self {
            plan,
            topology: Arc::new(topology),
            graph,
        }
    }

    /// Returns the ports of the first and the last host, which have the longest distance.
    fn farthest(&self) -> (PortId, PortId) {
        let attached = |place: usize| self.plan.hosts[place].attached;
        (attached(0), attached(self.plan.hosts.len() - 1))
    }

    fn petgraph_path(&self, from: PortId, to: PortId) -> Option<(u32, Vec<NodeIndex>)> {
        let (from, to) = (node(&self.topology, from), node(&self.topology, to));
        astar(
            &self.graph,
            from,
            |at| at == to,
            |edge| *edge.weight(),
            |_| 0,
        )
    }

    /// Returns distances to each switch by petgraph's breadth-first search, its fastest algorithm.
    fn petgraph_distances(&self) -> Vec<Vec<u16>> {
        let reversed = Reversed(&self.graph);
        let distances_to = |to| {
            let mut distances = vec![u16::MAX; self.graph.node_count()];
            distances[NodeIndex::index(to)] = 0;
            let mut search = Bfs::new(reversed, to);
            while let Some(at) = search.next(reversed) {
                for edge in self.graph.edges_directed(at, petgraph::Incoming) {
                    let known = &distances[edge.source().index()];
                    let nearer = distances[at.index()] + 1;
                    distances[edge.source().index()] = nearer.min(*known);
                }
            }
            distances
        };
        self.graph.node_indices().map(distances_to).collect()
    }
}

fn node(topology: &Topology, port: PortId) -> NodeIndex {
    let index = topology.index_of(port.switch).expect("the switch is there");
    NodeIndex::new(index.to_usize())
}

struct Bench {
    is_measuring: bool,
}

impl Bench {
    /// Measures a function of ours.
    fn measure<T>(&self, name: &str, mut ours: impl FnMut() -> T) {
        let [ours, _] = self.medians([&mut || drop(black_box(ours())), &mut || ()]);
        println!("{name:<52}{:>12}", text(ours));
    }

    /// Measures a function of ours, and petgraph's counterpart.
    fn compare<T, U>(
        &self,
        name: &str,
        mut ours: impl FnMut() -> T,
        mut petgraph: impl FnMut() -> U,
    ) {
        let both: [&mut dyn FnMut(); 2] = [&mut || drop(black_box(ours())), &mut || {
            drop(black_box(petgraph()))
        }];
        let [ours, petgraph] = self.medians(both);
        let ratio = petgraph.as_secs_f64() / ours.as_secs_f64();
        println!(
            "{name:<52}{:>12}{:>12}{ratio:>8.1}",
            text(ours),
            text(petgraph)
        );
    }

    fn medians(&self, mut both: [&mut dyn FnMut(); 2]) -> [Duration; 2] {
        if !self.is_measuring {
            return both.map(|each| round(each, 1));
        }
        let times = both.each_mut().map(|each| repetitions(*each));
        let mut rounds = [Vec::new(), Vec::new()];
        let begin = Instant::now();
        while begin.elapsed() < MEASURED * 2 || rounds[0].len() < 5 {
            for ((each, &times), rounds) in both.iter_mut().zip(&times).zip(&mut rounds) {
                rounds.push(round(*each, times));
            }
        }
        rounds.map(|mut rounds| {
            rounds.sort();
            rounds[rounds.len() / 2]
        })
    }
}

/// Returns the number of repetitions for which a round is long enough.
fn repetitions(each: &mut dyn FnMut()) -> u32 {
    let mut times = 1;
    while round(each, times) * times < ROUND && times < 1 << 20 {
        times *= 2;
    }
    times
}

/// Returns the mean time of one of several consecutive runs.
fn round(each: &mut dyn FnMut(), times: u32) -> Duration {
    let begin = Instant::now();
    for _ in 0..times {
        each();
    }
    begin.elapsed() / times
}

fn text(duration: Duration) -> String {
    format!("{:.2} us", duration.as_secs_f64() * 1e6)
}
