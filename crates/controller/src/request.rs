//! Requests from code outside of handlers, and their awaited replies.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use urtica_wire::{
    DatapathId, EncodeError, ErrorCode, Header, Message, MultipartFlags, split_frame,
};

/// The most that is kept of a switch's replies before they are whole: some 400,000 flow entries fit, and a switch whose
/// replies never end does not fill the memory, however many of them are awaited.
const MAX_REPLY_BYTES: usize = 64 << 20;

/// How long a switch has to answer, where nobody says otherwise ([`Network::with_deadline`](crate::Network::with_deadline)): long
/// enough for what waits before the question.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

/// Why something could not be sent to a switch, or its reply did not come.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// No switch with this id is connected.
    #[error("no switch with datapath id {0} is connected")]
    UnknownSwitch(DatapathId),
    /// The switch's version cannot express the message.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// 4 MiB wait to be sent to the switch already. [`Network::ready`](crate::Network::ready) waits for room.
    #[error("switch {0} does not keep up: too many messages wait to be sent to it")]
    Busy(DatapathId),
    /// Our role at the switch lets us only look, and the message would change something.
    /// [`Network::set_role`](crate::Network::set_role) asks for another one.
    #[error(
        "the controller is a secondary at switch {0}, and may only look; expected the role primary or equal before this is sent"
    )]
    Secondary(DatapathId),
    /// A switch does not answer messages like this one.
    #[error("the message has no reply to wait for; send a barrier request after it")]
    NoReply,
    /// It was sent inside a transaction.
    #[error(
        "messages cannot be sent inside a transaction, which may run again or fail; have it return what is to be sent, \
         and send that afterwards"
    )]
    InTransaction,
    /// The switch left before it replied, or before there was room for what is to be sent to it.
    #[error("the switch disconnected before it replied")]
    Disconnected,
    /// The switch refused.
    #[error("the switch refused with {0}")]
    Refused(ErrorCode),
    /// The reply has no end, or too much is asked of the switch at once.
    #[error("the switch's replies have more than {MAX_REPLY_BYTES} bytes; ask for less at a time")]
    TooLong,
    /// The reply did not come in time.
    #[error("no reply came within {0:?}")]
    Timeout(Duration),
    /// It answered something else than what it was asked.
    #[error("the switch's reply is not about what it was asked: expected {0}")]
    WrongReply(&'static str),
}

/// A reply: one message, or the parts of a multipart reply in order.
#[derive(Clone, Debug)]
pub struct Reply {
    /// Whole frames, one after the other.
    pub(crate) frames: Vec<u8>,
}

impl Reply {
    /// A reply of one whole message.
    pub(crate) fn of_frame(frame: &[u8]) -> Self {
        Self {
            frames: frame.to_vec(),
        }
    }

    /// The messages. They were checked when they came.
    pub fn messages(&self) -> impl Iterator<Item = Message<'_>> {
        let mut rest = &self.frames[..];
        std::iter::from_fn(move || {
            let (frame, next) = split_frame(rest).ok()??;
            rest = next;
            let (_, message) = Message::decode(frame).ok()?;
            Some(message)
        })
    }
}

/// A reply on its way: await it, or block with [`PendingReply::wait`]. Dropping it gives up on the reply.
///
/// It resolves in any case: to [`RequestError::Timeout`] within a second after the deadline of the
/// [`Network`](crate::Network) that asked, to [`RequestError::Disconnected`] when the switch leaves.
#[must_use = "dropping it gives up on the reply"]
pub struct PendingReply(pub(crate) oneshot::Receiver<Result<Reply, RequestError>>);

impl PendingReply {
    /// Blocks until the reply is there. Not for handlers, which would wait for themselves.
    ///
    /// # Errors
    /// [`RequestError::Timeout`], [`RequestError::Disconnected`], [`RequestError::Refused`], [`RequestError::TooLong`].
    pub fn wait(self, timeout: Duration) -> Result<Reply, RequestError> {
        self.0
            .recv_timeout(timeout)
            .unwrap_or_else(|error| match error {
                oneshot::RecvTimeoutError::Timeout => Err(RequestError::Timeout(timeout)),
                oneshot::RecvTimeoutError::Disconnected => Err(RequestError::Disconnected),
            })
    }
}

