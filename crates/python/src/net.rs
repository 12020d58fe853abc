//! A network in the process: switches, hosts, links and the controller, in simulated time.

use crate::controller::{Network, controller, flow_request, flows_of, seconds};
use crate::program::{Raised, keep_exception};
use crate::raw::{RawLink, simulated};
use crate::report::{FlowReport, PingAllReport, PingReport};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use std::sync::Arc;
use std::time::Duration;
use urtica::net::{Datagrams, End, HostId, LinkId, NetConfig, NetError, SwitchId};
use urtica::topology::spec::TopologySpec;

/// The time limit for all switches to connect.
const CONNECT_WITHIN: Duration = Duration::from_secs(30);

/// The duration of the first messages to new switches.
const SETTLE: Duration = Duration::from_millis(100);

/// The time limit for the reply to a ping.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// A network in the process. Its time advances only in calls that say so.
#[pyclass(unsendable, subclass, module = "urtica")]
pub struct Net {
    net: urtica::net::Net,
    raised: Arc<Raised>,
    topology: String,
    #[pyo3(get)]
    seed: u64,
}

/// A stream or datagrams between two hosts.
#[pyclass(frozen, module = "urtica")]
pub struct Flow(urtica::net::FlowId);

fn value_error(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

impl Net {
    /// Raises the exception of a handler that ends the program, or otherwise the call's own error.
    fn finish<T>(&self, result: Result<T, NetError>) -> PyResult<T> {
        self.raised.check()?;
        result.map_err(value_error)
    }

    fn host(&self, name: &str) -> PyResult<HostId> {
        self.net.host(name).map_err(value_error)
    }

    fn switch(&self, name: &str) -> PyResult<SwitchId> {
        self.net.switch(name).map_err(value_error)
    }

    fn link(&self, a: &str, b: &str) -> PyResult<LinkId> {
        self.net.link(a, b).map_err(value_error)
    }

    fn host_name(&self, host: HostId) -> PyResult<String> {
        let name = self.net.host_name(host).map_err(value_error)?;
        Ok(name.to_owned())
    }

    fn end_name(&self, end: End) -> PyResult<String> {
        match end {
            End::Host(host) => self.host_name(host),
            End::Switch(switch, _) => {
                let name = self.net.switch_name(switch).map_err(value_error)?;
                Ok(name.to_owned())
            }
        }
    }

    /// Runs until all switches have connected.
    fn connect(&mut self) -> PyResult<()> {
        let count = self.net.switches().len();
        let is_connected = |net: &mut urtica::net::Net| {
            let network = net.controller();
            network.is_some_and(|network| network.switches().len() == count)
        };
        self.net.run_until(is_connected, CONNECT_WITHIN);
        self.net.run_for(SETTLE);
        self.raised.check()
    }
}

/// Handlers are called when the controller stops.
impl Drop for Net {
    fn drop(&mut self) {
        keep_exception(|_| self.net.stop_controller());
    }
}

#[pymethods]
impl Net {
    #[new]
    #[pyo3(signature = (topology, app, *, seed=0, openflow=None, is_raw=false))]
    fn new(
        topology: &str,
        app: Bound<'_, PyAny>,
        seed: u64,
        openflow: Option<&str>,
        is_raw: bool,
    ) -> PyResult<Self> {
        let spec: TopologySpec = topology.parse().map_err(value_error)?;
        let plan = spec.plan().map_err(value_error)?;
        let config = NetConfig {
            seed,
            ..NetConfig::default()
        };
        let raised = Arc::new(Raised::default());
        let mut net = urtica::net::Net::new(&plan, config).map_err(value_error)?;
        let (controller, turns) = match is_raw {
            false => (controller(app.clone().unbind(), &raised, openflow)?, None),
            true => {
                let (controller, turns) = simulated(&app, &raised)?;
                (controller, Some(turns))
            }
        };
        net.start_controller(controller)
            .map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
        if let Some((turns, network)) = turns.zip(net.controller()) {
            app.call_method1("attach", (RawLink::new(network.clone(), turns),))?;
        }
        let mut net = Self {
            net,
            raised,
            topology: topology.to_owned(),
            seed,
        };
        net.connect()?;
        Ok(net)
    }

    /// Simulated seconds since the start.
    #[getter]
    fn now(&self) -> f64 {
        self.net.now().as_secs_f64()
    }

    /// The hosts' names.
    #[getter]
    fn hosts(&self) -> PyResult<Vec<String>> {
        self.net.hosts().map(|host| self.host_name(host)).collect()
    }

    /// The switches' names.
    #[getter]
    fn switches(&self) -> PyResult<Vec<String>> {
        let name = |switch| {
            Ok(self
                .net
                .switch_name(switch)
                .map_err(value_error)?
                .to_owned())
        };
        self.net.switches().map(name).collect()
    }

    /// The links, each by the names of its ends.
    #[getter]
    fn links(&self) -> PyResult<Vec<(String, String)>> {
        let links = self.net.links().map(|link| {
            let [a, b] = self.net.ends(link).map_err(value_error)?;
            Ok((self.end_name(a)?, self.end_name(b)?))
        });
        links.collect()
    }

    /// The connected switches, as the controller sees them.
    #[getter]
    fn network(&self) -> PyResult<Network> {
        let network = self.net.controller();
        let network =
            network.ok_or_else(|| PyRuntimeError::new_err("the controller has stopped"))?;
        Ok(Network(network.clone()))
    }

    /// A host's addresses: MAC and IPv4.
    fn addresses(&self, host: &str) -> PyResult<(String, String)> {
        let host = self.host(host)?;
        let (mac, ip) = self.net.host_addresses(host).map_err(value_error)?;
        Ok((mac.to_string(), ip.to_string()))
    }

    /// The datapath id of a switch.
    fn dpid(&self, switch: &str) -> PyResult<u64> {
        let switch = self.switch(switch)?;
        Ok(self.net.datapath_id(switch).map_err(value_error)?.0)
    }

    /// Lets this many simulated seconds pass.
    fn run_for(&mut self, duration: f64) -> PyResult<()> {
        self.net.run_for(seconds(duration)?);
        self.raised.check()
    }

    /// One host pings another, `count` times.
    #[pyo3(signature = (source, destination, count=1))]
    fn ping(&mut self, source: &str, destination: &str, count: u32) -> PyResult<PingReport> {
        let pair = (self.host(source)?, self.host(destination)?);
        let started = self.net.start_ping(pair.0, pair.1, count);
        let ping = self.finish(started)?;
        let is_done = |net: &mut urtica::net::Net| {
            let report = net.ping_report(ping);
            report.is_ok_and(|report| report.received >= count)
        };
        let bound = ANSWER_WITHIN + Duration::from_secs(count.into());
        self.net.run_until(is_done, bound);
        let report = self.net.ping_report(ping);
        Ok(PingReport::of(&self.finish(report)?))
    }

    /// Each host pings each other once.
    fn ping_all(&mut self) -> PyResult<PingAllReport> {
        let report = self.net.ping_all();
        let report = self.finish(report)?;
        let names =
            |&(from, to): &(HostId, HostId)| Ok((self.host_name(from)?, self.host_name(to)?));
        let failed = report.failed.iter().map(names).collect::<PyResult<_>>()?;
        Ok(PingAllReport::of(&report, failed))
    }

    /// Cuts the link between two nodes.
    fn cut(&mut self, a: &str, b: &str) -> PyResult<()> {
        let link = self.link(a, b)?;
        let result = self.net.cut(link);
        self.finish(result)
    }

    /// Repairs a link that was cut.
    fn repair(&mut self, a: &str, b: &str) -> PyResult<()> {
        let link = self.link(a, b)?;
        let result = self.net.repair(link);
        self.finish(result)
    }

    /// Makes a link lose this share of its packets, from 0 to 1.
    fn set_loss(&mut self, a: &str, b: &str, share: f64) -> PyResult<()> {
        let link = self.link(a, b)?;
        let result = self.net.set_loss(link, share);
        self.finish(result)
    }

    /// Moves a host to another switch, where it is silent at first. Returns its port there.
    fn move_host(&mut self, host: &str, switch: &str) -> PyResult<u32> {
        let (host, switch) = (self.host(host)?, self.switch(switch)?);
        let result = self.net.move_host(host, switch);
        Ok(self.finish(result)?.0)
    }

    /// Makes a host announce its addresses, as when it starts.
    fn announce_host(&mut self, host: &str) -> PyResult<()> {
        let host = self.host(host)?;
        let result = self.net.announce_host(host);
        self.finish(result)
    }

    /// Stops a switch.
    fn stop_switch(&mut self, switch: &str) -> PyResult<()> {
        let switch = self.switch(switch)?;
        let result = self.net.stop_switch(switch);
        self.finish(result)
    }

    /// Starts a switch that was stopped.
    fn start_switch(&mut self, switch: &str) -> PyResult<()> {
        let switch = self.switch(switch)?;
        let result = self.net.start_switch(switch);
        self.finish(result)
    }

    /// Starts a TCP stream of this many bytes.
    fn start_stream(&mut self, source: &str, destination: &str, size: u64) -> PyResult<Flow> {
        let pair = (self.host(source)?, self.host(destination)?);
        let result = self.net.start_stream(pair.0, pair.1, size);
        Ok(Flow(self.finish(result)?))
    }

    /// Starts datagrams: `count` of `size` bytes, one each `interval` seconds.
    #[pyo3(signature = (source, destination, count, *, size=100, interval=0.01))]
    fn start_datagrams(
        &mut self,
        source: &str,
        destination: &str,
        count: u64,
        size: usize,
        interval: f64,
    ) -> PyResult<Flow> {
        let pair = (self.host(source)?, self.host(destination)?);
        let datagrams = Datagrams {
            count,
            interval: seconds(interval)?,
            payload_bytes: size,
        };
        let result = self.net.start_datagrams(pair.0, pair.1, datagrams);
        Ok(Flow(self.finish(result)?))
    }

    /// The result of a stream or of datagrams so far.
    fn report(&self, flow: &Flow) -> PyResult<FlowReport> {
        let report = self.net.flow_report(flow.0).map_err(value_error)?;
        Ok(FlowReport::of(&report))
    }

    /// The flow entries of a switch, in the form of `ovs-ofctl dump-flows`. Takes a moment of simulated time.
    #[pyo3(signature = (switch, r#match=None))]
    fn dump_flows(&mut self, switch: &str, r#match: Option<&str>) -> PyResult<Vec<String>> {
        let switch = self.switch(switch)?;
        let id = self.net.datapath_id(switch).map_err(value_error)?;
        let reply = self.network()?.request(id, &flow_request(r#match)?)?;
        self.net.run_for(Duration::from_secs(1));
        self.raised.check()?;
        flows_of(reply.wait(Duration::ZERO))
    }

    /// Stops the controller: handlers' `switch_down` is called.
    fn stop(&mut self) -> PyResult<()> {
        self.net.stop_controller();
        self.raised.check()
    }

    /// Returns the exceptions that handlers have raised since the last call.
    fn take_exceptions(&self) -> Vec<Py<PyAny>> {
        self.raised.take()
    }

    fn __repr__(&self) -> String {
        format!(
            "<Net {}, seed {}, after {} s>",
            self.topology,
            self.seed,
            self.now()
        )
    }
}
