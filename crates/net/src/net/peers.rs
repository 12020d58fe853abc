//! Peers of the controller that are no switches of this network: one that has another's datapath id, and such as speak something else.
//!
//! **How.** They have no channel: bytes go to and fro whenever the controller has had a turn, and nothing of them is under way.

use super::{Net, NetError};
use crate::SwitchId;
use urtica_controller::ConnectionId;
use urtica_switch::{Switch, SwitchConfig};

/// How often bytes may go to and fro at one moment.
const MAX_ROUNDS: usize = 100;

/// One such peer.
pub(super) struct Peer {
    /// Its connection, as the controller names it.
    id: ConnectionId,
    /// Who answers; nobody does for one that only ever said what it had to say.
    answers: Option<(Box<Switch>, urtica_switch::ConnectionId)>,
}

impl Net {
    /// Has another switch connect to the controller that has the datapath id of this one, and no ports. It is gone when the controller ends
    /// its connection.
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

    /// Has somebody connect to the controller who says this and then nothing more. It is gone when the controller ends its connection.
    pub fn connect_stranger(&mut self, bytes: &[u8]) {
        if let Some(id) = self.connect_peer("a stranger") {
            self.peers.push(Peer { id, answers: None });
            self.say_to_controller(id, bytes);
        }
    }

    /// How many peers the controller has beside the switches of this network.
    pub fn peers(&self) -> usize {
        self.peers.len()
    }

    /// The controller has ended a connection: if a peer's, it is gone.
    pub(super) fn forget_peer(&mut self, id: ConnectionId) {
        let count = self.peers.len();
        self.peers.retain(|peer| peer.id != id);
        if self.peers.len() < count {
            self.disconnect_peer(id);
        }
    }

    /// Takes bytes to and fro until nobody has anything to say.
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
                // One that the switch ends stays silent, and the controller ends it in turn.
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
