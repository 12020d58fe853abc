//! Positions for the nodes of a graph.
//!
//! **How.** Each connected part is laid out separately. A tree has its middle in the centre, and around it rings of nodes by
//! distance, each in a sector of the circle that grows with the number of its leaves. Other parts start with the plane that
//! shows most of their distances (classical multidimensional scaling, Torgerson 1952). Stress majorization (Gansner, Koren
//! and North, 2004) then moves nodes until their distances in the plane approach those in links. Parts are arranged in
//! rows, largest first.
//!
//! **Cost.** The number of pairs of nodes that are visited is bounded for the whole graph: large parts get fewer rounds, and
//! are laid out as trees if there would be too few.

use std::collections::VecDeque;
use std::f64::consts::TAU;

/// A position. The length of a link is 1.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct Point {
    pub x: f64,
    pub y: f64,
}

/// The maximum number of pairs of nodes to visit.
const MAX_PAIRS: usize = 40_000_000;

/// The maximum number of rounds of stress majorization. More show no difference; fewer leave nodes on their way.
const MAX_ROUNDS: usize = 300;
const MIN_ROUNDS: usize = 10;

/// The number of rounds of the power iteration that finds the plane, which need not be exact.
const PLANE_ROUNDS: usize = 50;

/// The distance that nodes should at least have.
const CLEARANCE: f64 = 0.9;

/// Maximum number of rounds in which nodes that are too close are moved apart.
const MAX_CLEARING_ROUNDS: usize = 50;

/// The distance between parts.
const GAP: f64 = 1.0;

/// The ratio of width to height of a drawing of many parts.
const ASPECT: f64 = 1.4;

/// Returns positions for nodes that these edges connect. No coordinate is negative.
pub(super) fn place(count: usize, edges: &[[usize; 2]]) -> Vec<Point> {
    let neighbours = neighbours(count, edges);
    let mut parts: Vec<Component> = Component::all(&neighbours);
    let mut places = vec![0; count];
    for part in &mut parts {
        part.spread(&neighbours, &mut places);
    }
    parts.sort_by_key(|part| std::cmp::Reverse(part.nodes.len()));
    in_rows(count, &parts)
}

/// Returns the neighbours of each node, sorted, without the node itself.
fn neighbours(count: usize, edges: &[[usize; 2]]) -> Vec<Vec<usize>> {
    let mut neighbours = vec![Vec::new(); count];
    for &[a, b] in edges.iter().filter(|[a, b]| a != b) {
        neighbours[a].push(b);
        neighbours[b].push(a);
    }
    for of_one in &mut neighbours {
        of_one.sort_unstable();
        of_one.dedup();
    }
    neighbours
}

/// A breadth-first search.
struct BreadthFirst {
    /// The nodes, in the order in which they were reached.
    order: Vec<usize>,
    /// For each reached node, the index in `order` of the node from which it was reached.
    parents: Vec<usize>,
    /// For each reached node, its distance.
    depths: Vec<usize>,
}

impl BreadthFirst {
    /// Searches from a node. `seen` has the length of the graph, and marks the nodes that were reached.
    fn new(start: usize, neighbours: &[Vec<usize>], seen: &mut [bool]) -> Self {
        let (mut order, mut parents, mut depths) = (vec![start], vec![0], vec![0]);
        seen[start] = true;
        let mut next = 0;
        while let Some(&node) = order.get(next) {
            for &neighbour in &neighbours[node] {
                if !std::mem::replace(&mut seen[neighbour], true) {
                    order.push(neighbour);
                    parents.push(next);
                    depths.push(depths[next] + 1);
                }
            }
            next += 1;
        }
        Self {
            order,
            parents,
            depths,
        }
    }

    /// Returns a node in the middle of the longest of the shortest paths from the start.
    fn middle(&self) -> usize {
        let (mut at, half) = (
            self.order.len() - 1,
            self.depths.last().map_or(0, |depth| depth / 2),
        );
        while self.depths[at] > half {
            at = self.parents[at];
        }
        self.order[at]
    }
}

