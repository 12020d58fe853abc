//! The state that a program stores for switches, and the requests to them.

use super::router::RouterError;
use super::rules::{Full, Rules, RyuRule, deletion};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::time::Duration;
use urtica_controller::{Network, PendingReply, RequestError};
use urtica_wire::{DatapathId, EncodeError, Match, Message};

/// The time for a switch to confirm the changes of a request.
const REPLY_WITHIN: Duration = Duration::from_secs(10);

/// The reason why a request failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RyuError {
    /// The program does not run, or the switch is not connected.
    #[error(
        "switch {0} is not connected, or the program does not run: expected a switch that is, and the program among those of urtica run"
    )]
    NotConnected(DatapathId),
    /// The switch has too many rules.
    #[error(transparent)]
    Full(#[from] Full),
    /// The switch has too many meters.
    #[error("the switch has 4,096 meters already: expected fewer, so delete some first")]
    TooManyMeters,
    /// An address or a route conflicts with a router's others.
    #[error(transparent)]
    Router(#[from] RouterError),
    /// A message could not be sent to the switch, or the switch has refused it.
    #[error(transparent)]
    Request(#[from] RequestError),
}

impl From<EncodeError> for RyuError {
    fn from(error: EncodeError) -> Self {
        Self::Request(error.into())
    }
}

/// The state of all switches, which is kept when they disconnect.
pub(super) struct Store<S>(Mutex<State<S>>);

struct State<S> {
    /// The network, once the program runs.
    network: Option<Network>,
    /// The connected switches, with the numbers of their connections.
    up: BTreeMap<DatapathId, u64>,
    connections: u64,
    states: BTreeMap<DatapathId, S>,
}

impl<S> Default for Store<S> {
    fn default() -> Self {
        Self(Mutex::new(State {
            network: None,
            up: BTreeMap::new(),
            connections: 0,
            states: BTreeMap::new(),
        }))
    }
}

impl<S: Default> Store<S> {
    /// Notes that the program runs.
    pub fn start(&self, network: &Network) {
        self.0.lock().network = Some(network.with_deadline(REPLY_WITHIN));
    }

    /// Notes that a switch is connected. `install` sends its stored state, before any request can change it. Returns the
    /// connection's number.
    pub fn join(&self, id: DatapathId, install: impl FnOnce(&mut S)) -> u64 {
        let mut kept = self.0.lock();
        kept.connections += 1;
        let connection = kept.connections;
        kept.up.insert(id, connection);
        match kept.states.get_mut(&id) {
            Some(state) => install(state),
            None => install(&mut S::default()),
        }
        connection
    }

    /// Notes that a connection has ended. A newer connection of the switch continues.
    pub fn leave(&self, id: DatapathId, connection: u64) {
        let mut kept = self.0.lock();
        if kept.up.get(&id) == Some(&connection) {
            kept.up.remove(&id);
        }
    }

    /// Returns the connected switches.
    pub fn switches(&self) -> Vec<DatapathId> {
        self.0.lock().up.keys().copied().collect()
    }

    /// Reads or changes the stored state of a switch. `act` must send the corresponding messages, and change nothing if that
    /// fails.
    pub fn with<R>(
        &self,
        id: DatapathId,
        act: impl FnOnce(&mut S, &Network) -> Result<R, RyuError>,
    ) -> Result<R, RyuError> {
        let mut kept = self.0.lock();
        let State {
            network,
            up,
            states,
            ..
        } = &mut *kept;
        match network {
            Some(network) if up.contains_key(&id) => act(states.entry(id).or_default(), network),
            _ => Err(RyuError::NotConnected(id)),
        }
    }

    /// Changes the stored state of a switch, connected or not, if any: for instance after a refusal.
    pub fn correct(&self, id: DatapathId, act: impl FnOnce(&mut S)) {
        if let Some(state) = self.0.lock().states.get_mut(&id) {
            act(state);
        }
    }
}

/// The state of a switch with rules.
pub(super) trait Ruled: Default {
    /// The type of a rule's action.
    type Action: Clone;

    /// The amount by which an entry's priority is above its rule's.
    const RAISED_BY: u16;

    fn rules(&mut self) -> &mut Rules<Self::Action>;

    /// Returns the entry of a rule.
    fn entry(&self, rule: &RyuRule<Self::Action>) -> Message<'static>;

    /// Returns whether a rule is stored although the switch refuses it, since a later request may add the missing meter.
    fn may_wait(&self, _rule: &RyuRule<Self::Action>) -> bool {
        false
    }
}

impl<S: Ruled> Store<S> {
    /// Adds a rule, and returns its number once the switch has it. A rule that the switch refuses is not stored.
    pub async fn add_rule(
        &self,
        id: DatapathId,
        vlan_id: u16,
        priority: u16,
        match_: Match<'static>,
        action: S::Action,
    ) -> Result<u32, RyuError> {
        let (rule, replaced, pending, may_wait) = self.with(id, |state, network| {
            let (rule, replaced) = state.rules().add(vlan_id, priority, match_, action)?;
            match network.confirm(id, &[state.entry(&rule)]) {
                Ok(pending) => {
                    let may_wait = state.may_wait(&rule);
                    Ok((rule, replaced, pending, may_wait))
                }
                Err(error) => {
                    state.rules().take_back(&rule, replaced);
                    Err(error.into())
                }
            }
        })?;
        match confirmed(pending).await {
            Err(RyuError::Request(RequestError::Refused(_))) if may_wait => Ok(rule.id),
            Err(error @ RyuError::Request(RequestError::Refused(_))) => {
                self.correct(id, |state| state.rules().take_back(&rule, replaced));
                Err(error)
            }
            done => done.map(|()| rule.id),
        }
    }

    /// Deletes the rules with this number in this VLAN; `None` selects all. Returns them once the switch has deleted their
    /// entries.
    pub async fn delete_rules(
        &self,
        id: DatapathId,
        vlan_id: Option<u16>,
        rule_id: Option<u32>,
    ) -> Result<Vec<RyuRule<S::Action>>, RyuError> {
        let (deleted, pending) = self.with(id, |state, network| {
            let deleted = state.rules().delete(vlan_id, rule_id);
            let deletions: Vec<_> = deleted
                .iter()
                .map(|rule| {
                    let priority = rule.priority + S::RAISED_BY;
                    let entry = deletion(network.program(), priority, rule.match_.clone());
                    Message::FlowMod(entry)
                })
                .collect();
            match network.confirm(id, &deletions) {
                Ok(pending) => {
                    state.rules().forget_vlans();
                    Ok((deleted, pending))
                }
                Err(error) => {
                    state.rules().restore(deleted);
                    Err(error.into())
                }
            }
        })?;
        confirmed(pending).await?;
        Ok(deleted)
    }

    /// Returns the VLANs for which a switch has rules, and 0.
    pub fn vlans(&self, id: DatapathId) -> Result<Vec<u16>, RyuError> {
        self.with(id, |state, _| Ok(state.rules().vlans()))
    }

    /// Returns the rules of a switch, in the order in which they were added.
    pub fn rules(&self, id: DatapathId) -> Result<Vec<RyuRule<S::Action>>, RyuError> {
        self.with(id, |state, _| Ok(state.rules().iter().cloned().collect()))
    }
}

/// Waits until a switch has processed the messages.
pub(super) async fn confirmed(pending: PendingReply) -> Result<(), RyuError> {
    Ok(pending.await.map(drop)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_ends_of_old_connections_keep_newer_ones() {
        let store: Store<u8> = Store::default();
        let id = DatapathId(1);
        let old = store.join(id, |_| {});
        let new = store.join(id, |_| {});
        store.leave(id, old);
        assert_eq!(store.switches(), [id]);
        store.leave(id, new);
        assert_eq!(store.switches(), []);
    }

    #[test]
    fn absent_switches_have_no_stored_state() {
        let store: Store<u8> = Store::default();
        let id = DatapathId(1);
        let refused = store.with(id, |_, _| Ok(()));
        assert_eq!(refused, Err(RyuError::NotConnected(id)));
        assert!(store.0.lock().states.is_empty());
    }
}
