//! The status of a running switch.

use super::Runner;
use crate::PortQueues;
use std::time::Duration;
use urtica_pipeline::Pipeline;
use urtica_socket::Address;
use urtica_wire::{ControllerRole, DatapathId, MeterBand, Port, PortStats, QueueStats, Version};

/// A switch's status at one moment.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SwitchStatus {
    /// The switch's identity.
    pub datapath_id: DatapathId,
    /// The switch's name for users.
    pub name: String,
    /// The time since it started.
    pub uptime: Duration,
    /// Its ports, sorted by number.
    pub ports: Vec<PortStatus>,
    /// The configured controllers, in order.
    pub controllers: Vec<ControllerStatus>,
    /// The connections to controllers.
    pub connections: Vec<ConnectionStatus>,
    /// Counts of dropped packets.
    pub drops: DropCounts,
}

/// A port's status at one moment.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PortStatus {
    /// Its description, as sent to controllers.
    pub description: Port,
    /// Its counters.
    pub stats: PortStats,
    /// Its queues; `None` if it has none.
    pub queues: Option<PortQueues>,
    /// The counters of its queues.
    pub queue_stats: Vec<QueueStats>,
}

/// A configured controller, and its state.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ControllerStatus {
    /// The address as configured, with the port that the system chose.
    pub address: Address,
    /// The state of its connection.
    pub state: ControllerState,
}

/// The state of the connection to a controller's address.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ControllerState {
    /// Controllers may connect.
    Listening,
    /// The host has not answered yet.
    Connecting,
    /// The connection is established.
    Connected,
    /// The switch waits before the next attempt.
    Waiting {
        /// Time until the next attempt.
        retry_in: Duration,
        /// Why the last attempt failed.
        last_failure: Option<String>,
    },
}

/// A connection to a controller.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ConnectionStatus {
    /// The controller's name.
    pub peer: String,
    /// The negotiated version, and the controller's role; `None` before its hello.
    pub agreed: Option<(Version, ControllerRole)>,
    /// The time since it was established.
    pub age: Duration,
}

/// Numbers of packets that a switch has dropped, by cause. Entries without actions also drop packets, and count them
/// themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DropCounts {
    /// Packets that arrived faster than they were received.
    pub receive_overruns: u64,
    /// Packets that arrived at a port that is configured not to receive (OFPPC_PORT_DOWN, OFPPC_NO_RECV).
    pub port_blocked: u64,
    /// Packets that were too short to have an Ethernet header, or could not be read.
    pub receive_errors: u64,
    /// Packets that matched no entry of a table. 1.0's controllers receive them.
    pub table_misses: u64,
    /// Packets that exceeded the rate of a meter's drop band.
    pub meters: u64,
    /// Packets that did not fit into the buffer of the output port.
    pub send_overruns: u64,
    /// Packet-ins beyond the limit per second, or for controllers that do not read their output.
    pub packet_ins_limited: u64,
    /// Packet-ins that did not fit into the queue between the forwarding thread and the controllers' thread.
    pub packet_ins_overruns: u64,
}

impl DropCounts {
    /// Returns each cause, its meaning, and the number of packets.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
        [
            (
                "receive_overruns",
                "arrived faster than they were read",
                self.receive_overruns,
            ),
            (
                "port_blocked",
                "received by a port that is configured not to receive",
                self.port_blocked,
            ),
            (
                "receive_errors",
                "too short for an Ethernet header, or not readable",
                self.receive_errors,
            ),
            (
                "table_misses",
                "matched no entry of a table; OpenFlow 1.0's controllers receive them",
                self.table_misses,
            ),
            ("meters", "dropped by a band of a meter", self.meters),
            (
                "send_overruns",
                "exceeded the space of the output port, or of its queue",
                self.send_overruns,
            ),
            (
                "packet_ins_limited",
                "packet-ins beyond the rate limit, or beyond what controllers have read",
                self.packet_ins_limited,
            ),
            (
                "packet_ins_overruns",
                "packet-ins that exceeded the space between threads",
                self.packet_ins_overruns,
            ),
        ]
        .into_iter()
    }
}

