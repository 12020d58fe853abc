//! Tests of a snapshot's guarantees.

use std::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use urtica_state::Snapshot;

#[derive(Default)]
struct CountWakes(AtomicU32);

impl Wake for CountWakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

#[test]
fn versions_count_publications() {
    let routes = Snapshot::new(vec![1]);
    let old = routes.load();
    assert_eq!(routes.version(), 0);
    routes.publish(vec![2]);
    routes.update(|routes| [routes.as_slice(), &[3]].concat());
    assert_eq!(
        (routes.version(), &*routes.load(), &*old),
        (2, &vec![2, 3], &vec![1])
    );
    assert_eq!(
        format!("{routes:?}"),
        "Snapshot { version: 2, value: [2, 3] }"
    );
}

#[test]
fn a_publication_wakes_waiters() {
    let number = Snapshot::new(0);
    let wakes = Arc::new(CountWakes::default());
    let waker = Waker::from(Arc::clone(&wakes));
    let mut changed = pin::pin!(number.changed(1));
    let mut poll = || changed.as_mut().poll(&mut Context::from_waker(&waker));
    assert_eq!(poll(), Poll::Pending);
    number.publish(1);
    assert_eq!(wakes.0.load(SeqCst), 1);
    assert_eq!(poll(), Poll::Pending, "version 1 is not greater than 1");
    number.publish(2);
    assert_eq!(wakes.0.load(SeqCst), 2);
    assert_eq!(poll(), Poll::Ready(2));
}

#[test]
fn cancelled_waiters_are_not_woken() {
    let number = Snapshot::new(0);
    let wakes = Arc::new(CountWakes::default());
    {
        let waker = Waker::from(Arc::clone(&wakes));
        let mut changed = pin::pin!(number.changed(0));
        let polled = changed.as_mut().poll(&mut Context::from_waker(&waker));
        assert!(polled.is_pending());
    }
    number.publish(1);
    assert_eq!(wakes.0.load(SeqCst), 0);
}

#[test]
fn no_update_is_lost() {
    const UPDATES: u64 = 5000;
    let number = Snapshot::new(0);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| (0..UPDATES).for_each(|_| number.update(|number| number + 1)));
        }
        let mut seen = 0;
        while seen < 3 * UPDATES {
            let version = number.version();
            let loaded = *number.load();
            assert!(loaded >= version && loaded >= seen);
            seen = loaded;
        }
    });
    assert_eq!(
        (number.version(), *number.load()),
        (3 * UPDATES, 3 * UPDATES)
    );
}
