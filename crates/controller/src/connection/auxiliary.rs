//! Auxiliary connections (1.3.5 section 6.3.7): additional connections of a switch that has a main one.
//!
//! An auxiliary connection belongs to the shard of its main connection. It has its own session, buffers and backlog. While
//! its messages are handled, it borrows the switch, the handlers and the xids from the main connection. So handlers see the
//! messages of one switch one after the other, and replies are sent on the connection of the message that they answer.
//! Messages sent through a [`Network`](crate::Network) use the main connection.

use super::{Channel, Close, Connection};
use crate::batch::BatchContext;
use crate::mailbox::{Command, Token};
use std::sync::Arc;
use urtica_wire::DatapathId;

/// The maximum number of auxiliary connections of a switch.
pub(crate) const MAX_AUXILIARIES: usize = 16;

/// The reason for closing an auxiliary connection together with its main one.
const MAIN_ENDED: &str = "its main connection has ended";

const REPLACED: &str = "a newer auxiliary connection has the same id";

/// The state that only auxiliary connections have.
pub(super) struct Auxiliary {
    datapath_id: DatapathId,
    id: u8,
    /// The main connection, once it is found.
    main: Option<Token>,
}

impl<C: Channel> Connection<C> {
    /// Makes this an auxiliary connection, as its features reply requires.
    pub(super) fn become_auxiliary(&mut self, datapath_id: DatapathId, id: u8) -> Close {
        self.auxiliary = Some(Auxiliary {
            datapath_id,
            id,
            main: None,
        });
        Close::ToMain
    }

    /// Returns `true` if this is an auxiliary connection.
    pub fn is_auxiliary(&self) -> bool {
        self.auxiliary.is_some()
    }

    /// Returns `true` if this is one of several connections of its switch, which stay on one shard.
    pub fn has_siblings(&self) -> bool {
        self.is_auxiliary() || !self.auxiliaries.is_empty()
    }

    /// Returns its main connection, if it is an auxiliary one that has found it.
    pub fn main(&self) -> Option<Token> {
        self.auxiliary.as_ref()?.main
    }

    /// Returns the datapath id of the switch whose main connection it still has to find.
    pub fn awaits_main(&self) -> Option<DatapathId> {
        let auxiliary = self.auxiliary.as_ref()?;
        auxiliary.main.is_none().then_some(auxiliary.datapath_id)
    }

    /// Returns [`Close::ToMain`] as an error until the main connection is found, so that the shard finds it.
    pub fn expect_main(&self) -> Result<(), Close> {
        match self.awaits_main() {
            Some(_) => Err(Close::ToMain),
            None => Ok(()),
        }
    }

    /// Returns the token of the connection by which the registry knows its switch.
    pub(super) fn switch_token(&self) -> Token {
        self.main().unwrap_or(self.token)
    }

    /// Returns the reason for refusing it, if its switch has no main connection.
    pub fn without_main(&self) -> Close {
        let (id, switch) = match &self.auxiliary {
            Some(auxiliary) => (auxiliary.id, auxiliary.datapath_id.to_string()),
            None => (0, String::new()),
        };
        Close::Auxiliary(format!(
            "auxiliary connection {id} of switch {switch} refused: the switch has no main connection here; expected the main connection first"
        ))
    }

    /// Makes it an auxiliary connection of `main`, which is on its shard. `is_open` tests whether an earlier auxiliary
    /// connection is still open.
    pub fn attach(
        &mut self,
        main: &mut Self,
        is_open: impl Fn(Token) -> bool,
        batch: &BatchContext,
    ) -> Result<(), Close> {
        let Some(auxiliary) = &mut self.auxiliary else {
            return Ok(());
        };
        let (id, switch) = (auxiliary.id, auxiliary.datapath_id);
        if main.session.version() != self.session.version() {
            return Err(Close::Auxiliary(format!(
                "auxiliary connection {id} of switch {switch} refused: expected the version that the main connection uses"
            )));
        }
        let expected = host(main.session.peer());
        if host(self.session.peer()) != expected {
            return Err(Close::Auxiliary(format!(
                "auxiliary connection {id} of switch {switch} refused: expected it from {expected}, as the main connection"
            )));
        }
        main.auxiliaries.retain(|&(_, token)| is_open(token));
        let same = main.auxiliaries.iter().position(|&(other, _)| other == id);
        if let Some(older) = same {
            let (_, token) = main.auxiliaries.swap_remove(older);
            close_later(token, REPLACED, batch);
        }
        if main.auxiliaries.len() >= MAX_AUXILIARIES {
            return Err(Close::Auxiliary(format!(
                "auxiliary connection {id} of switch {switch} refused: expected {MAX_AUXILIARIES} of them at most"
            )));
        }
        auxiliary.main = Some(main.token);
        main.auxiliaries.push((id, self.token));
        self.counters = Arc::clone(&main.counters);
        self.counters.auxiliaries.add(1);
        self.received_before = self.counters.received.get();
        urtica_log::info!(about: (switch, id), dp_id = %switch, auxiliary_id = id, peer = self.session.peer(), "auxiliary connection joined");
        Ok(())
    }

    /// Borrows the switch from the main connection for one batch.
    pub fn borrow_from(&mut self, main: &mut Self, batch: &BatchContext) {
        main.reclaim(batch);
        self.exchange_with(main);
        self.session.follow_role(main.session.role());
    }

    /// Returns the switch to the main connection.
    pub fn return_to(&mut self, main: &mut Self) {
        self.exchange_with(main);
        main.session.follow_role(self.session.role());
    }

    fn exchange_with(&mut self, main: &mut Self) {
        std::mem::swap(&mut self.switch, &mut main.switch);
        std::mem::swap(&mut self.session.xids, &mut main.session.xids);
    }

    /// Closes the auxiliary connections of a main connection that ends.
    pub(super) fn close_auxiliaries(&mut self, batch: &BatchContext) {
        for (_, token) in self.auxiliaries.drain(..) {
            close_later(token, MAIN_ENDED, batch);
        }
    }
}

/// Returns the host of a peer's address, without scheme and port. Connections of one switch "must use the same source IP
/// address"; the rest may differ (1.3.5 section 6.3.7).
fn host(peer: &str) -> &str {
    let name = urtica_log::without_port(peer);
    name.split_once(':').map_or(name, |(_, host)| host)
}

/// Makes the shard close one of its connections after the current batch.
fn close_later(token: Token, reason: &'static str, batch: &BatchContext) {
    let close = Command::Close { token, reason };
    // Fails only if the shard has ended, and the connection with it.
    let _ = batch.network.shard(batch.shard).mailbox.push(close);
}

#[cfg(test)]
mod tests {
    use super::host;

    #[test]
    fn connections_are_grouped_by_host_address() {
        assert_eq!(host("tcp:192.0.2.1:4711"), host("ssl:192.0.2.1:4712"));
        assert_eq!(host("tcp:[2001:db8::1]:4711"), "[2001:db8::1]");
        assert_ne!(host("tcp:192.0.2.1:4711"), host("tcp:192.0.2.2:4711"));
    }
}
