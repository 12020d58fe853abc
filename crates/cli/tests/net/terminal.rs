//! Tests of `urtica net` at a terminal.

use super::text;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// `urtica net` at a terminal.
struct Terminal {
    child: Child,
    keyboard: File,
    screen: Receiver<Vec<u8>>,
    shown: String,
}

impl Terminal {
    fn start(arguments: &[&str], home: &Path) -> Self {
        let main = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&main).unwrap();
        unlockpt(&main).unwrap();
        let name = ptsname(&main, Vec::new()).unwrap();
        let end = || {
            let path = name.to_str().unwrap();
            File::options().read(true).write(true).open(path).unwrap()
        };
        let child = Command::new(env!("CARGO_BIN_EXE_urtica"))
            .arg("net")
            .args(arguments)
            .env("HOME", home)
            .env("TERM", "xterm")
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn()
            .unwrap();
        let (show, screen) = channel();
        let mut display = File::from(main.try_clone().unwrap());
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            // The final error means that the other end is closed.
            while let Ok(count @ 1..) = display.read(&mut buffer) {
                if show.send(buffer[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self {
            child,
            keyboard: File::from(main),
            screen,
            shown: String::new(),
        }
    }

    /// Waits until the terminal shows this text, after the text of the last wait.
    fn wait_for(&mut self, expected: &str) {
        const DEADLINE: Duration = Duration::from_secs(60);
        loop {
            if let Some(at) = self.shown.find(expected) {
                self.shown.drain(..at + expected.len());
                return;
            }
            match self.screen.recv_timeout(DEADLINE) {
                Ok(bytes) => self.shown.push_str(&text(&bytes)),
                Err(_) => panic!("no '{expected}' in: {}", self.shown),
            }
        }
    }

    fn type_keys(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_prompt_completes_words_and_remembers_lines() {
    const TAB: &str = "\t";
    const UP: &str = "\x1b[A";
    const CTRL_C: &str = "\x03";
    const CTRL_D: &str = "\x04";
    let home = tempfile::tempdir().unwrap();
    let mut terminal = Terminal::start(&["single,2", "--simulated"], home.path());
    terminal.wait_for("urtica> ");
    terminal.type_keys(&format!("h1 pi{TAB}h{TAB}-c1\r"));
    terminal.wait_for("1 packets transmitted, 1 received");
    terminal.wait_for("urtica> ");
    terminal.type_keys(&format!("dance{CTRL_C}"));
    terminal.wait_for("urtica> ");
    terminal.type_keys(&format!("{UP}\r"));
    terminal.wait_for("1 packets transmitted, 1 received");
    terminal.wait_for("urtica> ");
    terminal.type_keys(CTRL_D);
    assert!(terminal.child.wait().unwrap().success());
    drop(terminal);

    let mut again = Terminal::start(&["single,2", "--simulated"], home.path());
    again.wait_for("urtica> ");
    again.type_keys(&format!("{UP}\r"));
    again.wait_for("1 packets transmitted, 1 received");
    again.wait_for("urtica> ");
    again.type_keys("exit\r");
    assert!(again.child.wait().unwrap().success());
}
