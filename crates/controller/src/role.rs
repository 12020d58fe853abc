//! Roles: which of several controllers may change a switch (1.3.5 sections 6.3.6 and 7.3.9).

use parking_lot::Mutex;
use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;
use urtica_wire::{ControllerRole, DatapathId, Message, MultipartRequestBody};

/// A controller's role at a switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Role {
    /// Full access, shared with all other equals: each of them receives each packet-in. Every connection starts with this
    /// role.
    #[default]
    Equal,
    /// Full access, shared only with equals: the former primary becomes a secondary. OpenFlow 1.3 calls it master.
    Primary,
    /// Read access, and only port-status messages, unless [`SessionConfig::async_config`](crate::SessionConfig::async_config)
    /// selects others. OpenFlow 1.3 calls it slave.
    Secondary,
}

impl Role {
    /// Returns `true` if the role permits a controller to change the switch.
    pub fn may_write(self) -> bool {
        self != Self::Secondary
    }

    /// Returns the specification's role.
    pub(crate) fn to_wire(self) -> ControllerRole {
        match self {
            Self::Equal => ControllerRole::Equal,
            Self::Primary => ControllerRole::Master,
            Self::Secondary => ControllerRole::Slave,
        }
    }

    /// Returns the role with this number in the specification; `None` if the number is not that of a role.
    pub(crate) fn from_wire(role: ControllerRole) -> Option<Self> {
        match role {
            ControllerRole::Equal => Some(Self::Equal),
            ControllerRole::Master => Some(Self::Primary),
            ControllerRole::Slave => Some(Self::Secondary),
            ControllerRole::NoChange | ControllerRole::Other(_) => None,
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Self::Equal => "equal",
            Self::Primary => "primary",
            Self::Secondary => "secondary",
        })
    }
}

/// The error for a text that is not a [`Role`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a role: expected equal, primary or secondary")]
pub struct ParseRoleError(String);

impl FromStr for Role {
    type Err = ParseRoleError;

    fn from_str(text: &str) -> Result<Self, ParseRoleError> {
        match text.to_ascii_lowercase().as_str() {
            "equal" => Ok(Self::Equal),
            "primary" | "master" => Ok(Self::Primary),
            "secondary" | "slave" => Ok(Self::Secondary),
            _ => Err(ParseRoleError(text.into())),
        }
    }
}

/// A requested role.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoleRequest {
    /// The role.
    pub role: Role,
    /// The election that assigned the role. A switch refuses generations older than the newest it has received, by their
    /// signed distance (1.3.5 section 6.3.6). If `None`, the switch's newest is queried, and a primary uses the next.
    pub generation_id: Option<u64>,
}

impl From<Role> for RoleRequest {
    fn from(role: Role) -> Self {
        Self {
            role,
            generation_id: None,
        }
    }
}

/// Returns `true` if a message changes the switch: from a secondary, it is refused with OFPBRC_IS_SLAVE (1.3.5 section 6.3.6;
/// Open vSwitch also refuses meter mods).
pub(crate) fn is_write(message: &Message) -> bool {
    match message {
        Message::PacketOut(_)
        | Message::FlowMod(_)
        | Message::GroupMod(_)
        | Message::PortMod(_)
        | Message::TableMod(_)
        | Message::MeterMod(_) => true,
        Message::MultipartRequest(request) => match &request.body {
            MultipartRequestBody::TableFeatures(tables) => !tables.is_empty(),
            _ => false,
        },
        _ => false,
    }
}

/// The roles requested while the controller runs: they override [`SessionConfig::role`](crate::SessionConfig::role) whenever
/// a switch connects.
#[derive(Debug, Default)]
pub(crate) struct WantedRoles(Mutex<Wanted>);

#[derive(Debug, Default)]
struct Wanted {
    of_all: Option<RoleRequest>,
    /// The roles requested at single switches since.
    of: HashMap<DatapathId, RoleRequest>,
}

impl WantedRoles {
    /// Returns the role requested at this switch, if any.
    pub fn get(&self, switch: DatapathId) -> Option<RoleRequest> {
        let wanted = self.0.lock();
        wanted.of.get(&switch).copied().or(wanted.of_all)
    }

    /// Returns `true` if a role other than the initial one is requested at any switch.
    pub fn is_any(&self) -> bool {
        let wanted = self.0.lock();
        let mut all = wanted.of.values().chain(&wanted.of_all);
        all.any(|request| request.role != Role::Equal)
    }

    pub fn set(&self, switch: DatapathId, request: RoleRequest) {
        self.0.lock().of.insert(switch, request);
    }

    pub fn set_all(&self, request: RoleRequest) {
        *self.0.lock() = Wanted {
            of_all: Some(request),
            of: HashMap::new(),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_parse_as_displayed_and_by_specified_names() {
        for role in [Role::Equal, Role::Primary, Role::Secondary] {
            assert_eq!(role.to_string().parse(), Ok(role));
            assert_eq!(Role::from_wire(role.to_wire()), Some(role));
        }
        assert_eq!("MASTER".parse(), Ok(Role::Primary));
        assert_eq!("slave".parse(), Ok(Role::Secondary));
        let refused = "leader".parse::<Role>().unwrap_err().to_string();
        assert_eq!(
            refused,
            "'leader' is not a role: expected equal, primary or secondary"
        );
    }

    #[test]
    fn last_requested_role_wins() {
        let wanted = WantedRoles::default();
        let [one, two] = [1, 2].map(DatapathId);
        assert_eq!((wanted.get(one), wanted.is_any()), (None, false));
        wanted.set_all(Role::Equal.into());
        assert!(!wanted.is_any());
        wanted.set(one, Role::Primary.into());
        assert_eq!(wanted.get(one), Some(Role::Primary.into()));
        assert_eq!(wanted.get(two), Some(Role::Equal.into()));
        assert!(wanted.is_any());
        wanted.set_all(Role::Secondary.into());
        assert_eq!(wanted.get(one), Some(Role::Secondary.into()));
        assert_eq!(wanted.get(two), Some(Role::Secondary.into()));
        wanted.set(two, Role::Equal.into());
        assert_eq!(wanted.get(two), Some(Role::Equal.into()));
    }
}
