//! Tests of the guarantees of transactions, one by one.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};
use std::{pin, thread};
use urtica_state::{
    Abort, Limits, Refused, Snapshot, TVar, Table, Transaction, atomically, atomically_async,
    check, in_transaction, retry, try_atomically,
};

fn take(balance: &TVar<u64>, amount: u64, tx: &mut Transaction) -> Result<(), Abort> {
    let current = balance.read(tx)?;
    check(current >= amount)?;
    balance.write(tx, current - amount)
}

#[test]
fn writes_are_visible_inside_at_once_and_outside_after_the_commit() {
    let (number, name) = (TVar::new(1_u32), TVar::new(String::from("one")));
    let seen = atomically(|tx| {
        number.write(tx, 2)?;
        name.modify(tx, |name| name + " and two")?;
        name.modify(tx, |name| name + "!")?;
        assert_eq!((number.load(), name.load()), (1, "one".into()));
        Ok((number.read(tx)?, name.read(tx)?))
    });
    assert_eq!(seen, (2, "one and two!".into()));
    assert_eq!((number.load(), name.load()), (2, "one and two!".into()));
}

#[test]
fn a_transaction_sees_many_own_writes() {
    let numbers: Vec<_> = (0..40).map(|_| TVar::new(0)).collect();
    atomically(|tx| {
        for (at, number) in numbers.iter().enumerate() {
            number.write(tx, at + 1)?;
            for (before, number) in numbers[..=at].iter().enumerate() {
                assert_eq!(number.read(tx)?, before + 1);
            }
        }
        Ok(())
    });
    let loaded = numbers.iter().map(TVar::load);
    assert!(loaded.eq(1..=40));
}

#[test]
fn values_of_all_sizes_read_back() {
    fn reads_back<T: Clone + PartialEq + std::fmt::Debug + Send + Sync + 'static>(one: T, two: T) {
        let variable = TVar::new(one.clone());
        assert_eq!(variable.load(), one);
        assert!(atomically(|tx| {
            variable.write(tx, two.clone())?;
            variable.read_with(tx, |value| *value == two)
        }));
        assert!(variable.load_with(|value| *value == two));
        assert_eq!(variable.load(), two);
        assert_eq!(atomically(|tx| variable.read(tx)), two);
    }
    reads_back(0, u8::MAX);
    reads_back(i16::MIN, -1);
    reads_back(u64::MAX, 1);
    reads_back(-0.5, f64::INFINITY);
    reads_back('a', '\u{10ffff}');
    reads_back(true, false);
    reads_back((), ());
    reads_back((1_u8, 2_u32), (3, 4));
    reads_back(None, Some([7_u64; 20]));
    reads_back(vec![String::new()], vec!["a".into(), "b".into()]);
}

#[test]
fn or_else_rolls_back_the_first_branch() {
    let (one, other) = (TVar::new(5_u64), TVar::new(5_u64));
    let taken = |amount| {
        atomically(|tx| {
            one.write(tx, 6)?;
            tx.or_else(
                |tx| {
                    take(&one, 2, tx)?;
                    take(&other, amount, tx)?;
                    Ok(true)
                },
                |_| Ok(false),
            )
        })
    };
    assert!(!taken(7));
    assert_eq!((one.load(), other.load()), (6, 5));
    assert!(taken(4));
    assert_eq!((one.load(), other.load()), (4, 1));
}

#[test]
fn branches_nest() {
    let texts: Vec<_> = (0..40).map(|at| TVar::new(at.to_string())).collect();
    let write_all = |tx: &mut Transaction, with: &str| {
        texts
            .iter()
            .try_for_each(|text| text.modify(tx, |text| text + with))
    };
    atomically(|tx| {
        texts[0].write(tx, "first".into())?;
        tx.or_else(
            |tx| {
                write_all(tx, "a")?;
                tx.or_else(
                    |tx| write_all(tx, "b").and_then(|()| retry()),
                    |tx| write_all(tx, "c"),
                )?;
                tx.or_else(|tx| write_all(tx, "d"), |_| retry())?;
                retry()
            },
            |tx| {
                assert_eq!(texts[0].read(tx)?, "first");
                assert_eq!(texts[1].read(tx)?, "1");
                tx.or_else(|tx| write_all(tx, "e"), |_| retry())?;
                tx.or_else(|tx| write_all(tx, "f").and_then(|()| retry()), |_| Ok(()))
            },
        )
    });
    assert_eq!(texts[0].load(), "firste");
    for (at, text) in texts.iter().enumerate().skip(1) {
        assert_eq!(text.load(), format!("{at}e"));
    }
}

