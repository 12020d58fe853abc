//! The ports for packets sent to FLOOD: chosen by a service that knows the network's loops, if one runs.
//!
//! **Why not leave it to the switch.** A switch floods to all its ports. In a network with loops the packet returns, is
//! flooded again, and circulates for ever. 802.1D's spanning tree prevents that in networks without a controller.
//!
//! **Limits.** Flow entries that output to FLOOD, and packet-outs to ALL, are not changed: the switch executes them itself.
//!
//! **Cost.** Without a service a comparison; with one, a call and an action for each port.

use urtica_wire::{Action, BufferId, DatapathId, Message, PacketOut, PortNo};

/// Chooses the ports for flooded packets at all switches: see [`Network::flood_by`](crate::Network::flood_by).
pub trait FloodPorts: Send + Sync {
    /// Returns the ports to which a switch floods a packet received at `in_port`; if there are none, the packet is dropped.
    /// Called for each flooded packet, from any thread.
    fn flood_ports(&self, switch: DatapathId, in_port: PortNo) -> Vec<PortNo>;
}

/// The maximum number of ports per packet-out, so that it always fits into a message.
const PORTS: usize = 1024;

/// Returns the messages to send instead of `message` if it is a packet-out to FLOOD and `flood_ports` returns ports for its
/// ingress port; otherwise none. A switch with thousands of ports gets several.
pub(crate) fn in_place_of<'a>(
    message: &Message<'a>,
    flood_ports: impl FnOnce(PortNo) -> Option<Vec<PortNo>>,
) -> Vec<Message<'a>> {
    let Message::PacketOut(packet_out) = message else {
        return Vec::new();
    };
    let Some(at) = packet_out
        .actions
        .iter()
        .position(|action| is_flood(&action))
    else {
        return Vec::new();
    };
    match flood_ports(packet_out.in_port) {
        None => Vec::new(),
        Some(ports) => spread(packet_out, at, &ports),
    }
}

/// Returns the packet-out with outputs to these ports instead of each to FLOOD, the first of which is at `at`. It is divided,
/// unless the packet is in the switch's buffer, from which it can be sent only once.
fn spread<'a>(packet_out: &PacketOut<'a>, at: usize, ports: &[PortNo]) -> Vec<Message<'a>> {
    let actions: Vec<_> = packet_out.actions.iter().collect();
    let (before, after) = (&actions[..at], &actions[at + 1..]);
    let most = match packet_out.buffer_id {
        BufferId::NONE => PORTS,
        _ => usize::MAX,
    };
    let count = ports.len().div_ceil(most).max(1);
    let part = |number: usize| {
        let mut actions = before.to_vec();
        if number > 0 {
            actions.retain(|action| !sends(action));
        }
        let part = ports.chunks(most).nth(number).unwrap_or_default();
        actions.extend(part.iter().copied().map(Action::output));
        for action in after.iter().filter(|_| number + 1 == count) {
            match is_flood(action) {
                true => actions.extend(ports.iter().copied().map(Action::output)),
                false => actions.push(*action),
            }
        }
        Message::PacketOut(PacketOut {
            actions: actions.into(),
            ..*packet_out
        })
    };
    (0..count).map(part).collect()
}

/// Returns `true` if an action sends the packet, and must not be repeated.
fn sends(action: &Action) -> bool {
    matches!(
        action,
        Action::Output { .. } | Action::Enqueue { .. } | Action::Group(_)
    )
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
    use urtica_wire::{List, Version};

    /// Returns the actions of the messages that replace this packet-out on a switch with `count` ports.
    fn flooded(buffer_id: BufferId, actions: &[Action], count: u32) -> Vec<Vec<Action<'static>>> {
        let packet_out = Message::PacketOut(PacketOut {
            buffer_id,
            in_port: PortNo(3),
            actions: List::from(actions),
            data: b"frame",
        });
        let ports = (1..=count).map(PortNo).collect();
        let messages = in_place_of(&packet_out, |in_port| {
            (in_port == PortNo(3)).then_some(ports)
        });
        let actions = messages.iter().map(|message| {
            let Message::PacketOut(part) = message else {
                panic!("expected a packet-out");
            };
            assert_eq!((part.data, part.in_port), (&b"frame"[..], PortNo(3)));
            part.actions.iter().map(plain).collect()
        });
        actions.collect()
    }

    /// Returns an action that owns its data, as all in these tests do.
    fn plain(action: Action) -> Action<'static> {
        match action {
            Action::Output { port, max_len } => Action::Output { port, max_len },
            Action::PopVlan => Action::PopVlan,
            other => panic!("unexpected {other:?}"),
        }
    }

    fn outputs(ports: impl Iterator<Item = u32>) -> Vec<Action<'static>> {
        ports.map(|port| Action::output(PortNo(port))).collect()
    }

    #[test]
    fn other_actions_keep_their_position() {
        let actions = [
            Action::PopVlan,
            Action::output(PortNo::FLOOD),
            Action::controller(),
        ];
        let expected = [
            vec![Action::PopVlan],
            outputs(1..=2),
            vec![Action::controller()],
        ];
        assert_eq!(flooded(BufferId::NONE, &actions, 2), [expected.concat()]);
    }

    #[test]
    fn no_ports_need_no_messages() {
        let actions = [Action::output(PortNo::FLOOD)];
        assert_eq!(flooded(BufferId::NONE, &actions, 0), [vec![]]);
    }

    #[test]
    fn thousands_of_ports_are_in_several_messages_once_each() {
        let flood = Action::output(PortNo::FLOOD);
        let actions = [
            Action::output(PortNo(7)),
            Action::PopVlan,
            flood,
            Action::controller(),
        ];
        let parts = flooded(BufferId::NONE, &actions, 2_500);
        assert_eq!(parts.len(), 3);
        assert_eq!(parts[0][..2], actions[..2]);
        for part in &parts[1..] {
            assert_eq!(part[0], Action::PopVlan, "port 7 has had the packet");
        }
        let all: Vec<_> = parts
            .concat()
            .into_iter()
            .filter(|it| *it != Action::PopVlan)
            .collect();
        let expected = [
            outputs([7].into_iter().chain(1..=2_500)),
            vec![Action::controller()],
        ];
        assert_eq!(all, expected.concat());
    }

    #[test]
    fn each_part_fits_into_a_message() {
        let flood = [Action::output(PortNo::FLOOD)];
        for actions in flooded(BufferId::NONE, &flood, 65_000) {
            let part = Message::PacketOut(PacketOut {
                buffer_id: BufferId::NONE,
                in_port: PortNo(3),
                actions: actions.into(),
                data: &[0; 9_000],
            });
            part.encode(Version::Of13, 0, &mut Vec::new()).unwrap();
        }
    }

    #[test]
    fn buffered_packets_use_one_message() {
        let flood = [Action::output(PortNo::FLOOD)];
        assert_eq!(flooded(BufferId(1), &flood, 2_500), [outputs(1..=2_500)]);
    }
}
