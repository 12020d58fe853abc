//! The lines that are written to the log. A single test, since a process has one log.

use std::io;
use std::sync::{Arc, Mutex};
use tracing_subscriber::fmt::MakeWriter;

/// A log in memory.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn lines(&self) -> Vec<String> {
        let bytes = std::mem::take(&mut *self.0.lock().unwrap());
        let text = String::from_utf8(bytes).unwrap();
        text.lines().map(str::to_owned).collect()
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

#[test]
fn lines_are_as_of_tracing_and_thinned_by_level_and_subject() {
    let log = Log::default();
    tracing_subscriber::fmt()
        .with_writer(log.clone())
        .without_time()
        .with_ansi(false)
        .init();
    let (number, name) = (7, "s1");
    urtica_log::warn!(about: "a peer", number, %name, "a line of {}", 2 * 4);
    assert_eq!(log.lines(), [" WARN lines: a line of 8 number=7 name=s1"]);
    for _ in 0..1000 {
        urtica_log::info!(about: "a peer", "again");
        // This log's level excludes the line, so that it uses up no limit.
        urtica_log::debug!(about: "another peer", "again");
    }
    assert_eq!(log.lines().len(), urtica_log::BURST as usize);
    urtica_log::warn!(about: "a peer", "graver lines are not hidden");
    urtica_log::error!(about: "a peer", "nor these");
    urtica_log::info!(about: "another peer", "nor those about others");
    assert_eq!(log.lines().len(), 3);
}