/// A connected part, and the positions of its nodes.
struct Component {
    nodes: Vec<usize>,
    points: Vec<Point>,
}

impl Component {
    /// Returns all parts of a graph, each laid out as a tree.
    fn all(neighbours: &[Vec<usize>]) -> Vec<Self> {
        let count = neighbours.len();
        let (mut seen, mut parts) = (vec![false; count], Vec::new());
        for start in 0..count {
            if !seen[start] {
                let reached = BreadthFirst::new(start, neighbours, &mut seen);
                parts.push(Self::tree(&from_middle(&reached, neighbours, &mut seen)));
            }
        }
        parts
    }

    /// Places nodes in rings around the first.
    fn tree(search: &BreadthFirst) -> Self {
        let count = search.order.len();
        let mut leaves = vec![0_u32; count];
        for at in (1..count).rev() {
            leaves[at] = leaves[at].max(1);
            leaves[search.parents[at]] += leaves[at];
        }
        let step = ring_distance(&search.depths);
        let share = TAU / f64::from(leaves[0].max(1));
        // For each node, the start of the sector of its next child.
        let mut begins = vec![0.0; count];
        let mut points = vec![Point::default(); count];
        for at in 1..count {
            let (begin, width) = (begins[search.parents[at]], share * f64::from(leaves[at]));
            begins[at] = begin;
            begins[search.parents[at]] += width;
            let angle = begin + width / 2.0;
            let radius = step * search.depths[at] as f64;
            points[at] = Point {
                x: radius * angle.sin(),
                y: -radius * angle.cos(),
            };
        }
        Self {
            nodes: search.order.clone(),
            points,
        }
    }

    /// Moves nodes so that their distances approach those in links, at bounded cost, and then far enough apart. `places` has the
    /// length of the graph, and is overwritten.
    fn spread(&mut self, neighbours: &[Vec<usize>], places: &mut [usize]) {
        let rounds = MAX_PAIRS / (self.nodes.len() * neighbours.len());
        if rounds >= MIN_ROUNDS && self.nodes.len() > 1 {
            for (place, &node) in self.nodes.iter().enumerate() {
                places[node] = place;
            }
            let distances = distances(&self.nodes, neighbours, places);
            let ends: usize = self.nodes.iter().map(|&node| neighbours[node].len()).sum();
            if ends / 2 >= self.nodes.len() {
                self.points = plane(&distances);
            }
            for _ in 0..rounds.min(MAX_ROUNDS) {
                majorize(&mut self.points, &distances);
            }
            level(&mut self.points);
            clear(&mut self.points, rounds);
        }
        to_origin(&mut self.points);
    }

    fn size(&self) -> Point {
        let largest = |of: fn(&Point) -> f64| self.points.iter().map(of).fold(0.0, f64::max);
        Point {
            x: largest(|point| point.x),
            y: largest(|point| point.y),
        }
    }
}

/// Searches the part again from its middle, which is exact in a tree, and approximate otherwise.
fn from_middle(
    reached: &BreadthFirst,
    neighbours: &[Vec<usize>],
    seen: &mut [bool],
) -> BreadthFirst {
    let mut again = |start| {
        for &node in &reached.order {
            seen[node] = false;
        }
        BreadthFirst::new(start, neighbours, seen)
    };
    let farthest = reached.order.last().copied().unwrap_or_default();
    let across = again(farthest);
    again(across.middle())
}

/// Returns the distance between rings that leaves each node a space of 1 in the fullest ring.
fn ring_distance(depths: &[usize]) -> f64 {
    let rings = depths.chunk_by(|one, other| one == other).skip(1);
    let needed = rings.map(|ring| ring.len() as f64 / TAU / ring[0] as f64);
    needed.fold(1.0, f64::max)
}

