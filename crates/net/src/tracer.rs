//! Events of a network as text, one line per event.
//!
//! ```text
//!     0.052310 h1         -> s1:1       ARP who has 10.0.0.2? tell 10.0.0.1
//!     0.052310 s1:1       <- h1         ARP who has 10.0.0.2? tell 10.0.0.1
//!     0.053102 s1         -> controller OFPT_PACKET_IN (OF1.3) (xid=0x0): ...
//! ```

use crate::Net;
use crate::names::Names;
use crate::watch::{Event, Loss, Violation, Watcher};
use std::io::Write;
use std::time::Duration;
use urtica_wire::packet::{Headers, arp, ether_type, ip_proto};
use urtica_wire::{Message, split_frame, text};

/// Writes a line for each event.
pub struct Tracer<W> {
    out: W,
    names: Names,
}

impl<W: Write> Tracer<W> {
    /// Creates a tracer for this network. Write errors are ignored.
    pub fn new(net: &Net, out: W) -> Self {
        Self {
            out,
            names: Names::of(net),
        }
    }

    /// Returns the writer.
    pub fn get_ref(&self) -> &W {
        &self.out
    }
}

impl<W: Write> Watcher for Tracer<W> {
    fn see(&mut self, now: Duration, event: &Event<'_>) -> Result<(), Violation> {
        if let Event::Moved(link, end) = *event {
            self.names.move_host(link, end);
        }
        let line = line(&self.names, event);
        let _ = writeln!(self.out, "{:12.6} {line}", now.as_secs_f64());
        Ok(())
    }
}

/// Formats an event in a line.
fn line(names: &Names, event: &Event<'_>) -> String {
    match *event {
        Event::Sent(link, end, frame) => {
            let [from, to] = [end, names.other(link, end)].map(|end| names.end(end));
            format!("{from:10} -> {to:10} {}", summary(frame))
        }
        Event::Arrived(link, end, frame) => {
            let [to, from] = [end, names.other(link, end)].map(|end| names.end(end));
            format!("{to:10} <- {from:10} {}", summary(frame))
        }
        Event::Lost(link, loss, frame) => {
            format!(
                "{} lost, {}: {}",
                names.link(link),
                cause(loss),
                summary(frame)
            )
        }
        Event::Cut(link) => format!("{} is cut", names.link(link)),
        Event::Repaired(link) => format!("{} is repaired", names.link(link)),
        Event::Moved(link, _) => format!("{} is connected", names.link(link)),
        Event::SwitchStopped(switch) => format!("{} is switched off", names.switch(switch)),
        Event::SwitchStarted(switch) => format!("{} is switched on", names.switch(switch)),
        Event::ControllerStopped => "the controller is stopped".to_owned(),
        Event::ControllerStarted => "a controller is started".to_owned(),
        Event::Connected(switch) => {
            format!("{} connects to the controller", names.switch(switch))
        }
        Event::Disconnected(switch, reason) => {
            format!(
                "{} is disconnected from the controller: {reason}",
                names.switch(switch)
            )
        }
        Event::ToSwitch(switch, bytes) => format!(
            "controller -> {:10} {}",
            names.switch(switch),
            messages(bytes)
        ),
        Event::ToController(switch, bytes) => {
            format!(
                "{:10} -> controller {}",
                names.switch(switch),
                messages(bytes)
            )
        }
    }
}

fn cause(loss: Loss) -> &'static str {
    match loss {
        Loss::Drawn => "by chance",
        Loss::Cut => "no link",
        Loss::QueueFull => "queue full",
        Loss::SwitchBusy => "switch busy",
    }
}

/// Summarises a frame in a few words.
fn summary(frame: &[u8]) -> String {
    let headers = Headers::parse(frame);
    if let Some(arp) = headers.arp {
        return match arp.op {
            arp::REQUEST => format!("ARP who has {}? tell {}", arp.tpa, arp.spa),
            _ => format!("ARP {} is at {}", arp.spa, arp.sha),
        };
    }
    match (headers.ip_src, headers.ip_dst) {
        (Some(src), Some(dst)) => format!("{src} > {dst} {}", upper(&headers)),
        _ => match headers.eth_type {
            Some(ether_type::LLDP) => "LLDP".to_owned(),
            Some(eth_type) => format!("type {eth_type:#06x}, {} bytes", frame.len()),
            None => format!("{} bytes", frame.len()),
        },
    }
}

