//! The layout of a network's switches, by topology.
//!
//! **How.** A torus is a grid, trees have levels, a line is a line, and everything else is a circle. A link that would cross
//! another switch is drawn as an arc.

use std::collections::BTreeMap;
use std::f64::consts::TAU;
use urtica_topology::spec::{Plan, TopologySpec};

/// A position in the picture: from the left and from the top, each from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MapPosition {
    pub x: f64,
    pub y: f64,
}

/// A link between two switches, as it is drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Stroke {
    /// The switches, by their index in the plan.
    pub ends: [usize; 2],
    /// The points of the line.
    pub points: Vec<MapPosition>,
}

/// A network's layout, which does not change.
#[derive(Clone, Debug, PartialEq)]
pub struct Map {
    /// Each switch's position, in the order of the plan.
    pub switches: Vec<MapPosition>,
    /// Each link between switches, in the order of the plan.
    pub links: Vec<Stroke>,
}

/// The minimum distance of a line from switches that are not its own.
const CLEARANCE: f64 = 0.04;

/// The deviation of an arc from the straight line.
const BULGE: f64 = 0.13;

/// Number of straight segments of an arc.
const ARC_PIECES: usize = 12;

impl Map {
    /// Creates the layout of a plan of this topology.
    pub fn new(spec: &TopologySpec, plan: &Plan) -> Self {
        let ends = ends(plan);
        let switches = match spec {
            TopologySpec::Torus { y, .. } => grid(plan.switches.len(), *y as usize),
            TopologySpec::Linear { .. } => rows(&[plan.switches.len()]),
            TopologySpec::Tree { .. } => tree(plan.switches.len(), &ends),
            TopologySpec::FatTree { k } => fat_tree(*k as usize),
            _ => circle(plan.switches.len()),
        };
        let strokes = ends.iter().map(|&ends| stroke(ends, &switches));
        Self {
            links: strokes.collect(),
            switches,
        }
    }
}

/// Returns the switches that each link connects, by their indices in the plan.
pub fn ends(plan: &Plan) -> Vec<[usize; 2]> {
    let ids = plan.switches.iter().map(|switch| switch.datapath_id);
    let places: BTreeMap<_, _> = ids.zip(0..).collect();
    let place = |port: urtica_topology::PortId| places.get(&port.switch).copied().unwrap_or(0);
    let links = plan.links.iter();
    links.map(|link| [place(link.a), place(link.b)]).collect()
}

/// Returns the middle of the `index`-th of `count` equal parts.
fn middle(index: usize, count: usize) -> f64 {
    (index as f64 + 0.5) / count.max(1) as f64
}

/// Arranges switches in a grid, column by column.
fn grid(count: usize, rows: usize) -> Vec<MapPosition> {
    let columns = count.div_ceil(rows.max(1));
    let places = (0..count).map(|index| MapPosition {
        x: middle(index / rows, columns),
        y: middle(index % rows, rows),
    });
    places.collect()
}

/// Arranges switches in rows of these lengths.
fn rows(lengths: &[usize]) -> Vec<MapPosition> {
    let rows = lengths.iter().enumerate();
    let places = rows.flat_map(|(row, &length)| {
        (0..length).map(move |index| MapPosition {
            x: middle(index, length),
            y: middle(row, lengths.len()),
        })
    });
    places.collect()
}

/// Arranges switches as a tree, with the first on top. Each link of a tree's plan has the upper switch as its first
/// end, and switches are numbered depth first.
fn tree(count: usize, ends: &[[usize; 2]]) -> Vec<MapPosition> {
    let mut below = vec![Vec::new(); count];
    let mut depths = vec![0; count];
    for &[upper, lower] in ends {
        below[upper].push(lower);
    }
    for upper in 0..count {
        for &lower in &below[upper] {
            depths[lower] = depths[upper] + 1;
        }
    }
    let levels = depths.iter().max().map_or(1, |depth| depth + 1);
    let leaves = below.iter().filter(|below| below.is_empty()).count();
    let (mut xs, mut leaf) = (vec![0.0; count], leaves);
    for switch in (0..count).rev() {
        xs[switch] = if let [first, .., last] | [first @ last] = below[switch][..] {
            (xs[first] + xs[last]) / 2.0
        } else {
            leaf -= 1;
            middle(leaf, leaves)
        };
    }
    let places = xs.into_iter().zip(depths);
    let places = places.map(|(x, depth)| MapPosition {
        x,
        y: middle(depth, levels),
    });
    places.collect()
}

/// Arranges core above aggregation above edge switches. The plan lists the core first, then pod by pod.
fn fat_tree(k: usize) -> Vec<MapPosition> {
    let half = k / 2;
    let levels = rows(&[half * half, k * half, k * half]);
    let (core, pods) = levels.split_at(half * half);
    let (aggregation, edge) = pods.split_at(k * half);
    let pods = (0..k).flat_map(|pod| {
        let pod = pod * half..(pod + 1) * half;
        aggregation[pod.clone()].iter().chain(&edge[pod])
    });
    core.iter().chain(pods).copied().collect()
}

