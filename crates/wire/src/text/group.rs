//! Groups: `group_id=1,type=select,bucket=weight:10,watch_port:1,actions=output:2`.

use super::ParseError;
use super::action::{DROP, parse_action, write_actions};
use super::item::{Item, Span};
use super::value::parse_port;
use crate::{
    Action, Bucket, GROUP_ALL, GROUP_ANY, GroupMod, GroupModCommand, GroupType, List, PortNo,
    Version,
};
use std::fmt::{self, Write};

const TYPES: [(GroupType, &str); 4] = [
    (GroupType::All, "all"),
    (GroupType::Select, "select"),
    (GroupType::Indirect, "indirect"),
    (GroupType::FastFailover, "ff"),
];

/// Longer names, which are only parsed.
const TYPE_ALIASES: [(GroupType, &str); 1] = [(GroupType::FastFailover, "fast_failover")];

const IDS: [(&str, u32); 2] = [("ALL", GROUP_ALL), ("ANY", GROUP_ANY)];

/// Returns the default weight, which is omitted when writing.
fn default_weight(group_type: GroupType) -> u16 {
    u16::from(group_type == GroupType::Select)
}

impl GroupMod<'static> {
    /// Parses a group like `ovs-ofctl add-group` and similar commands.
    ///
    /// An empty delete applies to all groups. A bucket's default weight is 1 in a select group, and 0 in others.
    ///
    /// # Errors
    /// A [`ParseError`] that names the column; also if an add or modify has no `group_id=`.
    pub fn parse(command: GroupModCommand, text: &str) -> Result<Self, ParseError> {
        let mut draft = Draft::default();
        let mut items = Span::new(text).items();
        for span in &mut items {
            draft.take(&span.item()?)?;
        }
        let group_id = match draft.group_id {
            Some(group_id) => group_id,
            None if command == GroupModCommand::Delete => GROUP_ALL,
            None => return Err(items.rest().error("names the group", "group_id=NUMBER")),
        };
        let group_type = draft.group_type.unwrap_or(GroupType::All);
        let buckets = draft.buckets.into_iter();
        Ok(Self {
            command,
            group_type,
            group_id,
            buckets: buckets.map(|bucket| bucket.finish(group_type)).collect(),
        })
    }
}

/// A group being parsed, whose type may follow its buckets.
#[derive(Default)]
struct Draft {
    group_id: Option<u32>,
    group_type: Option<GroupType>,
    buckets: Vec<BucketDraft>,
}

impl Draft {
    fn take(&mut self, item: &Item<'_>) -> Result<(), ParseError> {
        match (item.name(), self.buckets.last_mut()) {
            ("group_id", _) => self.group_id = Some(item.value()?.u32_or(&IDS)?),
            ("type", _) => self.group_type = Some(parse_type(item.value()?)?),
            ("bucket" | "buckets", _) => {
                let mut bucket = BucketDraft::default();
                if let Some(first) = item.value_if_any().filter(|value| !value.is_empty()) {
                    bucket.take(&first.item()?)?;
                }
                self.buckets.push(bucket);
            }
            (_, Some(bucket)) => bucket.take(item)?,
            (_, None) => {
                let error = item
                    .key
                    .error("is not part of a group", "group_id, type or bucket");
                return Err(error.or_did_you_mean(["group_id", "type", "bucket"].into_iter()));
            }
        }
        Ok(())
    }
}

fn parse_type(value: Span<'_>) -> Result<GroupType, ParseError> {
    let named = TYPES
        .iter()
        .chain(&TYPE_ALIASES)
        .find(|(_, name)| *name == value.text());
    match named {
        Some((group_type, _)) => Ok(*group_type),
        None => value.u8().map(GroupType::from).map_err(|_| {
            value.error(
                "is not a type of group",
                "all, select, indirect, ff, or a number",
            )
        }),
    }
}

/// A bucket being parsed.
#[derive(Default)]
struct BucketDraft {
    weight: Option<u16>,
    watch_port: Option<PortNo>,
    watch_group: Option<u32>,
    actions: Vec<Action<'static>>,
}

impl BucketDraft {
    fn take(&mut self, item: &Item<'_>) -> Result<(), ParseError> {
        match item.name() {
            "weight" => self.weight = Some(item.value()?.u16()?),
            "watch_port" => self.watch_port = Some(parse_port(item.value()?)?),
            "watch_group" => self.watch_group = Some(item.value()?.u32_or(&IDS)?),
            "actions" | "action" => return self.take(&item.value()?.item()?),
            "" | DROP => {}
            _ => {
                let words = ["weight", "watch_port", "watch_group", "actions"];
                self.actions.push(parse_action(item, words.into_iter())?);
            }
        }
        Ok(())
    }

