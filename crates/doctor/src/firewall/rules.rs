//! Evaluating rules in the kernel's order for a switch's first packet.

use std::collections::BTreeMap;

/// Chains call each other this deep at most; the kernel permits 16 (nftables) and no circle.
const MAX_DEPTH: usize = 16;

/// A switch's first packet: TCP, a new connection, to this port.
#[derive(Clone, Copy)]
pub struct Probe {
    pub port: u16,
    /// From this machine itself.
    pub is_local: bool,
    /// Of IP.
    pub version: u8,
}

/// Whether a rule applies to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applies {
    Yes,
    No,
    /// It depends on unknown properties.
    Maybe,
}

impl Applies {
    /// Combines two conditions.
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::No, _) | (_, Self::No) => Self::No,
            (Self::Yes, Self::Yes) => Self::Yes,
            _ => Self::Maybe,
        }
    }

    pub fn is(condition: bool) -> Self {
        if condition { Self::Yes } else { Self::No }
    }
}

/// A condition of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// TCP, or another protocol.
    IsTcp(bool),
    /// A port of TCP that is between two of these, or is not.
    Port {
        ranges: Vec<(u16, u16)>,
        negated: bool,
    },
    /// From the loopback device, or from another.
    IsLocal(bool),
    /// A new connection, or a packet of another.
    IsNew(bool),
    /// Something else.
    Other,
}

impl Condition {
    fn applies(&self, probe: Probe) -> Applies {
        match self {
            Self::IsTcp(tcp) => Applies::is(*tcp),
            Self::IsLocal(local) => Applies::is(*local == probe.is_local),
            Self::IsNew(new) => Applies::is(*new),
            Self::Port { ranges, negated } => {
                let mut ranges = ranges.iter();
                let is_in = ranges.any(|(from, to)| (*from..=*to).contains(&probe.port));
                Applies::is(is_in != *negated)
            }
            Self::Other => Applies::Maybe,
        }
    }
}

/// A rule's verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Accept,
    Drop,
    /// Goes on in this chain, and comes back.
    Jump(String),
    Return,
    /// Counts, marks, logs.
    None,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    pub conditions: Vec<Condition>,
    pub verdict: Verdict,
    /// Its name for users.
    pub name: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chain {
    /// Whether it is a base chain for packets to this machine.
    pub is_base: bool,
    /// The only IP version of its packets, if restricted.
    pub version: Option<u8>,
    pub drops_the_rest: bool,
    pub rules: Vec<Rule>,
}

/// All chains by their names.
pub struct Ruleset {
    pub chains: BTreeMap<String, Chain>,
    /// The command that puts an accepting rule in front of a chain's, without the chain and the port.
    pub accept: fn(chain: &str, port: u16) -> String,
}

/// The fate of a packet in a chain.
#[derive(Debug, PartialEq, Eq)]
pub enum Fate {
    Passes,
    /// By this rule or policy.
    Dropped(String),
    /// Dropped or not, depending on unknown properties.
    DroppedForSome(String),
}

/// Where a way through the chains ends.
enum End {
    Accepted,
    Dropped(String),
}

struct Walk<'a> {
    chains: &'a BTreeMap<String, Chain>,
    probe: Probe,
    /// Some packets have been accepted on the way.
    accepts_some: bool,
    /// The rule that may drop the packet.
    drops_some: Option<String>,
}

impl Ruleset {
    /// Returns the fate of a packet in each base chain for packets to this machine.
    pub fn fates(&self, probe: Probe) -> impl Iterator<Item = (&str, Fate)> {
        let sees =
            move |chain: &Chain| chain.version.is_none_or(|version| version == probe.version);
        let bases = self.chains.iter();
        let bases = bases.filter(move |(_, chain)| chain.is_base && sees(chain));
        bases.map(move |(name, chain)| (name.as_str(), self.fate(name, chain, probe)))
    }

    fn fate(&self, name: &str, chain: &Chain, probe: Probe) -> Fate {
        let mut walk = Walk {
            chains: &self.chains,
            probe,
            accepts_some: false,
            drops_some: None,
        };
        let end = walk.chain(name, Applies::Yes, 0);
        let end = end.unwrap_or_else(|| match chain.drops_the_rest {
            true => End::Dropped(format!("the policy of the firewall's chain {name}")),
            false => End::Accepted,
        });
        match (end, walk.drops_some) {
            (End::Dropped(by), _) if walk.accepts_some => Fate::DroppedForSome(by),
            (End::Dropped(by), _) => Fate::Dropped(by),
            (End::Accepted, Some(by)) => Fate::DroppedForSome(by),
            (End::Accepted, None) => Fate::Passes,
        }
    }

    /// The command after which the chain lets the port's packets pass.
    pub fn command_to_accept(&self, chain: &str, port: u16) -> String {
        let has = |word: &str| self.chains.keys().any(|chain| chain.contains(word));
        match () {
            () if chain.contains("firewalld") => format!("firewall-cmd --add-port={port}/tcp"),
            () if has("ufw-") => format!("ufw allow {port}/tcp"),
            () => (self.accept)(chain, port),
        }
    }
}