fn upper(headers: &Headers<'_>) -> String {
    let ports = headers.src_port.zip(headers.dst_port);
    let name = match headers.ip_proto {
        Some(ip_proto::TCP) => "TCP",
        Some(ip_proto::UDP) => "UDP",
        Some(ip_proto::ICMPV4) => "ICMP",
        Some(ip_proto::ICMPV6) => "ICMPv6",
        _ => "IP",
    };
    match (ports, headers.icmp_type) {
        (Some((src, dst)), _) => format!("{name} {src} > {dst}"),
        (None, Some(0)) => "ICMP echo reply".to_owned(),
        (None, Some(8)) => "ICMP echo request".to_owned(),
        (None, Some(icmp_type)) => format!("{name} type {icmp_type}"),
        (None, None) => name.to_owned(),
    }
}

/// Formats the complete messages in these bytes, as `ovs-ofctl` does.
fn messages(bytes: &[u8]) -> String {
    let mut rest = bytes;
    let mut told = Vec::new();
    while let Ok(Some((frame, after))) = split_frame(rest) {
        told.push(match Message::decode(frame) {
            Ok((header, message)) => text::message(&header, &message).to_string(),
            Err(error) => format!("no message: {error}"),
        });
        rest = after;
    }
    if !rest.is_empty() {
        told.push(format!("{} bytes of an incomplete message", rest.len()));
    }
    told.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{End, HostId, LinkId, NetConfig, SwitchId};
    use urtica_topology::spec::TopologySpec;
    use urtica_wire::packet::{Arp, Ethernet};
    use urtica_wire::{MacAddr, PortNo};

    #[test]
    fn events_are_lines_with_names() {
        let plan = "linear,2".parse::<TopologySpec>().unwrap().plan().unwrap();
        let net = Net::new(&plan, NetConfig::default()).unwrap();
        let names = Names::of(&net);
        let mac = MacAddr::new([2, 0, 0, 0, 0, 1]);
        let mut frame = Vec::new();
        let header = Ethernet {
            dst: MacAddr::BROADCAST,
            src: mac,
            ether_type: ether_type::ARP,
        };
        header.write(&mut frame);
        let [one, two] = [[10, 0, 0, 1], [10, 0, 0, 2]].map(Into::into);
        Arp::request(mac, one, two).write(&mut frame);
        let (trunk, h1) = (LinkId(0), End::Host(HostId(0)));
        let echo = [4, 2, 0, 8, 0, 0, 0, 1];
        for (event, expected) in [
            (
                Event::Sent(LinkId(1), h1, &frame),
                "h1         -> s1:1       ARP who has 10.0.0.2? tell 10.0.0.1",
            ),
            (
                Event::Arrived(trunk, End::Switch(SwitchId(1), PortNo(2)), &frame[..20]),
                "s2:2       <- s1:2       type 0x0806, 20 bytes",
            ),
            (
                Event::Lost(trunk, Loss::Drawn, &frame[..3]),
                "s2:2 = s1:2 lost, by chance: 3 bytes",
            ),
            (Event::Cut(trunk), "s2:2 = s1:2 is cut"),
            (Event::Moved(LinkId(1), h1), "h1 = s1:1 is connected"),
            (Event::SwitchStopped(SwitchId(1)), "s2 is switched off"),
            (
                Event::Disconnected(SwitchId(0), "connection reset"),
                "s1 is disconnected from the controller: connection reset",
            ),
            (
                Event::ToController(SwitchId(0), &echo),
                "s1         -> controller OFPT_ECHO_REQUEST (OF1.3) (xid=0x1): 0 bytes of payload",
            ),
            (
                Event::ToSwitch(SwitchId(0), &echo[..5]),
                "controller -> s1         5 bytes of an incomplete message",
            ),
        ] {
            assert_eq!(line(&names, &event).trim_end(), expected);
        }
    }
}
