//! Arguments of handlers, copied from the switch's messages.

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::OnceLock;
use urtica::controller;
use urtica::wire::packet::Headers;
use urtica::wire::{self, BufferId, Match, PacketInReason, PortConfig, PortNo, PortState};

/// The description of a switch, when it joined.
#[pyclass(frozen, get_all, module = "urtica")]
pub struct SwitchInfo {
    /// The datapath id.
    dpid: u64,
    /// The datapath id, in 16 hexadecimal digits.
    datapath_id: String,
    /// The version of OpenFlow: `1.0` or `1.3`.
    version: String,
    /// The address of the connection, for display.
    peer: String,
    n_tables: u8,
    n_buffers: u32,
}

impl SwitchInfo {
    pub(crate) fn of(info: &controller::SwitchInfo) -> Self {
        Self {
            dpid: info.datapath_id.0,
            datapath_id: info.datapath_id.to_string(),
            version: info.version.to_string(),
            peer: info.peer.clone(),
            n_tables: info.n_tables,
            n_buffers: info.n_buffers,
        }
    }
}

#[pymethods]
impl SwitchInfo {
    fn __repr__(&self) -> String {
        format!(
            "<SwitchInfo {} at {}, OpenFlow {}>",
            self.datapath_id, self.peer, self.version
        )
    }
}

/// A port of a switch.
#[pyclass(frozen, get_all, module = "urtica")]
pub struct Port {
    port_no: u32,
    name: String,
    hw_addr: String,
    /// Whether it is administratively up, and its link is.
    is_up: bool,
}

impl Port {
    pub(crate) fn of(port: &wire::Port) -> Self {
        let is_down = port.config.contains(PortConfig::PORT_DOWN)
            || port.state.contains(PortState::LINK_DOWN);
        Self {
            port_no: port.port_no.0,
            name: port.name.to_string(),
            hw_addr: port.hw_addr.to_string(),
            is_up: !is_down,
        }
    }
}

#[pymethods]
impl Port {
    fn __repr__(&self) -> String {
        let state = if self.is_up { "up" } else { "down" };
        format!("<Port {} {} {state}>", self.port_no, self.name)
    }
}

/// A new, removed or changed port.
#[pyclass(frozen, get_all, module = "urtica")]
pub struct PortStatus {
    /// `add`, `delete` or `modify`.
    reason: &'static str,
    port: Py<Port>,
}

impl PortStatus {
    pub(crate) fn of(py: Python<'_>, status: &wire::PortStatus) -> PyResult<Self> {
        use wire::PortReason::{Add, Delete, Modify, Other};
        Ok(Self {
            reason: match status.reason {
                Add => "add",
                Delete => "delete",
                Modify => "modify",
                Other(_) => "other",
            },
            port: Py::new(py, Port::of(&status.port))?,
        })
    }
}

/// A removed flow entry.
#[pyclass(frozen, get_all, module = "urtica")]
pub struct FlowRemoved {
    /// In the form of `ovs-ofctl`.
    #[pyo3(name = "match")]
    match_: String,
    /// `idle_timeout`, `hard_timeout`, `delete` or `group_delete`.
    reason: &'static str,
    table_id: u8,
    priority: u16,
    cookie: u64,
    packet_count: u64,
    byte_count: u64,
    /// Seconds.
    duration: f64,
}

impl FlowRemoved {
    pub(crate) fn of(removed: &wire::FlowRemoved<'_>) -> Self {
        use wire::FlowRemovedReason::{Delete, GroupDelete, HardTimeout, IdleTimeout, Other};
        Self {
            match_: removed.match_.to_string(),
            reason: match removed.reason {
                IdleTimeout => "idle_timeout",
                HardTimeout => "hard_timeout",
                Delete => "delete",
                GroupDelete => "group_delete",
                Other(_) => "other",
            },
            table_id: removed.table_id,
            priority: removed.priority,
            cookie: removed.cookie & controller::OWN_COOKIE_BITS,
            packet_count: removed.packet_count,
            byte_count: removed.byte_count,
            duration: f64::from(removed.duration_sec) + f64::from(removed.duration_nsec) * 1e-9,
        }
    }
}

/// A refusal of a message.
#[pyclass(frozen, get_all, module = "urtica")]
pub struct ErrorMessage {
    /// The xid of the refused message; `None` for one that was sent through a network.
    xid: Option<u32>,
    /// The specification's name, such as `OFPBAC_BAD_OUT_PORT`.
    code: String,
}

impl ErrorMessage {
    pub(crate) fn of(xid: Option<u32>, error: &wire::ErrorMessage<'_>) -> Self {
        Self {
            xid,
            code: error.code.to_string(),
        }
    }
}

#[pymethods]
impl ErrorMessage {
    fn __repr__(&self) -> String {
        format!("<ErrorMessage {}>", self.code)
    }
}

