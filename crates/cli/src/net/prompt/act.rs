//! Commands that act on a network.

use super::names::Names;
use super::{Done, Prompt};
use crate::say::say;
use std::time::Duration;
use urtica_net::{HostId, LinkId, Net, NetError, PingAllReport};

/// The interval between the requests of a ping.
const INTERVAL: Duration = Duration::from_secs(1);

/// The size of a reply in bytes, as `ping` counts it: ICMP only.
const REPLY_BYTES: usize = 64;

/// The size of a stream, and its time limit.
const STREAM_BYTES: u64 = 64 << 20;
const STREAM: Duration = Duration::from_secs(5);

impl Prompt<'_> {
    /// Pings each host from each other.
    pub(super) fn ping_all(&mut self) -> Result<Done, NetError> {
        say("*** Ping: testing ping reachability");
        let report = self.net.ping_all()?;
        self.tell_pings(&report);
        say(format!("*** {report}"));
        if let Some(hint) = self.hint.filter(|_| !report.failed.is_empty()) {
            say(hint);
        }
        Ok(Done::well_if(report.is_complete()))
    }

    /// Pings between the first two hosts, in both directions.
    pub(super) fn ping_pair(&mut self) -> Result<Done, NetError> {
        let hosts: Vec<HostId> = self.net.hosts().take(2).collect();
        let [a, b] = hosts[..] else {
            say("there are fewer than two hosts");
            return Ok(Done::Badly);
        };
        let report = self.net.ping_pairs(&[(a, b), (b, a)])?;
        say(format!("*** {report}"));
        Ok(Done::well_if(report.is_complete()))
    }

    /// Pings one host from another, with the output of `ping`. Succeeds if any reply arrives.
    pub(super) fn ping(&mut self, from: &str, to: &str, count: u32) -> Result<Done, NetError> {
        let pair = (self.net.host(from)?, self.net.host(to)?);
        let (_, address) = self.net.host_addresses(pair.1)?;
        say(format!("PING {to} ({address})"));
        let mut pings = Pings::default();
        let ended = self.ping_again(pair, count, &address.to_string(), &mut pings);
        say(format!("--- {to} ping statistics ---"));
        say(pings.summary());
        ended.map(|()| Done::well_if(!pings.rtts.is_empty()))
    }

    fn ping_again(
        &mut self,
        pair: (HostId, HostId),
        count: u32,
        address: &str,
        pings: &mut Pings,
    ) -> Result<(), NetError> {
        for sequence in 1..=count {
            let next = self.net.now() + INTERVAL;
            pings.sent = sequence;
            let report = self.net.ping_pairs(&[pair])?;
            if report.is_interrupted {
                return Err(NetError::Interrupted(self.net.now()));
            }
            if report.is_complete() {
                let ms = report.rtt_max.as_secs_f64() * 1e3;
                pings.rtts.push(ms);
                say(format!(
                    "{REPLY_BYTES} bytes from {address}: icmp_seq={sequence} time={ms:.3} ms"
                ));
            } else {
                say(format!("no answer from {address}: icmp_seq={sequence}"));
            }
            if sequence < count {
                self.net.run_to(next.max(self.net.now()));
            }
        }
        Ok(())
    }

    /// Sends a stream from one host to another, and prints its rate.
    pub(super) fn iperf(&mut self, ends: Option<(String, String)>) -> Result<Done, NetError> {
        let hosts = &self.names.hosts;
        let ends = ends.or_else(|| Some((hosts.first()?.0.clone(), hosts.last()?.0.clone())));
        let Some((from, to)) = ends.filter(|(from, to)| from != to) else {
            say("there are no two hosts to send a stream; expected: iperf [HOST HOST]");
            return Ok(Done::Badly);
        };
        say(format!(
            "*** Iperf: testing TCP bandwidth between {from} and {to}"
        ));
        let (sender, receiver) = (self.net.host(&from)?, self.net.host(&to)?);
        let stream = self.net.start_stream(sender, receiver, STREAM_BYTES)?;
        let started = self.net.now();
        let is_done = |net: &mut Net| net.flow_report(stream).is_ok_and(|report| report.is_done);
        self.net.run_until(is_done, STREAM);
        let report = self.net.flow_report(stream)?;
        self.net.stop_flows();
        let took = self.net.now().saturating_sub(started);
        let took = report.took.unwrap_or(took);
        say(format!(
            "*** Results: {}, {} packets retransmitted",
            rate(report.received_bytes, took),
            report.sent_again
        ));
        Ok(Done::well_if(report.received_bytes > 0))
    }

    /// Cuts or repairs all links between two nodes.
    pub(super) fn link(&mut self, a: &str, b: &str, is_up: bool) -> Result<Done, NetError> {
        let links: Vec<LinkId> = between(&self.names, self.net.links(), a, b).collect();
        for &link in &links {
            match is_up {
                true => self.net.repair(link)?,
                false => self.net.cut(link)?,
            }
        }
        if links.is_empty() {
            say(NetError::NoLink(a.to_owned(), b.to_owned()));
        }
        Ok(Done::well_if(!links.is_empty()))
    }

    /// Switches a switch on or off.
    pub(super) fn switch(&mut self, name: &str, is_on: bool) -> Result<(), NetError> {
        let switch = self.net.switch(name)?;
        match is_on {
            true => self.net.start_switch(switch),
            false => self.net.stop_switch(switch),
        }
    }

    /// Lets time pass.
    pub(super) fn wait(&mut self, time: Duration) -> Result<Done, NetError> {
        self.net.run_for(time);
        Ok(Done::well_if(!self.net.is_interrupted()))
    }

    /// Prints a line per host: the hosts that it reached, and an X for each other host.
    fn tell_pings(&self, report: &PingAllReport) {
        let mut failed = report.failed.iter().copied().peekable();
        for (from, (name, _)) in self.net.hosts().zip(&self.names.hosts) {
            let mut line = format!("{name} ->");
            for (to, (other, _)) in self.net.hosts().zip(&self.names.hosts) {
                if from != to {
                    let is_lost = failed.next_if_eq(&(from, to)).is_some();
                    line.push(' ');
                    line.push_str(if is_lost { "X" } else { other });
                }
            }
            say(line);
        }
    }
}

