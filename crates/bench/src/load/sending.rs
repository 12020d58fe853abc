//! Sending packet-ins.

use super::{Phase, Worker};
use crate::config::Mode;
use rustix::event::epoll;
use std::io;
use urtica_socket::{Stream, is_try_again};

/// The result of one `send`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SendResult {
    Control,
    Train,
    Nothing,
}

impl Worker<'_> {
    /// Sends as much as is allowed, while the socket accepts it.
    pub(super) fn send_all(&mut self, index: usize) {
        let wants_write = loop {
            match self.send_once(index) {
                // At full rate, the next switch has its turn after each train.
                Ok(SendResult::Train) if self.config.mode == Mode::MaxRate => break true,
                Ok(SendResult::Train | SendResult::Control) => {}
                Ok(SendResult::Nothing) => break self.has_unsent(index),
                Err(error) if is_try_again(&error) => break true,
                Err(error) => return self.close(index, &error.to_string()),
            }
        };
        let switch = &mut self.switches[index];
        let Some(stream) = switch
            .stream
            .as_ref()
            .filter(|_| switch.wants_write != wants_write)
        else {
            return;
        };
        switch.wants_write = wants_write;
        let out = if wants_write {
            epoll::EventFlags::OUT
        } else {
            epoll::EventFlags::empty()
        };
        let event = epoll::EventData::new_u64(index as u64);
        if let Err(error) = epoll::modify(&self.epoll, stream, event, epoll::EventFlags::IN | out) {
            self.close(index, &io::Error::from(error).to_string());
        }
    }

    /// Returns `true` if TLS has accepted bytes that the socket has not.
    fn has_unsent(&self, index: usize) -> bool {
        let stream = self.switches[index].stream.as_ref();
        stream.is_some_and(Stream::has_unsent)
    }

    /// Calls `send` once: for replies to requests if there are any and no packet-in was sent in part, otherwise for packet-ins.
    fn send_once(&mut self, index: usize) -> io::Result<SendResult> {
        let switch = &mut self.switches[index];
        let Some(stream) = &mut switch.stream else {
            return Ok(SendResult::Nothing);
        };
        stream.flush()?;
        if switch.sent_in_part == 0 && !switch.control.is_empty() {
            let count = stream.write(&switch.control)?;
            switch.control.drain(..count);
            return Ok(SendResult::Control);
        }
        let count = self.packet_ins_to_send(index);
        if count == 0 {
            return Ok(SendResult::Nothing);
        }
        self.send_train(index, count)
    }

    fn packet_ins_to_send(&mut self, index: usize) -> usize {
        let switch = &mut self.switches[index];
        if self.phase != Phase::Load || !switch.ready {
            // Only the rest of a packet-in that was sent in part.
            return usize::from(switch.sent_in_part > 0);
        }
        let lost = switch.outstanding.give_up_overtaken();
        let count = switch.allowance(self.config).min(switch.outstanding.room());
        let in_part = u64::from(switch.sent_in_part > 0);
        if lost > 0 {
            self.tally.lost += lost;
            self.remove_waiting(lost, self.clock.now_ns());
        }
        count.max(in_part).min(self.train.capacity() as u64) as usize
    }

    fn send_train(&mut self, index: usize, count: usize) -> io::Result<SendResult> {
        let switch = &mut self.switches[index];
        let Some(stream) = &mut switch.stream else {
            return Ok(SendResult::Nothing);
        };
        let train = self
            .train
            .load(switch.identity, switch.outstanding.next_to_send(), count);
        let now_ns = self.clock.now_ns();
        self.sends += 1;
        let taken = match stream.write(&train[switch.sent_in_part..]) {
            Ok(taken) => taken,
            Err(error) => {
                self.blocked_sends += 1;
                return Err(error);
            }
        };
        let bytes = switch.sent_in_part + taken;
        let whole = (bytes / self.train.message_len()) as u64;
        switch.sent_in_part = bytes % self.train.message_len();
        switch.outstanding.sent(whole, now_ns);
        switch.due = switch.due.saturating_sub(whole);
        // On a schedule, packet-ins have been waiting since they were due.
        if !matches!(self.config.mode, Mode::Rate(_)) {
            self.recorder.add_waiting(whole, now_ns);
        }
        if bytes < count * self.train.message_len() {
            self.blocked_sends += 1;
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(SendResult::Train)
    }
}
