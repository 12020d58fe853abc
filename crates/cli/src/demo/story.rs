//! The script of the demonstration, scene by scene, for both displays.
//!
//! [`Story::advance`] is called after every step of the network. It performs the actions of the scene, and returns
//! lines to show. So the plain output and the live view show the same lines.

use super::lab::{Lab, Result, SAMPLE};
use super::meter::{LOST_AFTER, Pair};
use super::pings::PingRound;
use std::time::Duration;
use urtica_topology::spec::TopologySpec;

/// The time limit for the discovery of switches and links.
const FOUND_WITHIN: Duration = Duration::from_secs(10);

/// The time for which traffic is watched before a link is cut, and after its repair.
const WATCHED: Duration = Duration::from_secs(2);

/// The time limit for healing a cut.
const HEALED_WITHIN: Duration = Duration::from_secs(3);

/// The largest matrix of pings that is printed, in hosts.
const MATRIX_HOSTS: usize = 16;

/// A line of the story.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// An introduction.
    Opening(String),
    /// The start of a scene.
    Scene(String),
    /// The result of a scene.
    Finding(String),
    /// The result in detail.
    Detail(String),
    /// An event in the network.
    News(String),
}

/// The current scene and the scenes after it.
pub struct Story {
    scene: Scene,
    begun_at: Duration,
    /// The start of the next scene, after this one is over.
    next_at: Option<Duration>,
    /// The time for which a finished scene stays on screen.
    hold: Duration,
    all_is_well: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Scene {
    Joining,
    FirstPings,
    LaterPings,
    Traffic,
    Cut(Cut),
    PingsAroundIt(Cut),
    Repaired(Cut),
    /// Replaces the cut in a network without loops.
    NoLoop,
    Over,
}

/// A link that is cut, and two hosts that talked over it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Cut {
    link: usize,
    name: String,
    pair: Option<Pair>,
    path: Option<String>,
}

impl Story {
    /// Starts the story. Each finished scene stays for this time.
    pub fn new(hold: Duration) -> Self {
        Self {
            scene: Scene::Joining,
            begun_at: Duration::ZERO,
            next_at: None,
            hold,
            all_is_well: true,
        }
    }

    /// Returns the lines to show before the first scene.
    pub fn opening(&self, lab: &Lab, spec: &TopologySpec) -> Vec<Line> {
        let plan = lab.plan();
        let network = format!(
            "{spec}: {} OpenFlow 1.3 switches with {} links between them, {} hosts, and a controller with discovery,",
            plan.switches.len(),
            plan.links.len(),
            plan.hosts.len()
        );
        let times = "hosts and routing, in this process. Times are the network's: a link takes 0.1 ms, a switch 0.01 ms,";
        let more = "a message to or from the controller 0.5 to 1.5 ms, noticing a cut 60 ms, and computing no time.";
        vec![
            Line::Opening(network),
            Line::Opening(times.to_owned()),
            Line::Opening(more.to_owned()),
            self.title(),
        ]
    }

    /// Returns `true` if all scenes have been shown.
    pub fn is_over(&self) -> bool {
        self.scene == Scene::Over
    }

    /// Returns `true` if everything has worked so far.
    pub fn all_is_well(&self) -> bool {
        self.all_is_well
    }

    /// Continues after a step, and returns the lines to show.
    ///
    /// # Errors
    /// An unexpected error of the network.
    pub fn advance(&mut self, lab: &mut Lab) -> Result<Vec<Line>> {
        match self.next_at {
            None => {
                let findings = self.look(lab);
                if !findings.is_empty() {
                    self.next_at = Some(lab.now() + self.hold);
                }
                Ok(findings)
            }
            Some(at) if lab.now() >= at && !self.is_over() => self.begin_next(lab),
            Some(_) => Ok(Vec::new()),
        }
    }

    /// Returns the result, once the scene is over.
    fn look(&mut self, lab: &Lab) -> Vec<Line> {
        let passed = lab.now() - self.begun_at;
        match self.scene.clone() {
            Scene::Joining => self.look_at_joining(lab, passed),
            Scene::FirstPings if !lab.is_pinging() => self.check_first_pings(lab),
            Scene::LaterPings if !lab.is_pinging() => self.check_later_pings(lab),
            Scene::Traffic if passed >= WATCHED => self.check_traffic(lab),
            Scene::Cut(cut) if passed >= HEALED_WITHIN => self.check_cut(lab, &cut),
            Scene::PingsAroundIt(_) if !lab.is_pinging() => self.check_pings(lab.pings()),
            Scene::Repaired(cut) if passed >= WATCHED => self.check_repair(lab, &cut),
            Scene::NoLoop => vec![finding(
                "torus,3,3 and ring,5 have loops: urtica demo --topology ring,5",
            )],
            _ => Vec::new(),
        }
    }

