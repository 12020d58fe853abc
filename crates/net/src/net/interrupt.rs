//! Interrupting a run.

use super::{Net, NetError};

/// The number of events between two checks.
const LOOK_EVERY: u32 = 64;

/// The check that may interrupt a run.
#[derive(Default)]
pub(super) struct Interrupt {
    is_wanted: Option<Box<dyn Fn() -> bool>>,
    items: u32,
}

impl Interrupt {
    /// Returns `true` if time must stop; checks only now and then.
    pub fn is_due(&mut self) -> bool {
        let Some(is_wanted) = &self.is_wanted else {
            return false;
        };
        self.items += 1;
        if self.items < LOOK_EVERY {
            return false;
        }
        self.items = 0;
        is_wanted()
    }

    /// Makes the network check before the next event.
    pub fn look_soon(&mut self) {
        self.items = LOOK_EVERY;
    }

    /// Returns `true` if a check is set.
    pub fn is_possible(&self) -> bool {
        self.is_wanted.is_some()
    }
}

impl Net {
    /// Makes all methods that advance time return early while this callback returns `true`, for instance after Ctrl-C. It is
    /// called often, also while the network waits or is overloaded, so it should only read a flag or a clock. When it returns
    /// `false` again, time continues.
    pub fn interrupt_when(&mut self, is_wanted: impl Fn() -> bool + 'static) {
        self.interrupt.is_wanted = Some(Box::new(is_wanted));
    }

    /// Returns `true` while time stands still: see [`interrupt_when`](Self::interrupt_when).
    pub fn is_interrupted(&self) -> bool {
        let is_wanted = self.interrupt.is_wanted.as_ref();
        is_wanted.is_some_and(|is_wanted| is_wanted())
    }

    /// Returns an error if time must not advance.
    pub(super) fn check_time_passes(&self) -> Result<(), NetError> {
        if let Some(broken) = self.broken() {
            return Err(broken.clone().into());
        }
        match self.is_interrupted() {
            true => Err(NetError::Interrupted(self.now())),
            false => Ok(()),
        }
    }
}
