//! The core of shortest path routing (McNettle section 4.3): the routing tables of all switches, computed in parallel.

use urtica::topology::NextHops;
use urtica::topology::spec::TopologySpec;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let plan = "torus,10,10".parse::<TopologySpec>()?.plan()?;
    let tables = NextHops::new(plan.topology().into());
    let (from, to) = (plan.hosts[0].attached, plan.hosts[55].attached);
    println!("{:?}", tables.path(from, to, 0));
    Ok(())
}
