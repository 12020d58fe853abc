//! The controller's role at a connection's switch: who asks for it, and who is told what became of it.

use super::{Channel, Connection};
use crate::batch::BatchContext;
use crate::request::{Asker, Reply};
use crate::role::{Role, RoleRequest};
use crate::session::{RoleRefusal, RoleReport};
use crate::{RequestError, SwitchInfo};
use std::sync::Arc;
use urtica_wire::DatapathId;

/// How many requests for roles may wait for those before them.
const MAX_ROLE_REQUESTS: usize = 64;

/// What a reply is expected to be.
const THE_ROLE: &str = "the role that it was asked for";

impl<C: Channel> Connection<C> {
    /// Asks the switch for a role, after those who have asked before.
    pub fn ask_for_role(&mut self, request: RoleRequest, asker: Asker, batch: &mut BatchContext) {
        let datapath_id = self.datapath_id();
        let (Some(datapath_id), true) = (datapath_id, self.role_requests.len() < MAX_ROLE_REQUESTS)
        else {
            let refusal = match datapath_id {
                Some(datapath_id) => RequestError::Busy(datapath_id),
                None => RequestError::Disconnected,
            };
            // Fails where nobody waits any more, which is their right.
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

    /// Asks for the role that is wanted at a switch that has just joined, where someone has said so since it was asked.
    pub(super) fn ask_for_wanted_role(&mut self, switch: DatapathId, batch: &mut BatchContext) {
        let Some(wanted) = batch.network.wanted_roles().get(switch) else {
            return;
        };
        let session = &mut self.session;
        if wanted.role != session.role() && wanted != session.requested_role() {
            session.ask_for_role(batch.now, wanted, &mut batch.out);
        }
    }

    /// Tells everyone what became of the role while this frame, or the time, was handled.
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

    /// Programs learn of the new role, and handlers start over where they may write again.
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
            urtica_log::warn!(about: self.subject(), peer = self.name(), %from, %to, "another controller has taken over the switch: what programs send to it is refused until the role is asked for again");
        }
    }
}
