//! The measured core: its threads, and its cycle counter.

use crate::Error;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::thread;
use std::time::{Duration, Instant};

/// The time for which the cycle counter is compared with the clock.
const CALIBRATION: Duration = Duration::from_millis(100);

/// A core reserved for the measured thread; all other threads run on other cores.
#[derive(Clone, Copy, Debug)]
pub struct MeasuredCore {
    number: usize,
    tsc_hz: Option<f64>,
}

impl MeasuredCore {
    /// Reserves a core: the calling thread, and threads that it starts, leave it to [`MeasuredCore::run`]. If there is no
    /// other core, they share it.
    ///
    /// # Errors
    /// [`Error::NoCore`] if this process may not run on the core.
    pub fn take(number: usize) -> Result<Self, Error> {
        let available =
            sched_getaffinity(None).map_err(Error::system("read this process's cores"))?;
        let numbers: Vec<usize> = (0..CpuSet::MAX_CPU)
            .filter(|&core| available.is_set(core))
            .collect();
        if !numbers.contains(&number) {
            return Err(Error::NoCore {
                core: number,
                available: numbers,
            });
        }
        let mut others = available;
        others.unset(number);
        if others.count() > 0 {
            sched_setaffinity(None, &others).map_err(Error::system(format!(
                "keep this process off core {number}"
            )))?;
        }
        let tsc_hz = measure_tsc_hz();
        Ok(Self { number, tsc_hz })
    }

    /// Reserves the last core on which this process may run.
    #[cfg(test)]
    pub(crate) fn last() -> Result<Self, Error> {
        let available = sched_getaffinity(None).map_err(Error::system("list the cores"))?;
        let last = (0..CpuSet::MAX_CPU).rfind(|&core| available.is_set(core));
        Self::take(last.unwrap_or(0))
    }

    /// Returns the core's number.
    pub fn number(self) -> usize {
        self.number
    }

    /// Returns the frequency of its cycle counter in Hz, if it has one.
    pub fn tsc_hz(self) -> Option<f64> {
        self.tsc_hz
    }

    /// Runs `measured` on the core, in its own thread, and `beside` on the other cores.
    ///
    /// # Errors
    /// [`Error::System`] if the thread cannot be pinned.
    pub fn run<T: Send, U>(
        self,
        measured: impl FnOnce() -> T + Send,
        beside: impl FnOnce() -> U,
    ) -> Result<(T, U), Error> {
        let pinned = move || {
            let mut core = CpuSet::new();
            core.set(self.number);
            sched_setaffinity(None, &core).map_err(Error::system(format!(
                "pin a thread to core {}",
                self.number
            )))?;
            Ok::<_, Error>(measured())
        };
        thread::scope(|scope| {
            let thread = scope.spawn(pinned);
            let beside = beside();
            match thread.join() {
                Ok(measured) => Ok((measured?, beside)),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }
}

/// Returns `true` if the processor has a cycle counter that this crate can read: on x86-64.
pub fn has_cycle_counter() -> bool {
    cycles().is_some()
}

/// Reads the cycle counter: on x86-64 the time-stamp counter, which counts at a constant rate, independent of the
/// core's own clock. `None` on other architectures.
#[inline]
pub fn cycles() -> Option<u64> {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: every x86-64 processor has the instruction, and it accesses no memory.
        Some(unsafe { std::arch::x86_64::_rdtsc() })
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        None
    }
}

fn measure_tsc_hz() -> Option<f64> {
    let (start, first) = (Instant::now(), cycles()?);
    thread::sleep(CALIBRATION);
    let (elapsed, last) = (start.elapsed(), cycles()?);
    Some((last - first) as f64 / elapsed.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_cores_are_errors_that_list_the_others() {
        let error = MeasuredCore::take(CpuSet::MAX_CPU).unwrap_err();
        let Error::NoCore { core, available } = &error else {
            panic!("{error}");
        };
        assert_eq!(*core, CpuSet::MAX_CPU);
        assert!(!available.is_empty());
        let expected = format!("expected one of {}", available[0]);
        assert!(error.to_string().contains(&expected), "{error}");
    }
}
