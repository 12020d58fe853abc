//! Tests of when the kernel half steps aside and returns: single cases, and properties that hold for any load.

use super::*;
use proptest::prelude::*;

const LONG_READ: usize = MAX_INPUT_BYTES + 1;
const LOCAL_LONG_READ: usize = MAX_LOCAL_INPUT_BYTES + 1;

fn local() -> Pace {
    let mut pace = Pace::new(Mode::Auto);
    pace.expect_local_switch();
    pace
}

/// Simulates reads of this number of bytes each, until the kernel half changes over. Returns the number of reads.
fn reads_until_change(pace: &mut Pace, bytes: usize, taken: u64) -> u32 {
    let before = pace.wants_kernel;
    (1..=5000)
        .find(|_| {
            pace.note_read(bytes, taken);
            pace.wants_kernel(taken) != before
        })
        .expect("it changes over")
}

#[test]
fn it_leaves_at_a_long_queue_and_returns_at_a_short_one() {
    for (mut pace, long) in [
        (Pace::new(Mode::Auto), LONG_READ),
        (local(), LOCAL_LONG_READ),
    ] {
        assert_eq!(reads_until_change(&mut pace, long, 0), LONG_READS);
        assert!(reads_until_change(&mut pace, 100, 0) >= SHORT_READS);
        assert!(pace.wants_kernel(0));
    }
}

#[test]
fn reads_of_medium_length_change_nothing() {
    for mut pace in [Pace::new(Mode::Auto), local()] {
        let limit = pace.max_input_bytes();
        let look = |pace: &mut Pace, bytes| {
            pace.note_read(bytes, 0);
            pace.wants_kernel(0)
        };
        assert!((0..5000).all(|_| look(&mut pace, limit)));
        reads_until_change(&mut pace, limit + 1, 0);
        assert!(!(0..5000).any(|_| look(&mut pace, limit / 2)));
    }
}

/// Two packet-ins that arrive together neither make the kernel half return nor prevent it.
#[test]
fn some_medium_reads_may_be_among_short_ones() {
    let mut pace = local();
    reads_until_change(&mut pace, LOCAL_LONG_READ, 0);
    let reads = (1..=5000).find(|at| {
        pace.note_read(if at % 4 == 0 { 212 } else { 106 }, 0);
        pace.wants_kernel(0)
    });
    let short = 2 * SHORT_READS;
    assert_eq!(reads, Some(short + (short - 1) / 3));
}

#[test]
fn single_bursts_do_not_drive_it_away() {
    let mut pace = Pace::new(Mode::Auto);
    for _ in 0..1000 {
        pace.note_read(LONG_READ, 0);
        assert!(pace.wants_kernel(0));
        pace.note_read(100, 0);
        assert!(pace.wants_kernel(0));
    }
}

/// The program then reads only bursts, and the kernel answers the messages between them.
#[test]
fn bursts_among_many_short_segments_do_not_drive_it_away() {
    let mut pace = local();
    for burst in 1..=1000 {
        pace.note_read(2624, burst * 10_000);
        assert!(pace.wants_kernel(burst * 10_000));
    }
    // Segments of 32 packet-ins, some of which are split in two.
    let taken = 10_000_000;
    let stays = (1..=LONG_READS).all(|at| {
        let taken = taken + u64::from(at) * 500;
        pace.note_read(2624, taken);
        pace.wants_kernel(taken)
    });
    assert!(!stays);
}

#[test]
fn alternating_loads_double_the_wait_up_to_a_bound() {
    let mut pace = Pace::new(Mode::Auto);
    let mut waits = Vec::new();
    for _ in 0..12 {
        reads_until_change(&mut pace, LONG_READ, 0);
        waits.push(reads_until_change(&mut pace, 100, 0));
    }
    assert!(waits.windows(2).all(|pair| pair[0] <= pair[1]), "{waits:?}");
    assert_eq!(waits.last(), Some(&MAX_SHORT_READS));
    // A worthwhile period resets the wait.
    reads_until_change(&mut pace, LONG_READ, WORTHWHILE_BYTES);
    assert_eq!(
        reads_until_change(&mut pace, 100, WORTHWHILE_BYTES),
        SHORT_READS
    );
}

#[test]
fn it_returns_after_silence() {
    let mut pace = Pace::new(Mode::Auto);
    reads_until_change(&mut pace, LONG_READ, 0);
    // The first check followed right after the last read.
    assert!(!(2..IDLE_LOOKS).any(|_| pace.wants_kernel(0)));
    assert!(pace.wants_kernel(0));
}

#[test]
fn it_stays_in_kernel_mode() {
    let mut pace = Pace::new(Mode::Kernel);
    pace.expect_local_switch();
    assert_eq!(pace.max_input_bytes(), MAX_INPUT_BYTES);
    for _ in 0..100 {
        pace.note_read(LONG_READ, 0);
        assert!(pace.wants_kernel(0));
    }
}

/// An event of a connection: the kernel answers `taken` bytes, then the program reads, or checks without a read.
#[derive(Clone, Debug)]
struct Event {
    taken: u64,
    read: Option<usize>,
}

/// Alternating loads: sequences of events of one kind.
fn loads() -> impl Strategy<Value = Vec<Event>> {
    let taken = prop_oneof![4 => Just(0), 1 => 0..3000_u64, 1 => Just(1 << 20)];
    let read = prop_oneof![
        1 => Just(None),
        8 => (1..1200_usize).prop_map(Some),
        4 => (1..40_000_usize).prop_map(Some),
    ];
    let stretch = (taken, read, 1..1500_usize)
        .prop_map(|(taken, read, count)| vec![Event { taken, read }; count]);
    prop::collection::vec(stretch, 1..20).prop_map(|stretches| stretches.concat())
}

