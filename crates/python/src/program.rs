//! Programs in Python: a callable that makes a handler for each switch.

use crate::message::{ErrorMessage, FlowRemoved, PacketIn, PortStatus, SwitchInfo};
use crate::switch::Switch;
use pyo3::PyClass;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use urtica::controller::{self, PacketIns, Program, SwitchHandler};
use urtica::wire::{self, DatapathId};

/// The exceptions that handlers have raised.
#[derive(Default)]
pub(crate) struct Raised {
    /// Exceptions that are logged, and close their switch's connection.
    exceptions: Mutex<Vec<Py<PyAny>>>,
    /// An exception that ends the program: `KeyboardInterrupt`, or pytest's outcomes.
    ending: Mutex<Option<PyErr>>,
}

/// The maximum number of stored exceptions.
const MAX_KEPT: usize = 100;

impl Raised {
    /// Removes and returns the exceptions so far.
    pub fn take(&self) -> Vec<Py<PyAny>> {
        let mut exceptions = self
            .exceptions
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut exceptions)
    }

    /// Raises an exception that ends the program, if a handler has raised one.
    pub fn check(&self) -> PyResult<()> {
        let mut ending = self.ending.lock().unwrap_or_else(PoisonError::into_inner);
        ending.take().map_or(Ok(()), Err)
    }

    /// Stores an exception that ends the program, unless one is stored.
    pub fn end(&self, error: PyErr) {
        let mut ending = self.ending.lock().unwrap_or_else(PoisonError::into_inner);
        ending.get_or_insert(error);
    }

    /// Logs a handler's exception, and disconnects its switch like a panic.
    pub fn fail(&self, py: Python<'_>, switch: DatapathId, method: &str, error: PyErr) -> ! {
        let text = error.to_string();
        if error.is_instance_of::<PyException>(py) {
            log(py, switch, method, &error);
            let mut exceptions = self
                .exceptions
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            if exceptions.len() < MAX_KEPT {
                exceptions.push(error.into_value(py).into_any());
            }
        } else {
            self.end(error);
        }
        // Skip the panic hook, which would print the logged message again.
        resume_unwind(Box::new(format!("{method} raised {text}")));
    }
}

/// Logs an exception with its traceback.
fn log(py: Python<'_>, switch: DatapathId, method: &str, error: &PyErr) {
    // With its traceback, which `PyErr::value` may lack.
    let value = error.clone_ref(py).into_value(py);
    let logged = py
        .import("urtica._log")
        .and_then(|log| log.call_method1("exception", (switch.to_string(), method, value)));
    if let Err(failure) = logged {
        // Report the failure to log on stderr.
        failure.print(py);
    }
}

