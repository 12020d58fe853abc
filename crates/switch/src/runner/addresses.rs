//! Adding and removing controllers while a switch runs: addresses to which it connects, and addresses at which it listens.

use super::controllers::{Connection, Controllers};
use super::{RemoteError, RunError, Target};
use crate::Switch;
use rustix::fd::AsFd;
use socket2::{SockAddr, SockRef};
use std::io;
use std::time::Duration;
use urtica_socket::{Address, Listener, ListenerId, NoTlsConfig};

impl Controllers {
    /// Starts listening at an address.
    pub(super) fn insert_listener(&mut self, listener: Listener) -> io::Result<()> {
        let id = self.acceptor.add(listener)?;
        let index = self.take_number();
        self.listeners.insert(index, id);
        Ok(())
    }

    /// Starts connecting to a controller.
    pub(super) fn insert_target(&mut self, target: Target) {
        let index = self.take_number();
        self.targets.insert(index, target);
    }

    /// Checks that TLS is configured if an address needs it.
    pub(super) fn check_speaks(&self, address: &Address) -> Result<(), RunError> {
        match address.is_tls() && !self.acceptor.speaks_tls() {
            true => Err(NoTlsConfig(address.clone()).into()),
            false => Ok(()),
        }
    }

    /// Checks that TLS is configured if any address needs it.
    pub(super) fn check_tls(&self) -> Result<(), RunError> {
        let active = self.targets.values().map(|target| &target.address);
        let mut all = self.listen_addresses().chain(active);
        all.try_for_each(|address| self.check_speaks(address))
    }

    /// Returns the addresses at which it listens, with the ports that the system chose.
    pub(super) fn listen_addresses(&self) -> impl Iterator<Item = &Address> {
        let listeners = self.acceptor.listeners();
        listeners.map(|(_, listener)| listener.address())
    }

    /// Adds a listener.
    ///
    /// # Errors
    /// [`RemoteError`] if it needs TLS, which is not configured, or the system cannot watch it.
    pub(super) fn add_listener(&mut self, listener: Listener) -> Result<(), RemoteError> {
        self.check_speaks(listener.address())?;
        let address = listener.address().clone();
        let inserted = self.insert_listener(listener);
        inserted.map_err(RunError::io("watch its listener"))?;
        tracing::info!(%address, "listening");
        Ok(())
    }

    /// Adds a controller to connect to.
    ///
    /// # Errors
    /// [`RemoteError`] if it was already added, or it needs TLS, which is not configured.
    pub(super) fn add_target(&mut self, target: Target) -> Result<(), RemoteError> {
        self.check_speaks(&target.address)?;
        if self
            .targets
            .values()
            .any(|one| one.address == target.address)
        {
            return Err(RemoteError::ControllerTwice(target.address));
        }
        tracing::info!(controller = %target.address, "controller added");
        self.insert_target(target);
        Ok(())
    }

    /// Stops connecting to a controller, or listening at an address, and closes the resulting connections.
    ///
    /// # Errors
    /// [`RemoteError::NoController`] if the address was not added.
    pub(super) fn remove(
        &mut self,
        address: &Address,
        switch: &mut Switch,
        now: Duration,
    ) -> Result<(), RemoteError> {
        let mut targets = self.targets.iter();
        let target = targets.find(|(_, target)| target.address == *address);
        let target = target.map(|(&index, _)| index);
        let listener = self
            .acceptor
            .listeners()
            .find(|(_, listener)| listener.address() == address)
            .map(|(id, _)| id);
        match (target, listener) {
            (Some(index), _) => {
                let is_of_target = |connection: &Connection| connection.target == Some(index);
                self.close_matching(is_of_target, switch, now);
                self.targets.remove(&index);
            }
            (None, Some(id)) => self.remove_listener(id, switch, now),
            (None, None) => return Err(RemoteError::NoController(address.clone())),
        }
        tracing::info!(%address, "controller removed");
        Ok(())
    }

    /// Removes a listener, and closes the connections whose own address is the listener's.
    fn remove_listener(&mut self, id: ListenerId, switch: &mut Switch, now: Duration) {
        self.listeners.retain(|_, other| *other != id);
        let Some(listener) = self.acceptor.remove(id) else {
            return;
        };
        let Ok(local) = SockRef::from(&listener.as_fd()).local_addr() else {
            return;
        };
        drop(listener);
        let was_accepted = |connection: &Connection| {
            let own = SockRef::from(&connection.stream.as_fd()).local_addr();
            connection.target.is_none() && own.is_ok_and(|own| is_of_listener(&own, &local))
        };
        self.close_matching(was_accepted, switch, now);
    }

    /// Closes the connections that `is_meant` selects.
    fn close_matching(
        &mut self,
        is_meant: impl Fn(&Connection) -> bool,
        switch: &mut Switch,
        now: Duration,
    ) {
        let meant = self.connections.iter();
        let meant = meant.filter(|(_, connection)| is_meant(connection));
        let keys: Vec<_> = meant.map(|(key, _)| key).collect();
        for key in keys {
            self.close(key, "its address was removed", switch, now);
        }
    }
}

/// Returns whether an accepted connection's own address is that of a listener, by port or by file.
fn is_of_listener(own: &SockAddr, listener: &SockAddr) -> bool {
    match (own.as_socket(), listener.as_socket()) {
        (Some(own), Some(listener)) => own.port() == listener.port(),
        _ => own.as_pathname().is_some() && own.as_pathname() == listener.as_pathname(),
    }
}

/// A new address, resolved or listening. The caller's thread does this, since it may need much time.
pub(super) enum NewAddress {
    Listener(Listener),
    Target(Target),
}

impl NewAddress {
    /// Resolves the host of an active address, or binds a passive one.
    ///
    /// # Errors
    /// [`RunError`] if that fails.
    pub fn open(address: &Address) -> Result<Self, RunError> {
        if address.is_passive() {
            return Ok(Self::Listener(Listener::bind(address)?));
        }
        Ok(Self::Target(look_up(address)?))
    }
}

/// Resolves the host of an active address.
pub(super) fn look_up(address: &Address) -> Result<Target, RunError> {
    Target::new(address).map_err(|error| RunError::LookUp {
        address: address.clone(),
        error,
    })
}
