//! The settings of sessions.

use crate::role::{Role, WantedRoles};
use crate::setting::{SettingError, expect_time};
use crate::stage::Tables;
use std::sync::Arc;
use std::time::Duration;
use urtica_wire::{AsyncConfig, Version};

/// Settings of the sessions with switches: versions, time-outs, keep-alive.
///
/// ```
/// use std::time::Duration;
/// use urtica_controller::SessionConfig;
///
/// let mut session = SessionConfig::default();
/// session.echo_interval = Duration::from_secs(1);
/// session.dead_interval = Duration::from_secs(3);
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SessionConfig {
    /// The offered versions of OpenFlow; at least one.
    pub versions: Vec<Version>,
    /// The time in which a peer must send its features reply, and a 1.3 switch its port descriptions. Not zero.
    pub handshake_timeout: Duration,
    /// The time without a message from the switch after which an echo request is sent. Not zero.
    pub echo_interval: Duration,
    /// The time without a message after which the switch is considered dead. More than `echo_interval`; the difference is the
    /// time to answer the first echo request, even if that was sent late because the program was stopped.
    pub dead_interval: Duration,
    /// Whether 1.3 switches get a table-miss entry that sends packets to the controller. Without it they drop packets that
    /// match no entry (1.3.5 section 5.4).
    pub table_miss: bool,
    /// The number of tables that get one, from table 0, if the switch has as many. A controller sets this from its programs'
    /// [`Stage`](crate::Stage)s.
    pub tables: u8,
    /// The role requested from each switch. No request is sent for [`Role::Equal`], which every connection starts with.
    pub role: Role,
    /// The asynchronous messages requested from switches (1.3.5 section 7.3.10; in 1.0 by Nicira's extension), if they differ
    /// from the default: as a primary or equal, and as a secondary.
    pub async_config: Option<AsyncConfig>,
    /// Roles requested while the controller runs, which override `role`.
    pub(crate) roles: Arc<WantedRoles>,
    /// The programs that use the session.
    pub(crate) clients: Clients,
}

/// The programs that use a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Clients {
    /// Programs that rely on its configuration of the switch.
    #[default]
    Programs,
    /// A raw program, which configures the switch itself.
    Raw,
    /// A raw program, and services that need the switch's ports.
    RawAndServices,
}

impl Default for SessionConfig {
    fn default() -> Self {
        Self {
            versions: Version::ALL.to_vec(),
            handshake_timeout: Duration::from_secs(10),
            echo_interval: Duration::from_secs(5),
            dead_interval: Duration::from_secs(15),
            table_miss: true,
            tables: 1,
            role: Role::Equal,
            async_config: None,
            roles: Arc::default(),
            clients: Clients::Programs,
        }
    }
}

impl SessionConfig {
    /// Rejects settings that no session can use.
    pub(crate) fn check(&self) -> Result<(), SettingError> {
        let Self {
            versions,
            handshake_timeout,
            echo_interval,
            dead_interval,
            ..
        } = self;
        if versions.is_empty() {
            let sentence = "SessionConfig::versions is empty: expected OpenFlow 1.0, 1.3 or both";
            return Err(SettingError::new(sentence));
        }
        expect_time("SessionConfig::handshake_timeout", *handshake_timeout)?;
        expect_time("SessionConfig::echo_interval", *echo_interval)?;
        if dead_interval <= echo_interval {
            return Err(SettingError::new(format!(
                "SessionConfig::dead_interval is {dead_interval:?}: expected more than echo_interval, {echo_interval:?}, or \
                 a quiet switch is considered dead before an echo request is sent"
            )));
        }
        Ok(())
    }

    pub(crate) fn for_tables(self, tables: Tables) -> Self {
        Self {
            tables: tables.count(),
            ..self
        }
    }
}
