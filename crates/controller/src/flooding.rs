//! The ports that packets sent to FLOOD use: those that a service names, if one runs that knows the network's loops.
//!
//! **Why not leave it to the switch.** A switch floods to all its ports. In a network with loops the packet returns, is flooded
//! again, and circulates for ever; 802.1D's spanning tree prevents that in networks without a controller.
//!
//! **Limits.** It cannot prevent a flow entry that outputs to FLOOD, or packet-outs to ALL: the switch executes them itself.
//!
//! **Cost.** Without a service a comparison; with one, a call to it, and one action for each port.

use urtica_wire::{Action, DatapathId, Message, PacketOut, PortNo};

/// Names the ports that packets are flooded to, for all switches: see [`Network::flood_by`](crate::Network::flood_by).
pub trait FloodPorts: Send + Sync {
    /// Returns the ports of a switch to which a packet received at `in_port` is flooded: none if it must be dropped. Called for
    /// each packet that is flooded, from any thread.
    fn flood_ports(&self, switch: DatapathId, in_port: PortNo) -> Vec<PortNo>;
}

/// Returns a message to send instead of `message`, if that is a packet-out to FLOOD and `flood_ports` names the ports for packets
/// received at its port.
pub(crate) fn in_place_of<'a>(
    message: &Message<'a>,
    flood_ports: impl FnOnce(PortNo) -> Option<Vec<PortNo>>,
) -> Option<Message<'a>> {
    let Message::PacketOut(packet_out) = message else {
        return None;
    };
    packet_out.actions.iter().find(is_flood)?;
    let ports = flood_ports(packet_out.in_port)?;
    Some(Message::PacketOut(spread(packet_out, &ports)))
}

/// Returns the packet-out with outputs to these ports instead of each to FLOOD.
fn spread<'a>(packet_out: &PacketOut<'a>, ports: &[PortNo]) -> PacketOut<'a> {
    let mut actions = Vec::new();
    for action in &packet_out.actions {
        match is_flood(&action) {
            true => actions.extend(ports.iter().copied().map(Action::output)),
            false => actions.push(action),
        }
    }
    PacketOut {
        actions: actions.into(),
        ..*packet_out
    }
}

fn is_flood(action: &Action) -> bool {
    matches!(
        action,
        Action::Output {
            port: PortNo::FLOOD,
            ..
        }
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use urtica_wire::{BufferId, List};

    #[test]
    fn other_actions_stay_where_they_are() {
        let actions = [
            Action::PopVlan,
            Action::output(PortNo::FLOOD),
            Action::controller(),
        ];
        let packet_out = PacketOut {
            buffer_id: BufferId::NONE,
            in_port: PortNo(3),
            actions: List::from(&actions),
            data: b"frame",
        };
        let spread = spread(&packet_out, &[PortNo(1), PortNo(7)]);
        let actions: Vec<_> = spread.actions.iter().collect();
        let expected = [
            Action::PopVlan,
            Action::output(PortNo(1)),
            Action::output(PortNo(7)),
            Action::controller(),
        ];
        assert_eq!(actions, expected);
        assert_eq!(spread.data, b"frame");
    }
}