/// Returns a number from -1 to 1 that only depends on an index, and differs for consecutive ones.
fn unevenness(index: usize) -> f64 {
    const GOLDEN: u32 = 0x9e37_79b9;
    let mixed = (index as u32).wrapping_add(1).wrapping_mul(GOLDEN);
    f64::from(mixed) / f64::from(u32::MAX) * 2.0 - 1.0
}

/// Returns the distances between all nodes of a part, in links. `places` has the position of each node in the part.
fn distances(nodes: &[usize], neighbours: &[Vec<usize>], places: &[usize]) -> Vec<Vec<u16>> {
    let from = |&start: &usize| {
        let mut distances = vec![u16::MAX; nodes.len()];
        let mut queue = VecDeque::from([start]);
        distances[places[start]] = 0;
        while let Some(node) = queue.pop_front() {
            let next = distances[places[node]] + 1;
            for &neighbour in &neighbours[node] {
                let distance = &mut distances[places[neighbour]];
                if *distance == u16::MAX {
                    *distance = next;
                    queue.push_back(neighbour);
                }
            }
        }
        distances
    };
    nodes.iter().map(from).collect()
}

/// Returns the plane that shows most of the distances: the two main axes of their double-centred squares, by power iteration.
/// The main axis is horizontal.
fn plane(distances: &[Vec<u16>]) -> Vec<Point> {
    let count = distances.len();
    let squares = |at: usize| {
        distances[at]
            .iter()
            .map(|&one| f64::from(one) * f64::from(one))
    };
    let means: Vec<f64> = (0..count)
        .map(|at| squares(at).sum::<f64>() / count as f64)
        .collect();
    let mean = means.iter().sum::<f64>() / count as f64;
    let times = |axis: &[f64]| -> Vec<f64> {
        let row = |at: usize| {
            let centred = squares(at)
                .zip(&means)
                .map(|(square, other)| square - means[at] - other + mean);
            centred
                .zip(axis)
                .map(|(centred, value)| -centred / 2.0 * value)
                .sum()
        };
        (0..count).map(row).collect()
    };
    let start = |seed: usize| (0..count).map(|at| unevenness(at * 2 + seed)).collect();
    let (mut main, mut other): (Vec<f64>, Vec<f64>) = (start(0), start(1));
    let mut lengths = [0.0; 2];
    for _ in 0..PLANE_ROUNDS {
        main = times(&main);
        other = times(&other);
        lengths[0] = normalize(&mut main);
        let along: f64 = main.iter().zip(&other).map(|(a, b)| a * b).sum();
        other
            .iter_mut()
            .zip(&main)
            .for_each(|(other, main)| *other -= along * main);
        lengths[1] = normalize(&mut other);
    }
    let points = main
        .iter()
        .zip(&other)
        .enumerate()
        .map(|(at, (x, y))| Point {
            // Nodes with equal distances from all others would stay in one place.
            x: x * lengths[0].sqrt() + 0.1 * unevenness(at),
            y: y * lengths[1].sqrt() + 0.1 * unevenness(at + count),
        });
    points.collect()
}

/// Scales a vector to length 1, unless it is 0. Returns its former length.
fn normalize(vector: &mut [f64]) -> f64 {
    let length = vector.iter().map(|value| value * value).sum::<f64>().sqrt();
    vector
        .iter_mut()
        .for_each(|value| *value /= length.max(f64::MIN_POSITIVE));
    length
}

/// Moves each node to the mean of its ideal positions relative to the other nodes: at the right distance, in the current
/// direction. Near nodes have a larger weight.
fn majorize(points: &mut [Point], distances: &[Vec<u16>]) {
    for at in 0..points.len() {
        let (mut sum, mut weights) = (Point::default(), 0.0);
        for (other, &distance) in distances[at]
            .iter()
            .enumerate()
            .filter(|(other, _)| *other != at)
        {
            let wanted = f64::from(distance);
            let weight = 1.0 / (wanted * wanted);
            let (dx, dy) = (
                points[at].x - points[other].x,
                points[at].y - points[other].y,
            );
            let stretch = wanted / (dx * dx + dy * dy).sqrt().max(1e-6);
            sum.x += weight * (points[other].x + dx * stretch);
            sum.y += weight * (points[other].y + dy * stretch);
            weights += weight;
        }
        points[at] = Point {
            x: sum.x / weights,
            y: sum.y / weights,
        };
    }
}

