//! The ports of a switch.

use rpds::RedBlackTreeMapSync;
use urtica_wire::{Port, PortNo, PortReason, PortStatus};

/// The maximum number of ports that are known of one switch. OpenFlow 1.0 has numbers for 65,280, and Open vSwitch has no
/// more in 1.3 either.
pub const MAX_PORTS: usize = 1 << 16;

/// The ports of a switch, by number.
///
/// Cost: a persistent map. A clone costs as much as copying a pointer. A look-up or a change takes time logarithmic in the
/// number of ports, and a change needs as much memory if older clones exist.
#[derive(Clone, Debug, Default)]
pub struct Ports(RedBlackTreeMapSync<PortNo, Port>);

impl Ports {
    /// Returns the number of ports, at most [`MAX_PORTS`].
    pub fn len(&self) -> usize {
        self.0.size()
    }

    /// Returns whether the switch has no ports.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the port with this number.
    pub fn get(&self, port_no: PortNo) -> Option<&Port> {
        self.0.get(&port_no)
    }

    /// Iterates over the ports, in ascending order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = &Port> {
        self.0.values()
    }

    /// Applies a port-status message. Returns `false`, and changes nothing, if the switch would have more than [`MAX_PORTS`].
    pub(crate) fn update(&mut self, status: &PortStatus) -> bool {
        let port_no = status.port.port_no;
        match status.reason {
            PortReason::Delete => _ = self.0.remove_mut(&port_no),
            _ if self.len() < MAX_PORTS || self.0.contains_key(&port_no) => {
                self.0.insert_mut(port_no, status.port);
            }
            _ => return false,
        }
        true
    }
}

/// Collects the first [`MAX_PORTS`] ports; of two with one number, the later one.
impl FromIterator<Port> for Ports {
    fn from_iter<I: IntoIterator<Item = Port>>(ports: I) -> Self {
        let mut all = Self::default();
        for port in ports {
            all.update(&PortStatus {
                reason: PortReason::Add,
                port,
            });
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use urtica_wire::MacAddr;

    fn status(reason: PortReason, number: usize) -> PortStatus {
        let port = Port::new(PortNo(number as u32), MacAddr::ZERO, "p");
        PortStatus { reason, port }
    }

    #[test]
    fn excess_ports_are_refused_until_one_is_removed() {
        let add = |number| status(PortReason::Add, number);
        let mut ports: Ports = (0..MAX_PORTS + 9).map(|number| add(number).port).collect();
        assert_eq!(ports.len(), MAX_PORTS);
        assert!(!ports.update(&add(MAX_PORTS)));
        assert!(!ports.update(&status(PortReason::Modify, MAX_PORTS)));
        assert!(ports.get(PortNo(MAX_PORTS as u32)).is_none());
        assert!(
            ports.update(&status(PortReason::Modify, 7)),
            "it is there already"
        );
        assert!(ports.update(&status(PortReason::Delete, 7)));
        assert!(ports.update(&add(MAX_PORTS)));
        assert_eq!(ports.len(), MAX_PORTS);
    }

    #[test]
    fn clones_do_not_change() {
        let mut ports: Ports = [3, 1, 2]
            .map(|number| status(PortReason::Add, number).port)
            .into_iter()
            .collect();
        let before = ports.clone();
        assert!(ports.update(&status(PortReason::Delete, 2)));
        let numbers = |ports: &Ports| ports.iter().map(|port| port.port_no.0).collect::<Vec<_>>();
        assert_eq!(numbers(&before), [1, 2, 3]);
        assert_eq!(numbers(&ports), [1, 3]);
    }
}
