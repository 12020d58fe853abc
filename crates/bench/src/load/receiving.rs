//! Receiving from the controller.

use super::switch::Switch;
use super::{Phase, READ_BYTES, Worker};
use crate::bytes::be16;
use crate::emulated_switch::Event;
use std::time::Instant;
use urtica_socket::is_try_again;

impl Worker<'_> {
    pub(super) fn receive(&mut self, index: usize) {
        let switch = &mut self.switches[index];
        let Some(stream) = &mut switch.stream else {
            return;
        };
        let kept = switch.tail.len();
        self.input[..kept].copy_from_slice(&switch.tail);
        match stream.read(&mut self.input[kept..kept + READ_BYTES]) {
            Ok(0) => self.close(index, "the controller closed the connection"),
            Ok(count) => self.take_input(index, kept + count),
            Err(error) if is_try_again(&error) => {}
            Err(error) => self.close(index, &error.to_string()),
        }
    }

    /// Handles all complete messages in the first `end` bytes of the input, and keeps the rest for later.
    fn take_input(&mut self, index: usize, end: usize) {
        let now_ns = self.clock.now_ns();
        let answered_before = self.tally.answered;
        let (at, complaint) = self.take_messages(index, end, now_ns);
        let switch = &mut self.switches[index];
        switch.tail.clear();
        switch.tail.extend_from_slice(&self.input[at..end]);
        let answered = self.tally.answered - answered_before;
        if answered > 0 {
            switch.answered += answered;
            switch.last_answer_ns = now_ns;
            switch.answered_by_then = self.tally.answered;
            self.last_answer.note(now_ns);
            self.remove_waiting(answered, now_ns);
        }
        if let Some(complaint) = complaint {
            self.close(index, &complaint);
        }
    }

    /// Returns the offset of the first incomplete message, and the reason why the connection is unusable, if it is.
    fn take_messages(&mut self, index: usize, end: usize, now_ns: u64) -> (usize, Option<String>) {
        let mut at = 0;
        loop {
            let Switch {
                checker,
                outstanding,
                session,
                control,
                ..
            } = &mut self.switches[index];
            let mut record = |latency_ns, count| self.recorder.record(latency_ns, count);
            at += checker.take_run(
                &self.input[at..],
                end - at,
                outstanding,
                now_ns,
                &mut self.tally,
                &mut record,
            );
            let Some(len) = be16(&self.input[..end], at + 2).map(usize::from) else {
                return (at, None);
            };
            if len < 8 {
                return (
                    at,
                    Some(format!(
                        "the controller sent a message whose header gives its length as {len}"
                    )),
                );
            }
            if end - at < len {
                return (at, None);
            }
            let message = &self.input[at..at + len];
            at += len;
            if self.phase != Phase::Handshake && matches!(message[1], 13 | 14) {
                checker.check(message, outstanding, now_ns, &mut self.tally, record);
                continue;
            }
            let event = session.handle_message(message, control);
            if let Some(complaint) = self.note(index, event) {
                return (at, Some(complaint));
            }
        }
    }

    /// Handles a message that is not a reply. Returns the reason why the connection is unusable, if it is.
    fn note(&mut self, index: usize, event: Event) -> Option<String> {
        let switch = &mut self.switches[index];
        self.last_input = Instant::now();
        match event {
            Event::Ready => switch.ready = true,
            Event::Error { kind, code } => {
                self.tally.errors += 1;
                let dpid = switch.identity.datapath_id;
                self.trouble.get_or_insert_with(|| {
                    format!("the controller sent switch {dpid:016x} an OFPT_ERROR of type {kind}, code {code}")
                });
            }
            Event::WrongVersion(version) => {
                let ours = self.config.version.name();
                return Some(format!(
                    "the controller does not speak OpenFlow {ours} (its hello has version {version}); try the other --openflow"
                ));
            }
            Event::Handled | Event::Reply => {}
        }
        None
    }
}
