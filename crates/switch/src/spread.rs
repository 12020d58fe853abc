//! A switch whose packets several threads carry.
//!
//! ```text
//!              frames for the ports of the other
//!                ┌──────────────────────────┐
//!                ▼                          ▼
//! ports ◄──► Forwarder                  Forwarder ◄──► ports
//!              │   ▲                      ▲   │
//!              │   └── packet-outs ──┐    │   │
//!              │                     ├────┘   │
//!              └──── packets for ──► Switch ◄─┘
//!                    controllers       ▲
//!                                      ▼
//!                                 controllers
//! ```
//!
//! [`Switch::spread`] deals the ports out. The switch itself stays what it is: it has an outlet in place of each port, and
//! is told of packets for controllers ([`Switch::hand_over`]) rather than meeting them while it polls ports.

use crate::Switch;
use crate::forwarder::Forwarder;
use crate::mailbox::Mailbox;
use crate::parcel::{self, Inbox};
use crate::port_table::{PortTable, SwitchPort};
use crate::uplink::{self, ControllerPacket, Uplink};
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// What one thread needs to carry packets.
pub(crate) struct Part {
    pub forwarder: Forwarder,
    /// Frames that other threads send by the ports of this one.
    pub inbox: Arc<Inbox>,
    pub uplink: Uplink,
}

/// All that comes of dealing the ports out.
pub(crate) struct Spread {
    pub parts: Vec<Part>,
    /// Packets on their way to [`Switch::hand_over`].
    pub packets: Arc<Mailbox<ControllerPacket>>,
}

impl Switch {
    /// Deals the ports out to `count` forwarders, round-robin, so that neighbours are on different ones. Of a port that several can
    /// receive by, the forwarders behind its own get shares of what comes in. No port may be added or removed after that.
    ///
    /// # Errors
    /// The system's, if it gives no eventfds.
    pub(crate) fn spread(&mut self, count: usize) -> io::Result<Spread> {
        let packets = Arc::new(Mailbox::new(uplink::MAX_WAITING)?);
        let inboxes = (0..count).map(|_| Inbox::new(parcel::MAX_WAITING).map(Arc::new));
        let inboxes: Vec<_> = inboxes.collect::<Result<_, _>>()?;
        // Two readers of the compiled tables have to count in another way than one.
        if count > 1 {
            self.compile(true);
        }
        let none = Forwarder::new(Arc::clone(&self.shared), PortTable::default(), None);
        let own = std::mem::replace(&mut self.forwarder, none);
        let mut tables: Vec<_> = inboxes.iter().map(|_| PortTable::default()).collect();
        for (mut port, owner) in own.ports.into_ports().zip((0..count).cycle()) {
            let shares = match count {
                1 => Vec::new(),
                _ => port.split(count),
            };
            let mut shares = shares.into_iter();
            let elsewhere = || SwitchPort::elsewhere(&port, Arc::clone(&inboxes[owner]));
            self.forwarder.ports.insert(elsewhere());
            for at in (owner + 1..owner + count).map(|at| at % count) {
                tables[at].insert(shares.next().unwrap_or_else(elsewhere));
            }
            tables[owner].insert(port);
        }
        let parts = tables.into_iter().zip(inboxes).map(|(ports, inbox)| Part {
            forwarder: Forwarder::new(Arc::clone(&self.shared), ports, self.reader()),
            inbox,
            uplink: Uplink {
                packets: Arc::clone(&packets),
                shared: Arc::clone(&self.shared),
            },
        });
        Ok(Spread {
            parts: parts.collect(),
            packets,
        })
    }

    /// How many threads could receive, if each port is dealt out to as many as can receive by it.
    pub(crate) fn max_threads(&self) -> usize {
        let ports = self.forwarder.ports.iter().map(SwitchPort::max_threads);
        ports.fold(0, usize::saturating_add)
    }

    /// Hands packets that other threads sent up to the controllers that want them.
    pub(crate) fn hand_over(
        &mut self,
        packets: impl Iterator<Item = ControllerPacket>,
        now: Duration,
    ) {
        packets.for_each(|packet| packet.deliver(&mut self.agent, now));
    }
}