/// Runs code that calls handlers while an object is dropped. An exception that is being raised at that time stays raised.
pub(crate) fn keep_exception(work: impl FnOnce(Python<'_>)) {
    Python::attach(|py| {
        let raised = PyErr::take(py);
        work(py);
        if let Some(raised) = raised {
            raised.restore(py);
        }
    });
}

/// A program in Python.
pub(crate) struct PyProgram {
    app: Py<PyAny>,
    raised: Arc<Raised>,
}

impl PyProgram {
    pub fn new(app: Py<PyAny>, raised: &Arc<Raised>) -> Self {
        Self {
            app,
            raised: Arc::clone(raised),
        }
    }
}

impl Program for PyProgram {
    fn handler(&self, info: &controller::SwitchInfo) -> Box<dyn SwitchHandler> {
        Python::attach(|py| {
            let handler = Py::new(py, SwitchInfo::of(info))
                .and_then(|info| self.app.call1(py, (info,)))
                .and_then(|object| PyHandler::new(py, object, &self.raised));
            match handler {
                Ok(handler) => Box::new(handler),
                Err(error) => self.raised.fail(py, info.datapath_id, "the program", error),
            }
        })
    }
}

/// A handler in Python.
struct PyHandler {
    object: Py<PyAny>,
    tick_interval: Option<Duration>,
    raised: Arc<Raised>,
}

impl PyHandler {
    fn new(py: Python<'_>, object: Py<PyAny>, raised: &Arc<Raised>) -> PyResult<Self> {
        let bound = object.bind(py);
        let interval: Option<f64> = match bound.getattr_opt("tick_interval")? {
            Some(interval) => interval.extract()?,
            None => None,
        };
        Ok(Self {
            tick_interval: interval.and_then(|it| Duration::try_from_secs_f64(it).ok()),
            raised: Arc::clone(raised),
            object,
        })
    }

    /// Calls a method with the switch and this message, unless the handler lacks it.
    fn call(
        &self,
        py: Python<'_>,
        (object, switch): (&Bound<'_, Switch>, &mut controller::Switch),
        method: &str,
        message: PyResult<Option<Bound<'_, PyAny>>>,
    ) {
        let id = switch.datapath_id();
        let called = message.and_then(|message| {
            let Some(method) = self.object.bind(py).getattr_opt(method)? else {
                return Ok(());
            };
            let called = object.get().lend(switch, || match message {
                Some(message) => method.call1((object, message)),
                None => method.call1((object,)),
            });
            called.map(drop)
        });
        if let Err(error) = called {
            self.raised.fail(py, id, method, error);
        }
    }

    /// Calls a method once.
    fn call_once<T: PyClass>(
        &self,
        switch: &mut controller::Switch,
        method: &str,
        message: impl FnOnce(Python<'_>) -> PyResult<Option<Py<T>>>,
    ) {
        Python::attach(|py| match Bound::new(py, Switch::of(switch)) {
            Err(error) => self.raised.fail(py, switch.datapath_id(), method, error),
            Ok(object) => {
                let message = message(py);
                let message = message.map(|message| message.map(|it| it.into_bound(py).into_any()));
                self.call(py, (&object, switch), method, message);
            }
        });
    }
}

/// Returns no message, for methods without one.
fn none(_: Python<'_>) -> PyResult<Option<Py<Switch>>> {
    Ok(None)
}

impl SwitchHandler for PyHandler {
    fn switch_up(&mut self, switch: &mut controller::Switch) {
        self.call_once(switch, "switch_up", none);
    }

    fn tick_interval(&self) -> Option<Duration> {
        self.tick_interval
    }

    fn tick(&mut self, switch: &mut controller::Switch) {
        self.call_once(switch, "tick", none);
    }

    fn packet_in(&mut self, switch: &mut controller::Switch, packet: &wire::PacketIn) {
        self.call_once(switch, "packet_in", |py| {
            Py::new(py, PacketIn::of(py, packet)).map(Some)
        });
    }

    /// Attaches to the interpreter once for all messages.
    fn packet_ins(&mut self, switch: &mut controller::Switch, packets: &mut PacketIns) {
        Python::attach(|py| {
            let id = switch.datapath_id();
            let object = match Bound::new(py, Switch::of(switch)) {
                Ok(object) => object,
                Err(error) => self.raised.fail(py, id, "packet_in", error),
            };
            while let Some(packet) = packets.next(switch) {
                let packet = Bound::new(py, PacketIn::of(py, &packet));
                let packet = packet.map(|packet| Some(packet.into_any()));
                self.call(py, (&object, switch), "packet_in", packet);
            }
        });
    }

    fn flow_removed(&mut self, switch: &mut controller::Switch, removed: &wire::FlowRemoved) {
        self.call_once(switch, "flow_removed", |py| {
            Py::new(py, FlowRemoved::of(removed)).map(Some)
        });
    }

    fn port_status(&mut self, switch: &mut controller::Switch, status: &wire::PortStatus) {
        self.call_once(switch, "port_status", |py| {
            Py::new(py, PortStatus::of(py, status)?).map(Some)
        });
    }

    fn error(&mut self, switch: &mut controller::Switch, xid: u32, error: &wire::ErrorMessage) {
        self.call_once(switch, "error", |py| {
            Py::new(py, ErrorMessage::of(Some(xid), error)).map(Some)
        });
    }

    fn refused(&mut self, switch: &mut controller::Switch, error: &wire::ErrorMessage) {
        self.call_once(switch, "error", |py| {
            Py::new(py, ErrorMessage::of(None, error)).map(Some)
        });
    }

    fn switch_down(&mut self, info: &controller::SwitchInfo) {
        Python::attach(|py| {
            let called = (|| {
                let Some(method) = self.object.bind(py).getattr_opt("switch_down")? else {
                    return Ok(());
                };
                method.call1((SwitchInfo::of(info),)).map(drop)
            })();
            if let Err(error) = called {
                self.raised.fail(py, info.datapath_id, "switch_down", error);
            }
        });
    }
}
