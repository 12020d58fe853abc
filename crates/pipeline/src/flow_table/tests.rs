//! Differential tests: random changes and queries are applied to a table and to its reference model, a plain list.

use super::*;
use crate::Instructions;
use crate::counters::EntryCounters;
use crate::linked_counters::LinkedCounters;

use crate::packet::testing::{ALL, hex, hostile};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use std::sync::LazyLock;
use urtica_wire::{Field, FlowModFlags, FlowRemovedReason, Match, OxmField, PortNo, Version};

/// A table without an index.
#[derive(Debug, Default)]
struct PlainTable {
    entries: Vec<Arc<FlowEntry>>,
}

impl PlainTable {
    fn insert(&mut self, entry: FlowEntry) {
        let priority = entry.priority;
        let mut entries = self.entries.iter_mut();
        match entries.find(|old| old.priority == priority && old.match_ == entry.match_) {
            Some(twin) => *twin = Arc::new(entry),
            None => {
                let at = self.entries.partition_point(|old| old.priority >= priority);
                self.entries.insert(at, Arc::new(entry));
            }
        }
    }

    fn find(&self, packet: &Packet) -> Option<&Arc<FlowEntry>> {
        let mut entries = self.entries.iter();
        entries.find(|entry| entry.match_.matches(packet))
    }

    fn remove(&mut self, goes: impl Fn(&FlowEntry) -> bool) -> Vec<Arc<FlowEntry>> {
        let (gone, kept) = std::mem::take(&mut self.entries)
            .into_iter()
            .partition(|entry| goes(entry));
        self.entries = kept;
        gone
    }

    fn replace(&mut self, replace: impl Fn(&FlowEntry) -> Option<FlowEntry>) {
        for entry in &mut self.entries {
            if let Some(replacement) = replace(entry) {
                *entry = Arc::new(replacement);
            }
        }
    }
}

impl FlowTable {
    /// Removes the entries of a scope that `goes` accepts, and returns them in order.
    fn remove(&mut self, scope: Scope, goes: impl Fn(&FlowEntry) -> bool) -> Vec<Arc<FlowEntry>> {
        let gone = self.select_ranked(scope, goes);
        for (rank, entry) in &gone {
            self.take_out(*rank, entry);
        }
        self.tidy_timers();
        gone.into_iter().map(|(_, entry)| entry).collect()
    }

    /// Replaces each entry of a scope for which `replace` returns another.
    fn replace(
        &mut self,
        scope: Scope,
        counts: Counts,
        replace: impl Fn(&FlowEntry) -> Option<FlowEntry>,
    ) {
        for (rank, entry) in self.select_ranked(scope, |_| true) {
            if let Some(replacement) = replace(&entry) {
                self.put(rank, Arc::new(replacement), counts);
            }
        }
    }
}

/// A match that includes all others.
static EVERYTHING: LazyLock<EntryMatch> = LazyLock::new(EntryMatch::default);

fn is_in(scope: Scope, entry: &FlowEntry) -> bool {
    match scope {
        Scope::Within(match_) => match_.includes(&entry.match_),
        Scope::Strict(priority, match_) => entry.priority == priority && entry.match_ == *match_,
    }
}

/// Each entry in a test has a unique cookie.
fn cookies<'a>(entries: impl Iterator<Item = &'a Arc<FlowEntry>>) -> Vec<u64> {
    entries.map(|entry| entry.cookie).collect()
}

#[derive(Clone, Debug)]
enum Step {
    Add(FlowEntryPlan),
    Remove(AnyScope, Which),
    Replace(AnyScope, Which),
    Pass(Duration),
}

#[derive(Clone, Debug)]
struct FlowEntryPlan {
    priority: u16,
    match_: EntryMatch,
    hard_timeout: u16,
}

#[derive(Clone, Debug)]
enum AnyScope {
    Every,
    Within(EntryMatch),
    /// The match and priority of an existing entry.
    Strict(Index),
}

/// Selects the entries whose cookie has all of these bits set, out of the lower two.
type Which = u64;

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        20 => any_plan().prop_map(Step::Add),
        4 => (any_scope(), any_which()).prop_map(|(scope, which)| Step::Remove(scope, which)),
        4 => (any_scope(), any_which()).prop_map(|(scope, which)| Step::Replace(scope, which)),
        1 => (0u64..700).prop_map(|millis| Step::Pass(Duration::from_millis(millis))),
    ]
}

