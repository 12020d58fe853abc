//! The queues of a switch's ports, which can change together with ports, and while packets pass.

use crate::port_table::SwitchPort;
use crate::queues::{NamedQueues, QueueCounters, SharedQueues};
use crate::{PortQueues, QueueError, Switch};
use std::sync::Arc;
use std::time::Duration;
use urtica_wire::{
    ErrorCode, List, PacketQueue, Port, PortNo, QUEUE_ALL, QueueConfig, QueueProperty, QueueStats,
    Version,
};

/// The value of a rate that is not configured, or cannot be expressed (OFPQ_MIN_RATE_UNCFG, OFPQ_MAX_RATE_UNCFG).
const NOT_CONFIGURED: u16 = 0xffff;

/// Maximum number of queues in a reply, since it cannot be split into parts.
const MAX_REPORTED: usize = 1300;

/// A change that the threads of a switch must apply.
pub(crate) struct QueueChange {
    pub port_no: PortNo,
    pub queues: Option<Arc<SharedQueues>>,
}

impl Switch {
    /// Changes the queues of the port with this number or name, while packets pass. Queues that stay keep their frames and
    /// counters. A port without rate and queues has no scheduler. The queues belong to the port's name: a port that is added
    /// again under its name gets them again. They are saved in the state file, if there is one.
    ///
    /// # Errors
    /// [`QueueError`] if the port does not exist, or cannot have such queues; then nothing has changed.
    pub fn change_queues(
        &mut self,
        port: &str,
        change: impl FnOnce(PortNo, &mut PortQueues) -> Result<(), QueueError>,
        now: Duration,
    ) -> Result<PortNo, QueueError> {
        let (port_no, change) = self.change_own_queues(port, change, now)?;
        self.set_own_queues(change);
        Ok(port_no)
    }

    /// Sets the initial queues of the port with this number or name, for example from a configuration file. Must be called before
    /// [`Switch::restore`], which restores later changes.
    ///
    /// # Errors
    /// [`QueueError`] if the port does not exist, or cannot have such queues; then nothing has changed.
    pub fn configure_queues(
        &mut self,
        port: &str,
        queues: PortQueues,
        now: Duration,
    ) -> Result<PortNo, QueueError> {
        let (port_no, name) = self.find_port(port)?;
        let change = self.replace_queues(port_no, queues.clone(), now)?;
        self.set_own_queues(change);
        let named = NamedQueues {
            current: queues.clone(),
            configured: queues,
        };
        self.shared.set_named_queues(name, named);
        Ok(port_no)
    }

    /// Restores queues that were changed at run time, unless the configured ones have changed since. Returns whether they were
    /// restored; if not, a warning explains why.
    pub(crate) fn restore_queues(&mut self, name: &str, saved: NamedQueues, now: Duration) -> bool {
        if self.shared.named_queues(name).configured != saved.configured {
            tracing::warn!(
                port = name,
                "the configured queues have changed; skipping the queues set at run time"
            );
            return false;
        }
        let restored = match self.port_named(name) {
            Some(port_no) => self.replace_queues(port_no, saved.current.clone(), now),
            // The port may be added later.
            None => saved.current.check().map(|()| None),
        };
        match restored {
            Ok(change) => {
                self.set_own_queues(change);
                self.shared.set_named_queues(name.to_owned(), saved);
                true
            }
            Err(error) => {
                tracing::warn!(port = name, %error, "cannot restore the queues set at run time; using the configured ones");
                false
            }
        }
    }

    fn set_own_queues(&mut self, change: Option<QueueChange>) {
        if let Some(QueueChange { port_no, queues }) = change {
            self.forwarder.ports.set_queues(port_no, queues);
        }
    }

    /// Changes the queues for this thread, and returns the change for other threads.
    pub(crate) fn change_own_queues(
        &mut self,
        port: &str,
        change: impl FnOnce(PortNo, &mut PortQueues) -> Result<(), QueueError>,
        now: Duration,
    ) -> Result<(PortNo, Option<QueueChange>), QueueError> {
        let (port_no, name) = self.find_port(port)?;
        let mut settings = self.queues(port_no).unwrap_or_default();
        change(port_no, &mut settings)?;
        let change = self.replace_queues(port_no, settings.clone(), now)?;
        let named = NamedQueues {
            current: settings,
            ..self.shared.named_queues(&name)
        };
        self.shared.set_named_queues(name, named);
        Ok((port_no, change))
    }

