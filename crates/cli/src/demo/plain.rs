//! The demonstration in lines of text, for pipes, scripts and tests.

use super::lab::{Lab, Result, STEP};
use super::story::{Line, Story};
use crate::say::say;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use urtica_topology::spec::TopologySpec;

/// Runs the whole story. Returns `true` if everything worked.
///
/// # Errors
/// An unexpected error of the network.
pub fn run(
    lab: &mut Lab,
    spec: &TopologySpec,
    is_simulated: bool,
    stop: &AtomicBool,
) -> Result<bool> {
    let mut story = Story::new(Duration::ZERO);
    let mut scenes = 0;
    let mut tell = |lines: Vec<Line>| lines.iter().for_each(|line| tell(line, &mut scenes));
    tell(story.opening(lab, spec));
    let began = Instant::now();
    while !story.is_over() && !stop.load(Relaxed) {
        lab.step()?;
        tell(story.advance(lab)?);
        if !is_simulated {
            wait_until(began + lab.now());
        }
    }
    if story.is_over() {
        say(super::WHAT_NEXT);
    }
    Ok(story.is_over() && story.all_is_well())
}

fn tell(line: &Line, scenes: &mut u32) {
    match line {
        Line::Opening(text) => say(text),
        Line::Scene(title) => {
            *scenes += 1;
            say(format!("\n{scenes}. {title}"));
        }
        Line::Finding(text) | Line::Detail(text) => say(format!("   {text}")),
        Line::News(_) => {}
    }
}

/// Waits in larger steps: a hundred updates a second are enough.
fn wait_until(due: Instant) {
    let left = due.saturating_duration_since(Instant::now());
    if left > 10 * STEP {
        std::thread::sleep(left);
    }
}
