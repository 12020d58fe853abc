//! Checks a bridge's tables by tracing a packet through them, without sending one.

use super::database::{OpenVswitch, Row};
use crate::Finding;
use crate::finding::quoted;
use crate::program::ask;

/// An ARP request, which hosts send before other packets.
const PACKET: &str = "arp,dl_src=02:00:00:00:00:01,dl_dst=ff:ff:ff:ff:ff:ff,arp_op=1,arp_spa=192.0.2.1,arp_tpa=192.0.2.2";

pub fn look(switch: &OpenVswitch, bridge: &Row) -> Option<Finding> {
    let name = bridge.text("name").unwrap_or_default();
    let controllers = switch.controllers(bridge);
    // Without a controller, drops are expected.
    if !controllers.iter().any(|row| row.is_true("is_connected")) {
        return None;
    }
    let port = switch
        .interfaces(bridge)
        .into_iter()
        .find_map(usable_port)?;
    let packet = format!("in_port={port},{PACKET}");
    let printed = ask(
        "ovs-appctl",
        &["--timeout=5", "ofproto/trace", name, &packet],
    )
    .ok()?;
    Some(judge(name, port, &dropped_by(&printed)?))
}

/// Returns the number of an interface that is a port of the bridge, but not the bridge's own port.
fn usable_port(interface: &Row) -> Option<u64> {
    const FIRST_RESERVED: u64 = 0xff00;
    interface
        .number("ofport")
        .filter(|port| *port < FIRST_RESERVED)
}

/// The end of a trace that drops its packet.
#[derive(Debug, PartialEq, Eq)]
struct Drop {
    table: String,
    /// The match and the priority of the entry; `None` if no entry matches.
    entry: Option<String>,
}

/// Parses the output of `ofproto/trace`: lines such as ` 0. arp, priority 10` for the entries, and finally the datapath's
/// actions.
fn dropped_by(printed: &str) -> Option<Drop> {
    printed
        .lines()
        .find(|line| *line == "Datapath actions: drop")?;
    let step = |line: &str| {
        let (table, entry) = line.trim_start().split_once(". ")?;
        table.parse::<u8>().ok()?;
        Some(Drop {
            table: table.to_owned(),
            entry: (entry != "No match.").then(|| entry.to_owned()),
        })
    };
    printed.lines().filter_map(step).next_back()
}

fn judge(bridge: &str, port: u64, drop: &Drop) -> Finding {
    let Drop { table, entry } = drop;
    let entry = entry.as_deref().unwrap_or("priority 0");
    // An entry without a match starts with its priority.
    let priority = entry.strip_prefix("priority ");
    let priority = priority.and_then(|rest| rest.split(',').next());
    match priority {
        Some("0") => Finding::note(
            "bridge-drops-unmatched",
            format!(
                "Bridge {bridge} drops ARP requests from port {port}, since no flow entry of table {table} is for them: programs \
                 see only what an entry sends to the controller."
            ),
        )
        .command(command_to_list(bridge)),
        Some(priority) => Finding::problem(
            "bridge-drops-all",
            format!(
                "Bridge {bridge} drops every packet that no entry of a priority above {priority} matches, by a flow entry of \
                 table {table} that matches all: programs never see them."
            ),
        )
        .command(format!(
            "ovs-ofctl -O OpenFlow10,OpenFlow13 del-flows --strict {} table={table},priority={priority}",
            quoted(bridge)
        )),
        None => Finding::note(
            "bridge-drops-arp",
            format!(
                "Bridge {bridge} drops ARP requests from port {port}, by the flow entry '{entry}' of table {table}."
            ),
        )
        .command(command_to_list(bridge)),
    }
}

fn command_to_list(bridge: &str) -> String {
    format!(
        "ovs-ofctl -O OpenFlow10,OpenFlow13 dump-flows {}",
        quoted(bridge)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(steps: &str, actions: &str) -> String {
        format!(
            "Flow: arp,in_port=1\n\nbridge(\"s1\")\n------------\n{steps}\nFinal flow: unchanged\nMegaflow: recirc_id=0\nDatapath actions: {actions}\n"
        )
    }

    #[test]
    fn an_entry_that_drops_is_named() {
        for (steps, name) in [
            (" 0. priority 60000\n    drop\n", "bridge-drops-all"),
            (" 0. priority 5, cookie 0x7\n    drop\n", "bridge-drops-all"),
            (
                " 0. priority 0\n    goto_table:1\n 1. arp, priority 9\n    drop\n",
                "bridge-drops-arp",
            ),
            (" 0. No match.\n    drop\n", "bridge-drops-unmatched"),
            (" 0. priority 0\n    drop\n", "bridge-drops-unmatched"),
        ] {
            let drop = dropped_by(&trace(steps, "drop")).unwrap();
            let finding = judge("s1", 1, &drop);
            assert_eq!(finding.name, name, "{steps}");
        }
        let drop = dropped_by(&trace(" 0. priority 60000\n    drop\n", "drop")).unwrap();
        let command =
            "ovs-ofctl -O OpenFlow10,OpenFlow13 del-flows --strict s1 table=0,priority=60000";
        assert_eq!(judge("s1", 1, &drop).commands, [command]);
    }

    #[test]
    fn a_forwarded_packet_is_no_finding() {
        for actions in ["2,3", "userspace(pid=1,controller(reason=1))"] {
            let printed = trace(" 0. priority 0\n    CONTROLLER:65535\n", actions);
            assert_eq!(dropped_by(&printed), None);
        }
        assert_eq!(dropped_by("s9: unknown bridge\n"), None);
    }
}
