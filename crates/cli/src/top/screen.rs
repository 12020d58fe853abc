//! Live figures on a terminal.

use super::client::{Client, ClientError, Sample};
use super::figures::Figures;
use super::table::{COLUMNS, cells, shown, summary};
use ratatui::Frame;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::{Alignment, Constraint, Layout};
use ratatui::style::Modifier;
use ratatui::text::{Line, Text};
use ratatui::widgets::{Cell, Paragraph, Row, Table};
use std::io;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

/// The maximum delay of keys and of new samples on the screen.
const FRAME: Duration = Duration::from_millis(100);

/// The number of switches that a page key scrolls.
const PAGE: usize = 10;

type Result = std::result::Result<Sample, ClientError>;

/// Shows figures until the user quits.
pub fn run(client: Client, first: Sample, interval: Duration) -> io::Result<()> {
    let samples = ask_in_background(client, interval)?;
    let mut view = View::new(first);
    let mut terminal = ratatui::try_init()?;
    let restored = Restored;
    while !view.is_over {
        if let Ok(sample) = samples.try_recv() {
            view.take(sample);
        }
        terminal.draw(|frame| view.draw(frame))?;
        if event::poll(FRAME)? {
            if let Event::Key(key) = event::read()? {
                view.obey(key);
            }
        }
    }
    drop(restored);
    Ok(())
}

/// Restores the terminal on drop; after a panic, `ratatui`'s hook has already done so.
struct Restored;

impl Drop for Restored {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

/// Samples in a separate thread, so that a slow controller does not delay keys. The thread ends with the program.
fn ask_in_background(client: Client, interval: Duration) -> io::Result<Receiver<Result>> {
    let (samples, receiver) = sync_channel(1);
    let thread = std::thread::Builder::new().name("sampler".to_owned());
    thread.spawn(move || {
        loop {
            std::thread::sleep(interval);
            if samples.send(client.sample()).is_err() {
                return;
            }
        }
    })?;
    Ok(receiver)
}

/// The state of the screen.
struct View {
    last: Sample,
    figures: Option<Figures>,
    /// The error of the last query, if it failed.
    problem: Option<String>,
    /// The number of switches above the first visible one.
    scrolled: usize,
    is_over: bool,
}

impl View {
    fn new(first: Sample) -> Self {
        Self {
            last: first,
            figures: None,
            problem: None,
            scrolled: 0,
            is_over: false,
        }
    }

    fn take(&mut self, sample: Result) {
        match sample {
            Ok(sample) => {
                self.figures = Some(Figures::between(&self.last, &sample));
                self.last = sample;
                self.problem = None;
            }
            Err(error) => self.problem = Some(error.to_string()),
        }
    }

    fn obey(&mut self, key: KeyEvent) {
        if key.kind == KeyEventKind::Release {
            return;
        }
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        let count = self
            .figures
            .as_ref()
            .map_or(0, |figures| figures.switches.len());
        let last = count.saturating_sub(1);
        match key.code {
            // In a terminal's raw mode this does not raise a signal.
            KeyCode::Char('c') if is_control => self.is_over = true,
            KeyCode::Char('q' | 'Q') | KeyCode::Esc => self.is_over = true,
            KeyCode::Up => self.scrolled = self.scrolled.saturating_sub(1),
            KeyCode::PageUp => self.scrolled = self.scrolled.saturating_sub(PAGE),
            KeyCode::Down => self.scrolled = (self.scrolled + 1).min(last),
            KeyCode::PageDown => self.scrolled = (self.scrolled + PAGE).min(last),
            KeyCode::Home => self.scrolled = 0,
            _ => {}
        }
    }

