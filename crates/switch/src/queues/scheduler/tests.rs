//! Tests of the scheduler in simulated time: frames arrive at given rates, and the port is polled as by a switch.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// The unit of rates in these tests: 100 kbit/s.
const UNIT: u64 = 100_000;

/// The interval at which a switch polls a port with waiting frames.
const STEP: Duration = Duration::from_millis(1);

/// A source of frames for one queue.
#[derive(Clone, Debug)]
struct Source {
    queue_id: u32,
    rate_bps: u64,
    /// The lengths of its frames, which repeat.
    lengths: Vec<usize>,
    sent_bits: u64,
    count: usize,
}

impl Source {
    fn new(queue_id: u32, rate_bps: u64, lengths: &[usize]) -> Self {
        Self {
            queue_id,
            rate_bps,
            lengths: lengths.to_vec(),
            sent_bits: 0,
            count: 0,
        }
    }

    /// Returns the frames that have arrived since the last call.
    fn frames(&mut self, now: Duration) -> Vec<Vec<u8>> {
        let until = u128::from(self.rate_bps) * now.as_nanos() / 1_000_000_000;
        let mut frames = Vec::new();
        while u128::from(self.sent_bits) < until {
            let length = self.lengths[self.count % self.lengths.len()];
            frames.push(frame(self.queue_id, self.count as u32, length));
            self.sent_bits += length as u64 * 8;
            self.count += 1;
        }
        frames
    }
}

/// Creates a frame that contains its queue and its number.
fn frame(queue_id: u32, number: u32, length: usize) -> Vec<u8> {
    let mut frame = vec![0; length];
    frame[..4].copy_from_slice(&queue_id.to_be_bytes());
    frame[4..8].copy_from_slice(&number.to_be_bytes());
    frame
}

fn mark_of(frame: &[u8]) -> (u32, u32) {
    let word = |at: usize| u32::from_be_bytes(frame[at..at + 4].try_into().unwrap());
    (word(0), word(4))
}

fn queue(min: u64, max: u64, priority: u8) -> Queue {
    let rate = |units: u64| (units > 0).then_some(units * UNIT);
    Queue {
        min_rate_bps: rate(min),
        max_rate_bps: rate(max),
        priority,
        ..Queue::default()
    }
}

fn port(rate: u64, queues: &[(u32, Queue)]) -> PortQueues {
    let settings = PortQueues {
        rate_bps: Some(rate * UNIT),
        queues: queues.iter().copied().collect(),
    };
    assert_eq!(settings.check(), Ok(()));
    settings
}

/// Returns the number of bits of each source that have left after this time, and the number of dropped frames.
fn run(settings: PortQueues, sources: &mut [Source], time: Duration) -> (BTreeMap<u32, u64>, u64) {
    let mut scheduler = Scheduler::new(settings, None, Duration::ZERO);
    let (mut bits, mut dropped, mut now) = (BTreeMap::new(), 0, Duration::ZERO);
    while now < time {
        now += STEP;
        for source in &mut *sources {
            for frame in source.frames(now) {
                dropped += u64::from(!scheduler.push(source.queue_id, &frame));
            }
        }
        scheduler.poll(now, |frame| {
            *bits.entry(mark_of(frame).0).or_default() += frame.len() as u64 * 8;
            true
        });
    }
    (bits, dropped)
}

/// Returns the mean rates of the queues.
fn rates(settings: PortQueues, sources: &mut [Source]) -> BTreeMap<u32, f64> {
    const SECONDS: u64 = 8;
    let (bits, _) = run(settings, sources, Duration::from_secs(SECONDS));
    let rate = |bits: u64| bits as f64 / (SECONDS * UNIT) as f64;
    bits.into_iter()
        .map(|(id, bits)| (id, rate(bits)))
        .collect()
}

#[track_caller]
fn assert_near(found: f64, expected: f64, tolerance: f64) {
    assert!(
        (found - expected).abs() <= expected * tolerance,
        "{found}, not {expected}"
    );
}

