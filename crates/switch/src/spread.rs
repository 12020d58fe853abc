//! A switch whose packets are forwarded by several threads.
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
//! [`Switch::spread`] distributes the ports. The switch itself keeps an outlet in place of each port, and receives packets for
//! controllers through [`Switch::hand_over`] instead of by polling ports.

use crate::Switch;
use crate::forwarder::Forwarder;
use crate::mailbox::Mailbox;
use crate::parcel::{self, Inbox};
use crate::port_table::{PortTable, SwitchPort};
use crate::queues::SharedQueues;
use crate::uplink::{self, ControllerPacket, Uplink};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;
use urtica_wire::PortNo;

/// One thread's part of the switch.
pub(crate) struct Part {
    pub forwarder: Forwarder,
    /// Frames that other threads send to the ports of this one.
    pub inbox: Arc<Inbox>,
    /// Changes of ports.
    pub changes: Arc<Mailbox<PortChange>>,
    pub uplink: Uplink,
}

/// A change of ports, of the thread's own or of others, in a mailbox that is only read when its bell rings, so that it costs
/// packets nothing.
pub(crate) enum PortChange {
    Add(SwitchPort),
    /// The port has these queues from now on, or no queues.
    Queues {
        port_no: PortNo,
        queues: Option<Arc<SharedQueues>>,
    },
    Remove {
        port_no: PortNo,
        /// Dropped when the change has been made.
        _done: Sender<()>,
    },
}

/// Maximum number of port changes that can wait for a thread.
const MAX_CHANGES: usize = 1024;

/// The result of distributing the ports.
pub(crate) struct Spread {
    pub parts: Vec<Part>,
    /// Packets for [`Switch::hand_over`].
    pub packets: Arc<Mailbox<ControllerPacket>>,
}

impl Switch {
    /// Distributes the ports to `count` forwarders round-robin, so that neighbours are on different ones. [`Switch::deal`] adds
    /// later ports, and removed ports must also be removed from each forwarder.
    ///
    /// # Errors
    /// The system's, if it cannot create eventfds.
    pub(crate) fn spread(&mut self, count: usize) -> io::Result<Spread> {
        let packets = Arc::new(Mailbox::new(uplink::MAX_WAITING)?);
        let inboxes = (0..count).map(|_| Inbox::new(parcel::MAX_WAITING).map(Arc::new));
        let inboxes: Vec<_> = inboxes.collect::<Result<_, _>>()?;
        let changes = (0..count).map(|_| Mailbox::new(MAX_CHANGES).map(Arc::new));
        let changes: Vec<_> = changes.collect::<Result<_, _>>()?;
        // Several readers of the compiled tables count differently from a single one.
        if count > 1 {
            self.compile(true);
        }
        let none = Forwarder::new(Arc::clone(&self.shared), PortTable::default(), None);
        let own = std::mem::replace(&mut self.forwarder, none);
        let mut tables: Vec<_> = inboxes.iter().map(|_| PortTable::default()).collect();
        for (port, owner) in own.ports.into_ports().zip((0..count).cycle()) {
            let all = self.deal(port, owner, &inboxes);
            for (table, port) in tables.iter_mut().zip(all) {
                table.insert(port);
            }
        }
        let mailboxes = inboxes.into_iter().zip(changes);
        let parts = tables.into_iter().zip(mailboxes);
        let parts = parts.map(|(ports, (inbox, changes))| Part {
            forwarder: Forwarder::new(Arc::clone(&self.shared), ports, self.reader()),
            inbox,
            changes,
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

    /// Adds a port that will belong to the `owner`th thread. If several threads can receive from it, the following threads get
    /// shares of its flows. Returns the port for each thread, in the order of the inboxes.
    pub(crate) fn deal(
        &mut self,
        mut port: SwitchPort,
        owner: usize,
        inboxes: &[Arc<Inbox>],
    ) -> Vec<SwitchPort> {
        let count = inboxes.len();
        let shares = match count {
            1 => Vec::new(),
            _ => port.split(count, &inboxes[owner]),
        };
        let elsewhere = || port.elsewhere(Arc::clone(&inboxes[owner]));
        self.forwarder.ports.insert(elsewhere());
        let mut shares = shares.into_iter();
        let others = (1..count).map(|_| shares.next().unwrap_or_else(elsewhere));
        let mut all: Vec<_> = others.collect();
        all.insert(0, port);
        all.rotate_right(owner);
        all
    }

    /// Returns the number of threads that can receive if each port is shared by as many as possible.
    pub(crate) fn max_threads(&self) -> usize {
        let ports = self.forwarder.ports.iter().map(SwitchPort::max_threads);
        ports.fold(0, usize::saturating_add)
    }

    /// Passes packets from other threads to the controllers that want them.
    pub(crate) fn hand_over(
        &mut self,
        packets: impl Iterator<Item = ControllerPacket>,
        now: Duration,
    ) {
        packets.for_each(|packet| packet.deliver(&mut self.agent, now));
    }
}