/// Arranges switches clockwise on a circle, with the first on top.
fn circle(count: usize) -> Vec<MapPosition> {
    if count == 1 {
        return rows(&[1]);
    }
    let places = (0..count).map(|index| {
        let angle = TAU * index as f64 / count as f64;
        MapPosition {
            x: 0.5 + 0.42 * angle.sin(),
            // Leaves space for the hosts' names below.
            y: 0.47 - 0.4 * angle.cos(),
        }
    });
    places.collect()
}

fn stroke(ends: [usize; 2], switches: &[MapPosition]) -> Stroke {
    let [from, to] = ends.map(|end| switches[end]);
    let others = switches.iter().enumerate();
    let is_in_the_way = |(index, &place): (usize, &MapPosition)| {
        !ends.contains(&index) && distance(place, from, to) < CLEARANCE
    };
    let points = match { others }.any(is_in_the_way) {
        true => arc(from, to),
        false => vec![from, to],
    };
    Stroke { ends, points }
}

/// Returns the distance of a point from a line segment.
fn distance(place: MapPosition, from: MapPosition, to: MapPosition) -> f64 {
    let (dx, dy) = (to.x - from.x, to.y - from.y);
    let length = dx * dx + dy * dy;
    let along = ((place.x - from.x) * dx + (place.y - from.y) * dy) / length.max(f64::MIN_POSITIVE);
    let along = along.clamp(0.0, 1.0);
    (place.x - from.x - along * dx).hypot(place.y - from.y - along * dy)
}

/// Returns an arc that deviates at right angles: up from a horizontal line, right from a vertical one.
fn arc(from: MapPosition, to: MapPosition) -> Vec<MapPosition> {
    let (dx, dy) = (to.x - from.x, to.y - from.y);
    let length = dx.hypot(dy).max(f64::MIN_POSITIVE);
    let (across_x, across_y) = match dx.abs() > dy.abs() {
        true => (dy * dx.signum(), -dx.abs()),
        false => (dy.abs(), -dx * dy.signum()),
    };
    let bulge = BULGE / length;
    let points = (0..=ARC_PIECES).map(|piece| {
        let along = piece as f64 / ARC_PIECES as f64;
        let away = bulge * 4.0 * along * (1.0 - along);
        MapPosition {
            x: (from.x + along * dx + away * across_x).clamp(0.0, 1.0),
            y: (from.y + along * dy + away * across_y).clamp(0.0, 1.0),
        }
    });
    points.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(spec: &str) -> Map {
        let spec: TopologySpec = spec.parse().unwrap();
        Map::new(&spec, &spec.plan().unwrap())
    }

    #[test]
    fn switches_of_every_spec_are_apart_and_within_the_picture() {
        for spec in [
            "single,3",
            "linear,5",
            "linear,2,3",
            "tree,depth=3,fanout=2",
            "tree,depth=1,fanout=4",
            "torus,3,3",
            "torus,4,3,2",
            "fattree,4",
            "ring,7",
            "mesh,5",
        ] {
            let map = map(spec);
            let points = map.links.iter().flat_map(|link| &link.points);
            for place in map.switches.iter().chain(points) {
                let (x, y) = (place.x, place.y);
                assert!((0.0..=1.0).contains(&x), "{spec}: {place:?}");
                assert!((0.0..=1.0).contains(&y), "{spec}: {place:?}");
            }
            for (index, one) in map.switches.iter().enumerate() {
                let near =
                    |other: &&MapPosition| (one.x - other.x).hypot(one.y - other.y) < CLEARANCE;
                assert_eq!(map.switches[..index].iter().find(near), None, "{spec}");
            }
        }
    }

    #[test]
    fn a_torus_is_a_grid_by_the_numbers_in_its_names() {
        let map = map("torus,3,3");
        let [s1x1, s1x2, s2x1] = [0, 1, 3].map(|index| map.switches[index]);
        assert!(s1x1.x == s1x2.x && s1x1.y < s1x2.y, "{s1x1:?} {s1x2:?}");
        assert!(s1x1.y == s2x1.y && s1x1.x < s2x1.x, "{s1x1:?} {s2x1:?}");
        let arcs = map.links.iter().filter(|link| link.points.len() > 2);
        assert_eq!(arcs.count(), 6, "one around each row and each column");
    }

    #[test]
    fn trees_are_drawn_from_the_root_down() {
        for spec in ["tree,depth=3,fanout=3", "fattree,4"] {
            let map = map(spec);
            assert_eq!(
                map.switches[0].y,
                map.switches.iter().map(|s| s.y).fold(1.0, f64::min)
            );
        }
        let map = map("tree,depth=3,fanout=2");
        for link in &map.links {
            let [upper, lower] = link.ends.map(|end| map.switches[end].y);
            assert!(upper < lower, "{link:?}");
        }
        let below = map.links.iter().filter(|link| link.ends[0] == 0);
        let below: f64 = below.map(|link| map.switches[link.ends[1]].x).sum();
        assert_eq!(map.switches[0].x, below / 2.0);
    }
}