/// Rotates all points so that the drawing is wider than high.
fn level(points: &mut [Point]) {
    let count = points.len() as f64;
    let mean = |of: fn(&Point) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|point| point.x), mean(|point| point.y));
    let moment = |of: fn(f64, f64) -> f64| -> f64 {
        points
            .iter()
            .map(|point| of(point.x - x, point.y - y))
            .sum()
    };
    let slant = 2.0 * moment(|x, y| x * y);
    let angle = slant.atan2(moment(|x, y| x * x - y * y)) / 2.0;
    let (sin, cos) = angle.sin_cos();
    for point in points {
        *point = Point {
            x: cos * point.x + sin * point.y,
            y: cos * point.y - sin * point.x,
        };
    }
}

/// Enlarges everything if most nodes are too close to others, and then moves apart the nodes that still are.
fn clear(points: &mut [Point], rounds: usize) {
    let mut nearest: Vec<f64> = (0..points.len()).map(|at| nearest(points, at)).collect();
    nearest.sort_by(f64::total_cmp);
    // This suffices for all nodes in a circle.
    let factor = (CLEARANCE / nearest[points.len() / 2]).clamp(1.0, points.len() as f64);
    for point in points.iter_mut() {
        point.x *= factor;
        point.y *= factor;
    }
    for _ in 0..rounds.min(MAX_CLEARING_ROUNDS) {
        push(points);
    }
}

/// Moves nodes that are too close apart, each by half of the missing distance.
fn push(points: &mut [Point]) {
    for at in 1..points.len() {
        for other in 0..at {
            let (dx, dy) = (
                points[at].x - points[other].x,
                points[at].y - points[other].y,
            );
            let distance = (dx * dx + dy * dy).sqrt();
            if distance < CLEARANCE {
                let share = (CLEARANCE - distance) / 2.0 / distance.max(1e-6);
                points[at].x += share * dx;
                points[at].y += share * dy;
                points[other].x -= share * dx;
                points[other].y -= share * dy;
            }
        }
    }
}

/// Returns the distance to the nearest other node.
fn nearest(points: &[Point], at: usize) -> f64 {
    let others = points.iter().enumerate().filter(|(other, _)| *other != at);
    let distances = others.map(|(_, point)| {
        let (dx, dy) = (point.x - points[at].x, point.y - points[at].y);
        (dx * dx + dy * dy).sqrt()
    });
    distances.fold(f64::INFINITY, f64::min)
}

/// Moves all points so that the least coordinates are 0.
fn to_origin(points: &mut [Point]) {
    let least = |of: fn(&Point) -> f64| points.iter().map(of).fold(f64::INFINITY, f64::min);
    let (left, top) = (least(|point| point.x), least(|point| point.y));
    for point in points {
        point.x -= left;
        point.y -= top;
    }
}

