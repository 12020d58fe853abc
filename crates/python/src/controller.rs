//! A listening controller, and its switches for code outside of handlers.

use crate::program::{PyProgram, Raised, keep_exception};
use crate::text::{ActionsOf, Id, match_of, options};
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyTimeoutError, PyValueError};
use pyo3::prelude::*;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use urtica::Controller;
use urtica::controller::{self, Address, Reply, RequestError};
use urtica::wire::{
    DatapathId, FlowStatsRequest, Message, MultipartFlags, MultipartReplyBody, MultipartRequest,
    MultipartRequestBody,
};

/// The connected switches, from any thread. Handlers may send by it to other switches, but must not wait for replies.
#[pyclass(frozen, module = "urtica")]
pub struct Network(pub(crate) controller::Network);

fn request_error(error: RequestError) -> PyErr {
    let text = error.to_string();
    match error {
        RequestError::Encode(_) => PyValueError::new_err(text),
        RequestError::Timeout(_) => PyTimeoutError::new_err(text),
        _ => PyRuntimeError::new_err(text),
    }
}

/// Returns the request for the flow entries that a match includes.
pub(crate) fn flow_request(match_: Option<&str>) -> PyResult<Message<'static>> {
    let body = MultipartRequestBody::Flow(FlowStatsRequest {
        match_: match_of(match_)?,
        ..FlowStatsRequest::default()
    });
    let flags = MultipartFlags::empty();
    Ok(Message::MultipartRequest(MultipartRequest { flags, body }))
}

/// Returns the flow entries of a reply, in the form of `ovs-ofctl dump-flows`.
pub(crate) fn flows_of(reply: Result<Reply, RequestError>) -> PyResult<Vec<String>> {
    let reply = reply.map_err(request_error)?;
    let mut flows = Vec::new();
    for message in reply.messages() {
        if let Message::MultipartReply(part) = message {
            if let MultipartReplyBody::Flow(entries) = part.body {
                flows.extend(
                    entries
                        .iter()
                        .map(|entry| entry.to_string().trim().to_owned()),
                );
            }
        }
    }
    Ok(flows)
}

impl Network {
    pub(crate) fn request(
        &self,
        dpid: DatapathId,
        message: &Message,
    ) -> PyResult<controller::PendingReply> {
        self.0.request(dpid, message).map_err(request_error)
    }
}

#[pymethods]
impl Network {
    /// The datapath ids of the connected switches, in order.
    #[getter]
    fn switches(&self) -> Vec<u64> {
        self.0.switches().into_iter().map(|id| id.0).collect()
    }

