//! Peers of the controller that are not switches of this network: a switch with the datapath id of another, and peers that do
//! not speak OpenFlow.
//!
//! **How.** They have no channel: bytes are exchanged whenever the controller has processed its input, and are never in flight.

use super::{Net, NetError};
use crate::SwitchId;
use urtica_controller::ConnectionId;
use urtica_switch::{Switch, SwitchConfig};

/// The maximum number of exchanges at one moment.
const MAX_ROUNDS: usize = 100;

/// A peer that is not a switch of this network.
pub(super) struct Peer {
    /// Its connection, as the controller identifies it.
    id: ConnectionId,
    /// The switch that answers; `None` for a peer that only sends prepared bytes.
    answers: Option<(Box<Switch>, urtica_switch::ConnectionId)>,
}

impl Net {
    /// Connects another switch, without ports, to the controller. It has the datapath id of this one. It is removed when the
    /// controller closes its connection.
    ///
    /// # Errors
    /// [`NetError::NoSuchId`].
    pub fn connect_impostor(&mut self, switch: SwitchId) -> Result<(), NetError> {
        let config = SwitchConfig {
            datapath_id: self.datapath_id(switch)?,
            ..self.config.switch.clone()
        };
        let now = self.now();
        let mut impostor = Box::new(Switch::new(config));
        let connection = impostor.connect("the controller".into(), now);
        if let Some(id) = self.connect_peer("an impostor") {
            let answers = Some((impostor, connection));
            self.peers.push(Peer { id, answers });
            self.serve_peers();
        }
        Ok(())
    }

    /// Connects a peer to the controller that sends these bytes and nothing else. It is removed when the controller closes its
    /// connection.
    pub fn connect_stranger(&mut self, bytes: &[u8]) {
        if let Some(id) = self.connect_peer("a stranger") {
            self.peers.push(Peer { id, answers: None });
            self.say_to_controller(id, bytes);
        }
    }

    /// Returns the number of peers that are not switches of this network.
    pub fn peers(&self) -> usize {
        self.peers.len()
    }

    /// Removes the peer, if any, whose connection the controller has closed.
    pub(super) fn forget_peer(&mut self, id: ConnectionId) {
        let count = self.peers.len();
        self.peers.retain(|peer| peer.id != id);
        if self.peers.len() < count {
            self.disconnect_peer(id);
        }
    }

    /// Exchanges bytes until no peer has any to send.
    pub(super) fn serve_peers(&mut self) {
        let now = self.now();
        for _ in 0..MAX_ROUNDS {
            let mut said = Vec::new();
            for place in 0..self.peers.len() {
                let to_peer = self.take_output(self.peers[place].id);
                let peer = &mut self.peers[place];
                let Some((switch, connection)) = &mut peer.answers else {
                    continue;
                };
                // A switch that closes its connection stays silent, so the controller closes it, too.
                let _ = switch.handle_input(*connection, &to_peer, now);
                let _ = switch.handle_timeout(now);
                let output = switch.output(*connection).map(std::mem::take);
                said.push((peer.id, output.unwrap_or_default()));
            }
            said.retain(|(_, bytes)| !bytes.is_empty());
            if said.is_empty() {
                return;
            }
            for (id, bytes) in said {
                self.say_to_controller(id, &bytes);
            }
        }
    }
}
