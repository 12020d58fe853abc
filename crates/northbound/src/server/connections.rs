//! The open connections: their number per client address, and the idle ones.
//!
//! A connection is idle unless a request on it is being served. In particular, it is idle while it sends headers slowly. If
//! there is no slot for a new connection, the one that has been idle longest is closed, so that clients that hold
//! connections open cannot exclude others.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use tokio::sync::{Notify, oneshot};

/// The open connections of a server.
pub(crate) struct Connections {
    /// The maximum number of connections.
    most: usize,
    /// The maximum number of connections of one address.
    share: usize,
    open: Mutex<Open>,
    /// Notified when a slot becomes free, or a connection becomes idle.
    changed: Notify,
}

#[derive(Default)]
struct Open {
    connections: HashMap<u64, Connection>,
    /// The next number for a connection or idle period; lower numbers are older.
    next: u64,
}

struct Connection {
    address: IpAddr,
    /// The number of the current idle period; `None` while a request is served.
    idle: Option<u64>,
    /// Closes the connection when dropped.
    _close: oneshot::Sender<()>,
}

/// The slot of a connection, which is freed when dropped.
pub(crate) struct Slot {
    connections: Arc<Connections>,
    number: u64,
}

/// Marks a request as being served. The connection is idle again when this is dropped.
pub(crate) struct Serving(Arc<Slot>);

/// A new connection's slot, and a channel that ends when the connection must be closed.
pub(crate) type Admitted = (Arc<Slot>, oneshot::Receiver<()>);

/// The address uses its whole share of connections, and a request is being served on each of them.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ShareUsedUp;

impl Connections {
    /// Creates an empty set of at most `most` connections, of which one address may have `share`.
    pub fn new(most: usize, share: usize) -> Arc<Self> {
        Arc::new(Self {
            most,
            share,
            open: Mutex::default(),
            changed: Notify::new(),
        })
    }

    /// Admits a connection. If there is no free slot, closes an idle connection for it; waits while all connections are busy.
    ///
    /// # Errors
    /// [`ShareUsedUp`].
    pub async fn admit(self: &Arc<Self>, address: IpAddr) -> Result<Admitted, ShareUsedUp> {
        loop {
            // Created before the check, so that a later change is not missed.
            let changed = self.changed.notified();
            if let Some(admitted) = self.try_admit(address)? {
                return Ok(admitted);
            }
            changed.await;
        }
    }

    /// Like `admit`, but returns `None` instead of waiting.
    fn try_admit(self: &Arc<Self>, address: IpAddr) -> Result<Option<Admitted>, ShareUsedUp> {
        let mut open = self.open.lock();
        let has_share = open.count_of(address) >= self.share;
        if has_share && !open.close_idle_of(address) {
            return Err(ShareUsedUp);
        }
        if open.connections.len() >= self.most && !open.close_idle() {
            return Ok(None);
        }
        let (close, closed) = oneshot::channel();
        let number = open.number();
        let connection = Connection {
            address,
            idle: Some(number),
            _close: close,
        };
        open.connections.insert(number, connection);
        let connections = Arc::clone(self);
        let slot = Slot {
            connections,
            number,
        };
        Ok(Some((Arc::new(slot), closed)))
    }
}

impl Open {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn count_of(&self, address: IpAddr) -> usize {
        let connections = self.connections.values();
        connections
            .filter(|connection| connection.address == address)
            .count()
    }

    /// Closes the address's oldest idle connection, if there is one.
    fn close_idle_of(&mut self, address: IpAddr) -> bool {
        let idle = |(number, connection): (&u64, &Connection)| {
            let is_of_address = connection.address == address;
            is_of_address.then_some((connection.idle?, *number))
        };
        let oldest = self.connections.iter().filter_map(idle).min();
        oldest.is_some_and(|(_, number)| self.connections.remove(&number).is_some())
    }

