//! Ryu's `rest_qos`: marks and meters packets, and assigns queues to them, before other programs forward them.
//!
//! **What.** A filter: its entries are in table 0, and all packets continue to table 1, which has the entries of forwarding
//! programs. Ryu's forwarding programs had to be changed for this; here programs use the right table automatically.
//!
//! **Priorities.** An entry's priority is one above its rule's, since the entry that passes all other packets has the lowest.
//!
//! **Meters.** As in Ryu's book, rules may use a meter that does not exist yet: they are installed with it.
//!
//! **Limits.** It uses existing queues and creates none. OpenFlow 1.0 has neither meters nor a second table: such a switch
//! gets no entries, and programs after the filter answer each of its packets themselves.

use super::membership::{Membership, replace_entries};
use super::rules::{Rules, RyuRule};
use super::store::{Ruled, RyuError, Store, confirmed};
use crate::registry::{About, Row};
use std::collections::BTreeMap;
use std::sync::Arc;
use urtica_controller::{
    Background, EntryOptions, Program, RequestError, Stage, Switch, SwitchHandler, SwitchInfo,
};
use urtica_wire::{
    Action, DatapathId, ErrorMessage, FlowMod, Instruction, List, Match, Message, MeterMod,
    MeterModCommand, Version,
};

/// The table of the programs that forward.
const NEXT_TABLE: u8 = 1;

/// The priority of the entry that passes all other packets.
const DEFAULT_PRIORITY: u16 = 1;

/// The maximum number of meters of one switch.
const MAX_METERS: usize = 4_096;

/// The quality of service controlled by requests, with rules for each switch. Clones share its state.
#[derive(Clone, Default)]
pub struct RestQos(Arc<Store<Shaped>>);

/// The actions on the packets of a rule before they are forwarded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QosAction {
    /// The DSCP to set.
    pub mark: Option<u8>,
    /// The meter to pass through.
    pub meter: Option<u32>,
    /// The queue to use at any output port.
    pub queue: Option<u32>,
}

/// The state of a switch.
#[derive(Default)]
struct Shaped {
    rules: Rules<QosAction>,
    meters: BTreeMap<u32, MeterMod<'static>>,
}

impl Ruled for Shaped {
    type Action = QosAction;
    const RAISED_BY: u16 = DEFAULT_PRIORITY;

    fn rules(&mut self) -> &mut Rules<QosAction> {
        &mut self.rules
    }

    fn entry(&self, rule: &RyuRule<QosAction>) -> Message<'static> {
        let QosAction { mark, meter, queue } = rule.action;
        let actions = [mark.map(Action::set_ip_dscp), queue.map(Action::SetQueue)];
        let actions: Vec<_> = actions.into_iter().flatten().collect();
        let apply = (!actions.is_empty()).then(|| Instruction::apply(actions));
        let instructions = [meter.map(Instruction::Meter), apply];
        entry(
            rule.match_.clone(),
            rule.options(Self::RAISED_BY),
            instructions.into_iter().flatten(),
        )
    }

    fn may_wait(&self, rule: &RyuRule<QosAction>) -> bool {
        let meter = rule.action.meter;
        meter.is_some_and(|meter| !self.meters.contains_key(&meter))
    }
}

/// Returns an entry that executes `actions` and passes packets to the next table.
fn entry(
    match_: Match<'static>,
    options: EntryOptions,
    first: impl Iterator<Item = Instruction<'static>>,
) -> Message<'static> {
    let instructions: Vec<_> = first.chain([Instruction::GotoTable(NEXT_TABLE)]).collect();
    Message::FlowMod(FlowMod {
        match_,
        instructions: List::from(instructions),
        ..options.flow_mod()
    })
}

/// Returns the entry that passes packets without a rule.
fn default_entry() -> Message<'static> {
    let options = EntryOptions::PERMANENT.priority(DEFAULT_PRIORITY);
    entry(Match::any(), options, std::iter::empty())
}

/// The program's row in the registry of `urtica run`.
pub(crate) static ROW: Row = Row {
    about: About::new(
        "rest_qos",
        "marks, meters and queues packets as requests to --northbound specify, as Ryu's did",
    ),
    add: |setup, ()| {
        let qos = setup.ryu().qos.clone();
        setup.add(qos);
        Ok(())
    },
};

impl RestQos {
    /// The minimum priority of a rule, which is also the default.
    pub const MIN_PRIORITY: u16 = 1;

    /// The maximum priority of a rule.
    pub const MAX_PRIORITY: u16 = u16::MAX - 1;