#[test]
fn retry_waits_for_a_change() {
    let balance = TVar::new(0_u64);
    let (send, attempts) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(|| {
            atomically(|tx| {
                send.send(balance.read(tx)?).expect("the test runs");
                take(&balance, 3, tx)
            });
            drop(send);
        });
        for expected in 0..3 {
            assert_eq!(attempts.recv(), Ok(expected));
            atomically(|tx| balance.modify(tx, |balance| balance + 1));
        }
        let rest: Vec<_> = attempts.iter().collect();
        assert_eq!(rest, [3], "it ran once for each change, and then no more");
    });
    assert_eq!(balance.load(), 0);
}

#[test]
fn check_retries_if_the_condition_is_false() {
    let number = TVar::new(1_u64);
    let is = |wanted: u64| move |found: u64| check(found == wanted);
    let limits = Limits::default();
    let checked = |wanted| try_atomically(limits, |tx| number.read(tx).and_then(is(wanted)));
    assert_eq!((checked(1), checked(2)), (Ok(()), Err(Refused::Retry)));
    let branch = atomically(|tx| {
        let found = number.read(tx)?;
        tx.or_else(|_| is(2)(found).map(|()| 2), |_| is(1)(found).map(|()| 1))
    });
    assert_eq!(branch, 1);
}

#[test]
fn retry_waits_for_reads_of_a_branch() {
    let (one, other) = (TVar::new(0_u64), TVar::new(0_u64));
    for variable in [&one, &other] {
        let woken = CountWakes::new();
        let mut taking = pin::pin!(atomically_async(
            |tx| tx.or_else(|tx| take(&one, 1, tx), |tx| take(&other, 1, tx))
        ));
        let mut poll = || {
            let waker = woken.waker();
            taking.as_mut().poll(&mut Context::from_waker(&waker))
        };
        assert_eq!((poll(), woken.count()), (Poll::Pending, 0));
        atomically(|tx| variable.write(tx, 1));
        assert_eq!((woken.count(), poll()), (1, Poll::Ready(())));
        assert_eq!(variable.load(), 0);
    }
}

/// Two threads hand one token to and fro; a lost wake-up would stop them.
#[test]
fn no_wake_up_is_lost() {
    const ROUNDS: u64 = 20_000;
    let token = TVar::new(0_u64);
    let alternate = |parity| {
        atomically(|tx| {
            let round = token.read(tx)?;
            if round % 2 != parity {
                return retry();
            }
            token.write(tx, round + 1)
        });
    };
    thread::scope(|scope| {
        scope.spawn(|| (0..ROUNDS).for_each(|_| alternate(0)));
        (0..ROUNDS).for_each(|_| alternate(1));
    });
    assert_eq!(token.load(), 2 * ROUNDS);
}

#[test]
fn try_atomically_never_waits() {
    let balance = TVar::new(0_u64);
    let limits = Limits::default();
    let taken = try_atomically(limits, |tx| take(&balance, 1, tx));
    assert_eq!(taken, Err(Refused::Retry));
    atomically(|tx| balance.write(tx, 1));
    assert_eq!(try_atomically(limits, |tx| take(&balance, 1, tx)), Ok(()));
}

#[test]
fn a_transaction_that_loops_is_refused() {
    let balance = TVar::new(0_u64);
    let operations = 1000;
    let wait_for_ever = |tx: &mut Transaction| {
        while balance.read(tx)? == 0 {}
        Ok(())
    };
    let limits = Limits::DEFAULT.operations(operations);
    let refused = try_atomically(limits, wait_for_ever);
    assert_eq!(refused, Err(Refused::TooLong { operations }));
    let message = panic_message(|| atomically(wait_for_ever));
    assert!(
        message.contains("more than its limit of 1048576"),
        "{message}"
    );
    let caught = try_atomically(limits, |tx| {
        while balance.write(tx, 1).is_ok() {}
        Ok(())
    });
    assert_eq!(
        caught,
        Err(Refused::TooLong { operations }),
        "though it hides that"
    );
    assert_eq!(balance.load(), 0);
}

#[test]
fn conflicts_are_bounded() {
    let (one, other) = (TVar::new(0_u32), TVar::new(0_u32));
    let limits = Limits::DEFAULT.attempts(20);
    let runs = AtomicU32::new(0);
    let refused = try_atomically(limits, |tx| {
        runs.fetch_add(1, SeqCst);
        let value = one.read(tx)?;
        thread::scope(|scope| {
            scope.spawn(|| atomically(|tx| one.modify(tx, |value| value + 1)));
        });
        other.write(tx, value)
    });
    assert_eq!(refused, Err(Refused::Contention { attempts: 20 }));
    assert_eq!(runs.load(SeqCst), 20);
    assert_eq!((one.load(), other.load()), (20, 0));
}

