//! Keyboard commands.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// A command of the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Quit.
    Quit,
    /// Cut the selected link, or the busiest.
    Cut,
    /// Repair the selected link, or all.
    Repair,
    /// Make each host ping each other.
    PingAll,
    /// Pause or resume.
    Pause,
    /// Show or hide the help.
    Help,
    /// Select the next link.
    SelectNext,
    /// Select the previous link.
    SelectPrevious,
}

/// The help: keys, and their meaning.
pub const KEYS: [(&str, &str); 7] = [
    ("c", "cut the selected link, or the busiest redundant one"),
    ("r", "repair the selected link, or all"),
    ("tab, arrows", "select a link"),
    ("p", "each host pings each"),
    ("space", "pause, and continue"),
    ("?", "this list"),
    ("q", "end"),
];

/// Returns the command for a key, if any.
pub fn command(key: KeyEvent) -> Option<Command> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
    Some(match key.code {
        // In a terminal's raw mode this does not raise a signal.
        KeyCode::Char('c') if is_control => Command::Quit,
        KeyCode::Char(_) if is_control => return None,
        KeyCode::Char('q' | 'Q') | KeyCode::Esc => Command::Quit,
        KeyCode::Char('c' | 'C') => Command::Cut,
        KeyCode::Char('r' | 'R') => Command::Repair,
        KeyCode::Char('p' | 'P') => Command::PingAll,
        KeyCode::Char(' ') => Command::Pause,
        KeyCode::Char('?' | 'h' | 'H') => Command::Help,
        KeyCode::Tab | KeyCode::Right | KeyCode::Down => Command::SelectNext,
        KeyCode::BackTab | KeyCode::Left | KeyCode::Up => Command::SelectPrevious,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_act_as_in_the_help() {
        let pressed = |code| command(KeyEvent::new(code, KeyModifiers::NONE));
        for (code, expected) in [
            (KeyCode::Char('q'), Some(Command::Quit)),
            (KeyCode::Esc, Some(Command::Quit)),
            (KeyCode::Char('c'), Some(Command::Cut)),
            (KeyCode::Char('R'), Some(Command::Repair)),
            (KeyCode::Char('p'), Some(Command::PingAll)),
            (KeyCode::Char(' '), Some(Command::Pause)),
            (KeyCode::Char('?'), Some(Command::Help)),
            (KeyCode::Tab, Some(Command::SelectNext)),
            (KeyCode::Left, Some(Command::SelectPrevious)),
            (KeyCode::Char('x'), None),
            (KeyCode::F(1), None),
        ] {
            assert_eq!(pressed(code), expected, "{code:?}");
        }
    }

    #[test]
    fn control_c_ends_and_does_not_cut() {
        let pressed = |letter| command(KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL));
        assert_eq!(pressed('c'), Some(Command::Quit));
        assert_eq!(pressed('r'), None);
    }

    #[test]
    fn key_releases_are_ignored() {
        let mut key = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::NONE);
        key.kind = KeyEventKind::Release;
        assert_eq!(command(key), None);
    }
}
