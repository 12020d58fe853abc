//! The effects of requests on a network.

use std::time::Duration;
use urtica_net::{Datagrams, End, HostId, Net, NetError, PingAllReport};
use urtica_northbound::{
    Emulated, EmulatedHost, EmulatedLink, EmulatedNetwork, EmulatedSwitch, EmulatedTraffic,
    EmulationError, PingResults, UnansweredPing,
};
use urtica_wire::DatapathId;

/// The maximum number of hosts for a round of all pings; more would block the network's other requests for long.
const MAX_HOSTS_OF_ALL_PINGS: usize = 64;

/// The maximum number of flows that requests have started.
const MAX_FLOWS: usize = 16;

/// The payload of a packet of traffic, which makes a frame of 1,250 bytes, or 10 kbit.
const PAYLOAD_BYTES: usize = 1_208;
const FRAME_BITS: u32 = 10_000;

/// A network, and the end of the traffic that requests have started.
pub(super) struct Network<'n> {
    pub net: &'n mut Net,
    pub traffic_ends: &'n mut Vec<Duration>,
}

impl EmulatedNetwork for Network<'_> {
    fn describe(&mut self) -> Result<Emulated, EmulationError> {
        self.parts().map_err(told)
    }

    fn set_link(&mut self, number: usize, up: bool) -> Result<(), EmulationError> {
        let count = self.net.links().len();
        let link = self.net.links().nth(number).ok_or_else(|| {
            let error = format!(
                "there is no link {number}: expected one of the {count} that GET /api/v1/emulation lists, from 0"
            );
            EmulationError::Unknown(error)
        })?;
        match up {
            true => self.net.repair(link).map_err(told),
            false => self.net.cut(link).map_err(told),
        }
    }

    fn set_switch(&mut self, id: DatapathId, runs: bool) -> Result<(), EmulationError> {
        let is_it = |switch: &_| self.net.datapath_id(*switch).is_ok_and(|its| its == id);
        let switch = self.net.switches().find(is_it).ok_or_else(|| {
            let error = format!(
                "there is no switch {id} in the network: expected one that GET /api/v1/emulation lists"
            );
            EmulationError::Unknown(error)
        })?;
        match runs {
            true => self.net.start_switch(switch).map_err(told),
            false => self.net.stop_switch(switch).map_err(told),
        }
    }

    fn ping(&mut self, from: &str, to: &str) -> Result<PingResults, EmulationError> {
        let pair = self.pair(from, to)?;
        let report = self.net.ping_pairs(&[pair]).map_err(told)?;
        self.results(&report)
    }

    fn ping_all(&mut self) -> Result<PingResults, EmulationError> {
        let hosts = self.net.hosts().len();
        if hosts > MAX_HOSTS_OF_ALL_PINGS {
            return Err(EmulationError::Refused(format!(
                "{hosts} hosts would take long to ping each other: expected at most {MAX_HOSTS_OF_ALL_PINGS}, or two that are named"
            )));
        }
        let report = self.net.ping_all().map_err(told)?;
        self.results(&report)
    }

    fn start_traffic(&mut self, traffic: &EmulatedTraffic) -> Result<(), EmulationError> {
        let (from, to) = self.pair(&traffic.from, &traffic.to)?;
        let now = self.net.now();
        self.traffic_ends.retain(|&end| end > now);
        if self.traffic_ends.is_empty() {
            // Removes flows that have ended.
            self.net.stop_flows();
        }
        if self.traffic_ends.len() == MAX_FLOWS {
            return Err(EmulationError::Refused(format!(
                "{MAX_FLOWS} flows are under way: expected to wait until one has ended"
            )));
        }
        let per_second = traffic.mbit_per_s.max(1) * (1_000_000 / FRAME_BITS);
        let flow = Datagrams {
            count: traffic.time.as_secs() * u64::from(per_second),
            payload_bytes: PAYLOAD_BYTES,
            interval: Duration::from_secs(1) / per_second,
        };
        self.net.start_datagrams(from, to, flow).map_err(told)?;
        self.traffic_ends.push(now + traffic.time);
        Ok(())
    }
}

impl Network<'_> {
    fn parts(&self) -> Result<Emulated, NetError> {
        let net = &*self.net;
        let mut parts = Emulated::default();
        for switch in net.switches() {
            parts.switches.push(EmulatedSwitch {
                name: net.switch_name(switch)?.to_owned(),
                id: net.datapath_id(switch)?.to_string(),
                running: net.is_on(switch)?,
            });
        }
        for host in net.hosts() {
            let (mac, ipv4) = net.host_addresses(host)?;
            parts.hosts.push(EmulatedHost {
                name: net.host_name(host)?.to_owned(),
                mac: mac.to_string(),
                ipv4: ipv4.to_string(),
            });
        }
        for link in net.links() {
            let [a, b] = net.ends(link)?;
            parts.links.push(EmulatedLink {
                a: self.end(a)?,
                b: self.end(b)?,
                up: !net.is_cut(link)?,
            });
        }
        Ok(parts)
    }

    fn end(&self, end: End) -> Result<String, NetError> {
        Ok(match end {
            End::Switch(switch, port) => format!("{}:{port}", self.net.datapath_id(switch)?),
            End::Host(host) => self.net.host_name(host)?.to_owned(),
        })
    }

    /// Returns two different hosts, found by name.
    fn pair(&self, from: &str, to: &str) -> Result<(HostId, HostId), EmulationError> {
        let pair = (
            self.net.host(from).map_err(told)?,
            self.net.host(to).map_err(told)?,
        );
        match pair.0 == pair.1 {
            true => Err(EmulationError::Refused(format!(
                "a host cannot send to itself through the network: expected another host than {from}"
            ))),
            false => Ok(pair),
        }
    }

    fn results(&self, report: &PingAllReport) -> Result<PingResults, EmulationError> {
        let name = |host| self.net.host_name(host).map(str::to_owned).map_err(told);
        let failed = report.failed.iter().map(|&(from, to)| {
            Ok(UnansweredPing {
                from: name(from)?,
                to: name(to)?,
            })
        });
        let failed: Vec<_> = failed.collect::<Result<_, EmulationError>>()?;
        let answered = report.sent - failed.len();
        Ok(PingResults {
            sent: report.sent,
            answered,
            longest_ms: (answered > 0).then_some(report.rtt_max.as_secs_f64() * 1e3),
            failed,
        })
    }
}

/// Converts an error of the network for a client.
fn told(error: NetError) -> EmulationError {
    match error {
        NetError::NoSuchName { .. } => EmulationError::Unknown(error.to_string()),
        _ => EmulationError::Refused(error.to_string()),
    }
}
