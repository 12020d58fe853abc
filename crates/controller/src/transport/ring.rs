//! Input through the shard's ring: see `input_ring.rs`.

use super::{Channel, Front, Transport};
use crate::RingCounts;
use crate::input_ring::InputRing;
use crate::mailbox::Token;
use std::io;
use urtica_wire::Version;

impl<C: Channel> Transport<C> {
    /// Returns `true` if input arrives through the ring instead of the socket.
    pub fn is_owned_by_ring(&self) -> bool {
        matches!(&self.front, Front::Ring(input) if input.is_owned_by_ring())
    }

    /// Returns `true` if the connection is attached to the shard's ring.
    pub fn has_ring(&self) -> bool {
        matches!(self.front, Front::Ring(_))
    }

    /// Returns `true` if the ring may be attached now: the connection has a plain socket, whose input has all been read,
    /// and neither a kernel half nor a holder.
    pub fn may_get_ring(&self) -> bool {
        let is_free = matches!(self.front, Front::Program) && self.hold.is_none();
        is_free && self.has_handled_all() && self.channel.socket().is_some()
    }

    /// Attaches it to the ring, unless that must be tried again later.
    ///
    /// # Errors
    /// If it cannot be attached; its socket is read instead.
    pub fn attach_to_ring(
        &mut self,
        ring: &mut dyn InputRing,
        token: Token,
        version: Version,
    ) -> io::Result<()> {
        let Some(socket) = self.channel.socket() else {
            return Ok(());
        };
        match ring.attach(token, socket, version) {
            Ok(input) => self.front = Front::Ring(input),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => {
                self.front = Front::RefusedByRing;
                return Err(error);
            }
        }
        Ok(())
    }

    /// Hands input over to the ring if none is left to read, or requests it back if the switch does not read its replies.
    pub fn settle_ring(&mut self) {
        let (is_stalled, has_handled_all) = (self.is_stalled(), self.has_handled_all());
        let Front::Ring(ring) = &mut self.front else {
            return;
        };
        if ring.is_owned_by_ring() {
            if is_stalled {
                ring.ask_back();
            }
        } else if has_handled_all && ring.hand_over(&self.input) {
            self.input.clear();
        }
    }

    /// Reads from the socket again if the ring has passed input. All earlier entries of the ring have been handled.
    pub fn take_back_from_ring(&mut self) {
        if let Front::Ring(ring) = &mut self.front {
            ring.take_back(&mut self.input);
        }
    }

    /// Returns `true` if the ring has lost the socket.
    pub fn is_lost_by_ring(&mut self) -> bool {
        match (&mut self.front, self.channel.socket()) {
            (Front::Ring(ring), Some(socket)) => ring.is_found_lost(socket),
            _ => false,
        }
    }

    /// Returns the ring's counts since the last call.
    pub fn take_ring_counts(&mut self) -> Option<RingCounts> {
        match &mut self.front {
            Front::Ring(ring) => Some(ring.take_counts()),
            _ => None,
        }
    }

    fn has_handled_all(&self) -> bool {
        self.is_drained && !self.is_stalled()
    }
}