/// A packet that a switch sent to the controller.
#[pyclass(frozen, module = "urtica")]
pub struct PacketIn {
    #[pyo3(get)]
    in_port: u32,
    #[pyo3(get)]
    table_id: u8,
    /// The length of the whole packet; `data` may have less of it.
    #[pyo3(get)]
    total_len: u16,
    /// The packet, from its Ethernet header on.
    #[pyo3(get)]
    data: Py<PyBytes>,
    buffer_id: BufferId,
    reason: PacketInReason,
    cookie: u64,
    fields: OnceLock<Fields>,
}

/// Header fields, which are parsed only once.
struct Fields {
    eth_type: Option<u16>,
    vlan_vid: Option<u16>,
    ip_src: Option<String>,
    ip_dst: Option<String>,
    ip_proto: Option<u8>,
    src_port: Option<u16>,
    dst_port: Option<u16>,
}

impl Fields {
    fn of(data: &[u8]) -> Self {
        let headers = Headers::parse(data);
        let arp = headers.arp.as_ref();
        let address = |ip: Option<std::net::IpAddr>| ip.map(|ip| ip.to_string());
        Self {
            eth_type: headers.eth_type,
            vlan_vid: headers.vlan.map(|tag| tag.vid),
            ip_src: address(headers.ip_src).or(arp.map(|arp| arp.spa.to_string())),
            ip_dst: address(headers.ip_dst).or(arp.map(|arp| arp.tpa.to_string())),
            ip_proto: headers.ip_proto,
            src_port: headers.src_port,
            dst_port: headers.dst_port,
        }
    }
}

impl PacketIn {
    pub(crate) fn of(py: Python<'_>, packet: &wire::PacketIn<'_>) -> Self {
        Self {
            in_port: packet.in_port().0,
            table_id: packet.table_id,
            total_len: packet.total_len,
            data: PyBytes::new(py, packet.data).unbind(),
            buffer_id: packet.buffer_id,
            reason: packet.reason,
            cookie: packet.cookie,
            fields: OnceLock::new(),
        }
    }

    /// Calls `work` with the message.
    pub(crate) fn with<R>(&self, py: Python<'_>, work: impl FnOnce(&wire::PacketIn<'_>) -> R) -> R {
        let in_port = PortNo(self.in_port);
        work(&wire::PacketIn {
            buffer_id: self.buffer_id,
            total_len: self.total_len,
            reason: self.reason,
            table_id: self.table_id,
            cookie: self.cookie,
            in_port,
            match_: Match::any().in_port(in_port),
            data: self.data.as_bytes(py),
        })
    }

    fn fields(&self, py: Python<'_>) -> &Fields {
        self.fields
            .get_or_init(|| Fields::of(self.data.as_bytes(py)))
    }
}

#[pymethods]
impl PacketIn {
    #[getter]
    fn eth_src(&self, py: Python<'_>) -> String {
        self.with(py, |packet| packet.eth_src().to_string())
    }

    #[getter]
    fn eth_dst(&self, py: Python<'_>) -> String {
        self.with(py, |packet| packet.eth_dst().to_string())
    }

    #[getter]
    fn eth_type(&self, py: Python<'_>) -> Option<u16> {
        self.fields(py).eth_type
    }

    #[getter]
    fn vlan_vid(&self, py: Python<'_>) -> Option<u16> {
        self.fields(py).vlan_vid
    }

    /// The IP address of the sender, also of an ARP packet.
    #[getter]
    fn ip_src(&self, py: Python<'_>) -> Option<&str> {
        self.fields(py).ip_src.as_deref()
    }

    #[getter]
    fn ip_dst(&self, py: Python<'_>) -> Option<&str> {
        self.fields(py).ip_dst.as_deref()
    }

    #[getter]
    fn ip_proto(&self, py: Python<'_>) -> Option<u8> {
        self.fields(py).ip_proto
    }

    /// The port of TCP, UDP or SCTP.
    #[getter]
    fn src_port(&self, py: Python<'_>) -> Option<u16> {
        self.fields(py).src_port
    }

    #[getter]
    fn dst_port(&self, py: Python<'_>) -> Option<u16> {
        self.fields(py).dst_port
    }

    /// Why the switch sent it: `no_match`, `action` or `invalid_ttl`.
    #[getter]
    fn reason(&self) -> &'static str {
        match self.reason {
            PacketInReason::NoMatch => "no_match",
            PacketInReason::Action => "action",
            PacketInReason::InvalidTtl => "invalid_ttl",
            PacketInReason::Other(_) => "other",
        }
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        format!(
            "<PacketIn port {}: {} to {}, {} bytes>",
            self.in_port,
            self.eth_src(py),
            self.eth_dst(py),
            self.total_len
        )
    }
}
