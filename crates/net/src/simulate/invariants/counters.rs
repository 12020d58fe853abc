//! Counters add up.
//!
//! A frame sent into a link either arrives or is lost. After recovery, a switch's ports count the frames of their links.

use super::{Faced, Invariant};
use crate::names::Names;
use crate::{End, LinkCounters, LinkId, Net};
use std::collections::BTreeMap;
use urtica_wire::{PortNo, PortStats};

/// Compares the switches' counters with the links'.
#[derive(Default)]
pub(super) struct Counters {
    /// The counters at the end of the recovery.
    before: BTreeMap<(End, LinkId), Carried>,
}

/// Counts of a port's traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Carried {
    by_link: DirectionCounters,
    by_port: DirectionCounters,
}

/// Frames and bytes sent, and frames received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct DirectionCounters {
    sent: u64,
    sent_bytes: u64,
    received: u64,
}

impl DirectionCounters {
    fn since(self, before: Self) -> Self {
        Self {
            sent: self.sent.wrapping_sub(before.sent),
            sent_bytes: self.sent_bytes.wrapping_sub(before.sent_bytes),
            received: self.received.wrapping_sub(before.received),
        }
    }
}

impl Invariant for Counters {
    fn sentence(&self) -> &'static str {
        "counters add up"
    }

    fn after_recovery(&mut self, net: &mut Net, _faced: &Faced) -> Result<(), String> {
        self.before = carried(net)?;
        Ok(())
    }

    fn when_quiescent(&mut self, net: &mut Net) -> Result<(), String> {
        check_links(net)?;
        let names = Names::of(net);
        for ((end, link), now) in carried(net)? {
            let Some(before) = self.before.get(&(end, link)) else {
                continue;
            };
            let (link, port) = (
                now.by_link.since(before.by_link),
                now.by_port.since(before.by_port),
            );
            if link != port {
                return Err(format!(
                    "{} counts {port:?}, and its link {link:?}",
                    names.end(end)
                ));
            }
        }
        Ok(())
    }
}

fn check_links(net: &Net) -> Result<(), String> {
    let names = Names::of(net);
    for link in net.links() {
        let links = net.link_counters(link).map_err(|error| error.to_string())?;
        for LinkCounters {
            sent,
            arrived,
            lost_drawn,
            lost_cut,
            lost_queue_full,
            lost_switch_busy,
            ..
        } in links
        {
            // Frames that a busy switch does not accept have arrived before, and are counted as such.
            let accounted = arrived + lost_drawn + lost_cut + lost_queue_full;
            if sent != accounted || lost_switch_busy > arrived {
                return Err(format!(
                    "{} was sent {sent} frames, and {accounted} arrived or were lost",
                    names.link(link)
                ));
            }
        }
    }
    Ok(())
}

/// Returns the current counters of each used port.
fn carried(net: &mut Net) -> Result<BTreeMap<(End, LinkId), Carried>, String> {
    let mut all = BTreeMap::new();
    for link in net.links() {
        let told = |error: crate::NetError| error.to_string();
        let (ends, links) = (
            net.ends(link).map_err(told)?,
            net.link_counters(link).map_err(told)?,
        );
        for (place, end) in ends.into_iter().enumerate() {
            let End::Switch(switch, port_no) = end else {
                continue;
            };
            // These frames have left the link, but the port has not counted them yet.
            let waiting = net.waiting_at(switch, port_no) as u64;
            let now = net.now();
            let Some(switch) = net.switch_mut(switch).map_err(told)? else {
                continue;
            };
            let stats = switch.port_stats(now);
            if let Some(by_port) = stats_of(&stats, port_no) {
                let (out, back) = (links[place], links[1 - place]);
                let by_link = DirectionCounters {
                    sent: out.sent,
                    sent_bytes: out.sent_bytes,
                    received: back.arrived - back.lost_switch_busy - waiting,
                };
                all.insert((end, link), Carried { by_link, by_port });
            }
        }
    }
    Ok(all)
}

fn stats_of(stats: &[PortStats], port_no: PortNo) -> Option<DirectionCounters> {
    let stats = stats.iter().find(|stats| stats.port_no == port_no)?;
    Some(DirectionCounters {
        sent: stats.tx_packets,
        sent_bytes: stats.tx_bytes,
        received: stats.rx_packets,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NetConfig;
    use std::time::Duration;
    use urtica_switch::FailMode;
    use urtica_topology::spec::TopologySpec;

    fn net() -> Net {
        let plan = "linear,2".parse::<TopologySpec>().unwrap().plan().unwrap();
        let mut config = NetConfig::default();
        config.switch.fail_mode = FailMode::Standalone;
        Net::new(&plan, config).unwrap()
    }

    #[test]
    fn links_and_ports_count_the_same_traffic() {
        let (mut net, mut counters) = (net(), Counters::default());
        counters
            .after_recovery(&mut net, &Faced::default())
            .unwrap();
        assert!(net.ping_all().unwrap().is_complete());
        net.run_for(Duration::from_secs(1));
        counters.when_quiescent(&mut net).unwrap();
    }

    #[test]
    fn a_frame_that_waits_for_its_switch_is_not_counted() {
        let (mut net, mut counters) = (net(), Counters::default());
        let [h1, h2] = ["h1", "h2"].map(|name| net.host(name).unwrap());
        let (s1, link) = (net.switch("s1").unwrap(), net.link("h1", "s1").unwrap());
        net.start_ping(h1, h2, 1).unwrap();
        let port_no = match net.ends(link).unwrap() {
            [End::Switch(_, port_no), _] | [_, End::Switch(_, port_no)] => port_no,
            ends => panic!("{ends:?}"),
        };
        while net.waiting_at(s1, port_no) == 0 {
            net.run_for(Duration::from_nanos(100));
        }
        counters
            .after_recovery(&mut net, &Faced::default())
            .unwrap();
        net.run_for(Duration::from_secs(1));
        counters.when_quiescent(&mut net).unwrap();
    }

    #[test]
    fn finds_a_frame_that_no_link_has_carried() {
        let (mut net, mut counters) = (net(), Counters::default());
        counters
            .after_recovery(&mut net, &Faced::default())
            .unwrap();
        let switch = net.switch("s1").unwrap();
        net.deliver_to_switch(switch, 0, vec![0; 60]).unwrap();
        net.run_for(Duration::from_secs(1));
        let error = counters.when_quiescent(&mut net).unwrap_err();
        assert!(
            error.contains("received: 1") && error.contains("received: 0"),
            "{error}"
        );
    }
}
