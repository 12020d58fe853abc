//! The handler of a switch.

use super::kernel::{L3Fact, L3Session};
use super::{ALL_AND_EXPIRED, Handed, L3State, MAX_ERRORS_PER_S, frames};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use urtica_controller::{KernelHalf, Switch, SwitchHandler};
use urtica_topology::PortId;
use urtica_wire::packet::{Arp, EthernetView, Headers, Ipv4View, ether_type};
use urtica_wire::{Message, PacketIn, Version};

/// The handler of one switch.
pub(super) struct L3Handler {
    shared: Arc<L3State>,
    /// The current second, and the number of ICMP errors in it.
    errors: (u32, u32),
    /// The kernel half's session, if any.
    session: Option<Box<dyn L3Session>>,
}

impl SwitchHandler for L3Handler {
    fn switch_up(&mut self, switch: &mut Switch) {
        let kernel = self.shared.kernel.get();
        if let Some(kernel) = kernel.filter(|_| self.session.is_none()) {
            let program = switch.network().program();
            self.session = kernel.open(switch.info(), program, &self.shared.hosts);
        }
        self.shared
            .table_id
            .store(switch.table(), Ordering::Relaxed);
        // OpenFlow 1.0 has no such setting, and does not decrement TTLs.
        if switch.info().version != Version::Of10 {
            let _ = switch.send(&Message::SetAsync(ALL_AND_EXPIRED));
        }
    }

    fn packet_in(&mut self, switch: &mut Switch, packet: &PacketIn) {
        let Ok(ethernet) = EthernetView::new(packet.data) else {
            return;
        };
        let shared = Arc::clone(&self.shared);
        let gateway = shared.config.by_mac(packet.eth_dst());
        match (ethernet.ether_type(), gateway) {
            (ether_type::ARP, _) => {
                if let Some(asked) = Headers::parse(packet.data).arp {
                    if shared.claims_gateway(&asked) {
                        return switch.consume();
                    }
                    shared.answer(switch, packet, &asked);
                    self.tell_of_question(switch, packet, &asked);
                }
            }
            (ether_type::IPV4, Some(gateway)) => {
                let at = PortId::new(switch.datapath_id(), packet.in_port);
                let handed = Handed {
                    gateway,
                    src: packet.eth_src(),
                    at,
                    bytes: ethernet.payload(),
                };
                self.take(switch, &handed);
                self.tell_of_packet(&handed);
            }
            _ => {}
        }
        if gateway.is_some() {
            switch.consume();
        }
    }

    fn kernel_half(&mut self) -> Option<Box<dyn KernelHalf>> {
        self.session.as_mut()?.kernel_half()
    }

    fn may_have_kernel_half(&self) -> bool {
        self.session.is_some()
    }

    fn kernel_half_for_all(&mut self) -> Option<Box<dyn KernelHalf>> {
        self.kernel_half()
    }
}

/// Reports of facts to the kernel half. Facts are looked up again, after the packet was handled.
impl L3Handler {
    /// Reports the facts on which the answer to a request for a gateway depends.
    fn tell_of_question(&mut self, switch: &Switch, packet: &PacketIn, asked: &Arp) {
        let at = PortId::new(switch.datapath_id(), packet.in_port);
        let Some(session) = &mut self.session else {
            return;
        };
        session.begin();
        let gateway = self.shared.config.by_address(asked.tpa);
        let (Some(gateway), Some(host)) = (gateway, self.shared.host_at(at, asked.sha)) else {
            return;
        };
        session.tell(host);
        session.tell(gateway.fact());
        if let Some(hop) = self.shared.next_hop_at(at.switch, asked.spa) {
            session.tell(hop);
        }
    }

    /// Reports the facts on which the forwarding of a packet depends.
    fn tell_of_packet(&mut self, handed: &Handed) {
        let (Some(session), Ok(packet)) = (&mut self.session, Ipv4View::new(handed.bytes)) else {
            return;
        };
        session.begin();
        let host = self.shared.host_at(handed.at, handed.src);
        let hop = self.shared.next_hop_at(handed.at.switch, packet.dst());
        let (Some(host), Some(hop)) = (host, hop) else {
            return;
        };
        session.tell(host);
        session.tell(handed.gateway.fact());
        session.tell(hop);
        let next = match hop {
            L3Fact::NextHop { dst, .. } => Some(dst),
            _ => None,
        };
        for mac in [Some(handed.src), next].into_iter().flatten() {
            if let Some(own) = self.shared.own_hop(handed.at.switch, mac) {
                session.tell(own);
            }
        }
        let key = handed.key(packet.dst());
        // With 1.0, no flow has a path, and the controller forwards each packet.
        if self.shared.state().paths.get(&key).is_some() {
            session.tell(L3Fact::Flow {
                src: key.src,
                gateway: key.gateway,
                dst: key.dst,
            });
        }
    }
}

impl L3Handler {
    pub(super) fn new(shared: &Arc<L3State>, session: Option<Box<dyn L3Session>>) -> Self {
        Self {
            shared: Arc::clone(shared),
            errors: (0, 0),
            session,
        }
    }

    /// Handles a packet sent to a gateway.
    fn take(&mut self, switch: &Switch, handed: &Handed) {
        let Ok(packet) = Ipv4View::new(handed.bytes) else {
            return;
        };
        if !frames::is_intact(&packet, handed.bytes) {
            return;
        }
        let taken = self
            .shared
            .take(switch.network(), switch.now(), handed, &packet);
        if let Err(failure) = taken {
            if self.may_tell(switch.now_s()) {
                self.shared.tell(switch.network(), handed, &packet, failure);
            }
        }
    }

    /// Counts an ICMP error. Returns `true` if this second's limit permits it.
    fn may_tell(&mut self, now_s: u32) -> bool {
        if self.errors.0 != now_s {
            self.errors = (now_s, 0);
        }
        self.errors.1 += 1;
        self.errors.1 <= MAX_ERRORS_PER_S
    }
}
