//! Next hops between all pairs of switches of a fat tree.

use super::{Effort, Reading, plan, timed};
use std::hint::black_box;
use std::sync::Arc;
use urtica_bench::Error;
use urtica_topology::NextHops;

/// Measures from scratch, and after a link went down in both directions.
pub fn measure(effort: Effort) -> Result<Vec<Reading>, Error> {
    let k = effort.either(16, 4);
    let whole = Arc::new(plan(&format!("fattree,{k}"))?.topology());
    let switches = whole.switches().len();
    let link = whole.directed_links()[whole.directed_links().len() / 2];
    let cut = Arc::new(whole.without_link(link).without_link(link.reversed()));
    let (full, next_hops) = timed(|| NextHops::new(Arc::clone(&whole)));
    let (change, after) = timed(|| next_hops.updated(cut));
    black_box(after);
    let network = format!("fat tree of {k}-port switches ({switches} switches)");
    Ok(vec![
        Reading::new(
            "next-hops-full",
            format!("all-pairs next hops, {network}"),
            "ms",
            full.as_secs_f64() * 1e3,
        ),
        Reading::new(
            "next-hops-change",
            format!("the same after a link was cut, {network}"),
            "ms",
            change.as_secs_f64() * 1e3,
        ),
    ])
}
