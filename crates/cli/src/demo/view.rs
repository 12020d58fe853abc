//! The live view: a [`Picture`] drawn into a terminal's frame.
//!
//! This module is independent of networks and terminals. Everything that colours show can also be seen without them: a
//! link that carries packets is a solid line, an idle one is dotted, and a cut one has gaps and a cross.

use super::keys::KEYS;
use super::lab::Figures;
use super::map::{Map, MapPosition, Stroke};
use super::story::Line as StoryLine;
use ratatui::Frame;
use ratatui::layout::{Constraint, Flex, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::canvas::{Canvas, Context, Painter, Shape};
use ratatui::widgets::{Block, Clear, Paragraph, Sparkline};
use std::time::Duration;

/// The state to draw.
pub struct Picture<'a> {
    /// The network's topology specification.
    pub spec: &'a str,
    pub map: &'a Map,
    pub switches: Vec<SwitchLook<'a>>,
    pub links: Vec<LinkLook>,
    pub figures: &'a Figures,
    /// New flows per second, the latest last.
    pub history: Vec<u64>,
    /// Number of answered pings of the last round, and of all its pings.
    pub pings: (usize, usize),
    /// Number of packets lost recently.
    pub lost: usize,
    /// The log, the latest line last.
    pub log: Vec<&'a StoryLine>,
    /// The network's time.
    pub now: Duration,
    pub is_paused: bool,
    pub shows_help: bool,
    pub has_colours: bool,
}

/// A switch, and its hosts.
pub struct SwitchLook<'a> {
    pub name: &'a str,
    pub has_joined: bool,
    /// The names of the hosts; empty without hosts.
    pub hosts: String,
    pub knows_hosts: bool,
}

/// A link between switches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkLook {
    pub is_cut: bool,
    /// Whether the controller knows it.
    pub is_discovered: bool,
    pub is_selected: bool,
    pub frames_per_s: u64,
}

/// The minimum size of a terminal; a smaller one gets a message instead.
const SMALLEST: (u16, u16) = (60, 20);

/// Number of shown lines of the log.
const LOG_LINES: u16 = 5;

/// Switches beyond this number are drawn without names.
const NAMED_SWITCHES: usize = 24;

/// With fewer frames, a link carries only the controller's probes.
const IDLE_PER_S: u64 = 20;

/// Number of points of a line.
const POINTS: usize = 400;

/// The width of the column of figures.
const FIGURES_WIDTH: u16 = 32;

/// The width of a switch among the figures.
const CELL_WIDTH: usize = 15;

/// Draws the whole picture.
pub fn draw(frame: &mut Frame, picture: &Picture) {
    let area = frame.area();
    if area.width < SMALLEST.0 || area.height < SMALLEST.1 {
        let (width, height) = SMALLEST;
        let request = format!("Please make the terminal larger: at least {width} by {height}.");
        return frame.render_widget(Paragraph::new(request), area);
    }
    let [title, middle, log, keys] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Min(8),
        Constraint::Length(LOG_LINES + 2),
        Constraint::Length(1),
    ])
    .areas(area);
    let [network, figures] =
        Layout::horizontal([Constraint::Min(20), Constraint::Length(FIGURES_WIDTH)]).areas(middle);
    let [traffic, switches] =
        Layout::vertical([Constraint::Length(8), Constraint::Min(0)]).areas(figures);
    frame.render_widget(title_line(picture), title);
    draw_network(frame, network, picture);
    draw_traffic(frame, traffic, picture);
    draw_switches(frame, switches, picture);
    draw_log(frame, log, picture);
    let bar = " q quit   c cut   r repair   tab select   p ping all   space pause   ? help";
    frame.render_widget(Line::styled(bar, Modifier::DIM), keys);
    if picture.shows_help {
        draw_help(frame, area);
    }
}

impl Picture<'_> {
    fn style(&self, colour: Color) -> Style {
        match self.has_colours {
            true => Style::new().fg(colour),
            false => Style::new(),
        }
    }

    fn colour(&self, colour: Color) -> Color {
        match self.has_colours {
            true => colour,
            false => Color::Reset,
        }
    }

    /// Returns the highest number of frames on any link.
    fn most_frames(&self) -> u64 {
        let links = self.links.iter().map(|link| link.frames_per_s);
        links.max().unwrap_or(0)
    }
}

fn title_line<'a>(picture: &Picture<'a>) -> Line<'a> {
    let state = if picture.is_paused { "  PAUSED" } else { "" };
    let seconds = picture.now.as_secs_f64();
    let title = format!(" urtica demo: {}   {seconds:.1} s{state}", picture.spec);
    Line::styled(title, Modifier::BOLD)
}

fn draw_network(frame: &mut Frame, area: Rect, picture: &Picture) {
    let block = Block::bordered().title(" network ");
    let inner = block.inner(area);
    let canvas = Canvas::default()
        .block(block)
        .x_bounds([0.0, 1.0])
        .y_bounds([0.0, 1.0])
        .paint(|context| paint_network(context, inner, picture));
    frame.render_widget(canvas, area);
}

