//! The demonstration on a terminal: plays its scenes, and handles keys.

use super::keys::{Command, command};
use super::lab::{Lab, Result, SAMPLE};
use super::map::Map;
use super::story::{Line, Story};
use super::view::{self, LinkLook, Picture, SwitchLook};
use crate::say::say;
use ratatui::crossterm::event::{self, Event};
use std::collections::VecDeque;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use urtica_topology::spec::TopologySpec;

/// The time between two pictures.
const FRAME: Duration = Duration::from_millis(50);

/// The time for which a finished scene stays on screen, so that it can be read.
const HOLD: Duration = Duration::from_secs(3);

/// Number of kept lines of the log.
const LOG_LINES: usize = 100;

/// Number of values of the sparkline.
const HISTORY: usize = 200;

/// The number of events in one picture above which only their count is shown.
const MUCH_NEWS: usize = 4;

/// The time for which losses are shown.
const RECENT: Duration = Duration::from_secs(5);

/// Runs until the user quits. Returns `true` if everything worked.
///
/// # Errors
/// An error of the terminal or the network.
pub fn run(lab: &mut Lab, spec: &TopologySpec, stop: &AtomicBool) -> Result<bool> {
    let mut show = Show::new(lab, spec);
    let mut terminal = ratatui::try_init()?;
    let restored = Restored;
    while !show.is_over && !stop.load(Relaxed) {
        let due = Instant::now() + FRAME;
        show.advance()?;
        terminal.draw(|frame| view::draw(frame, &show.picture()))?;
        show.obey_keys(due)?;
    }
    drop(restored);
    say(super::WHAT_NEXT.trim_start());
    Ok(show.story.all_is_well())
}

/// Restores the terminal on drop; after a panic, `ratatui`'s hook has already done so.
struct Restored;

impl Drop for Restored {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

/// The state of the display, and the user's selections.
struct Show<'a> {
    lab: &'a mut Lab,
    story: Story,
    spec: String,
    map: Map,
    log: VecDeque<Line>,
    history: VecDeque<u64>,
    sampled_at: Duration,
    selected: Option<usize>,
    is_paused: bool,
    shows_help: bool,
    has_colours: bool,
    is_over: bool,
}

impl<'a> Show<'a> {
    fn new(lab: &'a mut Lab, spec: &TopologySpec) -> Self {
        let story = Story::new(HOLD);
        Self {
            log: story.opening(lab, spec).into(),
            map: Map::new(spec, lab.plan()),
            spec: spec.to_string(),
            history: VecDeque::new(),
            sampled_at: Duration::ZERO,
            selected: None,
            is_paused: false,
            shows_help: false,
            has_colours: std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
            is_over: false,
            story,
            lab,
        }
    }

    /// Lets the time between two pictures pass.
    fn advance(&mut self) -> Result<()> {
        if self.is_paused {
            return Ok(());
        }
        let until = self.lab.now() + FRAME;
        while self.lab.now() < until {
            self.lab.step()?;
            let lines = self.story.advance(self.lab)?;
            self.tell_news();
            self.tell(lines);
        }
        if self.lab.now() >= self.sampled_at + SAMPLE {
            self.sampled_at = self.lab.now();
            self.history.push_back(self.lab.figures().flows_per_s);
            let old = self.history.len().saturating_sub(HISTORY);
            self.history.drain(..old);
        }
        Ok(())
    }

    /// Waits for the next picture, and handles keys at once.
    fn obey_keys(&mut self, due: Instant) -> Result<()> {
        while event::poll(due.saturating_duration_since(Instant::now()))? {
            if let Event::Key(key) = event::read()? {
                if let Some(command) = command(key) {
                    self.obey(command)?;
                }
            }
        }
        Ok(())
    }