    fn draw(&self, frame: &mut Frame) {
        let title = format!(" urtica top: {}", shown(&self.last.place));
        let Some(figures) = &self.figures else {
            let text = Text::from(vec![
                title.into(),
                " the first figures arrive with the next sample".into(),
            ]);
            return frame.render_widget(Paragraph::new(text), frame.area());
        };
        let mut lines = vec![Line::styled(title, Modifier::BOLD)];
        let problem = self.problem.iter();
        lines
            .extend(problem.map(|problem| Line::styled(format!(" {problem}"), Modifier::REVERSED)));
        let summary = summary(figures).into_iter();
        lines.extend(summary.map(|line| Line::from(format!(" {line}"))));
        let [above, table, keys] = Layout::vertical([
            Constraint::Length(lines.len() as u16 + 1),
            Constraint::Min(2),
            Constraint::Length(1),
        ])
        .areas(frame.area());
        frame.render_widget(Paragraph::new(lines), above);
        frame.render_widget(self.table(figures), table);
        let bar = " q quit   up, down, page up, page down: switches";
        frame.render_widget(Line::styled(bar, Modifier::DIM), keys);
    }

    fn table(&self, figures: &Figures) -> Table<'static> {
        let cell = |(text, (_, _, is_number)): (String, (&str, u16, bool))| {
            let alignment = if is_number {
                Alignment::Right
            } else {
                Alignment::Left
            };
            Cell::from(Text::from(text).alignment(alignment))
        };
        let row =
            |texts: [String; COLUMNS.len()]| Row::new(texts.into_iter().zip(COLUMNS).map(cell));
        let heads = row(COLUMNS.map(|(name, ..)| name.to_owned()));
        // The list may have become shorter since.
        let scrolled = self.scrolled.min(figures.switches.len().saturating_sub(1));
        let switches = figures.switches.iter().skip(scrolled);
        let widths = COLUMNS.map(|(_, width, _)| Constraint::Length(width));
        Table::new(switches.map(|switch| row(cells(switch))), widths)
            .header(heads.style(Modifier::REVERSED))
    }
}

#[cfg(test)]
mod tests {
    use super::super::exposition::parse;
    use super::super::figures::tests::figures;
    use super::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use std::time::Instant;

    fn sample() -> Sample {
        Sample {
            at: Instant::now(),
            place: "http://127.0.0.1:8080".to_owned(),
            metrics: parse("urtica_switches 0\n"),
            programs: Vec::new(),
        }
    }

    fn drawn(view: &View) -> String {
        let mut terminal = Terminal::new(TestBackend::new(120, 20)).expect("a terminal");
        terminal.draw(|frame| view.draw(frame)).expect("drawn");
        terminal.backend().to_string()
    }

    #[test]
    fn figures_are_drawn_and_scrolled() {
        let mut view = View::new(sample());
        assert!(drawn(&view).contains("the first figures arrive"));
        view.figures = Some(figures());
        let all = drawn(&view);
        for words in [
            "2 switches, 4 hosts, 350 packet-ins/s",
            "p99 2.0 ms",
            "0000000000000001 s1",
            "s\\u{1b}[2J\\n2",
        ] {
            assert!(all.contains(words), "{words}: {all}");
        }
        let press = |view: &mut View, code| view.obey(KeyEvent::new(code, KeyModifiers::NONE));
        press(&mut view, KeyCode::PageDown);
        let rest = drawn(&view);
        assert!(!rest.contains("0000000000000002"), "{rest}");
        assert!(rest.contains("0000000000000001"), "{rest}");
        press(&mut view, KeyCode::Home);
        assert!(drawn(&view).contains("0000000000000002"));
        press(&mut view, KeyCode::Char('q'));
        assert!(view.is_over);
    }

    #[test]
    fn reports_a_lost_controller_and_keeps_its_last_figures() {
        let mut view = View::new(sample());
        view.take(Ok(sample()));
        view.take(Err(ClientError::NotOurs("http://x:1".to_owned())));
        let shown = drawn(&view);
        assert!(shown.contains("does not return metrics"), "{shown}");
        assert!(shown.contains("0 switches"), "{shown}");
        view.take(Ok(sample()));
        assert!(!drawn(&view).contains("does not return metrics"));
    }
}