fn paint_network(context: &mut Context, area: Rect, picture: &Picture) {
    let links = picture.map.links.iter().zip(&picture.links);
    for (stroke, look) in links.clone() {
        context.draw(&drawn(stroke, look, picture));
    }
    context.layer();
    for (stroke, look) in links {
        if let Some(mark) = mark(look) {
            let style = picture.style(Color::Red).add_modifier(Modifier::BOLD);
            print(context, area, middle(stroke), 0, Span::styled(mark, style));
        }
    }
    let is_named = picture.switches.len() <= NAMED_SWITCHES;
    for (&place, look) in picture.map.switches.iter().zip(&picture.switches) {
        let style = match look.has_joined {
            true => picture.style(Color::Cyan).add_modifier(Modifier::BOLD),
            false => Style::new().add_modifier(Modifier::DIM),
        };
        if !is_named {
            print(context, area, place, 0, Span::styled("■", style));
            continue;
        }
        let name = format!("[{}]", look.name);
        print(context, area, place, 0, Span::styled(name, style));
        let style = match look.knows_hosts {
            true => Style::new(),
            false => Style::new().add_modifier(Modifier::DIM),
        };
        print(
            context,
            area,
            place,
            1,
            Span::styled(look.hosts.clone(), style),
        );
    }
}

/// Returns the label of a link.
fn mark(look: &LinkLook) -> Option<&'static str> {
    match (look.is_cut, look.is_selected) {
        (true, true) => Some("<×>"),
        (true, false) => Some("×"),
        (false, true) => Some("<>"),
        (false, false) => None,
    }
}

/// Writes text centred at a position, or `below` rows under it, if possible.
fn print(context: &mut Context, area: Rect, place: MapPosition, below: u16, text: Span<'_>) {
    let [last_column, last_row] = [area.width, area.height].map(|size| f64::from(size.max(2) - 1));
    let half = (text.width() as f64 - 1.0) / 2.0;
    let column = (place.x * last_column - half).round().max(0.0);
    let row = (place.y * last_row).round() + f64::from(below);
    if row > last_row {
        return;
    }
    // Slightly right of and below the cell's edge, so that rounding does not move it into the previous cell.
    let x = ((column + 0.01) / last_column).min(1.0);
    let y = (1.0 - (row + 0.01) / last_row).max(0.0);
    let text = Span::styled(text.content.into_owned(), text.style);
    context.print(x, y, Line::from(text));
}

fn middle(stroke: &Stroke) -> MapPosition {
    match stroke.points[..] {
        [from, to] => MapPosition {
            x: (from.x + to.x) / 2.0,
            y: (from.y + to.y) / 2.0,
        },
        ref points => points[points.len() / 2],
    }
}

/// The style of a line: which parts are drawn, and in which colour.
struct Drawn<'a> {
    points: &'a [MapPosition],
    /// Number of dashes across the picture; `None` for a solid line.
    dashes: Option<f64>,
    colour: Color,
}

fn drawn<'a>(stroke: &'a Stroke, look: &LinkLook, picture: &Picture) -> Drawn<'a> {
    let is_busy = look.frames_per_s >= IDLE_PER_S;
    let is_busiest = 4 * look.frames_per_s > 3 * picture.most_frames();
    let (dashes, colour) = match look {
        look if look.is_cut => (Some(14.0), Color::Red),
        look if !look.is_discovered => (Some(14.0), Color::DarkGray),
        _ if is_busy && is_busiest => (None, Color::Yellow),
        _ if is_busy => (None, Color::Green),
        _ => (Some(50.0), Color::Gray),
    };
    Drawn {
        points: &stroke.points,
        dashes,
        colour: picture.colour(colour),
    }
}

impl Shape for Drawn<'_> {
    fn draw(&self, painter: &mut Painter) {
        let mut length = 0.0;
        let count = POINTS / self.points.len();
        for piece in self.points.windows(2) {
            let (dx, dy) = (piece[1].x - piece[0].x, piece[1].y - piece[0].y);
            for point in 0..count {
                let along = point as f64 / count as f64;
                let dash = self
                    .dashes
                    .map_or(0.0, |dashes| (length + along * dx.hypot(dy)) * dashes);
                let (x, y) = (piece[0].x + along * dx, piece[0].y + along * dy);
                if (dash as u64) % 2 == 0 {
                    if let Some((x, y)) = painter.get_point(x, 1.0 - y) {
                        painter.paint(x, y, self.colour);
                    }
                }
            }
            length += dx.hypot(dy);
        }
    }
}