impl Future for PendingReply {
    type Output = Result<Reply, RequestError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let received = std::task::ready!(Pin::new(&mut self.0).poll(context));
        Poll::Ready(received.unwrap_or(Err(RequestError::Disconnected)))
    }
}

pub(crate) type ReplySender = oneshot::Sender<Result<Reply, RequestError>>;

/// Who waits for a reply, and for how long.
pub(crate) struct Asker {
    pub sender: ReplySender,
    pub deadline: Duration,
}

/// The requests of one connection that await replies, by xid. Those that nobody waits for any more are forgotten by
/// [`Requests::sweep`], and those whose time is over end there; when the table is dropped, all who wait learn [`RequestError::Disconnected`].
#[derive(Default)]
pub(crate) struct Requests {
    /// In order, so that those who wait are woken in the same order each time.
    waiting: BTreeMap<u32, Waiting>,
    /// How many bytes of replies that are not whole yet are kept.
    kept: usize,
}

struct Waiting {
    asker: Asker,
    since: Instant,
    /// The parts that came so far.
    frames: Vec<u8>,
}

impl Requests {
    /// Awaits the reply to the message that is sent with `xid` now.
    pub fn insert(&mut self, xid: u32, asker: Asker, now: Instant) {
        let waiting = Waiting {
            asker,
            since: now,
            frames: Vec::new(),
        };
        self.waiting.insert(xid, waiting);
    }

    /// Hands a reply to whoever waits for it, once all its parts are there.
    pub fn resolve(&mut self, header: Header, message: &Message, frame: &[u8]) {
        let Some(mut waiting) = self.waiting.remove(&header.xid) else {
            return;
        };
        self.kept -= waiting.frames.len();
        waiting.frames.extend_from_slice(frame);
        let result = if let Message::Error(error) = message {
            Err(RequestError::Refused(match error.is_slave() {
                // In 1.0 a vendor's error.
                true => ErrorCode::BadRequestIsSlave,
                false => error.code,
            }))
        } else if self.kept + waiting.frames.len() > MAX_REPLY_BYTES {
            Err(RequestError::TooLong)
        } else if has_more(message) {
            self.kept += waiting.frames.len();
            self.waiting.insert(header.xid, waiting);
            return;
        } else {
            Ok(Reply {
                frames: waiting.frames,
            })
        };
        // Fails where nobody waits any more, which is their right.
        let _ = waiting.asker.sender.send(result);
    }

    /// Those that await replies.
    #[cfg(test)]
    pub fn xids(&self) -> impl Iterator<Item = u32> {
        self.waiting.keys().copied()
    }

    /// Forgets requests whose askers have given up, and ends those that have waited for too long.
    pub fn sweep(&mut self, now: Instant) {
        self.waiting
            .retain(|_, waiting| !waiting.asker.sender.is_closed());
        let is_over = |waiting: &Waiting| {
            now.saturating_duration_since(waiting.since) >= waiting.asker.deadline
        };
        let over = self.waiting.iter().filter(|(_, waiting)| is_over(waiting));
        let over: Vec<u32> = over.map(|(xid, _)| *xid).collect();
        for waiting in over.iter().filter_map(|xid| self.waiting.remove(xid)) {
            let Asker { sender, deadline } = waiting.asker;
            let _ = sender.send(Err(RequestError::Timeout(deadline)));
        }
        let kept = self.waiting.values().map(|waiting| waiting.frames.len());
        self.kept = kept.sum();
    }
}

/// Whether this is a part of a reply that is not the last.
fn has_more(message: &Message) -> bool {
    matches!(message, Message::MultipartReply(part) if part.flags.contains(MultipartFlags::MORE))
}

/// Whether a switch answers such a message with one of the same xid.
pub(crate) fn has_reply(message: &Message) -> bool {
    matches!(
        message,
        Message::EchoRequest(_)
            | Message::FeaturesRequest
            | Message::GetConfigRequest
            | Message::MultipartRequest(_)
            | Message::BarrierRequest
            | Message::QueueGetConfigRequest(_)
            | Message::RoleRequest(_)
            | Message::GetAsyncRequest
            | Message::Experimenter(_)
    )
}
