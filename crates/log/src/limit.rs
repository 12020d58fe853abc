//! Limits of the number of lines. Time is an argument.

use crate::bucket::{Rate, TokenBucket};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// The number of lines about one subject that may be written at once.
pub const BURST: u32 = 20;

/// The interval after which a subject may have one more line.
pub const INTERVAL: Duration = Duration::from_secs(10);

/// The number of lines in total that may be written at once: enough for all switches of a large network to join.
pub const BURST_IN_SUM: u32 = 1_000;

/// The number of further lines per second in total: some 200 MB a day.
pub const PER_SECOND_IN_SUM: u32 = 10;

/// The maximum number of remembered subjects.
pub const SUBJECTS: usize = 4096;

/// The minimum interval between two sweeps of quiet subjects, each of which scans all subjects.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);

/// The limits per subject and in total.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    subject: Rate,
    sum: Rate,
}

impl Bounds {
    /// The limits given by the constants of this crate.
    pub const DEFAULT: Self = Self {
        subject: Rate::new(BURST, INTERVAL),
        sum: Rate::new(
            BURST_IN_SUM,
            Duration::from_millis(1000 / PER_SECOND_IN_SUM as u64),
        ),
    };

    /// Multiplies both limits by `factor`.
    pub fn times(self, factor: u32) -> Self {
        Self {
            subject: self.subject.times(factor),
            sum: self.sum.times(factor),
        }
    }
}

/// The numbers of lines suppressed before this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Suppressed {
    here: u64,
    elsewhere: u64,
}

impl Suppressed {
    /// Returns the number of lines about this subject; `None` if zero.
    pub fn here(&self) -> Option<u64> {
        (self.here > 0).then_some(self.here)
    }

    /// Returns the number of lines about forgotten subjects; `None` if zero.
    pub fn elsewhere(&self) -> Option<u64> {
        (self.elsewhere > 0).then_some(self.elsewhere)
    }
}

/// The limit on the lines of one level.
#[derive(Debug)]
pub struct Limit {
    bounds: Bounds,
    sum: TokenBucket,
    subjects: HashMap<u64, Subject>,
    /// The number of suppressed lines about subjects that are not remembered.
    elsewhere: u64,
    next_sweep: Instant,
}

#[derive(Debug)]
struct Subject {
    bucket: TokenBucket,
    /// The number of lines suppressed since the last written line.
    suppressed: u64,
}

impl Limit {
    /// Creates a limit under which no line has been written yet.
    pub fn new(bounds: Bounds, now: Instant) -> Self {
        Self {
            bounds,
            sum: TokenBucket::new(now),
            subjects: HashMap::new(),
            elsewhere: 0,
            next_sweep: now,
        }
    }

    /// Returns the lines suppressed before this line if it may be written now, otherwise `None`.
    pub fn admit(&mut self, subject: u64, now: Instant) -> Option<Suppressed> {
        if self.subjects.len() >= SUBJECTS && !self.subjects.contains_key(&subject) {
            self.forget_quiet(now);
        }
        let has_room = self.sum.has_token(self.bounds.sum, now);
        if self.subjects.len() >= SUBJECTS && !self.subjects.contains_key(&subject) {
            return self.admit_stranger(has_room, now);
        }
        let known = self.subjects.entry(subject).or_insert(Subject {
            bucket: TokenBucket::new(now),
            suppressed: 0,
        });
        if !has_room || !known.bucket.take(self.bounds.subject, now) {
            known.suppressed += 1;
            return None;
        }
        self.sum.take(self.bounds.sum, now);
        Some(Suppressed {
            here: std::mem::take(&mut known.suppressed),
            elsewhere: std::mem::take(&mut self.elsewhere),
        })
    }

    /// Admits a line about a subject that cannot be remembered because the map is full.
    fn admit_stranger(&mut self, has_room: bool, now: Instant) -> Option<Suppressed> {
        if !has_room {
            self.elsewhere += 1;
            return None;
        }
        self.sum.take(self.bounds.sum, now);
        Some(Suppressed {
            here: 0,
            elsewhere: std::mem::take(&mut self.elsewhere),
        })
    }

