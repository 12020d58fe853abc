//! Conversion of a file's contents to a plan, with all checks.

use super::sections::{DirectedLink, Host, Loss, Sections, Switch};
use super::{Checked, Wrong, line_at, quantity};
use crate::PortId;
use crate::spec::builder::{default_ipv4, default_mac};
use crate::spec::plan::{
    HostPlan, LinkPlan, LinkProperties, MAX_HOSTS, MAX_LINKS, MAX_SWITCHES, Plan, SwitchPlan,
};
use std::collections::BTreeMap;
use std::fmt;
use std::net::Ipv4Addr;
use std::ops::Range;
use std::str::FromStr;
use std::time::Duration;
use toml::Spanned;
use urtica_wire::{DatapathId, MacAddr, PortNo};

/// The maximum length of a switch's or host's name, in bytes.
pub(super) const MAX_NAME_BYTES: usize = 64;

/// The maximum delay.
const MAX_DELAY: Duration = Duration::from_secs(3600);

/// The maximum bandwidth: 10 Tbit/s.
pub(super) const MAX_BANDWIDTH_BPS: u64 = 10_000_000_000_000;

/// The parts of a file that have been read.
pub(super) struct Reader<'a> {
    switches: BTreeMap<String, DatapathId>,
    names: Unique<'a, String>,
    datapath_ids: Unique<'a, DatapathId>,
    macs: Unique<'a, MacAddr>,
    addresses: Unique<'a, Ipv4Addr>,
    ports: Unique<'a, PortId>,
}

impl<'a> Reader<'a> {
    pub fn new(text: &'a str) -> Self {
        Self {
            switches: BTreeMap::new(),
            names: Unique::new(text, "name"),
            datapath_ids: Unique::new(text, "datapath id"),
            macs: Unique::new(text, "MAC address"),
            addresses: Unique::new(text, "IPv4 address"),
            ports: Unique::new(text, "port"),
        }
    }

    pub fn plan(mut self, sections: Sections) -> Checked<Plan> {
        check_count("switches", sections.switches.len(), MAX_SWITCHES)?;
        check_count("hosts", sections.hosts.len(), MAX_HOSTS)?;
        check_count("links", sections.links.len(), MAX_LINKS)?;
        let switches = sections.switches.into_iter();
        let switches = switches
            .map(|switch| self.switch(switch))
            .collect::<Checked<_>>()?;
        let hosts = (1..).zip(sections.hosts);
        let hosts = hosts
            .map(|(number, host)| self.host(number, host))
            .collect::<Checked<_>>()?;
        let links = sections.links.into_iter();
        let links = links.map(|link| self.link(link)).collect::<Checked<_>>()?;
        Ok(Plan {
            switches,
            hosts,
            links,
        })
    }

    fn switch(&mut self, switch: Switch) -> Checked<SwitchPlan> {
        let name = self.name(&switch.name)?;
        let (place, datapath_id) = match &switch.datapath_id {
            Some(given) => (given.span(), parsed(given.span(), &given.get_ref().0)?),
            None => (switch.name.span(), number_in(&switch.name)?),
        };
        self.datapath_ids.take(datapath_id, datapath_id, place)?;
        self.switches.insert(name.clone(), datapath_id);
        Ok(SwitchPlan { name, datapath_id })
    }

    fn host(&mut self, number: u32, host: Host) -> Checked<HostPlan> {
        let name = self.name(&host.name)?;
        let or_name = |field: &Option<Spanned<String>>| {
            field.as_ref().map_or(host.name.span(), Spanned::span)
        };
        let mac = read_or(&host.mac, default_mac(number))?;
        if mac.is_multicast() || mac == MacAddr::ZERO {
            let problem = format!("{mac} is not a host's address; expected a unicast address");
            return Err(Wrong::new(or_name(&host.mac), problem));
        }
        self.macs.take(mac, mac, or_name(&host.mac))?;
        let ipv4 = ipv4(&host.ipv4)?.unwrap_or(default_ipv4(number));
        self.addresses.take(ipv4, ipv4, or_name(&host.ipv4))?;
        let attached = self.port(&host.attached)?;
        Ok(HostPlan {
            name,
            mac,
            ipv4,
            attached,
        })
    }

    fn link(&mut self, link: DirectedLink) -> Checked<LinkPlan> {
        Ok(LinkPlan {
            a: self.port(&link.a)?,
            b: self.port(&link.b)?,
            properties: properties(&link)?,
        })
    }

    /// Checks the name of a switch or host, which must be unique.
    fn name(&mut self, name: &Spanned<String>) -> Checked<String> {
        let text = name.get_ref();
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if !(1..=MAX_NAME_BYTES).contains(&text.len()) || !text.chars().all(is_plain) {
            let problem = format!(
                "'{text}' is not a name; expected 1 to {MAX_NAME_BYTES} letters, digits, '-', '_' and '.'"
            );
            return Err(Wrong::new(name.span(), problem));
        }
        self.names.take(text.clone(), text, name.span())?;
        Ok(text.clone())
    }

    /// Checks a port, `SWITCH:NUMBER`, which must not be connected yet.
    fn port(&mut self, port: &Spanned<String>) -> Checked<PortId> {
        let text = port.get_ref();
        let wrong = |problem| Wrong::new(port.span(), problem);
        let split = text.split_once(':');
        let (name, number) = split.ok_or_else(|| {
            wrong(format!(
                "'{text}' is not a port; expected a switch's name, ':' and a number, such as s1:2"
            ))
        })?;
        let &switch = self.switches.get(name).ok_or_else(|| {
            wrong(format!(
                "there is no switch '{name}'; expected the name of one in [[switches]]"
            ))
        })?;
        let number = number.parse().ok().map(PortNo);
        let is_valid = |number: &PortNo| (PortNo(1)..=PortNo::MAX).contains(number);
        let port_no = number.filter(is_valid).ok_or_else(|| {
            wrong(format!(
                "'{text}' is not a port; expected a number from 1 to {} after the ':'",
                PortNo::MAX
            ))
        })?;
        let id = PortId::new(switch, port_no);
        self.ports.take(id, text, port.span())?;
        Ok(id)
    }
}

