//! The controller's role at a connection's switch: requests for a role, and their outcomes.

use super::{Channel, Connection};
use crate::batch::BatchContext;
use crate::request::{Asker, Reply};
use crate::role::{Role, RoleRequest};
use crate::session::{RoleRefusal, RoleReport};
use crate::{RequestError, SwitchInfo};
use std::sync::Arc;
use urtica_wire::DatapathId;

/// The maximum number of role requests that wait for earlier ones.
const MAX_ROLE_REQUESTS: usize = 64;

/// The expected reply, for error messages.
const THE_ROLE: &str = "the requested role";

impl<C: Channel> Connection<C> {
    /// Requests a role from the switch, after earlier requests.
    pub fn ask_for_role(&mut self, request: RoleRequest, asker: Asker, batch: &mut BatchContext) {
        self.reclaim(batch);
        let datapath_id = self.datapath_id();
        let (Some(datapath_id), true) = (datapath_id, self.role_requests.len() < MAX_ROLE_REQUESTS)
        else {
            let refusal = match datapath_id {
                Some(datapath_id) => RequestError::Busy(datapath_id),
                None => RequestError::Disconnected,
            };
            // Fails if the receiver was dropped.
            let _ = asker.sender.send(Err(refusal));
            return;
        };
        urtica_log::info!(about: self.subject(), dp_id = %datapath_id, role = %request.role, "requesting another role");
        self.role_requests.push_back((request, asker));
        if self.role_requests.len() == 1 {
            self.session
                .ask_for_role(batch.now, request, &mut batch.out);
        }
    }

    /// Requests the wanted role from a switch that has just joined, if it was set after the first request.
    pub(super) fn ask_for_wanted_role(&mut self, switch: DatapathId, batch: &mut BatchContext) {
        let Some(wanted) = batch.network.wanted_roles().get(switch) else {
            return;
        };
        let session = &mut self.session;
        if wanted.role != session.role() && wanted != session.requested_role() {
            session.ask_for_role(batch.now, wanted, &mut batch.out);
        }
    }

    /// Reports roles that this frame or a time-out has determined to all who wait for them.
    pub(super) fn note_roles(&mut self, frame: &[u8], batch: &mut BatchContext) {
        while let Some(report) = self.session.poll_role() {
            match report {
                RoleReport::Changed { from, to } => self.change_role(from, to, batch),
                RoleReport::Granted(_) => {
                    let reply = Reply::of_frame(frame);
                    self.end_role_request(Ok(reply), batch);
                }
                RoleReport::Refused(refusal) => {
                    urtica_log::warn!(about: self.subject(), peer = self.name(), %refusal, role = %self.session.role(), "the switch did not grant the requested role");
                    self.end_role_request(Err(self.request_error(refusal)), batch);
                }
            }
        }
    }

    fn request_error(&self, refusal: RoleRefusal) -> RequestError {
        match refusal {
            RoleRefusal::Error(code) => RequestError::Refused(code),
            RoleRefusal::Other => RequestError::WrongReply(THE_ROLE),
            RoleRefusal::Timeout => RequestError::Timeout(self.session.handshake_timeout()),
        }
    }

    fn end_role_request(&mut self, result: Result<Reply, RequestError>, batch: &mut BatchContext) {
        if let Some((_, asker)) = self.role_requests.pop_front() {
            let _ = asker.sender.send(result);
        }
        if let Some(&(next, _)) = self.role_requests.front() {
            self.session.ask_for_role(batch.now, next, &mut batch.out);
        }
    }

    /// Reports the new role to programs, and starts handlers again if they may now write.
    fn change_role(&mut self, from: Role, to: Role, batch: &mut BatchContext) {
        let token = self.switch_token();
        let Some(switch) = &mut self.switch else {
            return;
        };
        let mut info = SwitchInfo::clone(&switch.info);
        info.role = to;
        switch.info = Arc::new(info);
        if !to.may_write() {
            switch.timers.clear();
        }
        let is_up = switch.is_up;
        batch.network.update_role(token, &switch.info);
        self.counters.role_changes.add(1);
        self.log_role(from, to);
        self.call_each(batch, |handler, switch| handler.role_changed(switch));
        if is_up && to.may_write() && !from.may_write() {
            self.activate(batch);
            self.start_kernel_half(batch);
        }
    }

    fn log_role(&self, from: Role, to: Role) {
        let wanted = self.session.requested_role().role;
        if to == wanted || to.may_write() {
            urtica_log::info!(about: self.subject(), peer = self.name(), %from, %to, "the role at the switch has changed");
        } else {
            urtica_log::warn!(about: self.subject(), peer = self.name(), %from, %to, "another controller has taken over the switch: messages of programs to it are refused until the role is requested again");
        }
    }
}