    fn obey(&mut self, command: Command) -> Result<()> {
        match command {
            Command::Quit => self.is_over = true,
            Command::Pause => self.is_paused = !self.is_paused,
            Command::Help => self.shows_help = !self.shows_help,
            Command::SelectNext => self.select(1),
            Command::SelectPrevious => self.select(self.map.links.len().saturating_sub(1)),
            Command::Cut => self.cut()?,
            Command::Repair => self.repair()?,
            Command::PingAll if self.lab.is_pinging() => {}
            Command::PingAll => {
                self.lab.ping_all();
                self.tell([Line::News("every host pings every other".to_owned())]);
            }
        }
        Ok(())
    }

    /// Selects the link at this offset from the selected one.
    fn select(&mut self, step: usize) {
        let count = self.map.links.len();
        if count > 0 {
            let next = self
                .selected
                .map_or(0, |selected| (selected + step) % count);
            self.selected = Some(next);
        }
    }

    fn cut(&mut self) -> Result<()> {
        let Some(link) = self.selected.or_else(|| self.lab.busiest_spare()) else {
            let refusal = "no link is redundant: select one with tab to cut it anyway";
            self.tell([Line::News(refusal.to_owned())]);
            return Ok(());
        };
        self.set_cut(link, true)
    }

    fn repair(&mut self) -> Result<()> {
        let links = match self.selected {
            Some(selected) => selected..selected + 1,
            None => 0..self.map.links.len(),
        };
        links
            .into_iter()
            .try_for_each(|link| self.set_cut(link, false))
    }

    fn set_cut(&mut self, link: usize, is_cut: bool) -> Result<()> {
        if self.lab.is_cut(link) != is_cut {
            self.lab.set_cut(link, is_cut)?;
            let what = if is_cut { "cut" } else { "repaired" };
            let told = format!("you {what} {}", self.lab.link_name(link));
            self.tell([Line::News(told)]);
        }
        Ok(())
    }

    fn tell_news(&mut self) {
        let news = self.lab.take_news();
        if news.len() > MUCH_NEWS {
            let told = format!(
                "the controller reports {} events, last: {}",
                news.len(),
                news[news.len() - 1]
            );
            return self.tell([Line::News(told)]);
        }
        self.tell(news.into_iter().map(Line::News));
    }

    fn tell(&mut self, lines: impl IntoIterator<Item = Line>) {
        self.log.extend(lines);
        let old = self.log.len().saturating_sub(LOG_LINES);
        self.log.drain(..old);
    }

