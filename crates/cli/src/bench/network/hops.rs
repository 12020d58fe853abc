//! Measures the hops per second of a simulated network on one core.

use super::{Effort, Reading, failed, routed, timed};
use std::time::Duration;
use urtica_bench::Error;
use urtica_net::{Datagrams, Net, NetError};

/// The interval of a host's datagrams; about five wait for a switch at any time.
const INTERVAL: Duration = Duration::from_micros(2);

/// The time after which all entries that the flows need are installed.
const WARM_UP: Duration = Duration::from_millis(50);

/// Measures a fat tree in which every host sends to a distant one, by entries of the routing program. A hop is one frame over
/// one link and through the switch at its end.
pub fn measure(effort: Effort) -> Result<Vec<Reading>, Error> {
    let mut net = routed("fattree,4")?;
    let time = Duration::from_millis(effort.either(100, 1));
    let rate = rate(&mut net, time).map_err(failed)?;
    let what = "packet hops in a simulated network, fat tree of 4-port switches, one core";
    Ok(vec![Reading::new("hops", what, "/s", rate)])
}

fn rate(net: &mut Net, time: Duration) -> Result<f64, NetError> {
    let hosts: Vec<_> = net.hosts().collect();
    let far = hosts.iter().cycle().skip(hosts.len() / 2);
    for (&from, &to) in hosts.iter().zip(far) {
        let flow = Datagrams {
            count: u64::MAX,
            payload_bytes: 64,
            interval: INTERVAL,
        };
        net.start_datagrams(from, to, flow)?;
    }
    net.run_for(WARM_UP);
    let before = hops(net)?;
    let (taken, ()) = timed(|| net.run_for(time));
    Ok((hops(net)? - before) as f64 / taken.as_secs_f64())
}

fn hops(net: &Net) -> Result<u64, NetError> {
    let counters = net.links().map(|link| net.link_counters(link));
    let counters = counters.collect::<Result<Vec<_>, _>>()?;
    Ok(counters.iter().flatten().map(|link| link.arrived).sum())
}