fn any_plan() -> impl Strategy<Value = FlowEntryPlan> {
    let hard_timeout = select(&[0, 0, 0, 1, 2]);
    (any_priority(), any_match(), hard_timeout).prop_map(|(priority, match_, hard_timeout)| {
        FlowEntryPlan {
            priority,
            match_,
            hard_timeout,
        }
    })
}

fn any_scope() -> impl Strategy<Value = AnyScope> {
    prop_oneof![
        1 => Just(AnyScope::Every),
        2 => any_match().prop_map(AnyScope::Within),
        4 => any::<Index>().prop_map(AnyScope::Strict),
    ]
}

fn any_which() -> impl Strategy<Value = Which> {
    select(&[0, 0, 1, 2, 3])
}

fn any_priority() -> impl Strategy<Value = u16> {
    select(&[0, 1, 2, 2, 2, 3, u16::MAX])
}

/// How a match uses a field of the packet that it was created from.
#[derive(Clone, Copy, Debug)]
enum Look {
    Nothing,
    Exact,
    Prefix(u32),
    Bits(u128),
    Miss(u128),
}

fn any_look() -> impl Strategy<Value = Look> {
    prop_oneof![
        6 => Just(Look::Nothing),
        3 => Just(Look::Exact),
        1 => select(&[1, 8, 24]).prop_map(Look::Prefix),
        1 => select(&[1, 0x0f00_0000_00ff, 0xffff << 112 | 2]).prop_map(Look::Bits),
        1 => (0u128..2).prop_map(Look::Miss),
    ]
}

/// A match that fits one of the good packets, or nearly. Types and protocols are mostly exact, since other fields need them.
fn any_match() -> impl Strategy<Value = EntryMatch> {
    let types = prop_oneof![7 => Just(Look::Exact), 1 => Just(Look::Nothing)];
    let looks = vec(any_look(), OxmField::ALL.len());
    (any_good_packet(), types, looks).prop_map(|(packet, types, looks)| {
        let mut fields = Vec::new();
        for (&field, look) in OxmField::ALL.iter().zip(looks) {
            let is_type = matches!(field, OxmField::EthType | OxmField::IpProto);
            let look = if is_type { types } else { look };
            fields.extend(field_of(&packet, field, look));
            if checked(&fields).is_none() {
                fields.pop();
            }
        }
        checked(&fields).expect("checked field by field")
    })
}

fn field_of(packet: &Packet, field: OxmField, look: Look) -> Option<Field<'static>> {
    let value = packet.field(field)?;
    let full = field.full_mask();
    let masked = |mask| Field::masked(field, value & mask & full, mask & full);
    match look {
        Look::Nothing => None,
        Look::Exact => Some(masked(full)),
        Look::Prefix(len) => Some(masked(!(full.checked_shr(len).unwrap_or(0)))),
        Look::Bits(mask) => Some(masked(mask)),
        Look::Miss(value) => Some(Field::masked(field, value & full, full)),
    }
}

