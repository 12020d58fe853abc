//! Decides when the kernel answers: always, or while queues are short.

/// Determines when the kernel answers the messages that it can answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mode {
    /// While a switch's queue is short. While the queue stays long, the switch's input is passed directly to the program, which
    /// handles it in large batches, as without a kernel half.
    #[default]
    Auto,
    /// Always.
    Kernel,
}

/// Maximum length of a segment of input that the kernel answers: `INPUT_BYTES` of `bpf/session.h`. The program answers longer
/// ones faster, in one batch, although it must be woken.
const MAX_INPUT_BYTES: usize = 16 << 10;

/// The maximum in [`Mode::Auto`] for a switch on this machine. There, the processor that sends a segment also runs the kernel's
/// programs on it, while the program's own processor is idle. So answering in the kernel is worthwhile only for a few messages
/// at a time: four of OpenFlow 1.0, three of 1.3.
const MAX_LOCAL_INPUT_BYTES: usize = 384;

/// Number of consecutive reads of a long queue after which the kernel half steps aside; a queue is long if it exceeds
/// the length that the kernel answers at once.
const LONG_READS: u32 = 4;

/// Number of reads of a short queue, without a long one among them, after which the kernel half returns. A queue is short if it
/// is at most half as long as the kernel answers at once. The initial number, and its maximum if the kernel half has to step
/// aside soon again and again.
const SHORT_READS: u32 = 16;
const MAX_SHORT_READS: u32 = 1024;

/// Number of checks of a connection without a read after which the kernel half returns.
const IDLE_LOOKS: u32 = 3;

/// Number of bytes of packet-ins that the kernel half must answer before it steps aside in order to count as useful.
const WORTHWHILE_BYTES: u64 = 384 << 10;

/// The load of one connection, and whether its input should pass through the kernel's programs.
///
/// Changing over has a cost. So for a connection that alternates between a long and a short queue, the wait before the kernel
/// half returns is doubled each time.
#[derive(Debug)]
pub(crate) struct Pace {
    mode: Mode,
    max_input_bytes: usize,
    /// Whether a lower limit applies to switches on this machine.
    has_local_limit: bool,
    wants_kernel: bool,
    /// Number of reads in favour of changing over, since the last read against it.
    reads: u32,
    /// Number of consecutive checks since the last read.
    looks: u32,
    /// Number of short reads after which the kernel half returns.
    short_reads: u32,
    /// Number of bytes that the kernel had answered at the last read.
    taken_at_read: u64,
    /// Number of bytes that the kernel had answered when it last returned.
    taken_at_return: u64,
}

impl Pace {
    /// Creates the state of a connection that will be attached, to a switch on another machine.
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

    /// Uses one limit for all switches, for programs that do more work per message than the kernel.
    pub fn without_local_limit(&mut self) {
        self.has_local_limit = false;
    }

    /// Notes that the switch is on this machine.
    pub fn expect_local_switch(&mut self) {
        if self.has_local_limit {
            self.max_input_bytes = MAX_LOCAL_INPUT_BYTES;
        }
    }

    /// Returns the maximum length of a segment of input that the kernel answers, in bytes.
    pub fn max_input_bytes(&self) -> usize {
        self.max_input_bytes
    }

    /// Notes that the program has read this number of bytes, and that the kernel has answered `taken` bytes so far.
    pub fn note_read(&mut self, bytes: usize, taken: u64) {
        self.looks = 0;
        let taken_since = taken - std::mem::replace(&mut self.taken_at_read, taken);
        let is_long = bytes > self.max_input_bytes;
        let is_short = bytes < self.max_input_bytes / 2;
        // The program handles a single burst among many short segments, which is not a reason to step aside.
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

    /// Returns whether nothing was read since the last check.
    pub fn is_idle(&self) -> bool {
        self.looks > 0
    }

    /// Returns whether input should pass through the kernel's programs, given the number of bytes that the kernel has
    /// answered so far.
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