    fn begin_next(&mut self, lab: &mut Lab) -> Result<Vec<Line>> {
        self.scene = self.scene.clone().next(lab);
        self.begun_at = lab.now();
        self.next_at = None;
        match &self.scene {
            Scene::FirstPings | Scene::LaterPings | Scene::PingsAroundIt(_) => lab.ping_all(),
            Scene::Traffic => lab.start_traffic(),
            Scene::Cut(cut) => lab.set_cut(cut.link, true)?,
            Scene::Repaired(cut) => lab.set_cut(cut.link, false)?,
            Scene::Joining | Scene::NoLoop => {}
            Scene::Over => self.next_at = Some(Duration::MAX),
        }
        Ok(vec![self.title()])
    }

    fn title(&self) -> Line {
        Line::Scene(match &self.scene {
            Scene::Joining => "Switches join, and the controller discovers links.".to_owned(),
            Scene::FirstPings => {
                "Every host pings every other. No switch has entries yet.".to_owned()
            }
            Scene::LaterPings => {
                "Every host pings every other again: now the switches have entries.".to_owned()
            }
            Scene::Traffic => "Hosts send 100 new flows a second, of 20 packets each.".to_owned(),
            Scene::Cut(cut) => format!("The busiest link, {}, is cut.", cut.name),
            Scene::PingsAroundIt(_) => "Every host pings every other, around the cut.".to_owned(),
            Scene::Repaired(cut) => format!("{} is repaired.", cut.name),
            Scene::NoLoop => "No link is cut: each is the only path to some switch.".to_owned(),
            Scene::Over => {
                let told = "That was the tour; now it is your turn: c cuts a link, r repairs it, ? shows all keys, q quits.";
                return Line::News(told.to_owned());
            }
        })
    }

    fn look_at_joining(&mut self, lab: &Lab, passed: Duration) -> Vec<Line> {
        let joined = lab.joined().filter(|&has_joined| has_joined).count();
        let (switches, links) = (lab.plan().switches.len(), lab.plan().links.len());
        let are_found = joined == switches && lab.discovered() == links;
        if !are_found && passed < FOUND_WITHIN {
            return Vec::new();
        }
        self.all_is_well &= are_found;
        vec![finding(format!(
            "{joined} of {switches} switches have joined and {} of {links} links are found after {}",
            lab.discovered(),
            roughly(passed)
        ))]
    }

    fn check_first_pings(&mut self, lab: &Lab) -> Vec<Line> {
        let mut findings = matrix(lab);
        findings.extend(self.check_pings(lab.pings()));
        let median = lab
            .pings()
            .median_of_first()
            .map_or_else(String::new, precisely);
        findings.push(finding(format!(
            "median round trip of first packets, which pass through the controller: {median}"
        )));
        findings
    }

    fn check_later_pings(&mut self, lab: &Lab) -> Vec<Line> {
        let mut findings = self.check_pings(lab.pings());
        let median = lab
            .pings()
            .median_of_all()
            .map_or_else(String::new, precisely);
        findings.push(finding(format!(
            "median round trip, without the controller: {median}"
        )));
        findings
    }

    fn check_pings(&mut self, round: &PingRound) -> Vec<Line> {
        self.all_is_well &= round.is_complete();
        vec![finding(format!(
            "{} of {} pings answered",
            round.answered(),
            round.len()
        ))]
    }

    fn check_traffic(&mut self, lab: &Lab) -> Vec<Line> {
        let figures = lab.figures();
        let lost = lab.lost_since(self.begun_at).count;
        self.all_is_well &= figures.packets_per_s > 0 && lost == 0;
        let [p50, p99] = [figures.latency_p50, figures.latency_p99]
            .map(|latency| latency.map_or_else(String::new, precisely));
        vec![
            finding(format!(
                "{} flows/s, {} packets/s, latency p50 {p50}, p99 {p99}; {lost} packets lost",
                figures.flows_per_s, figures.packets_per_s
            )),
            finding(format!(
                "{} flow entries in all switches",
                figures.entries.iter().sum::<usize>()
            )),
        ]
    }

