//! When the kernel answers: always, or while queues are short.

/// When the kernel answers what it can.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mode {
    /// While a switch's queue is short. While it stays long, the switch's input goes straight to the program, which handles it in
    /// large batches, as if there were no kernel half.
    #[default]
    Auto,
    /// Always.
    Kernel,
}

/// A read of at least so many bytes indicates a long queue: what the kernel passes because it is long is longer, too.
const LONG_READ: usize = 16 << 10;

/// The kernel half steps aside after so many consecutive reads of a long queue.
const LONG_READS: u32 = 4;

/// A shorter read indicates a short queue.
const SHORT_READ: usize = 4 << 10;

/// The kernel half comes back after so many consecutive reads of a short queue: initially, and at most if it had to step
/// aside soon again and again.
const SHORT_READS: u32 = 16;
const MAX_SHORT_READS: u32 = 1024;

/// The kernel half comes back in any case after so many checks of a connection without a read.
const IDLE_LOOKS: u32 = 3;

/// The kernel half was useful if it answered so many packet-ins before it stepped aside.
const WORTHWHILE: u64 = 4096;

/// How busy one connection is, and whether its input should go through the kernel's programs.
///
/// Switching over has a cost, so for a connection that alternates between a long and a short queue, the wait is doubled each
/// time before the kernel half comes back.
#[derive(Debug)]
pub(crate) struct Pace {
    mode: Mode,
    wants_kernel: bool,
    /// Consecutive reads in favour of switching over.
    reads: u32,
    /// Consecutive checks since the last read.
    looks: u32,
    /// How many short reads bring the kernel half back.
    short_reads: u32,
    /// The number of packet-ins that the kernel had answered when it last came back.
    answered_before: u64,
}

impl Pace {
    /// For a connection that has just been attached.
    pub fn new(mode: Mode) -> Self {
        Self {
            mode,
            wants_kernel: true,
            reads: 0,
            looks: 0,
            short_reads: SHORT_READS,
            answered_before: 0,
        }
    }

    /// The program has read so many bytes.
    pub fn note_read(&mut self, bytes: usize) {
        self.looks = 0;
        let is_for_change = match self.wants_kernel {
            true => bytes >= LONG_READ,
            false => bytes < SHORT_READ,
        };
        self.reads = if is_for_change { self.reads + 1 } else { 0 };
    }

    /// Whether nothing was read since the last check.
    pub fn is_idle(&self) -> bool {
        self.looks > 0
    }

    /// Whether input should go through the kernel's programs, given how many packet-ins the kernel has answered so far.
    pub fn wants_kernel(&mut self, answered: u64) -> bool {
        self.looks += 1;
        if self.mode == Mode::Kernel {
            return true;
        }
        if self.wants_kernel {
            if self.reads >= LONG_READS {
                self.leave(answered);
            }
        } else if self.reads >= self.short_reads || self.looks >= IDLE_LOOKS {
            self.come_back(answered);
        }
        self.wants_kernel
    }

    fn leave(&mut self, answered: u64) {
        let was_worthwhile = answered - self.answered_before >= WORTHWHILE;
        self.short_reads = match was_worthwhile {
            true => SHORT_READS,
            false => (self.short_reads * 2).min(MAX_SHORT_READS),
        };
        self.wants_kernel = false;
        self.reads = 0;
    }

    fn come_back(&mut self, answered: u64) {
        self.answered_before = answered;
        self.wants_kernel = true;
        self.reads = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A connection of which each read brings so many bytes, until the kernel half wants to change over. Returns the number of
    /// reads.
    fn reads_until_change(pace: &mut Pace, bytes: usize, answered: u64) -> u32 {
        let before = pace.wants_kernel;
        (1..=5000)
            .find(|_| {
                pace.note_read(bytes);
                pace.wants_kernel(answered) != before
            })
            .expect("it changes over")
    }

    #[test]
    fn a_long_queue_drives_it_away_and_a_short_one_brings_it_back() {
        let mut pace = Pace::new(Mode::Auto);
        assert_eq!(reads_until_change(&mut pace, LONG_READ, 0), LONG_READS);
        assert!(reads_until_change(&mut pace, 100, 0) >= SHORT_READS);
        assert!(pace.wants_kernel(0));
    }

    #[test]
    fn what_lies_between_changes_nothing() {
        let mut pace = Pace::new(Mode::Auto);
        let look = |pace: &mut Pace| {
            pace.note_read(SHORT_READ);
            pace.wants_kernel(0)
        };
        assert!((0..5000).all(|_| look(&mut pace)));
        reads_until_change(&mut pace, LONG_READ, 0);
        assert!(!(0..5000).any(|_| look(&mut pace)));
    }

    #[test]
    fn single_bursts_do_not_drive_it_away() {
        let mut pace = Pace::new(Mode::Auto);
        for _ in 0..1000 {
            pace.note_read(LONG_READ);
            assert!(pace.wants_kernel(0));
            pace.note_read(100);
            assert!(pace.wants_kernel(0));
        }
    }

    #[test]
    fn who_swings_waits_longer_each_time_up_to_a_bound() {
        let mut pace = Pace::new(Mode::Auto);
        let mut waits = Vec::new();
        for _ in 0..12 {
            reads_until_change(&mut pace, LONG_READ, 0);
            waits.push(reads_until_change(&mut pace, 100, 0));
        }
        assert!(waits.windows(2).all(|pair| pair[0] <= pair[1]), "{waits:?}");
        assert_eq!(waits.last(), Some(&MAX_SHORT_READS));
        // A stay that was worthwhile makes good for it.
        reads_until_change(&mut pace, LONG_READ, WORTHWHILE);
        assert_eq!(reads_until_change(&mut pace, 100, WORTHWHILE), SHORT_READS);
    }

    #[test]
    fn silence_brings_it_back() {
        let mut pace = Pace::new(Mode::Auto);
        reads_until_change(&mut pace, LONG_READ, 0);
        // The first look came right after the last read.
        assert!(!(2..IDLE_LOOKS).any(|_| pace.wants_kernel(0)));
        assert!(pace.wants_kernel(0));
    }

    #[test]
    fn it_stays_where_it_always_answers() {
        let mut pace = Pace::new(Mode::Kernel);
        for _ in 0..100 {
            pace.note_read(LONG_READ);
            assert!(pace.wants_kernel(0));
        }
    }
}
