//! Pictures as SVG.
//!
//! All styling uses presentation attributes, since browsers ignore `style` under a Content-Security-Policy without inline
//! styles, such as that of the northbound interface.

use super::picture::{Picture, Placed};
use super::text::{cut, shown, xml};
use super::{Host, Link, Switch};
use crate::PortId;

/// Half of the width and height of a node's box.
const HALF_BOX: [f64; 2] = [56.0, 18.0];

/// The number of characters that fit into a box.
const FITTING: usize = 17;

/// The distance between the middles of parallel links.
const PARALLEL: f64 = 24.0;

/// The distance of a port's number from the box, along the link.
const TO_PORT: f64 = 10.0;

const UP: &str = "#5b6b7b";
const DOWN: &str = "#c0392b";

impl Picture {
    /// Writes the picture as SVG.
    ///
    /// Switches have their names and datapath ids, hosts their names and first addresses, and the ends of links their port
    /// numbers. Links that are down are dashed. All addresses and whole names are tooltips.
    pub fn to_svg(&self) -> String {
        let Self { width, height, .. } = self;
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
             font-family=\"sans-serif\" font-size=\"12\" text-anchor=\"middle\">\n<title>{}</title>\n\
             <rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>\n",
            self.title()
        );
        for same_ends in self.links.chunk_by(|one, other| ends(one) == ends(other)) {
            for (number, link) in same_ends.iter().enumerate() {
                let bend = (number as f64 - (same_ends.len() - 1) as f64 / 2.0) * PARALLEL;
                svg += &self.link(link, bend);
            }
        }
        for host in &self.hosts {
            svg += &self.host_link(host);
        }
        for switch in &self.switches {
            svg += &switch_box(switch);
        }
        for host in &self.hosts {
            svg += &host_box(host);
        }
        svg + "</svg>\n"
    }

    fn title(&self) -> String {
        let counted = |count: usize, what: &str| match count {
            1 => format!("1 {what}"),
            count => format!("{count} {what}s"),
        };
        let down = self.links.iter().filter(|link| !link.is_up).count();
        format!(
            "{}, {}, {} ({down} down)",
            counted(self.switches.len(), "switch").replace("switchs", "switches"),
            counted(self.hosts.len(), "host"),
            counted(self.links.len(), "link")
        )
    }

    fn link(&self, link: &Link, bend: f64) -> String {
        let [from, to] = [link.a, link.b].map(|port| self.middle(port));
        let (colour, dashes) = match link.is_up {
            true => (UP, ""),
            false => (DOWN, " stroke-dasharray=\"7 5\""),
        };
        let line = match link.a.switch == link.b.switch {
            true => DrawnLink::to_itself(from, bend),
            false => DrawnLink::between(from, to, bend),
        };
        let state = if link.is_up { "" } else { ": down" };
        format!(
            "<path d=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\"{dashes}><title>{} – {}{state}</title></path>\n{}{}",
            line.path,
            port_name(link.a),
            port_name(link.b),
            port_text(link.a, line.ports[0]),
            port_text(link.b, line.ports[1])
        )
    }

    fn host_link(&self, host: &Placed<Host>) -> String {
        let port = host.node.attached;
        let line = DrawnLink::between(self.middle(port), [host.x as f64, host.y as f64], 0.0);
        let path = format!(
            "<path d=\"{}\" fill=\"none\" stroke=\"#a9b4bf\"/>\n",
            line.path
        );
        path + &port_text(port, line.ports[0])
    }

    /// Returns the centre of the switch that has a port.
    fn middle(&self, port: PortId) -> [f64; 2] {
        let found = self
            .switches
            .binary_search_by_key(&port.switch, |switch| switch.node.id);
        let switch = &self.switches[found.expect("hosts and links are at switches")];
        [switch.x as f64, switch.y as f64]
    }
}

/// Returns the switches of a link: links with equal switches are parallel.
fn ends(link: &Link) -> [urtica_wire::DatapathId; 2] {
    [link.a.switch, link.b.switch]
}

/// A line, and the positions of its port numbers.
struct DrawnLink {
    path: String,
    ports: [[f64; 2]; 2],
}