impl Runner {
    /// Returns the switch's current status. [`count_in_pipeline`] adds the counts for which tables and meters must be visited.
    pub(super) fn status(&self) -> SwitchStatus {
        let now = self.now();
        SwitchStatus {
            datapath_id: self.switch.config.datapath_id,
            name: self.switch.config.description.datapath.clone(),
            uptime: now.saturating_sub(self.run_started),
            ports: self.port_statuses(now),
            controllers: self.controller_statuses(now),
            connections: self.connection_statuses(now),
            drops: self.count_drops(now),
        }
    }

    fn port_statuses(&self, now: Duration) -> Vec<PortStatus> {
        let pipeline = self.switch.shared.pipeline();
        let ports = self.switch.forwarder.ports.iter();
        let statuses = ports.filter_map(|port| {
            Some(PortStatus {
                description: *pipeline.port(port.port_no)?,
                stats: port.stats(now),
                queues: self.switch.queues(port.port_no),
                queue_stats: self.switch.queue_stats(port.port_no, now),
            })
        });
        statuses.collect()
    }

    fn controller_statuses(&self, now: Duration) -> Vec<ControllerStatus> {
        let listeners = self
            .controllers
            .acceptor
            .listeners()
            .filter_map(|(id, listener)| {
                let index = self
                    .controllers
                    .listeners
                    .iter()
                    .find(|(_, other)| **other == id)?
                    .0;
                let (address, state) = (listener.address().clone(), ControllerState::Listening);
                Some((*index, ControllerStatus { address, state }))
            });
        let targets = self.controllers.targets.iter().map(|(&index, target)| {
            let (address, state) = (target.address.clone(), target.status(now));
            (index, ControllerStatus { address, state })
        });
        let mut all: Vec<_> = listeners.chain(targets).collect();
        all.sort_unstable_by_key(|&(index, _)| index);
        all.into_iter().map(|(_, status)| status).collect()
    }

    fn connection_statuses(&self, now: Duration) -> Vec<ConnectionStatus> {
        let connections = self.controllers.connections.iter();
        let statuses = connections.map(|(_, connection)| ConnectionStatus {
            peer: connection.peer.clone(),
            agreed: self.switch.agent.describe(connection.id),
            age: now.saturating_sub(connection.since),
        });
        statuses.collect()
    }

    fn count_drops(&self, now: Duration) -> DropCounts {
        let mut drops = DropCounts {
            packet_ins_limited: self.switch.agent.packet_ins_dropped(),
            packet_ins_overruns: self.switch.shared.packet_ins_dropped(),
            ..DropCounts::default()
        };
        for port in self.switch.forwarder.ports.iter() {
            let (stats, blocked) = (port.stats(now), port.blocked());
            drops.port_blocked += blocked;
            drops.receive_overruns += stats.rx_dropped - blocked;
            drops.receive_errors += stats.rx_errors;
            drops.send_overruns += stats.tx_dropped;
        }
        drops
    }
}

/// Adds the counts of tables and meters.
pub(super) fn count_in_pipeline(drops: &mut DropCounts, pipeline: &Pipeline) {
    let tables = pipeline.table_stats();
    // Threads count concurrently, and the two numbers are not read at the same time.
    let misses = tables.map(|table| table.lookup_count.saturating_sub(table.matched_count));
    drops.table_misses = misses.sum();
    let bands = pipeline.meters().iter();
    let bands = bands.flat_map(|(_, meter)| &meter.bands);
    let dropping = bands.filter(|band| matches!(band.band, MeterBand::Drop { .. }));
    drops.meters = dropping
        .map(|band| band.packets.load(std::sync::atomic::Ordering::Relaxed))
        .sum();
}