/// The requests of one ping, and their results.
#[derive(Default)]
struct Pings {
    sent: u32,
    /// The round-trip times in milliseconds.
    rtts: Vec<f64>,
}

impl Pings {
    /// Formats the summary like `ping`.
    fn summary(&self) -> String {
        let received = self.rtts.len();
        let lost = 100 * (self.sent as usize - received) / self.sent.max(1) as usize;
        let mut text = format!(
            "{} packets transmitted, {received} received, {lost}% packet loss",
            self.sent
        );
        if received > 0 {
            let min = self.rtts.iter().copied().fold(f64::INFINITY, f64::min);
            let max = self.rtts.iter().copied().fold(0.0, f64::max);
            let mean = self.rtts.iter().sum::<f64>() / received as f64;
            text += &format!("\nrtt min/avg/max = {min:.3}/{mean:.3}/{max:.3} ms");
        }
        text
    }
}

/// Returns the links between two nodes.
fn between<'a>(
    names: &'a Names,
    links: impl Iterator<Item = LinkId> + 'a,
    a: &'a str,
    b: &'a str,
) -> impl Iterator<Item = LinkId> + 'a {
    let ends = names.links.iter().zip(links);
    ends.filter(move |((one, other), _)| {
        (one.as_str(), other.as_str()) == (a, b) || (one.as_str(), other.as_str()) == (b, a)
    })
    .map(|(_, link)| link)
}

/// Formats a rate like iperf.
fn rate(bytes: u64, time: Duration) -> String {
    let bits = bytes as f64 * 8.0 / time.as_secs_f64().max(f64::MIN_POSITIVE);
    let (bits, unit) = match bits {
        _ if bits >= 1e9 => (bits / 1e9, "Gbits/sec"),
        _ if bits >= 1e6 => (bits / 1e6, "Mbits/sec"),
        _ => (bits / 1e3, "Kbits/sec"),
    };
    format!("{bits:.3} {unit}")
}
