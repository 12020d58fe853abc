//! The messages of a program that is only previewed, which are kept instead of sent. See [`preview`](crate::preview).

use crate::request::{Asker, Reply};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use urtica_wire::{DatapathId, Message, Version};

/// The messages of a program that is only previewed.
pub(crate) struct Unsent {
    said: Mutex<Said>,
}

struct Said {
    /// Whole messages, by switch.
    messages: BTreeMap<DatapathId, Vec<u8>>,
    last: Instant,
}

impl Unsent {
    pub fn new() -> Arc<Self> {
        let said = Said {
            messages: BTreeMap::new(),
            last: Instant::now(),
        };
        Arc::new(Self {
            said: Mutex::new(said),
        })
    }

    /// Keeps messages for a switch, and tells a caller that awaits a reply that they have been processed.
    pub fn keep(&self, switch: DatapathId, bytes: &[u8], version: Version, asker: Option<Asker>) {
        let mut said = self.said.lock();
        said.last = Instant::now();
        said.messages.entry(switch).or_default().extend(bytes);
        drop(said);
        let mut frames = Vec::new();
        if let (Some(asker), Ok(())) =
            (asker, Message::BarrierReply.encode(version, 0, &mut frames))
        {
            let _ = asker.sender.send(Ok(Reply { frames }));
        }
    }

    /// Returns the time since the last message.
    pub fn quiet_for(&self) -> Duration {
        self.said.lock().last.elapsed()
    }

    /// Removes and returns the kept messages, by switch.
    pub fn take(&self) -> BTreeMap<DatapathId, Vec<u8>> {
        std::mem::take(&mut self.said.lock().messages)
    }
}
