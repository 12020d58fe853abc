//! Ryu's `rest_firewall`: each switch forwards the packets that its rules allow.
//!
//! **What.** A switch drops all packets until its firewall is enabled. Then it forwards ARP and the packets that a rule
//! allows, as a learning switch (`NORMAL`). All others are dropped, and logged while logging is on, which is the default.
//!
//! ```text
//! priority 65535     everything       drop, while disabled
//! priority 65534     ARP              NORMAL
//! priority 1..65533  rules            NORMAL, or to the controller for the log, or drop
//! priority 0         everything else  to the controller, which drops it
//! ```
//! **Differences from Ryu.** A switch that reconnects gets its rules again, which Ryu forgot. If logging is off, packets
//! without a rule are still sent to the controller, which drops them: the entry that sends them is the framework's.

use super::membership::{Membership, replace_entries};
use super::rules::{self, Rules, RyuRule};
use super::store::{Ruled, RyuError, Store, confirmed};
use crate::Verdict;
use crate::registry::{About, Row};
use std::sync::Arc;
use tracing::field::display;
use urtica_controller::{Background, EntryOptions, Program, Switch, SwitchHandler, SwitchInfo};
use urtica_wire::packet::{Headers, ether_type};
use urtica_wire::{
    Action, DatapathId, ErrorMessage, FlowMod, Instruction, List, Match, Message, PacketIn, PortNo,
};

/// The priority of the entry that drops everything.
const STATUS_PRIORITY: u16 = u16::MAX;

/// The priority of the entry for ARP.
const ARP_PRIORITY: u16 = STATUS_PRIORITY - 1;

/// The number of bytes of a packet that are sent to the controller for its log.
const LOGGED_BYTES: u16 = 128;

/// The firewall controlled by requests, with rules for each switch. Clones share its state.
#[derive(Clone, Default)]
pub struct RestFirewall(Arc<Store<Guarded>>);

/// The status of a switch's firewall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FirewallStatus {
    /// Whether the switch forwards the allowed packets. If `false`, it drops all packets.
    pub is_enabled: bool,
    /// Whether dropped packets are logged.
    pub logs: bool,
}

/// The state of a switch.
struct Guarded {
    status: FirewallStatus,
    rules: Rules<Verdict>,
}

impl Default for Guarded {
    fn default() -> Self {
        Self {
            status: FirewallStatus {
                is_enabled: false,
                logs: true,
            },
            rules: Rules::default(),
        }
    }
}

impl Ruled for Guarded {
    type Action = Verdict;
    const RAISED_BY: u16 = 0;

    fn rules(&mut self) -> &mut Rules<Verdict> {
        &mut self.rules
    }

    fn entry(&self, rule: &RyuRule<Verdict>) -> Message<'static> {
        let action = match (rule.action, self.status.logs) {
            (Verdict::Allow, _) => Some(Action::output(PortNo::NORMAL)),
            (Verdict::Deny, true) => Some(Action::Output {
                port: PortNo::CONTROLLER,
                max_len: LOGGED_BYTES,
            }),
            (Verdict::Deny, false) => None,
        };
        flow_mod(rule.match_.clone(), rule.options(Self::RAISED_BY), action)
    }
}

/// The program's row in the registry of `urtica run`.
pub(crate) static ROW: Row = Row {
    about: About::forwarder(
        "rest_firewall",
        "forwards only the packets that requests to --northbound allow, as Ryu's did",
    ),
    add: |setup, ()| {
        let firewall = setup.ryu().firewall.clone();
        setup.add(firewall);
        Ok(())
    },
};

impl RestFirewall {
    /// The minimum priority of a rule, which is also the default.
    pub const MIN_PRIORITY: u16 = 1;

    /// The maximum priority of a rule.
    pub const MAX_PRIORITY: u16 = ARP_PRIORITY - 1;

    /// Returns the connected switches, in order.
    pub fn switches(&self) -> Vec<DatapathId> {
        self.0.switches()
    }

    /// Returns the status of a switch's firewall.
    ///
    /// # Errors
    /// [`RyuError::NotConnected`].
    pub fn status(&self, id: DatapathId) -> Result<FirewallStatus, RyuError> {
        self.0.with(id, |guarded, _| Ok(guarded.status))
    }

    /// Enables or disables the firewall of a switch. Resolves once the switch has confirmed that.
    ///
    /// # Errors
    /// [`RyuError`]. A switch that has not answered gets the setting again when it connects.
    pub async fn enable(&self, id: DatapathId, is_enabled: bool) -> Result<(), RyuError> {
        let pending = self.0.with(id, |guarded, network| {
            let message = match is_enabled {
                true => Message::FlowMod(rules::deletion(
                    network.program(),
                    STATUS_PRIORITY,
                    Match::any(),
                )),
                false => stop(),
            };
            let pending = network.confirm(id, &[message])?;
            guarded.status.is_enabled = is_enabled;
            Ok(pending)
        })?;
        confirmed(pending).await
    }

    /// Sets whether the packets that a switch drops are logged.
    ///
    /// # Errors
    /// Like [`RestFirewall::enable`].
    pub async fn log(&self, id: DatapathId, logs: bool) -> Result<(), RyuError> {
        let pending = self.0.with(id, |guarded, network| {
            let before = std::mem::replace(&mut guarded.status.logs, logs);
            let denying = guarded.rules.iter();
            let denying = denying.filter(|rule| rule.action == Verdict::Deny);
            let entries: Vec<_> = denying.map(|rule| guarded.entry(rule)).collect();
            let sent = network.confirm(id, &entries);
            sent.map_err(|error| {
                guarded.status.logs = before;
                error.into()
            })
        })?;
        confirmed(pending).await
    }

