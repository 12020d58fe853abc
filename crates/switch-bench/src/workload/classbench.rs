//! ClassBench's rule sets: twelve kinds, with 1,000, 10,000 or 100,000 rules on addresses, ports and protocol.
//!
//! **What.** Rules of the shapes in published instances of these sets, drawn from counts in those instances
//! ([`Statistics`]): no rule is copied. Sets of 100,000 rules have the shapes of the sets of 10,000.
//!
//! **How.** Each rule's protocol, port classes and prefix lengths are drawn together, as often as they were
//! counted together. Its prefixes come from a [`Pool`] for each side, with the counted number of distinct prefixes of each
//! length, nested as often. Rules are ordered by scope, the narrowest first, so that no rule hides another inside it (the
//! ClassBench paper's own order), and the first of the rules that match a packet wins.
//!
//! **As flow entries.** A port range is divided into prefixes, so that a rule may become several entries, which have its
//! number as their cookie. OpenFlow matches ports of TCP, UDP and SCTP only: a rule with ports and another protocol gets
//! TCP or UDP instead, and a rule with ports and no protocol gets both.
//!
//! **Cost.** 10,000 rules take some 10 ms, 100,000 some 100 ms.

mod pool;
mod rule;
mod statistics;

pub use rule::{Header, Rule};

use super::python_random::PythonRandom;
use super::weighted::Weighted;
use pool::Pool;
use rule::{PortRange, Protocols};
use statistics::{PortClass, Shape, Statistics};
use std::collections::HashSet;
use std::fmt;
use std::str::FromStr;

/// The first part of every generator's seed.
const SEED: &str = "classbench 1";

/// Maximum number of consecutive draws of existing rules, after which the set stays incomplete.
const REPEATS_MAX: u32 = 10_000;

/// The highest priority of an entry.
const PRIORITY_MAX: u32 = 60_000;

/// Maximum number of rules without overlap that share a priority if there are more rules than priorities.
const RULES_PER_PRIORITY: usize = 64;

/// The kinds of sets as published: access lists, firewalls, and chains of IP filters.
const KINDS: [&str; 12] = [
    "acl1", "acl2", "acl3", "acl4", "acl5", "fw1", "fw2", "fw3", "fw4", "fw5", "ipc1", "ipc2",
];

/// The number of rules of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Size {
    OneK,
    TenK,
    HundredK,
}

impl Size {
    const ALL: [Self; 3] = [Self::OneK, Self::TenK, Self::HundredK];

    fn name(self) -> &'static str {
        match self {
            Self::OneK => "1k",
            Self::TenK => "10k",
            Self::HundredK => "100k",
        }
    }

    fn rules(self) -> u32 {
        match self {
            Self::OneK => 1_000,
            Self::TenK => 10_000,
            Self::HundredK => 100_000,
        }
    }

    /// Returns the size of the instance whose counts are used.
    fn counted(self) -> &'static str {
        match self {
            Self::OneK => "1k",
            Self::TenK | Self::HundredK => "10k",
        }
    }
}

/// A set's name, such as `acl1-10k`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassBench {
    kind: &'static str,
    size: Size,
}

impl fmt::Display for ClassBench {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}-{}", self.kind, self.size.name()))
    }
}

impl FromStr for ClassBench {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (kind, size) = text.split_once('-').ok_or(())?;
        let kind = KINDS.into_iter().find(|&known| known == kind).ok_or(())?;
        let mut sizes = Size::ALL.into_iter();
        let size = sizes.find(|known| known.name() == size).ok_or(())?;
        Ok(Self { kind, size })
    }
}

/// Rules, of which the first that matches a packet wins.
#[derive(Clone, Debug)]
pub struct RuleSet {
    rules: Vec<Rule>,
}

impl RuleSet {
    /// Draws a set, with equal rules on every machine.
    pub fn new(set: ClassBench) -> Self {
        let statistics = Statistics::of(set.kind, set.size.counted());
        let random = PythonRandom::new(&format!("{SEED}/{set}"));
        let mut draw = Draw::new(&statistics, set.size.rules(), random);
        let mut rules = draw.rules(set.size.rules());
        rules.sort_by(|one, other| one.scope().total_cmp(&other.scope()));
        Self { rules }
    }

    /// Returns the number of the first rule that matches, by a linear search.
    pub fn find(&self, header: &Header) -> Option<usize> {
        self.rules.iter().position(|rule| rule.matches(header))
    }

    /// Returns the flow entries, in the text form of `ovs-ofctl`; rule number n has cookie n + 1.
    pub fn entries(&self) -> Vec<String> {
        let rules = self.rules.iter().zip(self.priorities()).enumerate();
        rules
            .flat_map(|(number, (rule, priority))| rule.entries(number as u64 + 1, priority))
            .collect()
    }