fn draw_traffic(frame: &mut Frame, area: Rect, picture: &Picture) {
    let block = Block::bordered().title(" traffic ");
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let [flows, spark, rest] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Min(0),
    ])
    .areas(inner);
    let figures = picture.figures;
    frame.render_widget(
        Line::from(format!("flows/s   {:>7}", figures.flows_per_s)),
        flows,
    );
    let wide = usize::from(spark.width);
    let latest = &picture.history[picture.history.len().saturating_sub(wide)..];
    let style = picture.style(Color::Green);
    frame.render_widget(Sparkline::default().data(latest).style(style), spark);
    let (answered, pings) = picture.pings;
    let latency = |time: Option<Duration>| match time {
        Some(time) => format!("{:.2} ms", time.as_secs_f64() * 1e3),
        None => "-".to_owned(),
    };
    let lines = [
        format!(
            "packets/s {:>7}   lost {}",
            figures.packets_per_s, picture.lost
        ),
        format!("latency   p50 {}", latency(figures.latency_p50)),
        format!("          p99 {}", latency(figures.latency_p99)),
        format!("pings     {answered} of {pings} {}", bar(answered, pings)),
    ];
    frame.render_widget(Paragraph::new(lines.map(Line::from).to_vec()), rest);
}

/// Returns a bar of eight blocks, filled in proportion.
fn bar(part: usize, whole: usize) -> String {
    let full = 8 * part / whole.max(1);
    "█".repeat(full) + &"░".repeat(8 - full)
}

fn draw_switches(frame: &mut Frame, area: Rect, picture: &Picture) {
    let block = Block::bordered().title(" switches: entries, frames/s ");
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let columns = (usize::from(inner.width) / CELL_WIDTH).max(1);
    let room = columns * usize::from(inner.height);
    let mut cells: Vec<String> = (0..picture.switches.len())
        .map(|switch| switch_cell(picture, switch))
        .collect();
    if cells.len() > room && room > 0 {
        let left = cells.len() - room + 1;
        cells.truncate(room - 1);
        cells.push(format!("and {left} more"));
    }
    let rows = cells.chunks(columns).map(|row| Line::from(row.concat()));
    frame.render_widget(Paragraph::new(rows.collect::<Vec<_>>()), inner);
}

fn switch_cell(picture: &Picture, switch: usize) -> String {
    let name = picture.switches[switch].name;
    let entries = picture.figures.entries.get(switch).copied().unwrap_or(0);
    let frames = picture
        .figures
        .switches_per_s
        .get(switch)
        .copied()
        .unwrap_or(0);
    format!("{name:<5}{entries:>4}{frames:>5} ")
}

fn draw_log(frame: &mut Frame, area: Rect, picture: &Picture) {
    let block = Block::bordered().title(" what happens ");
    let inner = block.inner(area);
    let width = usize::from(inner.width);
    let lines = picture.log.iter().flat_map(|told| story_lines(told, width));
    let lines: Vec<_> = lines.collect();
    let latest = lines.len().saturating_sub(usize::from(inner.height));
    frame.render_widget(Paragraph::new(lines[latest..].to_vec()).block(block), area);
}

fn story_lines(told: &StoryLine, width: usize) -> Vec<Line<'static>> {
    let (text, lead, modifier) = match told {
        StoryLine::Scene(text) => (text, "", Modifier::BOLD),
        StoryLine::Opening(text) => (text, "", Modifier::empty()),
        StoryLine::Finding(text) => (text, "  ", Modifier::empty()),
        StoryLine::News(text) => (text, "  ", Modifier::DIM),
        StoryLine::Detail(_) => return Vec::new(),
    };
    let lines = wrap(text, width.saturating_sub(lead.len()));
    let lines = lines
        .into_iter()
        .map(|line| Line::styled(format!("{lead}{line}"), modifier));
    lines.collect()
}

/// Wraps text between words. Words that are too long are not broken.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let needed = lines.last().map_or(0, |line| line.chars().count()) + 1 + word.chars().count();
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if needed <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

fn draw_help(frame: &mut Frame, area: Rect) {
    let keys = KEYS.map(|(key, meaning)| Line::from(format!(" {key:<12} {meaning} ")));
    let lines: Vec<_> = keys
        .into_iter()
        .chain([
            Line::default(),
            Line::from(" A link that carries packets is solid, an idle one dotted; ×: cut."),
        ])
        .collect();
    let width = lines.iter().map(Line::width).max().unwrap_or(0) as u16 + 2;
    let height = lines.len() as u16 + 2;
    let middle = centered(area, width, height);
    frame.render_widget(Clear, middle);
    frame.render_widget(
        Paragraph::new(lines).block(Block::bordered().title(" keys ")),
        middle,
    );
}

fn centered(area: Rect, width: u16, height: u16) -> Rect {
    let [row] = Layout::vertical([height]).flex(Flex::Center).areas(area);
    let [middle] = Layout::horizontal([width]).flex(Flex::Center).areas(row);
    middle
}

#[cfg(test)]
mod tests;