fn checked(fields: &[Field<'static>]) -> Option<EntryMatch> {
    EntryMatch::new(&Match::from(fields.to_vec())).ok()
}

fn any_good_packet() -> impl Strategy<Value = Packet> {
    let metadata = select(&[0, 1, u64::MAX]);
    (select(&ALL), 1u32..3, metadata).prop_map(|(text, port, metadata)| {
        let mut packet = Packet::new(PortNo(port), &hex(text));
        packet.metadata = metadata;
        packet
    })
}

fn any_packet() -> impl Strategy<Value = Packet> {
    let hostile = hostile().prop_map(|frame| Packet::new(PortNo(1), &frame));
    prop_oneof![3 => any_good_packet(), 1 => hostile]
}

fn with_cookie(old: &FlowEntry, cookie: u64) -> FlowEntry {
    FlowEntry {
        match_: old.match_.clone(),
        instructions: Instructions::default(),
        counters: old.counters.copy(),
        linked: LinkedCounters::default(),
        cookie,
        ..*old
    }
}

/// The table, its reference model, and the time.
#[derive(Debug, Default)]
struct Trial {
    table: FlowTable,
    model: PlainTable,
    now: Duration,
    steps: u64,
}

impl Trial {
    fn take(&mut self, step: &Step) {
        self.steps += 1;
        match step {
            Step::Add(plan) => {
                self.table.insert(self.entry(plan), Counts::Kept);
                self.model.insert(self.entry(plan));
            }
            Step::Remove(scope, which) => self.remove(scope, *which),
            Step::Replace(scope, which) => self.replace(scope, *which),
            Step::Pass(time) => self.pass(*time),
        }
        assert_eq!(
            cookies(self.table.entries()),
            cookies(self.model.entries.iter())
        );
    }

    fn entry(&self, plan: &FlowEntryPlan) -> FlowEntry {
        FlowEntry {
            table_id: 0,
            priority: plan.priority,
            match_: plan.match_.clone(),
            instructions: Instructions::default(),
            cookie: self.steps,
            flags: FlowModFlags::empty(),
            idle_timeout: 0,
            hard_timeout: plan.hard_timeout,
            added: self.now,
            version: Version::Of13,
            counters: EntryCounters::default(),
            linked: LinkedCounters::default(),
        }
    }

    fn remove(&mut self, scope: &AnyScope, which: Which) {
        let strict = self.strict(scope);
        let scope = scope_of(scope, &strict);
        let gone = self
            .table
            .remove(scope, |entry| entry.cookie & which == which);
        let expected = self
            .model
            .remove(|entry| is_in(scope, entry) && entry.cookie & which == which);
        assert_eq!(cookies(gone.iter()), cookies(expected.iter()));
    }

    /// Replaces entries. Cookies stay unique: their lower half is the step that added the entry.
    fn replace(&mut self, scope: &AnyScope, which: Which) {
        let strict = self.strict(scope);
        let scope = scope_of(scope, &strict);
        let changed = |old: &FlowEntry| with_cookie(old, old.cookie + (1 << 32));
        let replacement = |old: &FlowEntry| (old.cookie & which == which).then(|| changed(old));
        self.table.replace(scope, Counts::Kept, replacement);
        self.model
            .replace(|old| is_in(scope, old).then(|| replacement(old)).flatten());
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
        let gone = self.table.expire(self.now, &mut { usize::MAX });
        let expected = self.model.remove(|entry| entry.expired(self.now).is_some());
        assert_eq!(
            cookies(gone.iter().map(|gone| &gone.entry)),
            cookies(expected.iter())
        );
        assert!(
            gone.iter()
                .all(|gone| gone.reason == FlowRemovedReason::HardTimeout)
        );
    }

    /// Returns the priority and match that a strict scope stands for.
    fn strict(&self, scope: &AnyScope) -> Option<(u16, EntryMatch)> {
        let entries = &self.model.entries;
        match scope {
            AnyScope::Strict(index) if !entries.is_empty() => {
                let entry = index.get(entries);
                Some((entry.priority, entry.match_.clone()))
            }
            _ => None,
        }
    }

    /// Compares all queries for a packet and a match.
    fn compare(&self, packet: &Packet, match_: &EntryMatch) {
        let (table, entries) = (&self.table, &self.model.entries);
        let cookie = |entry: &Arc<FlowEntry>| entry.cookie;
        let expected = self.model.find(packet).map(cookie);
        assert_eq!(table.find(packet).map(cookie), expected, "{packet:?}");
        assert_eq!(
            table.find_plainly(packet).map(cookie),
            expected,
            "{packet:?}"
        );
        for scope in [Scope::Within(match_), Scope::Strict(2, match_)] {
            let expected = entries.iter().filter(|entry| is_in(scope, entry));
            let selected = table.select_ranked(scope, |_| true).into_iter();
            let selected: Vec<_> = selected.map(|(_, entry)| entry).collect();
            assert_eq!(cookies(selected.iter()), cookies(expected), "{scope:?}");
        }
        let mut equals = entries.iter().filter(|entry| entry.priority == 2);
        let expected = equals.any(|entry| entry.match_.overlaps(match_));
        assert_eq!(table.has_overlap(2, match_), expected, "{match_:?}");
    }
}

fn scope_of<'a>(scope: &'a AnyScope, strict: &'a Option<(u16, EntryMatch)>) -> Scope<'a> {
    match (scope, strict) {
        (_, Some((priority, match_))) => Scope::Strict(*priority, match_),
        (AnyScope::Within(match_), None) => Scope::Within(match_),
        (AnyScope::Every | AnyScope::Strict(_), None) => Scope::Within(&EVERYTHING),
    }
}

proptest! {
    #[test]
    fn agrees_with_a_plain_list(
        steps in vec(any_step(), 0..60),
        packets in vec(any_packet(), 12),
        match_ in any_match(),
        hashes_collide in any::<bool>(),
    ) {
        let mut trial = Trial::default();
        if hashes_collide {
            trial.table.classifier = Classifier::colliding();
        }
        for step in &steps {
            trial.take(step);
            for packet in &packets {
                trial.compare(packet, &match_);
            }
        }
        trial.table.remove(Scope::Within(&EVERYTHING), |_| true);
        prop_assert!(trial.table.classifier.is_empty(), "nothing is left behind");
    }
}

/// Creates an entry for a table of entries with different Ethernet addresses.
fn with_timeouts(number: u64, idle_timeout: u16, hard_timeout: u16) -> FlowEntry {
    let match_ = Match::any().with(Field::exact(OxmField::EthDst, number.into()));
    FlowEntry {
        table_id: 0,
        priority: 1,
        match_: EntryMatch::new(&match_).expect("a good match"),
        instructions: Instructions::default(),
        cookie: number,
        flags: FlowModFlags::empty(),
        idle_timeout,
        hard_timeout,
        added: Duration::ZERO,
        version: Version::Of13,
        counters: EntryCounters::default(),
        linked: LinkedCounters::default(),
    }
}

#[test]
fn expiry_inspects_no_entry_before_its_deadline() {
    let mut table = FlowTable::default();
    for number in 0..1000 {
        let hard_timeout = if number < 10 { 5 } else { 60 };
        table.insert(with_timeouts(number, 0, hard_timeout), Counts::Reset);
    }
    let mut looks = 1000;
    assert_eq!(table.expire(Duration::from_secs(4), &mut looks).len(), 0);
    assert_eq!(looks, 1000);
    assert_eq!(table.expire(Duration::from_secs(5), &mut looks).len(), 10);
    assert_eq!(looks, 990);
    assert_eq!(table.next_expiry(), Some(Duration::from_secs(60)));
}

#[test]
fn an_entry_in_use_is_inspected_once_per_idle_timeout() {
    let mut table = FlowTable::default();
    table.insert(with_timeouts(1, 5, 0), Counts::Reset);
    let mut looks = 100;
    for second in 1..=20 {
        let now = Duration::from_secs(second);
        let entry = table.entries().next().expect("it is in use");
        entry.count(60, now);
        assert_eq!(table.expire(now, &mut looks).len(), 0);
    }
    assert!(looks >= 96, "{looks}");
    assert_eq!(table.expire(Duration::from_secs(26), &mut looks).len(), 1);
    assert_eq!(table.next_expiry(), None);
}

#[test]
fn many_entries_expire_in_steps() {
    let mut table = FlowTable::default();
    for number in 0..100 {
        table.insert(with_timeouts(number, 0, 1), Counts::Reset);
    }
    let now = Duration::from_secs(1);
    for left in [70, 40, 10, 0] {
        let mut looks = 30;
        table.expire(now, &mut looks);
        assert_eq!(table.entries().len(), left);
        assert_eq!(table.next_expiry().is_some(), left > 0);
    }
}

/// No matter how often entries are added, removed and replaced before their deadlines.
#[test]
fn deadlines_of_removed_entries_are_forgotten() {
    let mut table = FlowTable::default();
    for round in 0..100_000 {
        let number = round % 50;
        table.insert(with_timeouts(number, 60, 0), Counts::Reset);
        if round % 3 == 0 {
            table.remove(Scope::Within(&EVERYTHING), |entry| entry.cookie == number);
        }
    }
    assert!(table.timers.len() < 2000, "{}", table.timers.len());
    table.expire(Duration::from_secs(60), &mut 10_000);
    assert_eq!(table.entries().len(), 0);
}