    fn picture(&self) -> Picture<'_> {
        let round = self.lab.pings();
        Picture {
            spec: &self.spec,
            map: &self.map,
            switches: self.switches(),
            links: (0..self.map.links.len())
                .map(|link| self.link(link))
                .collect(),
            figures: self.lab.figures(),
            history: self.history.iter().copied().collect(),
            pings: (round.answered(), round.len()),
            lost: self
                .lab
                .lost_since(self.lab.now().saturating_sub(RECENT))
                .count,
            log: self.log.iter().collect(),
            now: self.lab.now(),
            is_paused: self.is_paused,
            shows_help: self.shows_help,
            has_colours: self.has_colours,
        }
    }

    fn switches(&self) -> Vec<SwitchLook<'_>> {
        let plan = self.lab.plan();
        let known: Vec<bool> = self.lab.known_hosts().collect();
        let switches = plan.switches.iter().zip(self.lab.joined());
        let looks = switches.map(|(switch, has_joined)| {
            let hosts = plan.hosts.iter().zip(&known);
            let here: Vec<_> = hosts
                .filter(|(host, _)| host.attached.switch == switch.datapath_id)
                .collect();
            SwitchLook {
                name: &switch.name,
                has_joined,
                hosts: match &here[..] {
                    [] => String::new(),
                    [(host, _)] => host.name.clone(),
                    more => format!("{} hosts", more.len()),
                },
                knows_hosts: here.iter().all(|(_, is_known)| **is_known),
            }
        });
        looks.collect()
    }

    fn link(&self, link: usize) -> LinkLook {
        LinkLook {
            is_cut: self.lab.is_cut(link),
            is_discovered: self.lab.is_discovered(link),
            is_selected: self.selected == Some(link),
            frames_per_s: self
                .lab
                .figures()
                .links_per_s
                .get(link)
                .copied()
                .unwrap_or(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    /// Runs a show for `seconds` of its time, without waiting.
    fn run_for(show: &mut Show, seconds: u64) {
        let until = show.lab.now() + Duration::from_secs(seconds);
        while show.lab.now() < until {
            show.advance().unwrap();
        }
    }

    fn ring() -> (TopologySpec, Lab) {
        let spec: TopologySpec = "ring,3".parse().unwrap();
        let lab = Lab::new(&spec, 0).unwrap();
        (spec, lab)
    }

    fn tells(show: &Show, text: &str) -> bool {
        show.log
            .iter()
            .any(|line| format!("{line:?}").contains(text))
    }

    #[test]
    fn keys_cut_and_repair_the_selected_link() {
        let (spec, mut lab) = ring();
        let mut show = Show::new(&mut lab, &spec);
        run_for(&mut show, 1);
        [Command::SelectNext, Command::SelectNext, Command::Cut]
            .into_iter()
            .for_each(|command| show.obey(command).unwrap());
        let cut = |show: &Show| -> Vec<bool> { (0..3).map(|link| show.lab.is_cut(link)).collect() };
        assert_eq!(cut(&show), [false, true, false]);
        assert!(show.picture().links[1].is_selected);
        run_for(&mut show, 1);
        assert!(
            tells(&show, "the controller has lost the link"),
            "{:?}",
            show.log
        );
        show.obey(Command::Repair).unwrap();
        assert_eq!(cut(&show), [false; 3]);
    }

    #[test]
    fn without_a_selection_the_busiest_spare_link_is_cut_and_all_are_repaired() {
        let (spec, mut lab) = ring();
        let mut show = Show::new(&mut lab, &spec);
        for _ in 0..3 {
            show.obey(Command::Cut).unwrap();
        }
        let cut = (0..3).filter(|&link| show.lab.is_cut(link)).count();
        assert_eq!(cut, 1, "the other two are needed");
        assert!(tells(&show, "no link is redundant"), "{:?}", show.log);
        show.obey(Command::Repair).unwrap();
        assert!((0..3).all(|link| !show.lab.is_cut(link)));
    }

    #[test]
    fn time_stands_still_while_paused() {
        let (spec, mut lab) = ring();
        let mut show = Show::new(&mut lab, &spec);
        show.obey(Command::Pause).unwrap();
        show.advance().unwrap();
        assert_eq!(
            (show.lab.now(), show.picture().is_paused),
            (Duration::ZERO, true)
        );
        show.obey(Command::Pause).unwrap();
        show.advance().unwrap();
        assert_eq!(show.lab.now(), FRAME);
        show.obey(Command::Quit).unwrap();
        assert!(show.is_over);
    }

    #[test]
    fn a_cut_is_shown_and_reported() {
        let spec: TopologySpec = "torus,3,3".parse().unwrap();
        let mut lab = Lab::new(&spec, 0).unwrap();
        let mut show = Show::new(&mut lab, &spec);
        let is_cut = |show: &Show| (0..18).any(|link| show.lab.is_cut(link));
        while !is_cut(&show) {
            run_for(&mut show, 1);
        }
        run_for(&mut show, 4);
        let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
        terminal
            .draw(|frame| view::draw(frame, &show.picture()))
            .unwrap();
        let drawn = terminal.backend().to_string();
        println!("{drawn}");
        for expected in ["[s1x1]", "h3x3", "×", "flows/s       100", "packets lost"] {
            assert!(drawn.contains(expected), "no {expected} in\n{drawn}");
        }
    }

    #[test]
    fn the_whole_story_is_shown_and_then_repeats() {
        let (spec, mut lab) = ring();
        let mut show = Show::new(&mut lab, &spec);
        run_for(&mut show, 60);
        assert!(
            show.story.is_over() && show.story.all_is_well(),
            "{:?}",
            show.log
        );
        show.obey(Command::PingAll).unwrap();
        run_for(&mut show, 2);
        assert!(show.lab.pings().is_complete() && !show.lab.is_pinging());
        assert!(!show.is_over);
    }
}