    /// Closes the oldest idle connection of the address that has the most connections among those with idle ones.
    fn close_idle(&mut self) -> bool {
        let mut counts: HashMap<IpAddr, (usize, bool)> = HashMap::new();
        for connection in self.connections.values() {
            let (count, has_idle) = counts.entry(connection.address).or_default();
            *count += 1;
            *has_idle |= connection.idle.is_some();
        }
        let with_idle = counts.iter().filter(|(_, (_, has_idle))| *has_idle);
        let largest = with_idle.max_by_key(|(_, (count, _))| *count);
        let largest = largest.map(|(address, _)| *address);
        largest.is_some_and(|address| self.close_idle_of(address))
    }
}

impl Slot {
    /// Marks the connection as busy until the result is dropped.
    pub fn serve(self: &Arc<Self>) -> Serving {
        self.set_idle(false);
        Serving(Arc::clone(self))
    }

    fn set_idle(&self, is_idle: bool) {
        let mut open = self.connections.open.lock();
        let number = open.number();
        // The connection may just have been closed.
        if let Some(connection) = open.connections.get_mut(&self.number) {
            connection.idle = is_idle.then_some(number);
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.0.set_idle(true);
        self.0.connections.changed.notify_one();
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.connections
            .open
            .lock()
            .connections
            .remove(&self.number);
        self.connections.changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use std::net::Ipv4Addr;

    fn address(last: u8) -> IpAddr {
        IpAddr::V4(Ipv4Addr::new(192, 0, 2, last))
    }

    fn admit(connections: &Arc<Connections>, last: u8) -> Admitted {
        connections.try_admit(address(last)).unwrap().unwrap()
    }

    fn is_closed((_, closed): &mut Admitted) -> bool {
        closed.try_recv() == Err(oneshot::error::TryRecvError::Closed)
    }

    #[test]
    fn an_address_displaces_its_own_oldest_idle_connection() {
        let connections = Connections::new(6, 3);
        let mut other = admit(&connections, 2);
        let mut own: Vec<_> = (0..3).map(|_| admit(&connections, 1)).collect();
        // The first is idle again, but for a shorter time than the third; the second is busy.
        drop(own[0].0.serve());
        let serving = own[1].0.serve();
        own.push(admit(&connections, 1));
        let closed: Vec<_> = own.iter_mut().map(is_closed).collect();
        assert_eq!(closed, [false, false, true, false]);
        assert!(!is_closed(&mut other));
        let also: Vec<_> = own.iter().map(|(slot, _)| slot.serve()).collect();
        let refused = connections.try_admit(address(1));
        assert_eq!(refused.err(), Some(ShareUsedUp));
        drop((serving, also));
        admit(&connections, 1);
    }

    #[test]
    fn a_full_server_closes_an_idle_connection_of_the_largest_client() {
        let connections = Connections::new(3, 2);
        let mut one = admit(&connections, 1);
        let mut largest = [admit(&connections, 2), admit(&connections, 2)];
        let new = admit(&connections, 3);
        assert!(is_closed(&mut largest[0]));
        assert!(!is_closed(&mut one) && !is_closed(&mut largest[1]));
        let serving: Vec<_> = [&one, &largest[1], &new]
            .map(|(slot, _)| slot.serve())
            .into();
        assert!(connections.try_admit(address(4)).unwrap().is_none());
        drop(serving);
        admit(&connections, 4);
    }

    #[test]
    fn closed_connections_leave_their_slots() {
        let connections = Connections::new(2, 2);
        for last in 0..5 {
            let admitted = [admit(&connections, last), admit(&connections, last)];
            assert_eq!(connections.open.lock().connections.len(), 2);
            drop(admitted);
            assert!(connections.open.lock().connections.is_empty());
        }
    }

    #[tokio::test]
    async fn a_connection_waits_for_one_to_be_idle() {
        let connections = Connections::new(1, 1);
        let (slot, _closed) = admit(&connections, 1);
        let serving = slot.serve();
        let mut waiting = Box::pin(connections.admit(address(2)));
        assert!((&mut waiting).now_or_never().is_none());
        drop(serving);
        assert!(waiting.await.is_ok());
    }
}