    fn check_cut(&mut self, lab: &Lab, cut: &Cut) -> Vec<Line> {
        let losses = lab.lost_since(self.begun_at.saturating_sub(LOST_AFTER));
        let outage = losses
            .last_sent_at
            .map_or(Duration::ZERO, |last| last.saturating_sub(self.begun_at));
        let is_healed = self.begun_at + outage + SAMPLE + LOST_AFTER < lab.now();
        self.all_is_well &= is_healed;
        let healed = match is_healed {
            true => format!(
                "{} packets lost; all traffic flowed again after {}",
                losses.count,
                roughly(outage)
            ),
            false => format!(
                "NOT HEALED: {} packets lost, and more are still being lost",
                losses.count
            ),
        };
        [finding(healed)]
            .into_iter()
            .chain(cut.tell_path(lab))
            .collect()
    }

    fn check_repair(&mut self, lab: &Lab, cut: &Cut) -> Vec<Line> {
        let is_found = lab.is_discovered(cut.link);
        let lost = lab.lost_since(self.begun_at).count;
        self.all_is_well &= is_found;
        let found = match is_found {
            true => {
                format!("the controller has found the link again; {lost} packets lost until then")
            }
            false => format!("NOT FOUND AGAIN: the controller does not know {}", cut.name),
        };
        [finding(found)]
            .into_iter()
            .chain(cut.tell_path_again(lab))
            .collect()
    }
}

impl Scene {
    fn next(self, lab: &Lab) -> Self {
        match self {
            Self::Joining => Self::FirstPings,
            Self::FirstPings => Self::LaterPings,
            Self::LaterPings => Self::Traffic,
            Self::Traffic => lab
                .busiest_spare()
                .map_or(Self::NoLoop, |link| Self::Cut(Cut::new(link, lab))),
            Self::Cut(cut) => Self::PingsAroundIt(cut),
            Self::PingsAroundIt(cut) => Self::Repaired(cut),
            Self::Repaired(_) | Self::NoLoop | Self::Over => Self::Over,
        }
    }
}

impl Cut {
    fn new(link: usize, lab: &Lab) -> Self {
        let pair = lab.pair_over(link);
        Self {
            link,
            name: lab.link_name(link),
            path: pair.and_then(|pair| lab.path(pair)),
            pair,
        }
    }

    /// Describes the current and the previous path of the two hosts' packets.
    fn tell_path(&self, lab: &Lab) -> Option<Line> {
        let (hosts, before, now) = self.paths(lab)?;
        Some(finding(format!(
            "{hosts} took the path {before} and now takes {now}"
        )))
    }

    /// Describes whether the packets use the old path again after the repair.
    fn tell_path_again(&self, lab: &Lab) -> Option<Line> {
        let (hosts, before, now) = self.paths(lab)?;
        let length = |path: &str| path.split(' ').count();
        Some(finding(if *before == now {
            format!("{hosts} takes the path {now} again")
        } else if length(before) == length(&now) {
            format!("{hosts} keeps the path {now}, which is as short")
        } else {
            format!("{hosts} takes the path {now}")
        }))
    }

    fn paths(&self, lab: &Lab) -> Option<(String, &String, String)> {
        let (from, to) = self.pair?;
        let hosts = format!("{} to {}", lab.host_name(from), lab.host_name(to));
        Some((hosts, self.path.as_ref()?, lab.path((from, to))?))
    }
}

fn finding(text: impl Into<String>) -> Line {
    Line::Finding(text.into())
}

/// Prints the results like Mininet's `pingall`: the hosts that each host reaches, and an X for each other host.
fn matrix(lab: &Lab) -> Vec<Line> {
    if lab.plan().hosts.len() > MATRIX_HOSTS {
        return Vec::new();
    }
    let mut lines: Vec<String> = Vec::new();
    let mut current = None;
    for ((from, to), is_answered) in lab.pings().results() {
        if current.replace(from) != Some(from) {
            lines.push(format!("{} ->", lab.host_name(from)));
        }
        if let Some(line) = lines.last_mut() {
            line.push(' ');
            line.push_str(if is_answered { lab.host_name(to) } else { "X" });
        }
    }
    lines.into_iter().map(Line::Detail).collect()
}

fn roughly(time: Duration) -> String {
    format!("{:.0} ms", time.as_secs_f64() * 1e3)
}

fn precisely(time: Duration) -> String {
    format!("{:.2} ms", time.as_secs_f64() * 1e3)
}
