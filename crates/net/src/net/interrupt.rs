//! Leaving off before the time is over.

use super::{Net, NetError};

/// After how many items of the agenda it is looked at again whether to leave off.
const LOOK_EVERY: u32 = 64;

/// Who may have time stop passing.
#[derive(Default)]
pub(super) struct Interrupt {
    is_wanted: Option<Box<dyn Fn() -> bool>>,
    items: u32,
}

impl Interrupt {
    /// Whether to leave off; it is asked now and then.
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

    /// Has it looked at next time.
    pub fn look_soon(&mut self) {
        self.items = LOOK_EVERY;
    }

    /// Whether anybody may.
    pub fn is_possible(&self) -> bool {
        self.is_wanted.is_some()
    }
}

impl Net {
    /// Has all methods that let time pass leave off early while this is true, as when somebody presses Ctrl-C. It is asked often, also
    /// while the network waits or has more to do than it can: it should look at a flag or a clock. Time goes on where it stopped when it is
    /// false again.
    pub fn interrupt_when(&mut self, is_wanted: impl Fn() -> bool + 'static) {
        self.interrupt.is_wanted = Some(Box::new(is_wanted));
    }

    /// Whether time stands still, as [`interrupt_when`](Self::interrupt_when) says.
    pub fn is_interrupted(&self) -> bool {
        let is_wanted = self.interrupt.is_wanted.as_ref();
        is_wanted.is_some_and(|is_wanted| is_wanted())
    }

    /// That nothing keeps time from passing.
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