    /// Replaces the queues of a port for this thread, but not those of its name. Returns the change for this and other threads.
    fn replace_queues(
        &mut self,
        port_no: PortNo,
        settings: PortQueues,
        now: Duration,
    ) -> Result<Option<QueueChange>, QueueError> {
        settings.check()?;
        let rate_bps = self
            .forwarder
            .ports
            .get(port_no)
            .and_then(SwitchPort::rate_bps);
        settings.check_minima(settings.rate_bps.or(rate_bps))?;
        self.note_queues(port_no, &settings);
        let current = self
            .forwarder
            .ports
            .get(port_no)
            .and_then(SwitchPort::queues)
            .cloned();
        let has_some = settings != PortQueues::default();
        let queues = match (current, has_some) {
            (None, false) => return Ok(None),
            (Some(current), true) => {
                current.configure(settings, now);
                return Ok(None);
            }
            (None, true) => Some(Arc::new(SharedQueues::new(settings, rate_bps, now))),
            (Some(_), false) => None,
        };
        Ok(Some(QueueChange { port_no, queues }))
    }

    /// Returns the settings of a port's queues, if any.
    pub fn queues(&self, port_no: PortNo) -> Option<PortQueues> {
        let port = self.forwarder.ports.get(port_no)?;
        Some(port.queues()?.settings())
    }

    /// Returns the counters of each queue of a port.
    pub fn queue_stats(&self, port_no: PortNo, now: Duration) -> Vec<QueueStats> {
        let port = self.forwarder.ports.get(port_no);
        let queues = port.and_then(SwitchPort::queues);
        let counters = queues.map(|queues| queues.counters()).unwrap_or_default();
        let counters = counters.into_iter();
        counters
            .map(|(queue_id, counters)| stats(port_no, queue_id, counters, now))
            .collect()
    }

    /// Returns the port with the queues of its name, if any.
    pub(crate) fn with_its_queues(
        &mut self,
        port: SwitchPort,
        description: &Port,
        now: Duration,
    ) -> SwitchPort {
        let settings = self.shared.named_queues(&description.name.to_string());
        let settings = settings.current;
        if settings == PortQueues::default() {
            return port;
        }
        self.note_queues(description.port_no, &settings);
        let queues = SharedQueues::new(settings, port.rate_bps(), now);
        port.with_queues(Some(Arc::new(queues)))
    }

    /// Makes the pipeline check flow mods against the current queues.
    fn note_queues(&self, port_no: PortNo, settings: &PortQueues) {
        let numbers = settings.queues.keys().copied();
        self.shared.pipeline_mut().set_queues(port_no, numbers);
    }

    fn port_named(&self, name: &str) -> Option<PortNo> {
        let pipeline = self.shared.pipeline();
        let mut ports = pipeline.ports();
        let found = ports.find(|port| port.name.to_string() == name);
        found.map(|port| port.port_no)
    }

    fn find_port(&self, port: &str) -> Result<(PortNo, String), QueueError> {
        let pipeline = self.shared.pipeline();
        let by_number = port.parse().ok().and_then(|no| pipeline.port(PortNo(no)));
        let mut ports = pipeline.ports();
        let found = by_number.or_else(|| ports.find(|one| one.name.to_string() == port));
        let found = found.map(|found| (found.port_no, found.name.to_string()));
        found.ok_or_else(|| QueueError::NoPort(port.to_owned()))
    }