/// Values that must be unique, with their positions in the text.
struct Unique<'a, T> {
    text: &'a str,
    kind: &'static str,
    seen: BTreeMap<T, usize>,
}

impl<'a, T: Ord> Unique<'a, T> {
    fn new(text: &'a str, kind: &'static str) -> Self {
        Self {
            text,
            kind,
            seen: BTreeMap::new(),
        }
    }

    fn take(&mut self, thing: T, name: impl fmt::Display, place: Range<usize>) -> Checked<()> {
        if let Some(&first) = self.seen.get(&thing) {
            let (kind, line) = (self.kind, line_at(self.text, first));
            let problem =
                format!("the {kind} {name} is in use in line {line}, too; expected another");
            return Err(Wrong::new(place, problem));
        }
        self.seen.insert(thing, place.start);
        Ok(())
    }
}

pub(super) fn check_count(what: &str, count: usize, most: usize) -> Checked<()> {
    if count <= most {
        return Ok(());
    }
    let problem = format!("there are {count} {what}; expected at most {most}");
    Err(Wrong::new(0..0, problem))
}

/// Parses a text with `FromStr`, whose error is a message.
fn parsed<T: FromStr<Err: fmt::Display>>(place: Range<usize>, text: &str) -> Checked<T> {
    text.parse()
        .map_err(|error: T::Err| Wrong::new(place, error.to_string()))
}

fn read_or<T: FromStr<Err: fmt::Display>>(
    field: &Option<Spanned<String>>,
    default: T,
) -> Checked<T> {
    match field {
        Some(field) => parsed(field.span(), field.get_ref()),
        None => Ok(default),
    }
}

fn ipv4(field: &Option<Spanned<String>>) -> Checked<Option<Ipv4Addr>> {
    let Some(field) = field else {
        return Ok(None);
    };
    let address = field.get_ref().parse().map_err(|_| {
        let problem = format!(
            "'{}' is not an IPv4 address; expected one such as 10.0.0.1",
            field.get_ref()
        );
        Wrong::new(field.span(), problem)
    });
    address.map(Some)
}

/// Returns the datapath id of a switch without one: the first number in its name, as in Mininet.
fn number_in(name: &Spanned<String>) -> Checked<DatapathId> {
    let mut digits = name.get_ref().split(|c: char| !c.is_ascii_digit());
    let first = digits.find(|digits| !digits.is_empty());
    let number = first.and_then(|digits| digits.parse().ok()).map(DatapathId);
    number.ok_or_else(|| {
        let problem = format!(
            "'{}' has no number in it; expected a datapath_id",
            name.get_ref()
        );
        Wrong::new(name.span(), problem)
    })
}

fn properties(link: &DirectedLink) -> Checked<LinkProperties> {
    let delay = duration(&link.delay)?;
    let jitter = duration(&link.jitter)?;
    if let Some(field) = &link.jitter {
        if jitter > delay {
            let problem = format!(
                "the jitter {} is more than the delay {}; expected at most as much",
                quantity::duration_text(jitter),
                quantity::duration_text(delay)
            );
            return Err(Wrong::new(field.span(), problem));
        }
    }
    Ok(LinkProperties {
        delay,
        jitter,
        loss: loss(&link.loss)?,
        bandwidth_bps: bandwidth_bps(&link.bandwidth)?,
    })
}

fn duration(field: &Option<Spanned<String>>) -> Checked<Duration> {
    let Some(field) = field else {
        return Ok(Duration::ZERO);
    };
    let wrong = |problem| Wrong::new(field.span(), problem);
    let duration = quantity::duration(field.get_ref()).map_err(|error| wrong(error.to_string()))?;
    if duration > MAX_DELAY {
        let most = quantity::duration_text(MAX_DELAY);
        return Err(wrong(format!(
            "'{}' is too long; expected at most {most}",
            field.get_ref()
        )));
    }
    Ok(duration)
}

fn loss(field: &Option<Spanned<Loss>>) -> Checked<f64> {
    let Some(field) = field else {
        return Ok(0.0);
    };
    let Loss(loss) = *field.get_ref();
    if !(0.0..=1.0).contains(&loss) {
        let problem =
            format!("the loss {loss} is not a probability; expected a number from 0 to 1");
        return Err(Wrong::new(field.span(), problem));
    }
    Ok(loss)
}

fn bandwidth_bps(field: &Option<Spanned<String>>) -> Checked<Option<u64>> {
    let Some(field) = field else {
        return Ok(None);
    };
    let wrong = |problem| Wrong::new(field.span(), problem);
    let bandwidth =
        quantity::bandwidth_bps(field.get_ref()).map_err(|error| wrong(error.to_string()))?;
    if !(1..=MAX_BANDWIDTH_BPS).contains(&bandwidth) {
        let most = quantity::bandwidth_text(MAX_BANDWIDTH_BPS);
        let text = field.get_ref();
        return Err(wrong(format!(
            "the bandwidth '{text}' cannot be; expected from 1bit to {most}"
        )));
    }
    Ok(Some(bandwidth))
}