#[test]
fn minimum_rates_are_kept_and_the_rest_is_shared_under_overload() {
    let settings = port(
        100,
        &[
            (1, queue(10, 0, 0)),
            (2, queue(30, 0, 0)),
            (3, queue(40, 0, 0)),
        ],
    );
    let mut sources = [
        Source::new(1, 100 * UNIT, &[60]),
        Source::new(2, 100 * UNIT, &[1514, 60]),
        Source::new(3, 100 * UNIT, &[9000]),
    ];
    let rates = rates(settings, &mut sources);
    for (id, expected) in [(1, 12.5), (2, 37.5), (3, 50.0)] {
        assert_near(rates[&id], expected, 0.01);
    }
}

#[test]
fn a_low_priority_has_its_minimum_and_the_first_priority_the_rest() {
    let settings = port(
        100,
        &[
            (1, queue(0, 0, 0)),
            (2, queue(20, 0, 1)),
            (3, queue(5, 0, 7)),
        ],
    );
    let mut sources = [1, 2, 3].map(|id| Source::new(id, 200 * UNIT, &[1000, 100]));
    let rates = rates(settings, &mut sources);
    for (id, expected) in [(1, 75.0), (2, 20.0), (3, 5.0)] {
        assert_near(rates[&id], expected, 0.01);
    }
}

#[test]
fn the_next_priority_uses_capacity_left_by_the_first() {
    let settings = port(
        100,
        &[
            (1, queue(0, 0, 0)),
            (2, queue(0, 0, 1)),
            (3, queue(0, 0, 2)),
        ],
    );
    let mut sources = [
        Source::new(1, 30 * UNIT, &[500]),
        Source::new(2, 50 * UNIT, &[500]),
        Source::new(3, 90 * UNIT, &[500]),
    ];
    let rates = rates(settings, &mut sources);
    for (id, expected) in [(1, 30.0), (2, 50.0), (3, 20.0)] {
        assert_near(rates[&id], expected, 0.01);
    }
}

#[test]
fn a_maximum_is_kept_by_a_queue_alone_on_the_port() {
    let settings = port(1000, &[(1, queue(0, 10, 0))]);
    let rates = rates(settings, &mut [Source::new(1, 500 * UNIT, &[1514])]);
    assert_near(rates[&1], 10.0, 0.01);
}

#[test]
fn other_queues_use_capacity_left_by_a_limited_one() {
    let settings = port(
        100,
        &[
            (1, queue(10, 20, 0)),
            (2, queue(10, 0, 0)),
            (3, queue(20, 0, 0)),
        ],
    );
    let mut sources = [1, 2, 3].map(|id| Source::new(id, 100 * UNIT, &[1514]));
    let rates = rates(settings, &mut sources);
    for (id, expected) in [(1, 20.0), (2, 80.0 / 3.0), (3, 160.0 / 3.0)] {
        assert_near(rates[&id], expected, 0.01);
    }
}

#[test]
fn frames_without_a_queue_share_as_the_lowest_minimum() {
    let settings = port(100, &[(1, queue(20, 0, 0)), (2, queue(60, 0, 0))]);
    let mut sources = [1, 2, 77].map(|id| Source::new(id, 100 * UNIT, &[1000]));
    let rates = rates(settings, &mut sources);
    // The other queues share the remaining 20 in the ratio 1 to 3 to 1.
    for (id, expected) in [(1, 24.0), (2, 72.0), (77, 4.0)] {
        assert_near(rates[&id], expected, 0.02);
    }
}

#[test]
fn no_frames_are_lost_below_the_maximum() {
    let settings = port(100, &[(1, queue(10, 40, 0)), (2, queue(10, 40, 1))]);
    let mut sources = [
        Source::new(1, 39 * UNIT, &[60, 1514, 9000]),
        Source::new(2, 39 * UNIT, &[1514]),
        Source::new(0, 15 * UNIT, &[200]),
    ];
    let (bits, dropped) = run(settings, &mut sources, Duration::from_secs(10));
    assert_eq!(dropped, 0);
    let come: u64 = sources.iter().map(|source| source.sent_bits).sum();
    let left: u64 = bits.values().sum();
    assert!(
        come - left < 2 * 9000 * 8 + UNIT,
        "{come} came, {left} left"
    );
}

