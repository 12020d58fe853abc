//! Sessions that continue in the next program, from a word that contains their state.
//!
//! The next program sends no hello, and takes the switch's identity from the stored features reply, so that the switch's
//! packet-ins are answered at once. It requests the ports again, since they may have changed.

use super::{Phase, Session, SessionConfig};
use crate::{Ports, Role, SwitchInfo};
use std::time::Instant;
use urtica_wire::{Message, Version};

/// The bits of the word for the counter of the last xid. The bytes above contain the phase, the version, the number of tables
/// with table-miss entries, and our role.
const XID_BITS: u32 = 32;

/// The reason why a session cannot continue.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unusable {
    #[error("it speaks OpenFlow {0}, which is not enabled here")]
    Version(Version),
    #[error("the stored state of its session is invalid")]
    Nonsense,
    #[error("it is an auxiliary connection; the switch is expected to open it again")]
    Auxiliary,
}

impl Session {
    /// Returns its state as a word.
    pub(crate) fn to_word(&self) -> u64 {
        let (phase, version) = match self.phase {
            Phase::New => (0, 0),
            Phase::Hello => (1, 0),
            // It is unknown whether the switch has granted a role: the request is repeated, from the features on.
            Phase::Features(version) | Phase::Role(version) => (2, version.to_wire()),
            Phase::Up(version) | Phase::ReadOnly(version) => (3, version.to_wire()),
        };
        let role = match self.role() {
            Role::Equal => 0,
            Role::Primary => 1,
            Role::Secondary => 2,
        };
        let bytes = [phase, version, self.tables_with_misses(), role];
        u64::from(self.xids.last()) | u64::from(u32::from_le_bytes(bytes)) << XID_BITS
    }

    /// Returns the word with `xid` as the counter of the last xid.
    pub(crate) fn word_with_xid(word: u64, xid: u32) -> u64 {
        word >> XID_BITS << XID_BITS | u64::from(xid)
    }

    fn tables_with_misses(&self) -> u8 {
        let has_all = self.role().may_write() && self.table_misses.is_settled();
        match self.config.table_miss && has_all {
            true => self.config.tables,
            false => 0,
        }
    }

    /// Continues the session from this word and, if its switch had joined, from its features reply. Writes requests for
    /// missing data to `out`. Returns the switch, without ports, if it had joined.
    pub(crate) fn resume(
        config: SessionConfig,
        peer: String,
        now: Instant,
        kept: (u64, &[u8]),
        out: &mut Vec<u8>,
    ) -> Result<(Self, Option<SwitchInfo>), Unusable> {
        let (word, features) = kept;
        let mut session = Self::new(config, peer, now);
        session.xids.go_on_after(word as u32);
        let [phase, version, tables, role] = ((word >> XID_BITS) as u32).to_le_bytes();
        match phase {
            0 => return Ok((session, None)),
            1 => {
                session.phase = Phase::Hello;
                return Ok((session, None));
            }
            2 | 3 => {}
            _ => return Err(Unusable::Nonsense),
        }
        let version = Version::from_wire(version).map_err(|_| Unusable::Nonsense)?;
        if !session.config.versions.contains(&version) {
            return Err(Unusable::Version(version));
        }
        if phase == 2 {
            session.ask_for_features(version, out);
            return Ok((session, None));
        }
        let Ok((_, Message::FeaturesReply(features))) = Message::decode(features) else {
            return Err(Unusable::Nonsense);
        };
        if features.auxiliary_id != 0 {
            return Err(Unusable::Auxiliary);
        }
        let mut info = SwitchInfo::new(version, session.peer.clone(), &features);
        info.ports = Ports::default();
        session.resume_role(role_of(role).ok_or(Unusable::Nonsense)?);
        info.role = session.role();
        session.n_tables = info.n_tables;
        session.phase = session.phase_of_role(version);
        session.ask_for_rest(version, tables, out);
        let wanted = session.wanted_role(info.datapath_id);
        if wanted.role != session.role() {
            session.ask_for_role(now, wanted, out);
        }
        Ok((session, Some(info)))
    }

    /// Requests the ports of a switch that had joined, and adds table-miss entries if the last program used other tables.
    fn ask_for_rest(&mut self, version: Version, tables: u8, out: &mut Vec<u8>) {
        self.awaits_ports = true;
        match version {
            Version::Of10 => {
                self.port_desc_xid = Some(self.write(version, &Message::FeaturesRequest, out));
            }
            Version::Of13 => {
                self.ask_for_ports(version, out);
                if tables != self.config.tables && self.role().may_write() {
                    self.write_table_misses(version, 0..self.n_tables, out);
                }
            }
        }
    }
}

/// Returns the role with this number in the word.
fn role_of(number: u8) -> Option<Role> {
    match number {
        0 => Some(Role::Equal),
        1 => Some(Role::Primary),
        2 => Some(Role::Secondary),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
