//! A controller that passes switches' frames to Python unchanged: the base of `urtica-ryu`.

use crate::program::{Raised, keep_exception};
use crate::turns::Turns;
use pyo3::exceptions::{PyBlockingIOError, PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use urtica::Controller;
use urtica::controller::{
    self, Address, Background, Frames, RawHandler, RawProgram, RawSwitch, RequestError, SwitchInfo,
};
use urtica::wire::DatapathId;

/// A raw program in Python: a callable of the datapath id, the version and the peer's address, which makes a handler.
struct PyRawProgram {
    app: Py<PyAny>,
    raised: Arc<Raised>,
    /// The turns, in a simulated network.
    turns: Option<Arc<Turns>>,
}

impl RawProgram for PyRawProgram {
    fn handler(&self, info: &SwitchInfo) -> Box<dyn RawHandler> {
        Python::attach(|py| {
            let arguments = (
                info.datapath_id.0,
                info.version.to_wire(),
                info.peer.as_str(),
            );
            match self.app.call1(py, arguments) {
                Ok(object) => Box::new(PyRawHandler {
                    object,
                    raised: Arc::clone(&self.raised),
                }) as Box<dyn RawHandler>,
                Err(error) => self.raised.fail(py, info.datapath_id, "the program", error),
            }
        })
    }

    fn start(&self, background: &Background) {
        if let Some(turns) = &self.turns {
            Arc::clone(turns).start(background, Arc::clone(&self.raised));
        }
    }
}

/// A handler in Python: `frames(list of bytes)`, which returns False to close the connection, and `switch_down()`.
struct PyRawHandler {
    object: Py<PyAny>,
    raised: Arc<Raised>,
}

impl PyRawHandler {
    fn call_frames(&self, py: Python<'_>, frames: Vec<Bound<'_, PyBytes>>) -> PyResult<bool> {
        let frames = PyList::new(py, frames)?;
        self.object
            .call_method1(py, "frames", (frames,))?
            .extract(py)
    }
}

impl RawHandler for PyRawHandler {
    fn frames(&mut self, switch: &mut RawSwitch, frames: &mut Frames) {
        Python::attach(|py| {
            let mut received = Vec::new();
            while let Some(frame) = frames.next(switch) {
                received.push(PyBytes::new(py, frame));
            }
            match self.call_frames(py, received) {
                Ok(true) => {}
                // Skip the panic hook: the program has closed the connection on purpose.
                Ok(false) => resume_unwind(Box::new("the program closed the connection")),
                Err(error) => self.raised.fail(py, switch.datapath_id(), "frames", error),
            }
        });
    }

    fn switch_down(&mut self, info: &SwitchInfo) {
        Python::attach(|py| {
            if let Err(error) = self.object.call_method0(py, "switch_down") {
                self.raised.fail(py, info.datapath_id, "switch_down", error);
            }
        });
    }
}

/// A controller with a raw program, until it is stopped.
#[pyclass(frozen, module = "urtica._native")]
pub struct RawRunning {
    running: Mutex<Option<controller::Running>>,
    network: controller::Network,
    addresses: Vec<String>,
    raised: Arc<Raised>,
}

impl RawRunning {
    fn lock(&self) -> MutexGuard<'_, Option<controller::Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the session's configuration for these versions.
fn session(versions: &[String]) -> PyResult<controller::SessionConfig> {
    let parsed = versions.iter().map(|version| {
        version.parse().map_err(|_| {
            PyValueError::new_err(format!(
                "'{version}' is not a version: expected '1.0' or '1.3'"
            ))
        })
    });
    let mut session = controller::SessionConfig::default();
    session.versions = parsed.collect::<PyResult<_>>()?;
    if session.versions.is_empty() {
        return Err(PyValueError::new_err(
            "no versions: expected '1.0' or '1.3'",
        ));
    }
    Ok(session)
}

/// Sends frames; returns `false` if the switch has disconnected.
fn send(network: &controller::Network, dpid: u64, frames: &[u8]) -> PyResult<bool> {
    match network.send_frames(DatapathId(dpid), frames) {
        Ok(()) => Ok(true),
        Err(RequestError::UnknownSwitch(_)) => Ok(false),
        Err(error @ RequestError::Busy(_)) => Err(PyBlockingIOError::new_err(error.to_string())),
        Err(error) => Err(PyValueError::new_err(error.to_string())),
    }
}

/// Returns a controller for a simulated network, and the turns of its program. The program has the methods
/// `connected(dpid, version, peer)`, which makes a handler, and `advance(now)`, and the attribute `versions`.
pub(crate) fn simulated(
    program: &Bound<'_, PyAny>,
    raised: &Arc<Raised>,
) -> PyResult<(Controller, Arc<Turns>)> {
    let versions: Vec<String> = program.getattr("versions")?.extract()?;
    let turns = Arc::new(Turns::new(program.clone().unbind()));
    let raw = PyRawProgram {
        app: program.getattr("connected")?.unbind(),
        raised: Arc::clone(raised),
        turns: Some(Arc::clone(&turns)),
    };
    let controller = Controller::new()
        .raw_program(raw)
        .session(session(&versions)?);
    Ok((controller, turns))
}

/// The way from a program to the switches of its simulated network.
#[pyclass(frozen, module = "urtica._native")]
pub struct RawLink {
    network: controller::Network,
    turns: Arc<Turns>,
}

impl RawLink {
    pub(crate) fn new(network: controller::Network, turns: Arc<Turns>) -> Self {
        Self { network, turns }
    }
}

#[pymethods]
impl RawLink {
    /// Sends whole messages, unchanged: see `RawRunning.send`.
    fn send(&self, dpid: u64, frames: &[u8]) -> PyResult<bool> {
        send(&self.network, dpid, frames)
    }

    /// Has the program's `advance` called when the network runs next.
    fn wake(&self) {
        self.turns.wake();
    }
}

#[pymethods]
impl RawRunning {
    #[new]
    fn start(
        py: Python<'_>,
        app: Py<PyAny>,
        listen: Vec<String>,
        versions: Vec<String>,
    ) -> PyResult<Self> {
        let raised = Arc::new(Raised::default());
        let program = PyRawProgram {
            app,
            raised: Arc::clone(&raised),
            turns: None,
        };
        let mut controller = Controller::new()
            .raw_program(program)
            .session(session(&versions)?)
            // One thread runs the program; more threads would only wait for the interpreter.
            .shards(1);
        for address in listen {
            let parsed = address.parse::<Address>();
            let parsed = parsed.map_err(|error| PyValueError::new_err(error.to_string()))?;
            controller = controller.listen(parsed);
        }
        let running = py
            .detach(|| controller.start())
            .map_err(|error| PyOSError::new_err(error.to_string()))?;
        Ok(Self {
            network: running.network().clone(),
            addresses: running
                .addresses()
                .iter()
                .map(ToString::to_string)
                .collect(),
            running: Mutex::new(Some(running)),
            raised,
        })
    }

    /// The addresses that it listens at, with the ports that the system chose.
    #[getter]
    fn addresses(&self) -> Vec<String> {
        self.addresses.clone()
    }

    /// Sends whole messages, unchanged. Returns False if the switch has left; raises BlockingIOError while too much waits.
    fn send(&self, dpid: u64, frames: &[u8]) -> PyResult<bool> {
        send(&self.network, dpid, frames)
    }

    /// Raises the error that has ended the controller.
    fn check(&self) -> PyResult<()> {
        self.raised.check()?;
        match self.lock().as_ref().and_then(controller::Running::failure) {
            Some(error) => Err(PyRuntimeError::new_err(error.to_string())),
            None => Ok(()),
        }
    }

    /// Stops it: switches are disconnected, and handlers' `switch_down` is called.
    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        let Some(running) = self.lock().take() else {
            return Ok(());
        };
        py.detach(|| running.stop())
            .map_err(|error| PyRuntimeError::new_err(error.to_string()))
    }
}

/// If `stop` was not called, stops the controller without the interpreter, which the ending threads need.
impl Drop for RawRunning {
    fn drop(&mut self) {
        let running = self.running.get_mut();
        let running = running.unwrap_or_else(PoisonError::into_inner).take();
        if let Some(running) = running {
            keep_exception(|py| py.detach(|| drop(running)));
        }
    }
}
