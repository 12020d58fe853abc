//! Flows between hosts.

use super::{Net, NetError};
use crate::HostId;
use crate::host::{Datagrams, FlowKind, FlowReport};

/// A flow that has been started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowId {
    from: HostId,
    to: HostId,
    kind: FlowKind,
    port: u16,
}

impl Net {
    /// Makes a host send datagrams while time passes.
    ///
    /// # Errors
    /// [`NetError::NoSuchId`].
    pub fn start_datagrams(
        &mut self,
        from: HostId,
        to: HostId,
        flow: Datagrams,
    ) -> Result<FlowId, NetError> {
        self.start_flow(from, to, FlowKind::Datagrams, |net| {
            let (now, dst) = (net.now(), net.hosts[to.place()].host.ipv4());
            let host = &mut net.hosts[from.place()].host;
            host.start_datagrams(dst, flow, now)
        })
    }

    /// Makes a host send a stream of `bytes` bytes, as fast as links permit, while time passes.
    ///
    /// # Errors
    /// [`NetError::NoSuchId`].
    pub fn start_stream(
        &mut self,
        from: HostId,
        to: HostId,
        bytes: u64,
    ) -> Result<FlowId, NetError> {
        self.start_flow(from, to, FlowKind::Stream, |net| {
            let (now, dst) = (net.now(), net.hosts[to.place()].host.ipv4());
            let host = &mut net.hosts[from.place()].host;
            host.start_stream(dst, bytes, now)
        })
    }

    /// Returns the streams that were started and not stopped: sender, receiver, number of bytes, and the flow.
    pub(crate) fn streams(&self) -> Vec<(HostId, HostId, u64, FlowId)> {
        let mut streams = Vec::new();
        for from in self.hosts() {
            for (port, dst, bytes) in self.hosts[from.place()].host.streams() {
                let to = self
                    .hosts()
                    .find(|to| self.hosts[to.place()].host.ipv4() == dst);
                streams.extend(to.map(|to| {
                    let flow = FlowId {
                        from,
                        to,
                        kind: FlowKind::Stream,
                        port,
                    };
                    (from, to, bytes, flow)
                }));
            }
        }
        streams
    }

    /// Returns the results of a flow so far.
    ///
    /// # Errors
    /// [`NetError::NoSuchId`].
    pub fn flow_report(&self, flow: FlowId) -> Result<FlowReport, NetError> {
        self.check_host(flow.from)?;
        self.check_host(flow.to)?;
        let [from, to] = [flow.from, flow.to].map(|host| &self.hosts[host.place()].host);
        let mut report = FlowReport::default();
        to.report_heard(flow.kind, (from.ipv4(), flow.port), &mut report);
        from.report_sent(flow.kind, flow.port, &mut report);
        Ok(report)
    }

    fn start_flow(
        &mut self,
        from: HostId,
        to: HostId,
        kind: FlowKind,
        start: impl FnOnce(&mut Self) -> u16,
    ) -> Result<FlowId, NetError> {
        self.check_host(from)?;
        self.check_host(to)?;
        let port = start(self);
        self.wake_host(from);
        Ok(FlowId {
            from,
            to,
            kind,
            port,
        })
    }
}