    /// Adds an entry; without actions it drops.
    #[pyo3(signature = (dpid, r#match, actions=None, *, priority=None, idle_timeout=0, hard_timeout=0, cookie=0))]
    #[expect(clippy::too_many_arguments, reason = "keywords in Python")]
    fn install(
        &self,
        dpid: Id,
        r#match: &str,
        actions: Option<&Bound<'_, PyAny>>,
        priority: Option<u16>,
        idle_timeout: u16,
        hard_timeout: u16,
        cookie: u64,
    ) -> PyResult<()> {
        let (id, match_) = (dpid.value()?, match_of(Some(r#match))?);
        let options = options(priority, (idle_timeout, hard_timeout), cookie, false);
        let actions = ActionsOf::optional(actions)?;
        actions
            .with(|actions| self.0.install(id, match_, actions, options))
            .map_err(request_error)
    }

    /// Deletes the entries of code outside of handlers that the match includes.
    #[pyo3(signature = (dpid, r#match=None))]
    fn delete(&self, dpid: Id, r#match: Option<&str>) -> PyResult<()> {
        let (id, match_) = (dpid.value()?, match_of(r#match)?);
        self.0.delete(id, match_).map_err(request_error)
    }

    /// Sends a packet out of a switch's port, or through a list of actions.
    fn send_packet(&self, dpid: Id, data: &[u8], actions: &Bound<'_, PyAny>) -> PyResult<()> {
        let (id, actions) = (dpid.value()?, ActionsOf::read(actions)?);
        actions
            .with(|actions| self.0.send_packet(id, data, actions))
            .map_err(request_error)
    }

    /// Asks a switch for its flow entries, and waits for them.
    #[pyo3(signature = (dpid, r#match=None, *, timeout=10.0))]
    fn dump_flows(
        &self,
        py: Python<'_>,
        dpid: Id,
        r#match: Option<&str>,
        timeout: f64,
    ) -> PyResult<Vec<String>> {
        let timeout = seconds(timeout)?;
        let reply = self.request(dpid.value()?, &flow_request(r#match)?)?;
        flows_of(py.detach(|| reply.wait(timeout)))
    }
}

/// Returns a time in seconds.
pub(crate) fn seconds(value: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(value).map_err(|_| {
        PyValueError::new_err(format!("{value} is not a time: expected seconds, 0 or more"))
    })
}

/// Returns a controller with this program, for these versions of OpenFlow.
pub(crate) fn controller(
    app: Py<PyAny>,
    raised: &Arc<Raised>,
    openflow: Option<&str>,
) -> PyResult<Controller> {
    let controller = Controller::new().program(PyProgram::new(app, raised));
    let Some(version) = openflow else {
        return Ok(controller);
    };
    let version = version.parse().map_err(|_| {
        PyValueError::new_err(format!(
            "'{version}' is not a version: expected '1.0' or '1.3'"
        ))
    })?;
    let mut session = controller::SessionConfig::default();
    session.versions = vec![version];
    Ok(controller.session(session))
}

/// A controller that runs, until it is stopped.
#[pyclass(frozen, module = "urtica")]
pub struct Running {
    running: Mutex<Option<controller::Running>>,
    network: controller::Network,
    addresses: Vec<String>,
    raised: Arc<Raised>,
}

impl Running {
    fn lock(&self) -> MutexGuard<'_, Option<controller::Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self, py: Python<'_>) -> PyResult<()> {
        let Some(running) = self.lock().take() else {
            return Ok(());
        };
        // Release the interpreter: handlers need it while they end, and other threads may need the lock.
        py.detach(|| running.stop())
            .map_err(|error| PyRuntimeError::new_err(error.to_string()))
    }
}

#[pymethods]
impl Running {
    #[new]
    #[pyo3(signature = (app, listen, shards=None, openflow=None))]
    fn start(
        py: Python<'_>,
        app: Py<PyAny>,
        listen: Vec<String>,
        shards: Option<usize>,
        openflow: Option<&str>,
    ) -> PyResult<Self> {
        let raised = Arc::new(Raised::default());
        let mut controller = controller(app, &raised, openflow)?;
        for address in listen {
            let parsed = address.parse::<Address>();
            let parsed = parsed.map_err(|error| PyValueError::new_err(error.to_string()))?;
            controller = controller.listen(parsed);
        }
        if let Some(shards) = shards {
            controller = controller.shards(shards);
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

    /// The connected switches.
    #[getter]
    fn network(&self) -> Network {
        Network(self.network.clone())
    }

    /// Returns the exceptions that handlers have raised since the last call.
    fn take_exceptions(&self) -> Vec<Py<PyAny>> {
        self.raised.take()
    }

    /// Raises what ends the program: an error of the controller, or `KeyboardInterrupt` in a handler.
    fn check(&self) -> PyResult<()> {
        self.raised.check()?;
        match self.lock().as_ref().and_then(controller::Running::failure) {
            Some(error) => Err(PyRuntimeError::new_err(error.to_string())),
            None => Ok(()),
        }
    }

    /// Stops it, in order: switches are disconnected, and handlers' `switch_down` is called.
    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        self.end(py)
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(
        &self,
        py: Python<'_>,
        _exception: &Bound<'_, pyo3::types::PyTuple>,
    ) -> PyResult<()> {
        self.end(py)
    }
}

/// If `stop` was not called, stops the controller without the interpreter, which the ending threads need.
impl Drop for Running {
    fn drop(&mut self) {
        let running = self
            .running
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(running) = running.take() {
            keep_exception(|py| py.detach(|| drop(running)));
        }
    }
}
