use super::*;
use crate::search;
use crate::spec::TopologySpec;
use crate::testing::{any_link, any_switch, any_topology, host_port, petgraph_of};
use petgraph::algo::dijkstra;
use petgraph::graph::NodeIndex;
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeSet;
use urtica_wire::PortNo;

fn topology_of(spec: &str) -> Arc<Topology> {
    let spec: TopologySpec = spec.parse().expect("the topology is known");
    Arc::new(spec.plan().expect("the size is fine").topology())
}

/// A change of a network.
#[derive(Clone, Debug)]
enum Step {
    AddDirectedLink(DirectedLink),
    AddLink(DirectedLink),
    RemoveDirectedLink(usize),
    RemoveLink(usize),
    AddSwitch(DatapathId),
    RemoveSwitch(usize),
}

impl Step {
    fn applied(&self, topology: &Topology) -> Topology {
        let link = |number: usize| {
            topology
                .directed_links()
                .get(number % topology.directed_links().len().max(1))
        };
        let switches = topology.switches();
        let switch = |number: usize| switches.get(number % switches.len().max(1));
        let unchanged = || topology.clone();
        match *self {
            Self::AddDirectedLink(link) => topology.with_link(link),
            Self::AddLink(link) => topology.with_link(link).with_link(link.reversed()),
            Self::RemoveDirectedLink(number) => {
                link(number).map_or_else(unchanged, |link| topology.without_link(*link))
            }
            Self::RemoveLink(number) => link(number).map_or_else(unchanged, |link| {
                topology.without_link(*link).without_link(link.reversed())
            }),
            Self::AddSwitch(switch) => topology.with_switch(switch),
            Self::RemoveSwitch(number) => {
                switch(number).map_or_else(unchanged, |switch| topology.without_switch(*switch))
            }
        }
    }
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => any_link().prop_map(Step::AddDirectedLink),
        6 => any_link().prop_map(Step::AddLink),
        3 => any::<usize>().prop_map(Step::RemoveDirectedLink),
        6 => any::<usize>().prop_map(Step::RemoveLink),
        1 => any_switch().prop_map(Step::AddSwitch),
        1 => any::<usize>().prop_map(Step::RemoveSwitch),
    ]
}

/// Networks with more switches than are searched together, with random links.
fn large_topology() -> impl Strategy<Value = Topology> {
    let pairs = vec((0..150_u64, 0..150_u64), 50..400);
    pairs.prop_map(|pairs| {
        let port = |switch, port_no| PortId::new(DatapathId(switch), PortNo(port_no));
        let links = (1..).zip(pairs).flat_map(|(port_no, (a, b))| {
            let link = DirectedLink::new(port(a, port_no), port(b, port_no));
            [link, link.reversed()]
        });
        Topology::new((0..150).map(DatapathId), links)
    })
}