    fn finish(self, group_type: GroupType) -> Bucket<'static> {
        Bucket {
            weight: self.weight.unwrap_or(default_weight(group_type)),
            watch_port: self.watch_port.unwrap_or(PortNo::ANY),
            watch_group: self.watch_group.unwrap_or(GROUP_ANY),
            actions: List::from(self.actions),
        }
    }
}

/// Writes the group for [`GroupMod::parse`], without the command.
impl fmt::Display for GroupMod<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_group(f, self.group_id, self.group_type, &self.buckets)
    }
}

/// Writes a group with its buckets.
pub(super) fn write_group<'a>(
    out: &mut dyn Write,
    group_id: u32,
    group_type: GroupType,
    buckets: &List<'a, Bucket<'a>>,
) -> fmt::Result {
    out.write_str("group_id=")?;
    write_group_id(out, group_id)?;
    match TYPES.iter().find(|(known, _)| *known == group_type) {
        Some((_, name)) => write!(out, ",type={name}")?,
        None => write!(out, ",type={}", u8::from(group_type))?,
    }
    buckets
        .iter()
        .try_for_each(|bucket| write_bucket(out, &bucket, group_type))
}

/// Writes a group's number, or the name of one that stands for several groups.
pub(super) fn write_group_id(out: &mut dyn Write, group_id: u32) -> fmt::Result {
    match IDS.iter().find(|(_, id)| *id == group_id) {
        Some((name, _)) => out.write_str(name),
        None => write!(out, "{group_id}"),
    }
}

fn write_bucket(out: &mut dyn Write, bucket: &Bucket<'_>, group_type: GroupType) -> fmt::Result {
    out.write_str(",bucket=")?;
    if bucket.weight != default_weight(group_type) {
        write!(out, "weight:{},", bucket.weight)?;
    }
    if bucket.watch_port != PortNo::ANY {
        write!(out, "watch_port:{},", bucket.watch_port)?;
    }
    if bucket.watch_group != GROUP_ANY {
        write!(out, "watch_group:{},", bucket.watch_group)?;
    }
    out.write_str("actions=")?;
    write_actions(out, &bucket.actions, Version::Of13)
}

const COMMANDS: [(GroupModCommand, &str); 3] = [
    (GroupModCommand::Add, "ADD"),
    (GroupModCommand::Modify, "MOD"),
    (GroupModCommand::Delete, "DEL"),
];

/// Writes a group mod as `ovs-ofctl ofp-print` does.
pub(super) fn write_group_mod(out: &mut dyn Write, group: &GroupMod<'_>) -> fmt::Result {
    match COMMANDS.iter().find(|(known, _)| *known == group.command) {
        Some((_, name)) => write!(out, "\n {name} {group}"),
        None => write!(out, "\n cmd:{} {group}", u16::from(group.command)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_default_by_the_type_of_group() {
        let weight = |text: &str| {
            let group = GroupMod::parse(GroupModCommand::Add, text).expect(text);
            group.buckets.iter().next().map(|bucket| bucket.weight)
        };
        assert_eq!(weight("group_id=1,bucket=output:1,type=select"), Some(1));
        assert_eq!(weight("group_id=1,type=all,bucket=output:1"), Some(0));
    }

    #[test]
    fn a_delete_without_a_group_is_for_all() {
        let group = GroupMod::parse(GroupModCommand::Delete, "").expect("a group");
        assert_eq!(group.to_string(), "group_id=ALL,type=all");
    }

    #[test]
    fn errors_are_sentences_with_a_column() {
        let error = |text: &str| {
            GroupMod::parse(GroupModCommand::Add, text)
                .expect_err(text)
                .to_string()
        };
        assert_eq!(
            error("type=all"),
            "column 9: nothing names the group; expected group_id=NUMBER"
        );
        assert_eq!(
            error("group_id=1,tpye=all"),
            "column 12: 'tpye' is not part of a group; did you mean 'type'?"
        );
        assert_eq!(
            error("group_id=1,bucket=wieght:3,output:1"),
            "column 19: 'wieght' is not an action; did you mean 'weight'?"
        );
    }
}
