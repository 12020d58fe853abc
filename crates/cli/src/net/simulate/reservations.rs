//! The reservations of the running controller, for the invariants about them.

use std::cell::RefCell;
use std::net::Ipv4Addr;
use std::rc::Rc;
use urtica_apps::{Bandwidth, Services};
use urtica_net::simulate::{Check, Refused};
use urtica_net::watch::Violation;

/// The reservations of the controller that was started last, if `bandwidth` is among its programs.
#[derive(Clone, Default)]
pub(super) struct Reservations(Rc<RefCell<Option<Bandwidth>>>);

impl Reservations {
    /// Uses this controller's reservations from now on. Returns the check that no link is overbooked.
    pub fn of(&self, services: &Services) -> Option<Check> {
        let bandwidth = services.bandwidth.clone()?;
        *self.0.borrow_mut() = Some(bandwidth.clone());
        Some(Box::new(move |_| {
            let checked = bandwidth.check();
            checked.map_err(|error| Violation::new(error.to_string()))
        }))
    }

    /// Returns the reasons why flows were refused.
    pub fn refused(&self) -> Refused {
        let reservations = self.clone();
        Rc::new(move |src: Ipv4Addr, dst: Ipv4Addr| {
            let running = reservations.0.borrow();
            let refusal = running.as_ref()?.refusal(src.into(), dst.into())?;
            Some(refusal.to_string())
        })
    }
}