impl Walk<'_> {
    /// Returns `None` if the packet reaches the chain's end.
    fn chain(&mut self, name: &str, here: Applies, depth: usize) -> Option<End> {
        let chain = self.chains.get(name).filter(|_| depth < MAX_DEPTH)?;
        for rule in &chain.rules {
            let conditions = rule.conditions.iter();
            let applies = conditions.fold(here, |all, one| all.and(one.applies(self.probe)));
            match (applies, &rule.verdict) {
                (Applies::No, _) | (_, Verdict::None) => {}
                (Applies::Yes, Verdict::Accept) => return Some(End::Accepted),
                (Applies::Yes, Verdict::Drop) => return Some(End::Dropped(rule.name.clone())),
                (Applies::Yes, Verdict::Return) => return None,
                (Applies::Maybe, Verdict::Accept) => self.accepts_some = true,
                (Applies::Maybe, Verdict::Drop) => self.drops(&rule.name),
                // Some packets leave the chain: its verdict on the rest applies to some.
                (Applies::Maybe, Verdict::Return) => self.accepts_some = true,
                (_, Verdict::Jump(to)) => {
                    if let Some(end) = self.chain(to, applies, depth + 1) {
                        return Some(end);
                    }
                }
            }
        }
        None
    }

    fn drops(&mut self, by: &str) {
        self.drops_some.get_or_insert_with(|| by.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::slice;

    const PORT: u16 = 6653;

    fn rule(conditions: &[Condition], verdict: Verdict) -> Rule {
        Rule {
            conditions: conditions.to_vec(),
            verdict,
            name: "a rule".into(),
        }
    }

    fn fate(drops_the_rest: bool, rules: &[Rule], more: &[Rule], is_local: bool) -> Fate {
        let chain = |is_base, drops_the_rest, rules: &[Rule]| Chain {
            is_base,
            version: Some(4),
            drops_the_rest,
            rules: rules.to_vec(),
        };
        let ruleset = Ruleset {
            chains: BTreeMap::from([
                ("in".to_owned(), chain(true, drops_the_rest, rules)),
                ("more".to_owned(), chain(false, false, more)),
            ]),
            accept: |_, _| String::new(),
        };
        let probe = Probe {
            port: PORT,
            is_local,
            version: 4,
        };
        let (name, fate) = ruleset.fates(probe).next().unwrap();
        assert_eq!(name, "in");
        let other = Probe {
            version: 6,
            ..probe
        };
        assert!(ruleset.fates(other).next().is_none());
        fate
    }

    fn to_port() -> Condition {
        Condition::Port {
            ranges: vec![(6000, PORT)],
            negated: false,
        }
    }

    #[test]
    fn the_first_rule_that_is_for_a_packet_decides() {
        let drop = rule(&[to_port()], Verdict::Drop);
        let accept = rule(&[Condition::IsTcp(true)], Verdict::Accept);
        let dropped = Fate::Dropped("a rule".into());
        let first = [drop.clone(), accept.clone()];
        assert_eq!(fate(false, &first, &[], false), dropped);
        assert_eq!(
            fate(false, &[accept, drop.clone()], &[], false),
            Fate::Passes
        );
        let udp = rule(&[Condition::IsTcp(false)], Verdict::Drop);
        let old = rule(&[Condition::IsNew(false)], Verdict::Drop);
        assert_eq!(fate(false, &[udp, old], &[], false), Fate::Passes);
        let jump = rule(&[to_port()], Verdict::Jump("more".into()));
        assert_eq!(fate(false, slice::from_ref(&jump), &[drop], false), dropped);
        let back = rule(&[], Verdict::Return);
        assert_eq!(
            fate(false, &[jump], &[back, rule(&[], Verdict::Drop)], false),
            Fate::Passes
        );
    }

    #[test]
    fn a_policy_drops_what_no_rule_accepts() {
        let policy = "the policy of the firewall's chain in";
        let other = Condition::Port {
            ranges: vec![(22, 22)],
            negated: false,
        };
        let ssh = rule(&[other], Verdict::Accept);
        assert_eq!(
            fate(true, slice::from_ref(&ssh), &[], false),
            Fate::Dropped(policy.into())
        );
        let local = rule(&[Condition::IsLocal(true)], Verdict::Accept);
        assert_eq!(fate(true, &[ssh, local.clone()], &[], true), Fate::Passes);
        assert_eq!(
            fate(true, &[local], &[], false),
            Fate::Dropped(policy.into())
        );
    }

    #[test]
    fn what_depends_on_more_is_not_certain() {
        let some = rule(&[to_port(), Condition::Other], Verdict::Accept);
        let by = |by: &str| Fate::DroppedForSome(by.into());
        assert_eq!(
            fate(true, &[some], &[], false),
            by("the policy of the firewall's chain in")
        );
        let some = rule(&[to_port(), Condition::Other], Verdict::Drop);
        assert_eq!(fate(false, &[some], &[], false), by("a rule"));
    }

    #[test]
    fn chains_in_a_circle_end() {
        let jump = rule(&[], Verdict::Jump("in".into()));
        assert_eq!(fate(false, &[jump.clone(), jump], &[], false), Fate::Passes);
    }
}