    /// Returns the connected switches, in order.
    pub fn switches(&self) -> Vec<DatapathId> {
        self.0.switches()
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
    pub fn rules(&self, id: DatapathId) -> Result<Vec<RyuRule<QosAction>>, RyuError> {
        self.0.rules(id)
    }

    /// Adds a rule for packets that `match_` matches, which must include the VLAN unless that is 0. It replaces a rule with
    /// an equal match and priority. Returns its number once the switch has confirmed it, or has refused it for lack of the
    /// rule's meter.
    ///
    /// # Errors
    /// [`RyuError`]. Rules that the switch refuses are not stored.
    pub async fn add_rule(
        &self,
        id: DatapathId,
        vlan_id: u16,
        priority: u16,
        match_: Match<'static>,
        action: QosAction,
    ) -> Result<u32, RyuError> {
        let store = &self.0;
        store.add_rule(id, vlan_id, priority, match_, action).await
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
    ) -> Result<Vec<RyuRule<QosAction>>, RyuError> {
        self.0.delete_rules(id, vlan_id, rule_id).await
    }

    /// Adds or changes a meter, and installs the rules that wait for it.
    ///
    /// # Errors
    /// [`RyuError`]. Rules that the switch refuses are not stored.
    pub async fn set_meter(
        &self,
        id: DatapathId,
        meter: MeterMod<'static>,
    ) -> Result<(), RyuError> {
        let meter_id = meter.meter_id;
        let (before, pending) = self.0.with(id, |shaped, network| {
            let before = shaped.meters.get(&meter_id).cloned();
            if before.is_none() && shaped.meters.len() == MAX_METERS {
                return Err(RyuError::TooManyMeters);
            }
            let command = match before {
                Some(_) => MeterModCommand::Modify,
                None => MeterModCommand::Add,
            };
            let rules = shaped.rules.iter();
            let waiting = rules.filter(|rule| rule.action.meter == Some(meter_id));
            let meter_mod = Message::MeterMod(MeterMod {
                command,
                ..meter.clone()
            });
            let entries = waiting.map(|rule| shaped.entry(rule));
            let all: Vec<_> = [meter_mod].into_iter().chain(entries).collect();
            let pending = network.confirm(id, &all)?;
            shaped.meters.insert(meter_id, meter);
            Ok((before, pending))
        })?;
        let done = confirmed(pending).await;
        if let Err(RyuError::Request(RequestError::Refused(_))) = done {
            self.0.correct(id, |shaped| match before {
                Some(before) => drop(shaped.meters.insert(meter_id, before)),
                None => drop(shaped.meters.remove(&meter_id)),
            });
        }
        done
    }

    /// Deletes a meter and the rules that use it, whose entries the switch deletes as well (1.3.5 section 6.4). Returns
    /// whether it existed.
    ///
    /// # Errors
    /// [`RyuError`].
    pub async fn delete_meter(&self, id: DatapathId, meter_id: u32) -> Result<bool, RyuError> {
        let pending = self.0.with(id, |shaped, network| {
            if !shaped.meters.contains_key(&meter_id) {
                return Ok(None);
            }
            let deletion = MeterMod {
                command: MeterModCommand::Delete,
                ..MeterMod::kbps(meter_id, [])
            };
            let pending = network.confirm(id, &[Message::MeterMod(deletion)])?;
            shaped.meters.remove(&meter_id);
            shaped
                .rules
                .retain(|rule| rule.action.meter != Some(meter_id));
            Ok(Some(pending))
        })?;
        match pending {
            None => Ok(false),
            Some(pending) => confirmed(pending).await.map(|()| true),
        }
    }
}

impl Program for RestQos {
    fn handler(&self, _: &SwitchInfo) -> Box<dyn SwitchHandler> {
        Box::new(QosHandler(Membership::new(&self.0)))
    }

    fn start(&self, background: &Background) {
        self.0.start(background.network());
    }

    fn stage(&self) -> Stage {
        Stage::Filter
    }
}

/// The handler of one switch.
struct QosHandler(Membership<Shaped>);

impl SwitchHandler for QosHandler {
    fn switch_up(&mut self, switch: &mut Switch) {
        let (id, info) = (switch.datapath_id(), switch.info());
        if info.version == Version::Of10 || info.n_tables <= NEXT_TABLE {
            urtica_log::error!(about: id, dp_id = %id, "rest_qos does not manage the switch: expected OpenFlow 1.3 and two flow tables");
            return;
        }
        self.0.join(id, |shaped| install(shaped, switch));
        tracing::info!(dp_id = %id, "rest_qos manages the switch");
    }

    fn error(&mut self, switch: &mut Switch, _xid: u32, error: &ErrorMessage) {
        let code = error.code;
        urtica_log::warn!(about: switch.datapath_id(), dp_id = %switch.datapath_id(), %code, "the switch refused an entry or a meter of rest_qos when it connected");
    }

    fn role_changed(&mut self, switch: &mut Switch) {
        self.0.role_changed(switch);
    }

    fn switch_down(&mut self, info: &SwitchInfo) {
        self.0.leave(info.datapath_id);
    }
}

/// Sends a switch all meters and entries, which replace those of an earlier connection.
fn install(shaped: &Shaped, switch: &mut Switch) {
    let id = switch.datapath_id();
    // The switch may have the meter of an earlier connection. It is deleted first, so that it can be added in either case.
    let meters = shaped.meters.values().flat_map(|meter| {
        let command = |command| MeterMod {
            command,
            ..meter.clone()
        };
        [
            Message::MeterMod(command(MeterModCommand::Delete)),
            Message::MeterMod(command(MeterModCommand::Add)),
        ]
    });
    let rules = shaped.rules.iter().map(|rule| shaped.entry(rule));
    let all = [default_entry()].into_iter().chain(meters).chain(rules);
    if let Err(error) = replace_entries(switch, all) {
        urtica_log::error!(about: id, dp_id = %id, %error, "rest_qos cannot set up the switch");
    }
}
