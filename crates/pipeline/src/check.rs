//! Checks of instructions and actions (1.3.5 sections 5.9 to 5.12, 6.4 and 7.4.4).
//!
//! Valid ones are converted to owned values, which contain only features that the pipeline supports.

use crate::prerequisites::Known;
use crate::{ActionSet, EntryMatch, Instructions, Pipeline};
use urtica_wire::packet::ether_type;
use urtica_wire::{
    Action, ErrorCode, Field, Instruction, List, OxmField, PortNo, VLAN_PRESENT, Version,
};

/// The highest VLAN id and priority.
const VLAN_VID_MAX: u16 = 0xfff;
const VLAN_PCP_MAX: u8 = 7;

/// Returns whether a set-field action may set a field: all header fields, and the tunnel id. 1.3.5 section 7.2.5 excludes
/// others: "are not supported, because those are not header fields". The extension headers follow from the packet.
pub(crate) fn is_settable(field: OxmField) -> bool {
    use OxmField::*;
    !matches!(field, InPort | InPhyPort | Metadata | Ipv6Exthdr)
}

impl Pipeline {
    /// Checks the actions of a packet-out, which may output to [`PortNo::TABLE`].
    ///
    /// # Errors
    /// The errors of 1.3.5 section 7.4.4.3 (OFPET_BAD_ACTION).
    pub fn check_packet_out(&self, actions: &List<Action>) -> Result<(), ErrorCode> {
        let mut actions = actions.iter();
        actions.try_for_each(|action| match action {
            Action::Output {
                port: PortNo::TABLE,
                ..
            } => Ok(()),
            other => self.check_action(&other).map(drop),
        })
    }

    /// Checks and converts the instructions of an entry of `table_id` with this match.
    ///
    /// 1.0 ignores an action if the packet does not have its field; 1.3 requires that the match ensures the field.
    ///
    /// # Errors
    /// The errors of 1.3.5 sections 7.4.4.3, 7.4.4.4 and 7.4.4.13 for an instruction or action. A repeated instruction is
    /// unsupported (OFPBIC_UNSUP_INST), since 1.3 has no separate code, and so is a goto in 1.0.
    pub(crate) fn check_instructions(
        &self,
        version: Version,
        table_id: u8,
        match_: &EntryMatch,
        instructions: &List<Instruction>,
    ) -> Result<Instructions, ErrorCode> {
        let known = match version {
            Version::Of10 => None,
            Version::Of13 => Some(Known::from_fields(match_.fields())),
        };
        // The action set is executed after all applied actions, whatever the order of the instructions.
        let known_of_set = known.map(|known| known.after(applied(instructions)));
        let mut checked = Instructions::default();
        for instruction in instructions {
            let is_new = match instruction {
                Instruction::Meter(id) => put(&mut checked.meter, self.check_meter(id)?),
                Instruction::ApplyActions(actions) => {
                    put(&mut checked.apply, self.check_list(&actions, known)?)
                }
                Instruction::ClearActions => !std::mem::replace(&mut checked.clear, true),
                Instruction::WriteActions(actions) => {
                    put(&mut checked.write, self.check_set(&actions, known_of_set)?)
                }
                Instruction::WriteMetadata { metadata, mask } => {
                    put(&mut checked.metadata, (metadata & mask, mask))
                }
                // A modify of 1.0 applies to all tables, so a goto would lead backwards from some.
                Instruction::GotoTable(_) if version == Version::Of10 => false,
                Instruction::GotoTable(next) => {
                    put(&mut checked.goto, self.check_goto(table_id, next)?)
                }
                Instruction::Experimenter { .. } => {
                    return Err(ErrorCode::BadInstructionBadExperimenter);
                }
            };
            if !is_new {
                return Err(ErrorCode::BadInstructionUnsupInst);
            }
        }
        Ok(checked)
    }

