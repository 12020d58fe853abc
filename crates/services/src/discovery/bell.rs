//! Wakes the background program when there is something to do.

use parking_lot::{Mutex, MutexGuard};
use std::future::poll_fn;
use std::task::{Context, Poll, Waker};

/// Rung from any thread; one waits for it. Rings that nobody waited for are one ring.
#[derive(Default)]
pub(super) struct Bell(Mutex<State>);

#[derive(Default)]
struct State {
    is_rung: bool,
    waiting: Option<Waker>,
}

impl Bell {
    /// Wakes who waits, or who waits next.
    pub fn ring(&self) {
        let mut state = self.lock();
        state.is_rung = true;
        let waiting = state.waiting.take();
        drop(state);
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Waits for a ring.
    pub async fn rung(&self) {
        poll_fn(|context| self.poll_rung(context)).await;
    }

    fn poll_rung(&self, context: &Context<'_>) -> Poll<()> {
        let mut state = self.lock();
        if std::mem::take(&mut state.is_rung) {
            return Poll::Ready(());
        }
        state.waiting = Some(context.waker().clone());
        Poll::Pending
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }
}