/// After eight conflicts, and not before, a transaction has exclusive commit: other commits wait for 20 ms at most. This
/// transaction has conflicts nevertheless, since it waits for the other's commits.
#[test]
fn an_exclusive_commit_delays_others() {
    let number = TVar::new(0);
    let times = Mutex::new(Vec::new());
    let seen = atomically(|tx| {
        let value = number.read(tx)?;
        let commit = || {
            let began = Instant::now();
            atomically(|tx| number.modify(tx, |value| value + 1));
            times.lock().expect("no panic").push(began.elapsed());
        };
        if value < 9 {
            thread::scope(|scope| scope.spawn(commit).join().expect("no panic"));
        }
        number.write(tx, value)?;
        Ok(value)
    });
    assert_eq!(seen, 9);
    let patience = Duration::from_millis(20);
    let times = times.into_inner().expect("no panic");
    assert!(times[1..8].iter().any(|&time| time < patience), "{times:?}");
    assert!(times[8] >= patience, "{times:?}");
}

#[test]
fn a_hidden_conflict_still_aborts() {
    let (one, other) = (TVar::new(1_u32), TVar::new(1_u32));
    let is_first = AtomicU32::new(1);
    let sum = atomically(|tx| {
        let first = one.read(tx)?;
        if is_first.swap(0, SeqCst) == 1 {
            thread::scope(|scope| {
                scope.spawn(|| {
                    atomically(|tx| one.write(tx, 10).and_then(|()| other.write(tx, 10)))
                });
            });
        }
        Ok(first + other.read(tx).unwrap_or(0))
    });
    assert_eq!(sum, 20);
}

#[test]
fn a_transaction_in_a_transaction_is_refused() {
    let number = TVar::new(0_u32);
    for nested in [
        &(|| atomically(|tx| number.write(tx, 1))) as &dyn Fn(),
        &|| _ = try_atomically(Limits::default(), |tx| number.write(tx, 1)),
        &|| _ = poll(pin::pin!(atomically_async(|tx| number.write(tx, 1)))),
    ] {
        assert!(!in_transaction());
        let message = panic_message(|| {
            atomically(|_| {
                assert!(in_transaction());
                nested();
                Ok(())
            })
        });
        assert!(
            message.contains("pass the `&mut Transaction` to"),
            "{message}"
        );
        assert!(!in_transaction(), "after the panic");
    }
    atomically(|tx| number.modify(tx, |number| number + 1));
    assert_eq!(number.load(), 1);
}

#[test]
fn tables_and_snapshots_are_read_in_a_transaction_but_not_changed() {
    let table = Table::<u64, u32>::new();
    table.insert(1, 10).expect("there is room");
    let snapshot = Snapshot::new(10_u32);
    for change in [
        &(|| _ = table.insert(1, 11)) as &dyn Fn(),
        &|| _ = table.insert(2, 20),
        &|| _ = table.update(1, |old| old.map(|old| old + 1)),
        &|| _ = table.remove(1),
        &|| snapshot.publish(11),
        &|| snapshot.update(|value| value + 1),
    ] {
        let message = panic_message(|| {
            atomically(|_| {
                change();
                Ok(())
            })
        });
        assert!(message.contains("inside a transaction"), "{message}");
        assert!(message.contains("afterwards"), "{message}");
    }
    let seen = atomically(|_| {
        assert_eq!(table.insert(1, 10), Ok(Some(10)), "which changes nothing");
        assert_eq!((table.remove(2), table.len()), (None, 1));
        Ok((table.to_vec(), *snapshot.load(), snapshot.version()))
    });
    assert_eq!(seen, (vec![(1, 10)], 10, 0));
    assert_eq!(table.insert(1, 11), Ok(Some(10)), "after the transaction");
}

#[test]
fn an_endless_retry_is_refused() {
    let message = panic_message(|| atomically(|_| retry::<()>()));
    assert!(
        message.contains("without having read anything"),
        "{message}"
    );
    let refused = try_atomically(Limits::default(), |_| retry::<()>());
    assert_eq!(refused, Err(Refused::Retry));
}