/// Arranges parts in rows.
fn in_rows(count: usize, parts: &[Component]) -> Vec<Point> {
    let sizes: Vec<Point> = parts.iter().map(Component::size).collect();
    let area: f64 = sizes
        .iter()
        .map(|size| (size.x + GAP) * (size.y + GAP))
        .sum();
    let widest = sizes.iter().map(|size| size.x).fold(0.0, f64::max);
    let width = widest.max((area * ASPECT).sqrt() - GAP);
    let mut points = vec![Point::default(); count];
    let (mut corner, mut height) = (Point::default(), 0.0_f64);
    for (part, size) in parts.iter().zip(&sizes) {
        if corner.x > 0.0 && corner.x + size.x > width {
            corner = Point {
                x: 0.0,
                y: corner.y + height + GAP,
            };
            height = 0.0;
        }
        for (&node, point) in part.nodes.iter().zip(&part.points) {
            points[node] = Point {
                x: corner.x + point.x,
                y: corner.y + point.y,
            };
        }
        corner.x += size.x + GAP;
        height = height.max(size.y);
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distance(points: &[Point], a: usize, b: usize) -> f64 {
        (points[a].x - points[b].x).hypot(points[a].y - points[b].y)
    }

    fn ring(count: usize) -> Vec<[usize; 2]> {
        (0..count).map(|node| [node, (node + 1) % count]).collect()
    }

    #[test]
    fn graphs_of_no_or_one_node_have_positions() {
        assert_eq!(place(0, &[]), []);
        assert_eq!(place(1, &[[0, 0]]), [Point::default()]);
    }

    #[test]
    fn a_ring_is_round() {
        let points = place(12, &ring(12));
        let across = (0..6).map(|node| distance(&points, node, node + 6));
        let [least, most] = [f64::min, f64::max].map(|pick| across.clone().reduce(pick).unwrap());
        assert!(most < 1.1 * least, "{least} to {most}: {points:?}");
        for [a, b] in ring(12) {
            let share = distance(&points, a, b) / least;
            assert!((0.2..0.35).contains(&share), "{share}: {points:?}");
        }
    }

    #[test]
    fn a_line_is_straight() {
        let edges: Vec<_> = (1..10).map(|node| [node - 1, node]).collect();
        let points = place(10, &edges);
        assert!(distance(&points, 0, 9) > 8.5, "{points:?}");
        let height = points.iter().map(|point| point.y).fold(0.0, f64::max);
        let width = points.iter().map(|point| point.x).fold(0.0, f64::max);
        assert!(height < width, "{points:?}");
    }

    #[test]
    fn leaves_of_a_star_are_apart() {
        for leaves in [3, 50, 400] {
            let edges: Vec<_> = (1..=leaves).map(|leaf| [0, leaf]).collect();
            let points = place(leaves + 1, &edges);
            let near = (0..=leaves).filter(|&at| nearest(&points, at) < 0.9 * CLEARANCE);
            assert!(near.count() <= leaves / 20, "{leaves}");
        }
    }

    #[test]
    fn parts_do_not_overlap_and_the_largest_is_first() {
        // A single node, a ring, and pairs.
        let mut edges: Vec<_> = ring(8)
            .iter()
            .map(|edge| edge.map(|node| node + 1))
            .collect();
        edges.extend((9..29).step_by(2).map(|node| [node, node + 1]));
        let points = place(29, &edges);
        let boxes = |nodes: std::ops::Range<usize>| {
            let of = |of: fn(&Point) -> f64| {
                let values = points[nodes.clone()].iter().map(of);
                values.fold((f64::INFINITY, 0.0_f64), |(least, most), value| {
                    (least.min(value), most.max(value))
                })
            };
            (of(|point| point.x), of(|point| point.y))
        };
        let mut parts = vec![boxes(1..9), boxes(0..1)];
        parts.extend((9..29).step_by(2).map(|node| boxes(node..node + 2)));
        assert_eq!((parts[0].0.0, parts[0].1.0), (0.0, 0.0));
        for (at, (x, y)) in parts.iter().enumerate() {
            for (other_x, other_y) in &parts[..at] {
                let beside = x.0 > other_x.1 + 0.9 || other_x.0 > x.1 + 0.9;
                let below = y.0 > other_y.1 + 0.9 || other_y.0 > y.1 + 0.9;
                assert!(beside || below, "{parts:?}");
            }
        }
    }

    #[test]
    fn large_graphs_are_trees_with_space_for_each_node() {
        let count = 5_000;
        let edges: Vec<_> = (1..count).map(|node| [(node - 1) / 3, node]).collect();
        let points = place(count, &edges);
        assert!(nearest(&points, 0) >= 1.0);
        let far = points.iter().map(|point| point.x).fold(0.0, f64::max);
        assert!(far > 100.0 && far < 10_000.0, "{far}");
    }
}