impl DrawnLink {
    /// Creates a line whose middle is at the distance `bend` from the straight one.
    fn between(from: [f64; 2], to: [f64; 2], bend: f64) -> Self {
        let [dx, dy] = [to[0] - from[0], to[1] - from[1]];
        let length = (dx * dx + dy * dy).sqrt().max(1.0);
        // Halfway to the control point of the curve.
        let away = [-dy / length * bend * 2.0, dx / length * bend * 2.0];
        let control = [0, 1].map(|axis| (from[axis] + to[axis]) / 2.0 + away[axis]);
        let path = match bend == 0.0 {
            true => format!("M{} L{}", point(from), point(to)),
            false => format!("M{} Q{} {}", point(from), point(control), point(to)),
        };
        Self {
            path,
            ports: [beside_box(from, control), beside_box(to, control)],
        }
    }

    /// Creates a loop above a box.
    fn to_itself([x, y]: [f64; 2], bend: f64) -> Self {
        let (top, reach) = (y - HALF_BOX[1], 40.0 + bend.abs());
        let path = format!(
            "M{} C{} {} {}",
            point([x - 20.0, top]),
            point([x - 20.0 - reach, top - reach]),
            point([x + 20.0 + reach, top - reach]),
            point([x + 20.0, top])
        );
        let ports = [x - 28.0, x + 28.0].map(|x| [x, top - TO_PORT]);
        Self { path, ports }
    }
}

fn point([x, y]: [f64; 2]) -> String {
    format!("{} {}", x.round(), y.round())
}

/// Returns the point just beyond the edge of a box, on a line.
fn beside_box(middle: [f64; 2], towards: [f64; 2]) -> [f64; 2] {
    let delta = [towards[0] - middle[0], towards[1] - middle[1]];
    let length = (delta[0] * delta[0] + delta[1] * delta[1]).sqrt().max(1.0);
    let within = |axis: usize| HALF_BOX[axis] / delta[axis].abs().max(f64::MIN_POSITIVE);
    // Never beyond the middle of a short line.
    let share = (within(0).min(within(1)) + TO_PORT / length).min(1.0);
    [0, 1].map(|axis| middle[axis] + share * delta[axis])
}

fn port_text(port: PortId, [x, y]: [f64; 2]) -> String {
    format!(
        "<text x=\"{}\" y=\"{}\" font-size=\"9\" fill=\"{UP}\">{}</text>\n",
        x.round(),
        y.round() + 3.0,
        port.port_no
    )
}

fn port_name(port: PortId) -> String {
    xml(&port.to_string())
}

fn switch_box(switch: &Placed<Switch>) -> String {
    let id = switch.node.id.to_string();
    let (name, under) = match &switch.node.name {
        Some(name) => (name.as_str(), Some(id.as_str())),
        None => (id.as_str(), None),
    };
    let tooltip = [name, &id].map(str::to_owned);
    Box {
        tooltip: &tooltip,
        name,
        under,
        fill: "#dbe9f6",
        edge: "#2f6f9f",
        radius: 4,
    }
    .at(switch.x, switch.y)
}

fn host_box(host: &Placed<Host>) -> String {
    let Host {
        name, addresses, ..
    } = &host.node;
    let tooltip: Vec<_> = [name].into_iter().chain(addresses).cloned().collect();
    Box {
        tooltip: &tooltip,
        name,
        under: addresses.first().map(String::as_str),
        fill: "#f4f4ee",
        edge: "#8a8a7a",
        radius: 17,
    }
    .at(host.x, host.y)
}

/// A box with a name, and a line in smaller type below it.
struct Box<'a> {
    tooltip: &'a [String],
    name: &'a str,
    under: Option<&'a str>,
    fill: &'static str,
    edge: &'static str,
    /// The radius of its corners.
    radius: u8,
}

impl Box<'_> {
    fn at(&self, x: i64, y: i64) -> String {
        let Self {
            fill, edge, radius, ..
        } = self;
        let [half_width, half_height] = HALF_BOX.map(|half| half as i64);
        let tooltip: Vec<_> = self.tooltip.iter().map(|line| xml(&shown(line))).collect();
        let lines = match self.under {
            Some(under) => line(x, y - 2, 12, self.name) + &line(x, y + 11, 9, under),
            None => line(x, y + 4, 11, self.name),
        };
        format!(
            "<g><title>{}</title><rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"{radius}\" fill=\"{fill}\" \
             stroke=\"{edge}\"/>{lines}</g>\n",
            tooltip.join("\n"),
            x - half_width,
            y - half_height,
            2 * half_width,
            2 * half_height,
        )
    }
}

fn line(x: i64, y: i64, size: u8, text: &str) -> String {
    format!(
        "<text x=\"{x}\" y=\"{y}\" font-size=\"{size}\">{}</text>",
        xml(&cut(text, FITTING))
    )
}
