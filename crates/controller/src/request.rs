//! Requests from code outside of handlers, and their awaited replies.

use crate::FrameError;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use urtica_wire::{
    DatapathId, EncodeError, ErrorCode, Header, Message, MultipartFlags, split_frame,
};

/// The maximum total size of a switch's incomplete replies, for any number of requests: enough for some 400,000 flow entries.
/// It bounds the memory for endless replies.
const MAX_REPLY_BYTES: usize = 64 << 20;

/// The default time for a switch to answer ([`Network::with_deadline`](crate::Network::with_deadline)): enough for sending
/// earlier output first.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

/// An error of a message to a switch, or of its reply.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// No switch with this id is connected.
    #[error("no switch with datapath id {0} is connected")]
    UnknownSwitch(DatapathId),
    /// The switch's version cannot express the message.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// 4 MiB wait for the switch already. [`Network::ready`](crate::Network::ready) waits until it accepts more.
    #[error("the send queue of switch {0} is full")]
    Busy(DatapathId),
    /// Our role at the switch is secondary, and the message would change the switch.
    /// [`Network::set_role`](crate::Network::set_role) requests another role.
    #[error(
        "the controller is a secondary at switch {0}, which may only read; expected the role primary or equal"
    )]
    Secondary(DatapathId),
    /// The bytes are not frames.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// The controller has no raw program; only a raw program's frames are sent unchanged.
    #[error(
        "frames can be sent unchanged only in a controller with a raw program; expected Controller::raw_program"
    )]
    NoRawProgram,
    /// Switches do not reply to this kind of message.
    #[error("the message has no reply to wait for; send a barrier request after it")]
    NoReply,
    /// The message was sent inside a transaction.
    #[error(
        "messages cannot be sent inside a transaction, which may run again or fail; have it return the messages, \
         and send them afterwards"
    )]
    InTransaction,
    /// The switch disconnected before it replied, or before it accepted more.
    #[error("the switch disconnected before it replied")]
    Disconnected,
    /// The switch refused the message.
    #[error("the switch refused with {0}")]
    Refused(ErrorCode),
    /// The reply is too long, or all replies together are.
    #[error("the switch's replies have more than {MAX_REPLY_BYTES} bytes; request less at a time")]
    TooLong,
    /// The reply did not arrive in time.
    #[error("no reply was received within {0:?}")]
    Timeout(Duration),
    /// The reply does not match the request.
    #[error("the switch's reply does not match the request: expected {0}")]
    WrongReply(&'static str),
}

/// A reply: one message, or the parts of a multipart reply in order.
#[derive(Clone, Debug)]
pub struct Reply {
    /// Complete frames, in order.
    pub(crate) frames: Vec<u8>,
}

impl Reply {
    /// Creates a reply of one complete message.
    pub(crate) fn of_frame(frame: &[u8]) -> Self {
        Self {
            frames: frame.to_vec(),
        }
    }

    /// Returns the messages, which were checked when they arrived.
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

/// A pending reply: await it, or block with [`PendingReply::wait`]. Dropping it discards the reply.
///
/// It always resolves: to [`RequestError::Timeout`] within a second after the deadline of the requesting
/// [`Network`](crate::Network), to [`RequestError::Disconnected`] when the switch disconnects.
#[must_use = "dropping it gives up on the reply"]
pub struct PendingReply(pub(crate) oneshot::Receiver<Result<Reply, RequestError>>);

impl PendingReply {
    /// Blocks until the reply arrives. Not for handlers, which would block their own shard.
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

/// The receiver of a reply, and its deadline.
pub(crate) struct Asker {
    pub sender: ReplySender,
    pub deadline: Duration,
}

/// The requests of one connection that await replies, by xid. [`Requests::sweep`] removes dropped requests, and ends requests
/// past their deadline; when the table is dropped, all others resolve to [`RequestError::Disconnected`].
#[derive(Default)]
pub(crate) struct Requests {
    /// Ordered, so that waiting tasks are woken in a deterministic order.
    waiting: BTreeMap<u32, WaitingRequest>,
    /// The number of bytes of incomplete replies.
    kept: usize,
}

struct WaitingRequest {
    asker: Asker,
    since: Instant,
    /// The parts received so far.
    frames: Vec<u8>,
}

impl Requests {
    /// Adds a request whose message was sent with `xid` at `now`.
    pub fn insert(&mut self, xid: u32, asker: Asker, now: Instant) {
        let waiting = WaitingRequest {
            asker,
            since: now,
            frames: Vec::new(),
        };
        self.waiting.insert(xid, waiting);
    }

    /// Passes a reply to its request, once all its parts have arrived.
    pub fn resolve(&mut self, header: Header, message: &Message, frame: &[u8]) {
        let Some(mut waiting) = self.waiting.remove(&header.xid) else {
            return;
        };
        self.kept -= waiting.frames.len();
        waiting.frames.extend_from_slice(frame);
        let result = if let Message::Error(error) = message {
            Err(RequestError::Refused(match error.is_slave() {
                // 1.0 reports it as a vendor error.
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
        // Fails if the caller has dropped the request, which is permitted.
        let _ = waiting.asker.sender.send(result);
    }

    /// Returns the xids of requests that await replies.
    #[cfg(test)]
    pub fn xids(&self) -> impl Iterator<Item = u32> {
        self.waiting.keys().copied()
    }

    /// Removes dropped requests, and ends requests past their deadline.
    pub fn sweep(&mut self, now: Instant) {
        self.waiting
            .retain(|_, waiting| !waiting.asker.sender.is_closed());
        let is_over = |waiting: &WaitingRequest| {
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

/// Returns `true` for a part of a reply that more parts follow.
fn has_more(message: &Message) -> bool {
    matches!(message, Message::MultipartReply(part) if part.flags.contains(MultipartFlags::MORE))
}

/// Returns `true` if switches reply to such a message, with its xid.
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
