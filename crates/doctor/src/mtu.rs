//! Checks that the longest packets of each port fit through the others.

use crate::finding::quoted;
use crate::openvswitch::{OpenVswitch, Row};
use crate::{Facts, Finding};
use std::fs;

/// The bit of `/sys/class/net/*/flags` for a device that is up (`IFF_UP`).
const UP: u32 = 1;

/// A port, with its MTU.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Port {
    name: String,
    mtu: u64,
}

pub fn look(facts: &Facts) -> Vec<Finding> {
    let mut findings = devices(&facts.plan.devices);
    if let Ok(switch) = &facts.openvswitch {
        findings.extend(
            switch
                .bridges()
                .flat_map(|bridge| of_bridge(switch, bridge)),
        );
    }
    if findings.is_empty() {
        let sentence = "All ports of a switch have the same MTU.";
        findings.push(Finding::ok("mtu", sentence));
    }
    findings
}

/// Checks the devices for our switch's ports.
fn devices(names: &[String]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut ports = Vec::new();
    for name in names {
        match mtu_of(name) {
            Some(mtu) => {
                findings.extend(is_down(name));
                ports.push(Port {
                    name: name.clone(),
                    mtu,
                });
            }
            None => {
                let sentence = format!(
                    "There is no network device {name}, so it cannot be a port of the switch."
                );
                findings
                    .push(Finding::problem("device-missing", sentence).command("ip -brief link"));
            }
        }
    }
    findings.extend(shorter("the switch", &ports));
    findings
}

fn read(device: &str, file: &str) -> Option<String> {
    let is_name = !device.is_empty() && !device.contains('/') && device != "..";
    let text = is_name.then(|| fs::read_to_string(format!("/sys/class/net/{device}/{file}")));
    Some(text?.ok()?.trim().to_owned())
}

fn mtu_of(device: &str) -> Option<u64> {
    read(device, "mtu")?.parse().ok()
}

fn is_down(device: &str) -> Option<Finding> {
    let flags = read(device, "flags")?;
    let flags = u32::from_str_radix(flags.trim_start_matches("0x"), 16).ok()?;
    if flags & UP != 0 {
        return None;
    }
    let sentence =
        format!("The network device {device} is down: it receives and sends no packets.");
    let command = format!("ip link set dev {} up", quoted(device));
    Some(Finding::problem("device-down", sentence).command(command))
}

/// Returns findings for ports with a smaller MTU than others.
fn shorter(of: &str, ports: &[Port]) -> Vec<Finding> {
    let Some(longest) = ports.iter().max_by_key(|port| port.mtu) else {
        return Vec::new();
    };
    let shorter = ports.iter().filter(|port| port.mtu < longest.mtu);
    let finding = |port: &Port| {
        let sentence = format!(
            "Port {} of {of} has an MTU of {} bytes, and {} of {}: longer packets from there are lost without an error.",
            port.name, port.mtu, longest.name, longest.mtu
        );
        let command = format!("ip link set dev {} mtu {}", quoted(&port.name), longest.mtu);
        Finding::warning("mtu-differs", sentence).command(command)
    };
    shorter.map(finding).collect()
}

fn of_bridge(switch: &OpenVswitch, bridge: &Row) -> Vec<Finding> {
    let interfaces = switch.interfaces(bridge);
    // Internal ports follow the other ports, and tunnels have no MTU.
    let is_device = |row: &&&Row| {
        matches!(
            row.text("type"),
            None | Some("system" | "tap" | "afxdp" | "dpdk")
        )
    };
    let devices = interfaces.iter().filter(is_device).filter_map(|row| {
        Some(Port {
            name: row.text("name")?.to_owned(),
            mtu: row.number("mtu")?,
        })
    });
    let devices: Vec<Port> = devices.collect();
    let name = format!("bridge {}", bridge.text("name").unwrap_or_default());
    let mut findings = shorter(&name, &devices);
    let longest = devices.iter().map(|port| port.mtu).max().unwrap_or(0);
    for interface in interfaces {
        findings.extend(tunnel(&name, interface, longest, mtu_of));
    }
    findings
}

/// Returns the bytes that a tunnel adds to a packet, including its Ethernet header.
fn overhead(kind: &str) -> Option<u64> {
    match kind {
        "vxlan" | "geneve" => Some(50),
        "gre" => Some(42),
        "stt" => Some(76),
        _ => None,
    }
}

/// Checks that the other ports' packets fit through the device below a tunnel.
fn tunnel(
    bridge: &str,
    interface: &Row,
    longest: u64,
    mtu_of: impl Fn(&str) -> Option<u64>,
) -> Option<Finding> {
    let kind = interface.text("type")?;
    let needed = longest + overhead(kind)?;
    let below = interface.entry("status", "tunnel_egress_iface")?;
    let mtu = mtu_of(below).filter(|mtu| *mtu < needed && longest > 0)?;
    let sentence = format!(
        "Port {} of {bridge} is a {kind} tunnel over {below}, whose MTU is {mtu} bytes; the other ports' packets of \
         {longest} bytes are {needed} long there, and are lost. Or set the hosts' MTU to {}.",
        interface.text("name").unwrap_or_default(),
        mtu.saturating_sub(needed - longest)
    );
    let command = format!("ip link set dev {} mtu {needed}", quoted(below));
    Some(Finding::warning("mtu-of-tunnel", sentence).command(command))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn port(name: &str, mtu: u64) -> Port {
        Port {
            name: name.into(),
            mtu,
        }
    }

    #[test]
    fn the_shorter_ports_are_named() {
        assert!(shorter("s", &[]).is_empty());
        assert!(shorter("s", &[port("a", 1500), port("b", 1500)]).is_empty());
        let found = shorter("s", &[port("a", 1500), port("b", 9000), port("c", 1400)]);
        let commands: Vec<_> = found.iter().flat_map(|finding| &finding.commands).collect();
        assert_eq!(
            commands,
            ["ip link set dev a mtu 9000", "ip link set dev c mtu 9000"]
        );
    }

    #[test]
    fn tunnels_add_their_headers() {
        let printed = r#"{"data":[],"headings":[]}{"data":[["vx","vxlan",["map",[["tunnel_egress_iface","eth9"]]]]],"headings":["name","type","status"]}"#;
        let switch = OpenVswitch::of(printed);
        let vxlan = switch.bridges().next().unwrap();
        let found = |below, longest| tunnel("s", vxlan, longest, |_| Some(below));
        assert_eq!(found(1550, 1500), None);
        assert_eq!(found(1500, 0), None);
        let finding = found(1500, 1500).unwrap();
        assert_eq!(finding.commands, ["ip link set dev eth9 mtu 1550"]);
        assert!(
            finding.sentence.contains("MTU to 1450"),
            "{}",
            finding.sentence
        );
    }

    #[test]
    fn names_cannot_leave_the_folder() {
        for name in ["", "..", "../../kernel", "lo/../lo"] {
            assert_eq!(mtu_of(name), None, "{name}");
        }
        assert!(mtu_of("lo").is_some());
    }
}
