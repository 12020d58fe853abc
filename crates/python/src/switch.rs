//! The switch that a handler gets: lent for the time of the call.

use crate::message::{PacketIn, Port};
use crate::text::{ActionsOf, match_of, options};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};
use urtica::controller;
use urtica::wire::{EncodeError, Match};

/// A handler's switch, during the handler's call.
#[pyclass(frozen, module = "urtica")]
pub struct Switch {
    #[pyo3(get)]
    dpid: u64,
    /// Present during the call.
    lent: Mutex<Option<Lent>>,
}

struct Lent(NonNull<controller::Switch<'static>>);

// SAFETY: the pointer is only used under the mutex, while `Switch::lend`, which has the unique reference, waits for the call to
// return. Any thread may use it: the data behind it is not bound to a thread.
unsafe impl Send for Lent {}

/// Takes the switch back on drop, so also if the call panics.
struct TakeBack<'a>(&'a Switch);

impl Drop for TakeBack<'_> {
    fn drop(&mut self) {
        self.0.lock().take();
    }
}

impl Switch {
    pub(crate) fn of(switch: &controller::Switch) -> Self {
        Self {
            dpid: switch.datapath_id().0,
            lent: Mutex::new(None),
        }
    }

    /// Lends `switch` while `call` runs.
    pub(crate) fn lend<R>(&self, switch: &mut controller::Switch, call: impl FnOnce() -> R) -> R {
        *self.lock() = Some(Lent(NonNull::from(switch).cast()));
        let _take_back = TakeBack(self);
        call()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Lent>> {
        self.lent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `work` with the switch. `work` must not call Python.
    fn with<R>(&self, work: impl FnOnce(&mut controller::Switch) -> R) -> PyResult<R> {
        let mut lent = self.lock();
        let Some(Lent(pointer)) = &mut *lent else {
            return Err(PyRuntimeError::new_err(
                "the switch can be used only during the handler's call; use urtica.Network at other times",
            ));
        };
        // SAFETY: the pointer is that of `lend`, which has not returned: its guard clears the pointer under the mutex that is
        // locked here. `lend` has the unique reference, and does not use it until then. `work` cannot keep its argument, whose
        // lifetime is hidden from it.
        Ok(work(unsafe { pointer.as_mut() }))
    }
}

fn sent<T>(result: Result<T, EncodeError>) -> PyResult<T> {
    result.map_err(|error| PyValueError::new_err(error.to_string()))
}

#[pymethods]
impl Switch {
    /// The ports, in the order of their numbers.
    #[getter]
    fn ports(&self) -> PyResult<Vec<Port>> {
        self.with(|switch| switch.info().ports.iter().map(Port::of).collect())
    }

    /// Seconds of the controller's clock, which is simulated in a `Net`.
    #[getter]
    fn now(&self) -> PyResult<u32> {
        self.with(|switch| switch.now_s())
    }

    /// Sends a packet out of a port, or through a list of actions.
    fn forward(
        &self,
        py: Python<'_>,
        packet: &PacketIn,
        actions: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let actions = ActionsOf::read(actions)?;
        self.with(|switch| {
            packet.with(py, |packet| {
                actions.with(|actions| switch.forward(packet, actions))
            })
        })
    }

    /// Adds an entry for packets like this one, and sends this one by it.
    #[pyo3(signature = (packet, actions, r#match=None, *, priority=None, idle_timeout=0, hard_timeout=0, cookie=0, notify=false))]
    #[expect(clippy::too_many_arguments, reason = "keywords in Python")]
    fn forward_with_rule(
        &self,
        py: Python<'_>,
        packet: &PacketIn,
        actions: &Bound<'_, PyAny>,
        r#match: Option<&str>,
        priority: Option<u16>,
        idle_timeout: u16,
        hard_timeout: u16,
        cookie: u64,
        notify: bool,
    ) -> PyResult<()> {
        let actions = ActionsOf::read(actions)?;
        let given = r#match.map(|text| match_of(Some(text))).transpose()?;
        let options = options(priority, (idle_timeout, hard_timeout), cookie, notify);
        self.with(|switch| {
            packet.with(py, |packet| {
                let match_ = given.unwrap_or_else(|| Match::exact(packet));
                actions.with(|actions| switch.forward_with_rule(packet, match_, actions, options));
            });
        })
    }

    /// Adds an entry; without actions it drops. Returns the xid.
    #[pyo3(signature = (r#match, actions=None, *, priority=None, idle_timeout=0, hard_timeout=0, cookie=0, notify=false))]
    #[expect(clippy::too_many_arguments, reason = "keywords in Python")]
    fn install(
        &self,
        r#match: &str,
        actions: Option<&Bound<'_, PyAny>>,
        priority: Option<u16>,
        idle_timeout: u16,
        hard_timeout: u16,
        cookie: u64,
        notify: bool,
    ) -> PyResult<u32> {
        let match_ = match_of(Some(r#match))?;
        let actions = ActionsOf::optional(actions)?;
        let options = options(priority, (idle_timeout, hard_timeout), cookie, notify);
        sent(self.with(|switch| actions.with(|actions| switch.install(match_, actions, options)))?)
    }

    /// Deletes this program's entries that the match includes. Returns the xid.
    #[pyo3(signature = (r#match=None))]
    fn delete(&self, r#match: Option<&str>) -> PyResult<u32> {
        let match_ = match_of(r#match)?;
        sent(self.with(|switch| switch.delete(match_))?)
    }

    /// Sends a packet of the program's own, from its Ethernet header on. Returns the xid.
    fn send_packet(&self, data: &[u8], actions: &Bound<'_, PyAny>) -> PyResult<u32> {
        let actions = ActionsOf::read(actions)?;
        sent(self.with(|switch| actions.with(|actions| switch.send_packet(data, actions)))?)
    }

    fn __repr__(&self) -> String {
        format!("<Switch {:016x}>", self.dpid)
    }
}
