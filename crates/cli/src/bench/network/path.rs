//! A path between two hosts of a tree of depth 3 and fanout 3, as the in-kernel controller's paper has it (section V.B).

use super::{Effort, Reading, plan, timed};
use std::hint::black_box;
use urtica_bench::Error;
use urtica_topology::shortest;

const SHAPE: &str = "tree,depth=3,fanout=3";

/// Measures the mean over all pairs of hosts, with a new search for each.
pub fn measure(effort: Effort) -> Result<Vec<Reading>, Error> {
    let plan = plan(SHAPE)?;
    let topology = plan.topology();
    let ports: Vec<_> = plan.hosts.iter().map(|host| host.attached).collect();
    let times = effort.either(1000, 1);
    let (taken, found) = timed(|| {
        let mut found = 0;
        for _ in 0..times {
            for &from in &ports {
                for &to in &ports {
                    found += usize::from(black_box(shortest::path(&topology, from, to)).is_some());
                }
            }
        }
        found
    });
    let searched = times * ports.len() * ports.len();
    if found != searched {
        return Err(Error::invalid(format!(
            "{} of {searched} paths were not found",
            searched - found
        )));
    }
    let us = taken.as_secs_f64() * 1e6 / searched as f64;
    let what = "a path between two hosts, tree of depth 3 and fanout 3 (13 switches)";
    Ok(vec![Reading::new("path-tree", what, "us", us)])
}
