//! Wakes a service's background program when there is work to do.

use futures_util::task::AtomicWaker;
use std::future::poll_fn;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{AcqRel, Release};
use std::task::{Context, Poll};

/// Wakes one task. Notifications before the task waits count as one.
///
/// Thread-safety: any thread notifies; one task waits.
#[derive(Default)]
pub(crate) struct Notify {
    is_notified: AtomicBool,
    task: AtomicWaker,
}

impl Notify {
    /// Wakes the waiting task, or lets its next wait return at once.
    pub fn notify(&self) {
        self.is_notified.store(true, Release);
        self.task.wake();
    }

    /// Waits for a notification.
    pub async fn notified(&self) {
        poll_fn(|context| self.poll_notified(context)).await;
    }

    /// Returns `Ready` if a notification arrived since the last `Ready`; otherwise the next one wakes the task.
    pub fn poll_notified(&self, context: &Context<'_>) -> Poll<()> {
        // Checked again afterwards: a notification in between found no waker.
        if self.take() {
            return Poll::Ready(());
        }
        self.task.register(context.waker());
        match self.take() {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }

    fn take(&self) -> bool {
        self.is_notified.swap(false, AcqRel)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;
    use std::sync::atomic::Ordering::Relaxed;
    use std::task::{Wake, Waker};

    /// Counts how many times it is woken.
    #[derive(Default)]
    struct Counting(AtomicUsize);

    impl Wake for Counting {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Relaxed);
        }
    }

    #[test]
    fn notifications_wake_the_task_once_and_are_not_lost() {
        let (notify, wakes) = (Notify::default(), Arc::new(Counting::default()));
        let waker = Waker::from(Arc::clone(&wakes));
        let poll = || notify.poll_notified(&Context::from_waker(&waker));
        assert_eq!(poll(), Poll::Pending);
        notify.notify();
        notify.notify();
        assert_eq!(wakes.0.load(Relaxed), 1);
        assert_eq!(poll(), Poll::Ready(()));
        notify.notify();
        assert_eq!(poll(), Poll::Ready(()), "it was called before it waited");
        assert_eq!(poll(), Poll::Pending);
        assert_eq!(wakes.0.load(Relaxed), 1);
    }
}