    /// Checks and converts a bucket's action set. Its packets may be of any kind.
    pub(crate) fn check_bucket(
        &self,
        actions: &List<Action>,
    ) -> Result<Vec<Action<'static>>, ErrorCode> {
        self.check_set(actions, None)
    }

    fn check_meter(&self, meter_id: u32) -> Result<u32, ErrorCode> {
        match self.meters.get(meter_id) {
            Some(_) => Ok(meter_id),
            None => Err(ErrorCode::MeterModFailedInvalidMeter),
        }
    }

    /// A goto must lead to a later table, so that packets cannot loop (1.3.5 section 5.1).
    fn check_goto(&self, table_id: u8, next: u8) -> Result<u8, ErrorCode> {
        match next > table_id && next < self.config().n_tables {
            true => Ok(next),
            false => Err(ErrorCode::BadInstructionBadTableId),
        }
    }

    /// Checks and converts a list of actions. Frees unused capacity, since there may be a million lists.
    fn check_list(
        &self,
        actions: &List<Action>,
        known: Option<Known>,
    ) -> Result<Vec<Action<'static>>, ErrorCode> {
        let mut checked: Vec<_> = actions
            .iter()
            .map(|action| self.check_action(&action))
            .collect::<Result<_, _>>()?;
        check_consistent(&checked, known)?;
        checked.shrink_to_fit();
        Ok(checked)
    }

    /// Converts actions that are executed in the order of an action set.
    fn check_set(
        &self,
        actions: &List<Action>,
        known: Option<Known>,
    ) -> Result<Vec<Action<'static>>, ErrorCode> {
        let checked = self.check_list(actions, None)?;
        check_consistent(ActionSet::from_actions(&checked).actions(), known)?;
        Ok(checked)
    }

    /// Checks and converts a single action.
    fn check_action(&self, action: &Action) -> Result<Action<'static>, ErrorCode> {
        use Action::*;
        Ok(match *action {
            Output { port, max_len } => Output {
                port: self.check_out_port(port)?,
                max_len,
            },
            Enqueue { port, queue_id } => self.check_enqueue(port, queue_id)?,
            Group(id) => Group(self.check_out_group(id)?),
            SetField(field) => SetField(check_set_field(&field)?),
            PushVlan(eth_type) => PushVlan(one_of(
                eth_type,
                [ether_type::VLAN, ether_type::SERVICE_VLAN],
            )?),
            PushMpls(eth_type) => PushMpls(one_of(
                eth_type,
                [ether_type::MPLS, ether_type::MPLS_MULTICAST],
            )?),
            PushPbb(eth_type) => PushPbb(one_of(eth_type, [ether_type::PBB])?),
            SetVlanVid(vid) => SetVlanVid(at_most(vid, VLAN_VID_MAX)?),
            SetVlanPcp(pcp) => SetVlanPcp(at_most(pcp, VLAN_PCP_MAX)?),
            Experimenter { .. } => return Err(ErrorCode::BadActionBadExperimenter),
            CopyTtlOut => CopyTtlOut,
            CopyTtlIn => CopyTtlIn,
            SetMplsTtl(ttl) => SetMplsTtl(ttl),
            DecMplsTtl => DecMplsTtl,
            PopVlan => PopVlan,
            PopMpls(eth_type) => PopMpls(eth_type),
            SetQueue(queue_id) => SetQueue(queue_id),
            SetNwTtl(ttl) => SetNwTtl(ttl),
            DecNwTtl => DecNwTtl,
            PopPbb => PopPbb,
            SetTpSrc(port) => SetTpSrc(port),
            SetTpDst(port) => SetTpDst(port),
        })
    }

    /// Checks that a port exists, or is a reserved port for outputs. The specification does not define outputs to missing
    /// ports; an error is clearer than lost packets.
    fn check_out_port(&self, port: PortNo) -> Result<PortNo, ErrorCode> {
        let is_reserved = matches!(
            port,
            PortNo::IN_PORT | PortNo::NORMAL | PortNo::FLOOD | PortNo::ALL | PortNo::CONTROLLER
        );
        match is_reserved || self.has_port(port) {
            true => Ok(port),
            false => Err(ErrorCode::BadActionBadOutPort),
        }
    }

    /// Checks a port, which must exist or be the ingress port, and its queue (1.0 sections 5.2.4 and 5.4.4).
    fn check_enqueue(&self, port: PortNo, queue_id: u32) -> Result<Action<'static>, ErrorCode> {
        if port != PortNo::IN_PORT && !self.has_port(port) {
            return Err(ErrorCode::BadActionBadOutPort);
        }
        match self.has_queue(port, queue_id) {
            true => Ok(Action::Enqueue { port, queue_id }),
            false => Err(ErrorCode::BadActionBadQueue),
        }
    }

    fn check_out_group(&self, group_id: u32) -> Result<u32, ErrorCode> {
        match self.groups.get(group_id) {
            Some(_) => Ok(group_id),
            None => Err(ErrorCode::BadActionBadOutGroup),
        }
    }
}

/// Returns the actions that instructions apply.
fn applied<'a>(instructions: &List<'a, Instruction<'a>>) -> impl Iterator<Item = Action<'a>> {
    instructions
        .iter()
        .flat_map(|instruction| match instruction {
            Instruction::ApplyActions(actions) => actions.iter().collect::<Vec<_>>(),
            _ => Vec::new(),
        })
}

/// Fills an empty option; returns `false` if it has a value.
fn put<T>(place: &mut Option<T>, value: T) -> bool {
    place.replace(value).is_none()
}

fn one_of<const N: usize>(eth_type: u16, allowed: [u16; N]) -> Result<u16, ErrorCode> {
    match allowed.contains(&eth_type) {
        true => Ok(eth_type),
        false => Err(ErrorCode::BadActionBadArgument),
    }
}

fn at_most<T: PartialOrd>(value: T, max: T) -> Result<T, ErrorCode> {
    match value <= max {
        true => Ok(value),
        false => Err(ErrorCode::BadActionBadArgument),
    }
}

/// Checks that a whole field is set, to a value of its width, and a VLAN id with OFPVID_PRESENT, since it needs a tag.
fn check_set_field(field: &Field) -> Result<Field<'static>, ErrorCode> {
    let &Field::Basic { field, value, mask } = field else {
        return Err(ErrorCode::BadActionBadSetType);
    };
    if !is_settable(field) {
        return Err(ErrorCode::BadActionBadSetType);
    }
    let full = field.full_mask();
    let present = field != OxmField::VlanVid || value & u128::from(VLAN_PRESENT) != 0;
    match mask == full && value & !full == 0 && present {
        true => Ok(Field::exact(field, value)),
        false => Err(ErrorCode::BadActionBadSetArgument),
    }
}

/// Checks that all packets of the entry have the headers for each action, after the previous actions.
fn check_consistent(actions: &[Action], known: Option<Known>) -> Result<(), ErrorCode> {
    let Some(mut known) = known else {
        return Ok(());
    };
    for action in actions {
        let applies = match action {
            Action::SetField(Field::Basic { field, .. }) => known.allows(*field),
            other => !known.contradicts(other),
        };
        if !applies {
            return Err(ErrorCode::BadActionMatchInconsistent);
        }
        known.learn_action(action);
    }
    Ok(())
}