#[test]
fn a_blocked_port_loses_no_frames() {
    let mut scheduler = Scheduler::new(PortQueues::default(), None, Duration::ZERO);
    for number in 0..10 {
        assert!(scheduler.push(0, &frame(0, number, 100)));
    }
    let mut left = Vec::new();
    let mut room = 3;
    let polled = scheduler.poll(Duration::ZERO, |frame| {
        let accepts = room > 0;
        if accepts {
            room -= 1;
            left.push(mark_of(frame).1);
        }
        accepts
    });
    assert_eq!((polled, scheduler.len()), (Polled::Blocked, 7));
    let polled = scheduler.poll(Duration::ZERO, |frame| {
        left.push(mark_of(frame).1);
        true
    });
    assert_eq!((polled, scheduler.len()), (Polled::Empty, 0));
    assert!(left.into_iter().eq(0..10));
}

/// For a port without a rate, the frames that it accepts determine the shares.
#[test]
fn a_slow_port_is_shared_by_minimum_rates() {
    let mut settings = port(1000, &[(1, queue(100, 0, 0)), (2, queue(300, 0, 0))]);
    settings.rate_bps = None;
    let mut scheduler = Scheduler::new(settings, None, Duration::ZERO);
    let (mut counts, mut now) = ([0_u32; 2], Duration::ZERO);
    for _ in 0..10_000 {
        now += STEP;
        for id in [1, 2] {
            (0..8).for_each(|_| _ = scheduler.push(id, &frame(id, 0, 1000)));
        }
        // 8 Mbit/s: no queue gets its minimum.
        let mut is_sent = false;
        scheduler.poll(now, |frame| {
            let accepts = !std::mem::replace(&mut is_sent, true);
            counts[mark_of(frame).0 as usize - 1] += u32::from(accepts);
            accepts
        });
    }
    assert_near(f64::from(counts[1]) / f64::from(counts[0]), 3.0, 0.01);
}

#[test]
fn poll_returns_the_time_of_the_next_frame() {
    let settings = port(80, &[(1, queue(0, 0, 0))]);
    let mut scheduler = Scheduler::new(settings, None, Duration::ZERO);
    assert_eq!(scheduler.poll(Duration::ZERO, |_| true), Polled::Empty);
    for number in 0..8 {
        scheduler.push(1, &frame(1, number, 1000));
    }
    // The bucket has accumulated 5 ms, each frame uses one, and one frame may overdraw it.
    let Polled::Until(time) = scheduler.poll(Duration::ZERO, |_| true) else {
        panic!("2 frames wait");
    };
    assert_eq!((time, scheduler.len()), (Duration::from_millis(1), 2));
    let early = time - Duration::from_nanos(1);
    assert_eq!(
        scheduler.poll(early, |_| panic!("too early")),
        Polled::Until(time)
    );
    assert_eq!(scheduler.poll(time, |_| true), Polled::Until(2 * time));
    assert_eq!(scheduler.poll(2 * time, |_| true), Polled::Empty);
}

#[test]
fn queues_that_stay_keep_frames_and_counters() {
    let mut scheduler = Scheduler::new(
        port(100, &[(1, queue(1, 0, 0)), (2, queue(1, 0, 0))]),
        None,
        Duration::ZERO,
    );
    for id in [1, 2] {
        (0..5).for_each(|number| assert!(scheduler.push(id, &frame(id, number, 100))));
    }
    let now = Duration::from_secs(1);
    let mut is_sent = false;
    scheduler.poll(now, |_| !std::mem::replace(&mut is_sent, true));
    assert_eq!(
        scheduler.configure(port(100, &[(2, queue(5, 9, 3)), (4, queue(1, 0, 0))]), now),
        0
    );
    assert_eq!(scheduler.len(), 9);
    let mut left = BTreeMap::<u32, Vec<u32>>::new();
    scheduler.poll(now, |frame| {
        let (id, number) = mark_of(frame);
        left.entry(id).or_default().push(number);
        true
    });
    assert_eq!(left[&2], [0, 1, 2, 3, 4]);
    assert_eq!(left[&1], [1, 2, 3, 4], "through the queue for the rest");
    let counters: BTreeMap<_, _> = scheduler.counters().collect();
    assert_eq!(counters.keys().copied().collect::<Vec<_>>(), [2, 4]);
    assert_eq!(
        (counters[&2].tx_packets, counters[&2].since),
        (5, Duration::ZERO)
    );
    assert_eq!((counters[&4].tx_packets, counters[&4].since), (0, now));
}

