//! Measures the interruption of traffic after a link on its path is cut, under the routing program.

use super::{Effort, Reading, failed, routed};
use std::time::{Duration, Instant};
use urtica_bench::Error;
use urtica_net::{Datagrams, End, FlowId, LinkId, Net, NetError};

/// The interval of the flow's datagrams, and so the resolution of the figure.
const INTERVAL: Duration = Duration::from_micros(50);

/// The maximum duration of a repair.
const BOUND: Duration = Duration::from_secs(5);

/// Measures on a torus with a host at each switch, from the cut to the first datagram that arrives again.
///
/// The result is the sum of the network's time and ours: while the network waits, our clock stands still, and while we
/// compute, its clock does. In a real network the two would overlap, so this is an upper bound.
pub fn measure(effort: Effort) -> Result<Vec<Reading>, Error> {
    let side = effort.either(10, 3);
    let mut net = routed(&format!("torus,{side},{side}"))?;
    let away = cut_and_wait(&mut net).map_err(failed)?;
    let Some(away) = away else {
        return Err(Error::invalid(format!(
            "no traffic was received within {BOUND:?} after a link was cut"
        )));
    };
    let what = format!(
        "link cut to traffic restored, routing, {} switches",
        side * side
    );
    Ok(vec![Reading::new(
        "repair-100",
        what,
        "ms",
        away.as_secs_f64() * 1e3,
    )])
}

fn cut_and_wait(net: &mut Net) -> Result<Option<Duration>, NetError> {
    let hosts: Vec<_> = net.hosts().collect();
    let (from, to) = (hosts[0], hosts[hosts.len() / 2]);
    net.ping(from, to)?;
    let flow = Datagrams {
        count: u64::MAX,
        payload_bytes: 64,
        interval: INTERVAL,
    };
    let flow = net.start_datagrams(from, to, flow)?;
    let Some(link) = busy_link(net)? else {
        return Ok(None);
    };
    let (cut, cut_at) = (Instant::now(), net.now());
    net.cut(link)?;
    // Packets beyond the cut still arrive.
    net.run_for(INTERVAL);
    let before = received(net, flow)?;
    while net.now() - cut_at < BOUND {
        net.run_for(INTERVAL);
        if received(net, flow)? > before {
            return Ok(Some(cut.elapsed() + (net.now() - cut_at)));
        }
    }
    Ok(None)
}

/// Returns the link between switches with the most traffic: the flow's, since no other host sends.
fn busy_link(net: &mut Net) -> Result<Option<LinkId>, NetError> {
    let links: Vec<_> = net.links().collect();
    let before = links
        .iter()
        .map(|&link| carried(net, link))
        .collect::<Result<Vec<_>, _>>()?;
    net.run_for(1000 * INTERVAL);
    let mut busiest = None;
    for (&link, before) in links.iter().zip(before) {
        let carried = carried(net, link)? - before;
        let is_between_switches = net
            .ends(link)?
            .iter()
            .all(|end| matches!(end, End::Switch(..)));
        if is_between_switches && busiest.is_none_or(|(most, _)| carried > most) {
            busiest = Some((carried, link));
        }
    }
    Ok(busiest
        .filter(|&(carried, _)| carried > 0)
        .map(|(_, link)| link))
}

fn carried(net: &Net, link: LinkId) -> Result<u64, NetError> {
    Ok(net
        .link_counters(link)?
        .iter()
        .map(|link| link.arrived)
        .sum())
}

fn received(net: &Net, flow: FlowId) -> Result<u64, NetError> {
    Ok(net.flow_report(flow)?.received)
}
