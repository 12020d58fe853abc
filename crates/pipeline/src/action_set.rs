//! The action set: at most one action of each kind, executed at the end of the pipeline (1.3.5 section 5.10).

use std::mem::discriminant;
use urtica_wire::{Action, Field};

/// An action set.
///
/// Its actions are in the order of execution; set-field actions are in the order in which they were written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ActionSet {
    actions: Vec<Action<'static>>,
}

impl ActionSet {
    /// Creates the set that results from writing these actions one after the other.
    pub fn from_actions(actions: &[Action<'static>]) -> Self {
        let mut set = Self::default();
        set.write_all(actions);
        set
    }

    /// Writes actions, each of which replaces an earlier one of its kind.
    pub fn write_all(&mut self, actions: &[Action<'static>]) {
        for &action in actions {
            self.write(action);
        }
    }

    /// Writes an action, which replaces an earlier one of its kind.
    pub fn write(&mut self, action: Action<'static>) {
        self.actions
            .retain(|earlier| !is_same_kind(earlier, &action));
        let at = self
            .actions
            .partition_point(|earlier| rank(earlier) <= rank(&action));
        self.actions.insert(at, action);
    }

    /// Removes all actions.
    pub fn clear(&mut self) {
        self.actions.clear();
    }

    /// Returns the actions, in the order of execution.
    pub fn actions(&self) -> &[Action<'static>] {
        &self.actions
    }
}

/// Returns `true` if one action replaces the other. A set has one set-field action per field, and may have both an output
/// and a group.
fn is_same_kind(a: &Action, b: &Action) -> bool {
    match (a, b) {
        (Action::SetField(a), Action::SetField(b)) => field_kind(a) == field_kind(b),
        _ => discriminant(a) == discriminant(b),
    }
}

fn field_kind(field: &Field) -> impl PartialEq {
    match field {
        Field::Basic { field, .. } => (Some(*field), 0, 0),
        Field::Raw(raw) => (None, raw.class, raw.field),
    }
}

/// Returns the position of an action's kind in the order of kinds (1.3.5 section 5.10: 1 to 10).
fn rank(action: &Action) -> u8 {
    match action {
        Action::CopyTtlIn => 1,
        Action::PopVlan | Action::PopMpls(_) | Action::PopPbb => 2,
        Action::PushMpls(_) => 3,
        Action::PushPbb(_) => 4,
        Action::PushVlan(_) => 5,
        Action::CopyTtlOut => 6,
        Action::DecMplsTtl | Action::DecNwTtl => 7,
        Action::SetField(_)
        | Action::SetMplsTtl(_)
        | Action::SetNwTtl(_)
        | Action::SetVlanVid(_)
        | Action::SetVlanPcp(_)
        | Action::SetTpSrc(_)
        | Action::SetTpDst(_)
        | Action::Experimenter { .. } => 8,
        Action::SetQueue(_) => 9,
        Action::Group(_) => 10,
        Action::Output { .. } | Action::Enqueue { .. } => 11,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use urtica_wire::{OxmField, PortNo};

    fn set_field(field: OxmField, value: u128) -> Action<'static> {
        Action::SetField(Field::exact(field, value))
    }

    #[test]
    fn action_sets_have_the_specified_order() {
        let in_order = [
            Action::CopyTtlIn,
            Action::PopVlan,
            Action::PushMpls(0x8847),
            Action::PushPbb(0x88e7),
            Action::PushVlan(0x8100),
            Action::CopyTtlOut,
            Action::DecMplsTtl,
            set_field(OxmField::EthSrc, 1),
            Action::SetQueue(1),
            Action::Group(1),
            Action::output(PortNo(1)),
        ];
        let mut backwards = in_order;
        backwards.reverse();
        assert_eq!(ActionSet::from_actions(&backwards).actions(), in_order);
    }

    #[test]
    fn action_sets_have_one_action_per_kind_and_field() {
        let set = ActionSet::from_actions(&[
            set_field(OxmField::EthSrc, 1),
            set_field(OxmField::EthDst, 2),
            set_field(OxmField::EthSrc, 3),
            Action::output(PortNo(1)),
            Action::output(PortNo(2)),
        ]);
        let left = [
            set_field(OxmField::EthDst, 2),
            set_field(OxmField::EthSrc, 3),
            Action::output(PortNo(2)),
        ];
        assert_eq!(set.actions(), left);
    }
}
