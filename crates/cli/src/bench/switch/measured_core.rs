//! The measured core: who runs on it, and its cycle counter.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::thread;
use std::time::{Duration, Instant};
use urtica_bench::Error;

/// How long the cycle counter is held against the clock.
const CALIBRATION: Duration = Duration::from_millis(100);

/// A core that runs what is measured, while everything else runs on the others.
#[derive(Clone, Copy, Debug)]
pub struct MeasuredCore {
    number: usize,
    tsc_hz: Option<f64>,
}

impl MeasuredCore {
    /// Takes a core: the calling thread, and all that it starts, leave it to [`MeasuredCore::run`]. Where there is no
    /// other core, they share it.
    ///
    /// # Errors
    /// Where this process may not run there.
    pub fn take(number: usize) -> Result<Self, Error> {
        let available =
            sched_getaffinity(None).map_err(Error::system("ask for this process's cores"))?;
        let numbers: Vec<usize> = (0..CpuSet::MAX_CPU)
            .filter(|&core| available.is_set(core))
            .collect();
        if !numbers.contains(&number) {
            let expected = numbers
                .iter()
                .map(usize::to_string)
                .collect::<Vec<_>>()
                .join(",");
            return Err(Error::invalid(format!(
                "there is no core {number} for this process; expected --core with one of {expected}"
            )));
        }
        let mut others = available;
        others.unset(number);
        if others.count() > 0 {
            sched_setaffinity(None, &others)
                .map_err(Error::system(format!("leave core {number} alone")))?;
        }
        let tsc_hz = measure_tsc_hz();
        Ok(Self { number, tsc_hz })
    }

    /// Its number.
    pub fn number(self) -> usize {
        self.number
    }

    /// What its cycle counter counts in a second, where it has one.
    pub fn tsc_hz(self) -> Option<f64> {
        self.tsc_hz
    }

    /// Runs something on it, in a thread of its own, and meanwhile `beside` on the other cores.
    ///
    /// # Errors
    /// Where the thread cannot be pinned.
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
            Ok(measured())
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

/// The core's cycle counter now: on x86-64 the time-stamp counter, which goes at a constant rate whatever the core's
/// own clock does. `None` elsewhere.
#[inline]
pub fn cycles() -> Option<u64> {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: every x86-64 processor has the instruction, and it touches nothing.
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