/// The documented rules, evaluated on the whole history since the last change.
struct Rules {
    limit: usize,
    is_in: bool,
    /// The reads since the last change: their bytes, and the bytes answered by the kernel before each.
    reads: Vec<(usize, u64)>,
    looks_since_read: u32,
    wait: u32,
    taken: u64,
    taken_since_return: u64,
}

impl Rules {
    fn new(limit: usize) -> Self {
        Self {
            limit,
            is_in: true,
            reads: Vec::new(),
            looks_since_read: 0,
            wait: SHORT_READS,
            taken: 0,
            taken_since_return: 0,
        }
    }

    fn has_happened(&mut self, event: &Event) -> bool {
        self.taken += event.taken;
        self.taken_since_return += event.taken;
        if let Some(bytes) = event.read {
            self.reads.push((bytes, std::mem::take(&mut self.taken)));
            self.looks_since_read = 0;
        }
        self.looks_since_read += 1;
        let is_due = match self.is_in {
            true => self.long_reads() >= LONG_READS as usize,
            false => {
                let since_long = self.reads.iter().rev();
                let since_long = since_long.take_while(|(bytes, _)| *bytes <= self.limit);
                let short = since_long.filter(|(bytes, _)| *bytes < self.limit / 2);
                short.count() >= self.wait as usize || self.looks_since_read >= IDLE_LOOKS
            }
        };
        if is_due {
            self.change();
        }
        self.is_in
    }

    /// Returns the number of the last consecutive long reads, between which the kernel answered at most as many bytes as were
    /// read.
    fn long_reads(&self) -> usize {
        let long = self.reads.iter().rev();
        let long = long.take_while(|(bytes, _)| *bytes > self.limit);
        let mut count = 0;
        for (bytes, taken_before) in long {
            count += 1;
            if *taken_before > *bytes as u64 {
                break;
            }
        }
        count
    }

    fn change(&mut self) {
        if self.is_in {
            self.wait = match self.taken_since_return >= WORTHWHILE_BYTES {
                true => SHORT_READS,
                false => MAX_SHORT_READS.min(2 * self.wait),
            };
        } else {
            self.taken_since_return = 0;
        }
        self.is_in = !self.is_in;
        self.reads.clear();
    }
}

/// Simulates a load on a connection. Returns the number of changes.
fn go_through(pace: &mut Pace, load: &[Event], mut each: impl FnMut(&Event, bool)) -> usize {
    let (mut taken, mut changes) = (0, 0);
    for event in load {
        // The kernel does not answer while it has stepped aside.
        taken += if pace.wants_kernel { event.taken } else { 0 };
        if let Some(bytes) = event.read {
            pace.note_read(bytes, taken);
        }
        let before = pace.wants_kernel;
        let is_in = pace.wants_kernel(taken);
        changes += usize::from(is_in != before);
        each(event, is_in);
    }
    changes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn it_follows_its_rules_under_any_load(load in loads(), is_local: bool) {
        let mut pace = if is_local { local() } else { Pace::new(Mode::Auto) };
        let mut rules = Rules::new(pace.max_input_bytes());
        go_through(&mut pace, &load, |event, is_in| {
            let taken = if rules.is_in { event.taken } else { 0 };
            let expected = rules.has_happened(&Event { taken, ..event.clone() });
            assert_eq!(is_in, expected);
        });
    }

    /// The cost of changing over is bounded for any load: if the kernel is not useful, changes are rare.
    #[test]
    fn a_useless_kernel_half_returns_ever_more_rarely(reads in prop::collection::vec(1..1200_usize, 1..200)) {
        let mut pace = local();
        let reads = reads.iter().cycle().take(50_000);
        let load: Vec<_> = reads.map(|&bytes| Event { taken: 0, read: Some(bytes) }).collect();
        let changes = go_through(&mut pace, &load, |_, _| ());
        let doublings = (MAX_SHORT_READS / SHORT_READS).ilog2() as usize;
        prop_assert!(changes <= 2 * (doublings + 1 + load.len() / MAX_SHORT_READS as usize));
    }

    /// A switch whose segments are always long is left to the program.
    #[test]
    fn long_segments_stay_with_the_program(reads in prop::collection::vec(LOCAL_LONG_READ..40_000, 100..5000)) {
        let mut pace = local();
        let load: Vec<_> = reads.iter().map(|&bytes| Event { taken: 0, read: Some(bytes) }).collect();
        prop_assert_eq!(go_through(&mut pace, &load, |_, _| ()), 1);
    }

    /// After any load, the kernel answers once all reads are short.
    #[test]
    fn short_segments_return_to_the_kernel(load in loads(), bytes in 1..MAX_LOCAL_INPUT_BYTES / 2) {
        let mut pace = local();
        go_through(&mut pace, &load, |_, _| ());
        let short = vec![Event { taken: 0, read: Some(bytes) }; MAX_SHORT_READS as usize];
        let mut is_in = false;
        let taken = pace.taken_at_read;
        for event in &short {
            pace.note_read(event.read.unwrap_or(0), taken);
            is_in = pace.wants_kernel(taken);
        }
        prop_assert!(is_in);
    }
}
