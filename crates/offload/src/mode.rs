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

/// The kernel answers no longer segment of input than this: `INPUT_BYTES` of `bpf/session.h`. What comes in longer ones the
/// program answers faster, in one batch, although it has to be woken.
const MAX_INPUT_BYTES: usize = 16 << 10;

/// The same, in [`Mode::Auto`], for a switch on this machine. There the processor that sends a segment runs the kernel's
/// programs on it as well, and the program's own is idle meanwhile, so that answering in the kernel pays for a few messages at a
/// time only: four of OpenFlow 1.0, three of 1.3.
const MAX_LOCAL_INPUT_BYTES: usize = 384;

/// The kernel half steps aside after so many consecutive reads of a long queue: of more than the kernel answers at once.
const LONG_READS: u32 = 4;

/// The kernel half comes back after so many reads of a short queue, which is half of what the kernel answers at once, and none of a
/// long one among them: initially, and at most if it had to step aside soon again and again.
const SHORT_READS: u32 = 16;
const MAX_SHORT_READS: u32 = 1024;

/// The kernel half comes back in any case after so many checks of a connection without a read.
const IDLE_LOOKS: u32 = 3;

/// The kernel half was useful if it answered so many bytes of packet-ins before it stepped aside.
const WORTHWHILE_BYTES: u64 = 384 << 10;

/// How busy one connection is, and whether its input should go through the kernel's programs.
///
/// Switching over has a cost, so for a connection that alternates between a long and a short queue, the wait is doubled each
/// time before the kernel half comes back.
#[derive(Debug)]
pub(crate) struct Pace {
    mode: Mode,
    max_input_bytes: usize,
    /// Whether the kernel is to answer less of what a switch on the same machine sends.
    has_local_limit: bool,
    wants_kernel: bool,
    /// Reads in favour of switching over, since one against it.
    reads: u32,
    /// Consecutive checks since the last read.
    looks: u32,
    /// How many short reads bring the kernel half back.
    short_reads: u32,
    /// How many bytes the kernel had answered at the last read.
    taken_at_read: u64,
    /// How many bytes the kernel had answered when it last came back.
    taken_at_return: u64,
}

impl Pace {
    /// For a connection that is about to be attached, to a switch on another machine.
    pub fn new(mode: Mode) -> Self {
        Self {
            mode,
            max_input_bytes: MAX_INPUT_BYTES,
            has_local_limit: mode == Mode::Auto,
            wants_kernel: true,
            reads: 0,
            looks: 0,
            short_reads: SHORT_READS,
            taken_at_read: 0,
            taken_at_return: 0,
        }
    }

    /// The same limit for switches on this machine as for others: where the program has more work with a message than the kernel.
    pub fn without_local_limit(&mut self) {
        self.has_local_limit = false;
    }

    /// The switch is on this machine.
    pub fn expect_local_switch(&mut self) {
        if self.has_local_limit {
            self.max_input_bytes = MAX_LOCAL_INPUT_BYTES;
        }
    }

    /// The longest segment of input that the kernel is to answer, in bytes.
    pub fn max_input_bytes(&self) -> usize {
        self.max_input_bytes
    }

    /// The program has read so many bytes, and the kernel has answered `taken` so far.
    pub fn note_read(&mut self, bytes: usize, taken: u64) {
        self.looks = 0;
        let taken_since = taken - std::mem::replace(&mut self.taken_at_read, taken);
        let is_long = bytes > self.max_input_bytes;
        let is_short = bytes < self.max_input_bytes / 2;
        // A burst among many short segments, which is for the program once and no reason to step aside.
        let is_burst = taken_since > bytes as u64;
        self.reads = match self.wants_kernel {
            true if is_long && is_burst => 1,
            true if is_long => self.reads + 1,
            false if is_long => 0,
            false if is_short => self.reads + 1,
            false => self.reads,
            true => 0,
        };
    }

    /// Whether nothing was read since the last check.
    pub fn is_idle(&self) -> bool {
        self.looks > 0
    }

    /// Whether input should go through the kernel's programs, given how many bytes the kernel has answered so far.
    pub fn wants_kernel(&mut self, taken: u64) -> bool {
        self.looks += 1;
        if self.mode == Mode::Kernel {
            return true;
        }
        if self.wants_kernel {
            if self.reads >= LONG_READS {
                self.leave(taken);
            }
        } else if self.reads >= self.short_reads || self.looks >= IDLE_LOOKS {
            self.come_back(taken);
        }
        self.wants_kernel
    }

    fn leave(&mut self, taken: u64) {
        let was_worthwhile = taken - self.taken_at_return >= WORTHWHILE_BYTES;
        self.short_reads = match was_worthwhile {
            true => SHORT_READS,
            false => (self.short_reads * 2).min(MAX_SHORT_READS),
        };
        self.wants_kernel = false;
        self.reads = 0;
    }

    fn come_back(&mut self, taken: u64) {
        self.taken_at_return = taken;
        self.wants_kernel = true;
        self.reads = 0;
    }
}

#[cfg(test)]
mod tests;