    /// Returns the VLANs for which a switch has rules, and 0.
    ///
    /// # Errors
    /// [`RyuError::NotConnected`].
    pub fn vlans(&self, id: DatapathId) -> Result<Vec<u16>, RyuError> {
        self.0.vlans(id)
    }

    /// Returns the rules of a switch, in the order in which they were added.
    ///
    /// # Errors
    /// [`RyuError::NotConnected`].
    pub fn rules(&self, id: DatapathId) -> Result<Vec<RyuRule<Verdict>>, RyuError> {
        self.0.rules(id)
    }

    /// Adds a rule for packets that `match_` matches, which must include the VLAN unless that is 0. It replaces a rule with
    /// an equal match and priority. Returns its number once the switch has confirmed it.
    ///
    /// # Errors
    /// [`RyuError`]. Rules that the switch refuses are not stored.
    pub async fn add_rule(
        &self,
        id: DatapathId,
        vlan_id: u16,
        priority: u16,
        match_: Match<'static>,
        verdict: Verdict,
    ) -> Result<u32, RyuError> {
        let store = &self.0;
        store.add_rule(id, vlan_id, priority, match_, verdict).await
    }

    /// Deletes the rules with this number in this VLAN; `None` selects all. Returns them.
    ///
    /// # Errors
    /// [`RyuError`].
    pub async fn delete_rules(
        &self,
        id: DatapathId,
        vlan_id: Option<u16>,
        rule_id: Option<u32>,
    ) -> Result<Vec<RyuRule<Verdict>>, RyuError> {
        self.0.delete_rules(id, vlan_id, rule_id).await
    }
}

/// Returns the entry that drops everything.
fn stop() -> Message<'static> {
    let options = EntryOptions::PERMANENT.priority(STATUS_PRIORITY);
    Message::FlowMod(options.flow_mod())
}

/// Returns the entry that passes ARP.
fn arp() -> Message<'static> {
    let options = EntryOptions::PERMANENT.priority(ARP_PRIORITY);
    flow_mod(
        Match::any().eth_type(ether_type::ARP),
        options,
        Some(Action::output(PortNo::NORMAL)),
    )
}

fn flow_mod(
    match_: Match<'static>,
    options: EntryOptions,
    action: Option<Action<'static>>,
) -> Message<'static> {
    let apply = action.map(|action| Instruction::apply(vec![action]));
    Message::FlowMod(FlowMod {
        match_,
        instructions: List::from(Vec::from_iter(apply)),
        ..options.flow_mod()
    })
}

impl Program for RestFirewall {
    fn handler(&self, _: &SwitchInfo) -> Box<dyn SwitchHandler> {
        Box::new(FirewallHandler {
            firewall: self.clone(),
            membership: Membership::new(&self.0),
        })
    }

    fn start(&self, background: &Background) {
        self.0.start(background.network());
    }
}

/// The handler of one switch.
struct FirewallHandler {
    firewall: RestFirewall,
    membership: Membership<Guarded>,
}

impl SwitchHandler for FirewallHandler {
    fn switch_up(&mut self, switch: &mut Switch) {
        let id = switch.datapath_id();
        self.membership.join(id, |guarded| install(guarded, switch));
        tracing::info!(dp_id = %id, "rest_firewall guards the switch");
    }

    fn packet_in(&mut self, switch: &mut Switch, packet: &PacketIn) {
        // Programs after the firewall must not forward the packet.
        switch.consume();
        let id = switch.datapath_id();
        let status = self.firewall.status(id);
        if !status.is_ok_and(|status| status.logs) {
            return;
        }
        let (in_port, headers) = (packet.in_port(), Headers::parse(packet.data));
        let (eth_src, eth_dst) = (packet.eth_src(), packet.eth_dst());
        let ip_src = headers.ip_src.map(display);
        let ip_dst = headers.ip_dst.map(display);
        let Headers {
            ip_proto, dst_port, ..
        } = headers;
        urtica_log::info!(about: id, dp_id = %id, %in_port, %eth_src, %eth_dst, ip_src, ip_dst, ip_proto, dst_port, "rest_firewall has blocked a packet");
    }

    fn error(&mut self, switch: &mut Switch, _xid: u32, error: &ErrorMessage) {
        let code = error.code;
        urtica_log::error!(about: switch.datapath_id(), dp_id = %switch.datapath_id(), %code, "the switch refused an entry of rest_firewall that it had accepted in an earlier connection");
    }

    fn role_changed(&mut self, switch: &mut Switch) {
        self.membership.role_changed(switch);
    }

    fn switch_down(&mut self, info: &SwitchInfo) {
        self.membership.leave(info.datapath_id);
    }
}

/// Sends a switch all entries, which replace those of an earlier connection.
fn install(guarded: &Guarded, switch: &mut Switch) {
    let id = switch.datapath_id();
    let rules = guarded.rules.iter();
    let entries = rules.map(|rule| guarded.entry(rule));
    // The entry that drops is sent first, since packets may arrive at any time.
    let stopped = (!guarded.status.is_enabled).then(stop);
    let all = stopped.into_iter().chain([arp()]).chain(entries);
    if let Err(error) = replace_entries(switch, all) {
        urtica_log::error!(about: id, dp_id = %id, %error, "rest_firewall cannot guard the switch");
    }
}