    /// Returns a packet that matches a rule, chosen with equal probability for all rules.
    pub fn packet(&self, random: &mut PythonRandom) -> Header {
        random.choice(&self.rules).packet(random)
    }

    /// Returns a priority for each rule, in decreasing order. If there are enough, each rule has its own; otherwise
    /// consecutive rules share one as long as no packet matches two of them.
    fn priorities(&self) -> Vec<u32> {
        let together = match self.rules.len() as u32 <= PRIORITY_MAX {
            true => 1,
            false => RULES_PER_PRIORITY,
        };
        let (mut first, mut priority) = (0, PRIORITY_MAX);
        let mut priorities = Vec::with_capacity(self.rules.len());
        for (number, rule) in self.rules.iter().enumerate() {
            let others = &self.rules[first..number];
            if others.len() == together || others.iter().any(|other| other.overlaps(rule)) {
                (first, priority) = (number, priority - 1);
            }
            priorities.push(priority);
        }
        priorities
    }
}

/// The generator of rules.
struct Draw {
    random: PythonRandom,
    shapes: Weighted<Shape>,
    /// The probability, in 1,000, that a rule's shape is not among the most common ones, but combined from the counted
    /// parts.
    rare_permille: u32,
    src: Pool,
    dst: Pool,
    exact: Weighted<u16>,
    /// The probability, in 1,000, that a single port is one of the most common ones.
    exact_permille: u32,
    ranges: Weighted<(u16, u16)>,
}

impl Draw {
    fn new(statistics: &Statistics, rules: u32, mut random: PythonRandom) -> Self {
        let scale = f64::from(rules) / f64::from(statistics.rules);
        let shapes = Weighted::new(statistics.joint.iter().copied());
        let rare = statistics.rules.saturating_sub(shapes.total());
        Self {
            rare_permille: rare * 1000 / statistics.rules,
            src: Pool::new(&statistics.src, scale, &mut random),
            dst: Pool::new(&statistics.dst, scale, &mut random),
            exact: Weighted::new(statistics.exact.iter().copied()),
            exact_permille: statistics.exact_permille(),
            ranges: Weighted::new(statistics.ranges.iter().copied()),
            shapes,
            random,
        }
    }

    /// Draws `count` different rules, or fewer if these shapes are used up.
    fn rules(&mut self, count: u32) -> Vec<Rule> {
        let mut seen = HashSet::with_capacity(count as usize);
        let (mut rules, mut repeats) = (Vec::with_capacity(count as usize), 0);
        while rules.len() < count as usize && repeats < REPEATS_MAX {
            let rule = self.rule();
            match seen.insert(rule) {
                true => {
                    rules.push(rule);
                    repeats = 0;
                }
                false => repeats += 1,
            }
        }
        rules
    }

    fn rule(&mut self) -> Rule {
        let shape = self.shape();
        let has_ports = shape.src_ports != PortClass::Any || shape.dst_ports != PortClass::Any;
        Rule {
            src: self.src.draw(shape.src_length, &mut self.random),
            dst: self.dst.draw(shape.dst_length, &mut self.random),
            src_ports: self.ports(shape.src_ports),
            dst_ports: self.ports(shape.dst_ports),
            protocols: Protocols::of(shape.protocol, has_ports),
        }
    }

    /// Draws a counted shape, or a combination of counted parts.
    fn shape(&mut self) -> Shape {
        let shape = self.shapes.draw(&mut self.random);
        if self.random.below(1000) >= self.rare_permille {
            return shape;
        }
        let (src, dst) = (
            self.shapes.draw(&mut self.random),
            self.shapes.draw(&mut self.random),
        );
        Shape {
            src_length: src.src_length,
            dst_length: dst.dst_length,
            ..shape
        }
    }

    fn ports(&mut self, class: PortClass) -> PortRange {
        match class {
            PortClass::Any => PortRange::ANY,
            PortClass::High => PortRange::new(1024, 65_535),
            PortClass::Low => PortRange::new(0, 1023),
            PortClass::Exact => {
                let is_common = self.random.below(1000) < self.exact_permille;
                let port = match is_common {
                    true => self.exact.draw(&mut self.random),
                    false => self.random.bits(16) as u16,
                };
                PortRange::new(port, port)
            }
            PortClass::Range => {
                let (low, high) = self.ranges.draw(&mut self.random);
                PortRange::new(low, high)
            }
        }
    }
}

#[cfg(test)]
mod tests;