    /// Forgets subjects with a full bucket, which are equal to unknown ones.
    fn forget_quiet(&mut self, now: Instant) {
        if now < self.next_sweep {
            return;
        }
        self.next_sweep = now + SWEEP_INTERVAL;
        let elsewhere = &mut self.elsewhere;
        self.subjects.retain(|_, subject| {
            let is_quiet = subject.bucket.is_full(now);
            if is_quiet {
                *elsewhere += subject.suppressed;
            }
            !is_quiet
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds = Bounds::DEFAULT;

    /// Returns how many of `lines` lines about a subject are written, a microsecond apart. Advances `now` to the last of
    /// them.
    fn written(limit: &mut Limit, subject: u64, lines: u32, now: &mut Instant) -> u32 {
        (0..lines)
            .filter(|_| {
                *now += Duration::from_micros(1);
                limit.admit(subject, *now).is_some()
            })
            .count() as u32
    }

    #[test]
    fn a_subject_has_its_lines_and_then_one_now_and_then() {
        let mut now = Instant::now();
        let mut limit = Limit::new(BOUNDS, now);
        assert_eq!(written(&mut limit, 1, 10_000, &mut now), BURST);
        assert_eq!(written(&mut limit, 2, 3, &mut now), 3, "others have theirs");
        now += INTERVAL;
        let left_out = limit.admit(1, now).expect("its time has come");
        assert_eq!((left_out.here(), left_out.elsewhere()), (Some(9_980), None));
        assert_eq!(written(&mut limit, 1, 100, &mut now), 0);
        now += INTERVAL * 1000;
        let left_out = limit.admit(1, now).expect("its time has come");
        assert_eq!(left_out.here(), Some(100));
        assert_eq!(
            written(&mut limit, 1, 100, &mut now),
            BURST - 1,
            "not more for having been quiet for long"
        );
    }

    #[test]
    fn all_have_a_bound_together() {
        let mut now = Instant::now();
        let mut limit = Limit::new(BOUNDS, now);
        let all: u32 = (0..2_000)
            .map(|subject| written(&mut limit, subject, 1, &mut now))
            .sum();
        assert_eq!(all, BURST_IN_SUM);
        now += Duration::from_secs(1);
        let all: u32 = (0..2_000)
            .map(|subject| written(&mut limit, subject, 1, &mut now))
            .sum();
        assert_eq!(all, PER_SECOND_IN_SUM);
    }

    #[test]
    fn endless_new_subjects_use_bounded_memory_and_suppressed_lines_are_counted() {
        let mut now = Instant::now();
        let mut limit = Limit::new(BOUNDS, now);
        let (mut said, mut told) = (0, 0);
        let lines = 100_000;
        for subject in 0..lines {
            now += Duration::from_micros(10);
            if let Some(left_out) = limit.admit(subject, now) {
                said += 1;
                told += left_out.here + left_out.elsewhere;
            }
        }
        assert!(limit.subjects.len() <= SUBJECTS);
        // Within one second, in addition to the first burst.
        assert!(said <= u64::from(BURST_IN_SUM + PER_SECOND_IN_SUM));
        now += INTERVAL * 1000;
        for subject in lines..lines + SUBJECTS as u64 {
            now += INTERVAL;
            let left_out = limit.admit(subject, now).expect("there is room");
            (said, told) = (said + 1, told + left_out.here + left_out.elsewhere);
        }
        assert_eq!(said + told, lines + SUBJECTS as u64);
    }

    #[test]
    fn larger_bounds_scale_all_limits() {
        let mut now = Instant::now();
        let mut limit = Limit::new(BOUNDS.times(10), now);
        assert_eq!(written(&mut limit, 1, 10_000, &mut now), BURST * 10);
        now += INTERVAL / 10;
        assert_eq!(written(&mut limit, 1, 10, &mut now), 1);
    }
}