proptest! {
    /// Compares distances, and next hops according to their definition: links to a neighbour that is nearer by one.
    #[test]
    fn agrees_with_petgraph(topology in any_topology()) {
        let graph = petgraph_of(&topology);
        let distances: Vec<_> = graph
            .node_indices()
            .map(|from| dijkstra(&graph, from, None, |_| 1_u32))
            .collect();
        let next_hops = NextHops::new(Arc::new(topology.clone()));
        for (from, &at) in topology.switches().iter().enumerate() {
            for (end, &to) in topology.switches().iter().enumerate() {
                let distance = |from: usize| distances[from].get(&NodeIndex::new(end)).copied();
                prop_assert_eq!(next_hops.distance(at, to), distance(from));
                let expected: Vec<_> = topology
                    .directed_links()
                    .iter()
                    .filter(|link| link.from.switch == at && distance(from).is_some())
                    .filter(|link| {
                        let end = topology.index_of(link.to.switch).unwrap().to_usize();
                        distance(end).map(|rest| rest + 1) == distance(from)
                    })
                    .collect();
                prop_assert_eq!(next_hops.next_hops(at, to).collect::<Vec<_>>(), expected);
            }
        }
    }

    /// After each batch of changes, the update equals a new computation, and shares every unchanged column.
    #[test]
    fn updates_equal_new_computations(
        topology in any_topology(),
        batches in vec(vec(any_step(), 1..4), 1..12),
    ) {
        let mut topology = Arc::new(topology);
        let mut next_hops = NextHops::new(topology.clone());
        for batch in batches {
            let after = batch.iter().fold((*topology).clone(), |so_far, step| step.applied(&so_far));
            let after = Arc::new(after);
            let updated = next_hops.updated(after.clone());
            prop_assert_eq!(&updated, &NextHops::new(after.clone()));
            if topology.switches() == after.switches() {
                for (old, new) in next_hops.columns.iter().zip(&updated.columns) {
                    prop_assert_eq!(old == new, Arc::ptr_eq(old, new));
                }
            }
            (topology, next_hops) = (after, updated);
        }
    }

    /// Separate searches have the same results as combined ones, with any number of threads.
    #[test]
    fn searches_and_threads_are_independent(
        topology in prop_oneof![any_topology(), large_topology()],
        threads in 1..20_usize,
    ) {
        let destinations: Vec<_> = topology.indices().collect();
        let plainly: Vec<_> = destinations
            .iter()
            .map(|&to| Column::from(search::distances_to(&topology, to, None)))
            .collect();
        prop_assert_eq!(columns_by(threads, &topology, &destinations), plainly);
    }

    /// With any hash, a path only uses next hops, and so is a shortest one.
    #[test]
    fn paths_follow_next_hops(topology in any_topology(), flow_hash: u64) {
        let next_hops = NextHops::new(Arc::new(topology.clone()));
        for &from in topology.switches() {
            for &to in topology.switches() {
                let path = next_hops.path(host_port(from), host_port(to), flow_hash);
                let distance = next_hops.distance(from, to);
                prop_assert_eq!(path.as_ref().map(|path| path.directed_links().len() as u32), distance);
                for link in path.iter().flat_map(|path| path.directed_links()) {
                    prop_assert!(next_hops.next_hops(link.from.switch, to).any(|hop| *hop == link));
                }
            }
        }
    }
}

#[test]
fn the_mean_of_a_fat_tree_is_known() {
    let topology = topology_of("fattree,4");
    let next_hops = NextHops::new(topology);
    let [core, edge, sibling, far] = [1, 7, 8, 19].map(DatapathId);
    assert_eq!(next_hops.distance(edge, sibling), Some(2));
    assert_eq!(next_hops.distance(edge, far), Some(4));
    assert_eq!(next_hops.distance(edge, core), Some(2));
    assert_eq!(
        next_hops.next_hops(edge, far).count(),
        2,
        "both aggregation switches"
    );
    assert_eq!(
        next_hops.next_hops(edge, core).count(),
        1,
        "a core switch is below one of them"
    );
    assert_eq!(next_hops.next_hops(core, far).count(), 1);
}

#[test]
fn flows_spread_over_all_paths_and_keep_theirs() {
    let topology = topology_of("fattree,4");
    let next_hops = NextHops::new(topology);
    let ends = [7, 19].map(|switch| PortId::new(DatapathId(switch), PortNo(1)));
    let path = |flow_hash| {
        next_hops
            .path(ends[0], ends[1], flow_hash)
            .expect("it is connected")
    };
    let paths: BTreeSet<_> = (0..64).map(path).collect();
    assert_eq!(paths.len(), 4, "one over each core switch");
    assert!((0..64).all(|flow_hash| path(flow_hash) == path(flow_hash)));
}

/// A link from an edge switch of a fat tree to an aggregation switch of its pod. Without it, distances change to both switches,
/// to the four core switches above the latter, and to the aggregation switches below these in the seven other pods.
#[test]
fn a_cut_link_of_a_fat_tree_concerns_few_destinations() {
    let before = topology_of("fattree,8");
    let next_hops = NextHops::new(before.clone());
    let edge = PortId::new(DatapathId(21), PortNo(5));
    let link = before
        .link_from(edge)
        .expect("hosts have the first four ports");
    let after = before.without_link(link).without_link(link.reversed());
    let updated = next_hops.updated(Arc::new(after));
    let columns = next_hops.columns.iter().zip(&updated.columns);
    let searched = columns.filter(|(old, new)| !Arc::ptr_eq(old, new)).count();
    assert_eq!(searched, 2 + 4 + 7);
}

#[test]
fn absent_switches_have_no_path() {
    let next_hops = NextHops::new(topology_of("linear,2"));
    let [there, absent] = [1, 3].map(DatapathId);
    assert_eq!(next_hops.distance(there, absent), None);
    assert_eq!(next_hops.distance(absent, there), None);
    assert_eq!(next_hops.next_hops(absent, there).count(), 0);
    assert_eq!(next_hops.path(host_port(there), host_port(absent), 0), None);
    assert_eq!(NextHops::default().distance(there, there), None);
}
