//! Word of switches that come, change and go, for programs that run beside the handlers.

use crate::SwitchInfo;
use async_broadcast::{InactiveReceiver, Receiver, RecvError, Sender};
use std::collections::VecDeque;
use std::sync::Arc;
use urtica_wire::PortStatus;

/// How many events wait for a program that does not take them. Beyond that the oldest go, and it is told how many.
const CAPACITY: usize = 4096;

/// What happened to a switch.
#[derive(Clone, Debug)]
pub enum NetworkEvent {
    /// It is connected, its ports are known, and its handlers' [`switch_up`](crate::SwitchHandler::switch_up) has been
    /// called.
    Up(Arc<SwitchInfo>),
    /// One of its ports came, went, or changed. The switch's ports say so already.
    Port(Arc<SwitchInfo>, PortStatus),
    /// It has gone, or another connection has taken its place.
    Down(Arc<SwitchInfo>),
    /// So many events were lost, since they were not taken in time: what was learnt from events is to be learnt anew from
    /// [`Network::switches`](crate::Network::switches).
    Missed(u64),
}

/// What happens to switches, in order: see [`Network::events`](crate::Network::events).
pub struct NetworkEvents {
    /// What was so before this was asked for.
    before: VecDeque<NetworkEvent>,
    receiver: Receiver<NetworkEvent>,
}

impl NetworkEvents {
    /// Waits for what happens next. `None` once the controller is gone.
    pub async fn next(&mut self) -> Option<NetworkEvent> {
        if let Some(event) = self.before.pop_front() {
            return Some(event);
        }
        match self.receiver.recv_direct().await {
            Ok(event) => Some(event),
            Err(RecvError::Overflowed(count)) => Some(NetworkEvent::Missed(count)),
            Err(RecvError::Closed) => None,
        }
    }
}

/// Where events are told.
pub(crate) struct Events {
    sender: Sender<NetworkEvent>,
    /// Keeps the sender open while nobody listens.
    _nobody: InactiveReceiver<NetworkEvent>,
}

impl Events {
    pub fn new() -> Self {
        let (mut sender, receiver) = async_broadcast::broadcast(CAPACITY);
        sender.set_overflow(true);
        Self {
            sender,
            _nobody: receiver.deactivate(),
        }
    }

    pub fn tell(&self, event: NetworkEvent) {
        // Fails where nobody listens.
        let _ = self.sender.try_broadcast(event);
    }

    /// Events from now on, after those that tell of how things are.
    pub fn listen(&self, before: VecDeque<NetworkEvent>) -> NetworkEvents {
        NetworkEvents {
            before,
            receiver: self.sender.new_receiver(),
        }
    }
}