#[test]
fn a_future_waits_for_a_change() {
    let balance = TVar::new(0_u64);
    let mut taking = pin::pin!(atomically_async(|tx| take(&balance, 2, tx)));
    let (woken, mut inbox) = (CountWakes::new(), 0);
    let mut poll = || {
        taking
            .as_mut()
            .poll(&mut Context::from_waker(&woken.waker()))
    };
    for _ in 0..3 {
        assert_eq!(poll(), Poll::Pending);
    }
    while inbox < 2 {
        assert_eq!(woken.count(), inbox);
        atomically(|tx| balance.modify(tx, |balance| balance + 1));
        inbox += 1;
        assert_eq!(woken.count(), inbox);
        assert_eq!(poll().is_ready(), inbox == 2);
    }
    assert_eq!(balance.load(), 0);
}

#[test]
fn a_future_that_is_dropped_is_not_woken() {
    let balance = TVar::new(0_u64);
    let woken = CountWakes::new();
    {
        let mut taking = pin::pin!(atomically_async(|tx| take(&balance, 1, tx)));
        let mut context = Context::from_waker(const { Waker::noop() });
        assert!(taking.as_mut().poll(&mut context).is_pending());
        let waker = woken.waker();
        assert!(
            taking
                .as_mut()
                .poll(&mut Context::from_waker(&waker))
                .is_pending()
        );
    }
    atomically(|tx| balance.write(tx, 1));
    assert_eq!((woken.count(), balance.load()), (0, 1));
}

#[test]
fn a_future_can_be_sent_to_another_thread() {
    let balance = TVar::new(0_u64);
    let taking = Box::pin(atomically_async({
        let balance = balance.clone();
        move |tx| take(&balance, 1, tx)
    }));
    let (send, receive) = mpsc::channel();
    let task = thread::spawn(move || {
        let mut taking = taking;
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        while taking
            .as_mut()
            .poll(&mut Context::from_waker(&waker))
            .is_pending()
        {
            send.send(()).expect("the test runs");
            thread::park();
        }
    });
    receive.recv().expect("it waits first");
    atomically(|tx| balance.write(tx, 1));
    task.join().expect("it was woken");
    assert_eq!(balance.load(), 0);
}

/// Each value is dropped once: immediately if it was overwritten or rolled back in a transaction, and later if it was
/// committed.
#[test]
fn values_are_dropped_once() {
    let value = Arc::new(());
    {
        let one = TVar::new(Arc::clone(&value));
        let other = one.clone();
        atomically(|tx| {
            one.write(tx, Arc::clone(&value))?;
            other.write(tx, Arc::clone(&value))?;
            let write = |tx: &mut Transaction| one.write(tx, Arc::clone(&value));
            tx.or_else(
                |tx| write(tx).and_then(|()| write(tx)).and_then(|()| retry()),
                |_| Ok(()),
            )
        });
        assert!(
            Arc::strong_count(&value) <= 3,
            "the old one, and the new one"
        );
        let gone = TVar::new(one);
        drop(gone.load());
    }
    // Concurrent transactions of other tests delay it.
    let deadline = Instant::now() + Duration::from_secs(60);
    while Arc::strong_count(&value) > 1 {
        assert!(
            Instant::now() < deadline,
            "{} are left",
            Arc::strong_count(&value) - 1
        );
        crossbeam_epoch::pin().flush();
        thread::yield_now();
    }
}

#[test]
fn a_panic_changes_nothing() {
    let name = TVar::new(String::from("as it was"));
    let message = panic_message(|| {
        atomically(|tx| -> Result<(), Abort> {
            name.write(tx, "half".into())?;
            panic!("in the middle");
        })
    });
    assert_eq!(message, "in the middle");
    assert_eq!(name.load(), "as it was");
    atomically(|tx| name.write(tx, "new".into()));
    assert_eq!(name.load(), "new");
}

fn poll<F: Future>(future: pin::Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(const { Waker::noop() }))
}

fn panic_message<T>(body: impl FnOnce() -> T) -> String {
    let payload = catch_unwind(AssertUnwindSafe(body)).err().expect("a panic");
    let formatted = payload.downcast_ref::<String>().cloned();
    formatted
        .or_else(|| {
            payload
                .downcast_ref::<&str>()
                .map(|message| message.to_string())
        })
        .expect("a message")
}

struct Unpark(thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

struct CountWakes(AtomicU32);

impl CountWakes {
    fn new() -> Arc<Self> {
        Arc::new(Self(AtomicU32::new(0)))
    }

    fn waker(self: &Arc<Self>) -> Waker {
        Waker::from(Arc::clone(self))
    }

    fn count(&self) -> u32 {
        self.0.load(SeqCst)
    }
}

impl Wake for CountWakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}