#[test]
fn all_frames_leave_when_queues_are_deleted() {
    let mut scheduler = Scheduler::new(port(1, &[(1, queue(0, 1, 0))]), None, Duration::ZERO);
    for number in 0..100 {
        assert!(scheduler.push(1, &frame(1, number, 1000)));
    }
    let mut room = 90;
    let dropped = scheduler.drain(|_| {
        room -= 1;
        room >= 0
    });
    assert_eq!((dropped, scheduler.len()), (10, 0));
    assert!(scheduler.push(1, &frame(1, 0, 1000)));
    assert_eq!(scheduler.drain(|_| true), 0);
}

#[test]
fn the_configured_rate_overrides_the_reported_one() {
    let (now, rate) = (Duration::ZERO, Some(5 * UNIT));
    let mut scheduler = Scheduler::new(port(1, &[]), rate, now);
    assert_eq!(scheduler.rate_bps(), Some(UNIT));
    scheduler.configure(PortQueues::default(), now);
    assert_eq!(scheduler.rate_bps(), rate);
    scheduler.set_rate(None, now);
    assert_eq!(scheduler.rate_bps(), None);
}

/// An event of the random tests.
#[derive(Clone, Debug)]
enum Event {
    Push {
        queue_id: u32,
        length: usize,
    },
    Pass(Duration),
    /// The port accepts this number of frames.
    Poll(usize),
    Configure(PortQueues),
}

fn any_queue() -> impl Strategy<Value = Queue> {
    let rate = || proptest::option::of(1_u64..50);
    (rate(), rate(), 0_u8..4, 1_u32..40).prop_map(|(min, max, priority, max_packets)| {
        let min = min.map(|min| max.map_or(min, |max| min.min(max)));
        Queue {
            min_rate_bps: min.map(|min| min * UNIT),
            max_rate_bps: max.map(|max| max * UNIT),
            priority,
            max_packets,
            max_bytes: 65_536,
        }
    })
}

fn any_port() -> impl Strategy<Value = PortQueues> {
    let queues = proptest::collection::btree_map(0_u32..6, any_queue(), 0..6);
    let rate = proptest::option::of((300_u64..500).prop_map(|units| units * UNIT));
    (rate, queues).prop_map(|(rate_bps, queues)| PortQueues { rate_bps, queues })
}