    /// Returns the queues of a port, or of all ports ([`PortNo::ANY`]), for a controller.
    ///
    /// # Errors
    /// OFPQOFC_BAD_PORT; OFPQOFC_EPERM if the queues do not fit into a message.
    pub(crate) fn queue_config(
        &self,
        version: Version,
        wanted: PortNo,
    ) -> Result<QueueConfig<'static>, ErrorCode> {
        let is_all = wanted == PortNo::ANY && version == Version::Of13;
        if !is_all && self.shared.pipeline().port(wanted).is_none() {
            return Err(ErrorCode::QueueOpFailedBadPort);
        }
        let ports = self.forwarder.ports.iter();
        let ports = ports.filter(|port| is_all || port.port_no == wanted);
        let queues: Vec<_> = ports.flat_map(|port| described(version, port)).collect();
        match queues.len() {
            ..=MAX_REPORTED => Ok(QueueConfig {
                port: wanted,
                queues: List::from(queues),
            }),
            _ => Err(ErrorCode::QueueOpFailedEperm),
        }
    }

    /// Returns the counters of a queue, or of all queues ([`QUEUE_ALL`]), of a port, or of all ports, for a controller.
    ///
    /// # Errors
    /// OFPQOFC_BAD_PORT; OFPQOFC_BAD_QUEUE if no such port has the queue.
    pub(crate) fn wanted_queue_stats(
        &self,
        version: Version,
        (wanted, queue_id): (PortNo, u32),
        now: Duration,
    ) -> Result<Vec<QueueStats>, ErrorCode> {
        let is_all = matches!(wanted, PortNo::ANY | PortNo::ALL);
        if !is_all && self.shared.pipeline().port(wanted).is_none() {
            return Err(ErrorCode::QueueOpFailedBadPort);
        }
        let ports = self.forwarder.ports.iter();
        let ports = ports.filter(|port| is_all || port.port_no == wanted);
        let stats = ports.flat_map(|port| self.queue_stats(port.port_no, now));
        let stats = stats.filter(|stats| queue_id == QUEUE_ALL || stats.queue_id == queue_id);
        let stats: Vec<_> = stats.map(|stats| for_version(version, stats)).collect();
        match stats.is_empty() && queue_id != QUEUE_ALL {
            true => Err(ErrorCode::QueueOpFailedBadQueue),
            false => Ok(stats),
        }
    }
}

/// Returns a port's queues for a controller. 1.0 has no maximum rates.
fn described(version: Version, port: &SwitchPort) -> Vec<PacketQueue<'static>> {
    let Some(queues) = port.queues() else {
        return Vec::new();
    };
    let rate_bps = queues.rate_bps();
    let settings = queues.settings().queues.into_iter();
    let described = settings.map(|(queue_id, queue)| {
        let min_rate = QueueProperty::MinRate(per_mille(queue.min_rate_bps, rate_bps));
        let max_rate = QueueProperty::MaxRate(per_mille(queue.max_rate_bps, rate_bps));
        let (port, properties) = match version {
            Version::Of10 => (PortNo::ANY, vec![min_rate]),
            Version::Of13 => (port.port_no, vec![min_rate, max_rate]),
        };
        PacketQueue {
            queue_id,
            port,
            properties: List::from(properties),
        }
    });
    described.collect()
}

/// Returns a rate in tenths of a percent of the port's rate, rounded to the nearest.
fn per_mille(rate_bps: Option<u64>, port_bps: Option<u64>) -> u16 {
    let (Some(rate_bps), Some(port_bps)) = (rate_bps, port_bps) else {
        return NOT_CONFIGURED;
    };
    let port_bps = u128::from(port_bps.max(1));
    let rate = (u128::from(rate_bps) * 1000 + port_bps / 2) / port_bps;
    rate.min(1000) as u16
}

fn stats(port_no: PortNo, queue_id: u32, counters: QueueCounters, now: Duration) -> QueueStats {
    let age = now.saturating_sub(counters.since);
    QueueStats {
        port_no,
        queue_id,
        tx_bytes: counters.tx_bytes,
        tx_packets: counters.tx_packets,
        tx_errors: counters.tx_errors,
        duration_sec: age.as_secs() as u32,
        duration_nsec: age.subsec_nanos(),
    }
}

/// Converts statistics: 1.0 does not report the age of a queue's counters.
fn for_version(version: Version, stats: QueueStats) -> QueueStats {
    match version {
        Version::Of13 => stats,
        Version::Of10 => QueueStats {
            duration_sec: 0,
            duration_nsec: 0,
            ..stats
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_reported_in_tenths_of_a_percent() {
        assert_eq!(per_mille(Some(100), Some(1000)), 100);
        assert_eq!(per_mille(Some(1_999), Some(1_000_000)), 2);
        assert_eq!(per_mille(Some(2000), Some(1000)), 1000, "no more than all");
        assert_eq!(per_mille(None, Some(1000)), NOT_CONFIGURED);
        assert_eq!(per_mille(Some(100), None), NOT_CONFIGURED);
        assert_eq!(per_mille(Some(u64::MAX), Some(u64::MAX)), 1000);
    }
}