fn any_event() -> impl Strategy<Value = Event> {
    prop_oneof![
        20 => (0_u32..8, 60_usize..3000).prop_map(|(queue_id, length)| Event::Push { queue_id, length }),
        4 => (0_u64..3_000_000).prop_map(|ns| Event::Pass(Duration::from_nanos(ns))),
        4 => (0_usize..20).prop_map(Event::Poll),
        1 => any_port().prop_map(Event::Configure),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Each frame leaves once, is dropped, or waits; frames of a queue leave in order; no queue exceeds its limits.
    #[test]
    fn frames_are_conserved_and_stay_in_order(
        settings in any_port(),
        events in proptest::collection::vec(any_event(), 1..400),
    ) {
        let mut now = Duration::ZERO;
        let mut scheduler = Scheduler::new(settings, None, now);
        let (mut pushed, mut dropped, mut left) = (0_u32, 0, 0);
        let mut last = BTreeMap::new();
        for event in events {
            match event {
                Event::Push { queue_id, length } => {
                    pushed += 1;
                    dropped += u32::from(!scheduler.push(queue_id, &frame(queue_id, pushed, length)));
                }
                Event::Pass(time) => now += time,
                Event::Poll(mut room) => {
                    let mut sent = Vec::new();
                    scheduler.poll(now, |frame| {
                        let accepts = room > 0;
                        if accepts {
                            room -= 1;
                            sent.push(mark_of(frame));
                        }
                        accepts
                    });
                    left += sent.len() as u32;
                    for (queue_id, number) in sent {
                        let before = last.insert(queue_id, number);
                        prop_assert!(before < Some(number));
                    }
                }
                Event::Configure(settings) => {
                    prop_assert_eq!(settings.check(), Ok(()));
                    dropped += scheduler.configure(settings, now) as u32;
                    // Frames of queues that are created again do not wait for those in the queue for other frames.
                    last.clear();
                    left += scheduler.len() as u32;
                    prop_assert_eq!(scheduler.drain(|_| true), 0);
                }
            }
            prop_assert_eq!(pushed, left + dropped + scheduler.len() as u32);
            for queue in &scheduler.queues {
                prop_assert!(queue.frames.len() <= queue.settings.max_packets as usize);
                prop_assert!(queue.bytes <= queue.settings.max_bytes as usize);
                let bytes: usize = queue.frames.iter().map(Vec::len).sum();
                prop_assert_eq!(queue.bytes, bytes);
            }
        }
    }

    /// Whatever the priorities and frame lengths: under overload each queue gets its minimum, no queue exceeds its maximum, and
    /// the port is always busy.
    #[test]
    fn minimum_and_maximum_rates_are_kept(
        queues in proptest::collection::vec((5_u64..30, 0_u64..30, 0_u8..4, 60_usize..1514), 1..6),
    ) {
        const RATE: u64 = 200;
        let time = Duration::from_secs(2);
        let settings = (1..).zip(&queues);
        let settings: Vec<_> = settings
            .map(|(id, &(min, more, priority, _))| (id, queue(min, min + more, priority)))
            .collect();
        let lengths = (1..).zip(&queues);
        let mut sources: Vec<_> = lengths
            .map(|(id, &(.., length))| Source::new(id, 60 * UNIT, &[length, 60]))
            .collect();
        let (bits, _) = run(port(RATE, &settings), &mut sources, time);
        let seconds = time.as_secs();
        for (id, queue) in settings {
            let (min, max) = (queue.min_rate_bps.unwrap(), queue.max_rate_bps.unwrap());
            let bits = bits[&id];
            prop_assert!(bits + 2 * 1514 * 8 >= min * seconds, "{id}: {bits} bits");
            prop_assert!(bits <= max * seconds + max / 100 + 1514 * 8, "{id}: {bits} bits");
        }
        let maxima: u64 = queues.iter().map(|(min, more, ..)| min + more).sum();
        let expected = maxima.min(RATE) * UNIT * seconds;
        let total: u64 = bits.values().sum();
        prop_assert!(total * 100 >= expected * 98, "{total}, not {expected}");
    }

    /// Queues of one priority share in proportion to their minimum rates.
    #[test]
    fn shares_follow_minimum_rates(
        queues in proptest::collection::vec((5_u64..20, 60_usize..1514), 2..6),
    ) {
        let settings: Vec<_> = (1..).zip(&queues).map(|(id, &(min, _))| (id, queue(min, 0, 2))).collect();
        let mut sources: Vec<_> = (1..)
            .zip(&queues)
            .map(|(id, &(_, length))| Source::new(id, 200 * UNIT, &[length]))
            .collect();
        let (bits, _) = run(port(100, &settings), &mut sources, Duration::from_secs(2));
        let (total, weights): (u64, u64) = (bits.values().sum(), queues.iter().map(|(min, _)| min).sum());
        for (id, (min, _)) in (1..).zip(queues) {
            let (share, expected) = (bits[&id] as f64 / total as f64, min as f64 / weights as f64);
            prop_assert!((share - expected).abs() <= expected * 0.05, "{id}: {share}, not {expected}");
        }
    }
}
