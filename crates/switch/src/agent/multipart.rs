//! Multipart requests (1.3.5 section 7.3.5; 1.0's stats, section 5.3.5), and their dispatch.

use super::long_reply::LongReply;
use super::requests::Request;
use super::{Agent, ConnectionId, reply, stats};
use crate::Switch;
use crate::switch::Description;
use std::time::Duration;
use urtica_pipeline::Pipeline;
use urtica_wire::{
    Desc, Element, ErrorCode, FixedName, List, Message, MultipartFlags, MultipartReply,
    MultipartReplyBody, MultipartRequest, MultipartRequestBody, PortNo, TableForm, Version,
};

/// Offset of the body in a multipart message of 1.3.
const BODY_AT: usize = 16;
impl Switch {
    pub(super) fn handle_multipart(
        &mut self,
        request: Request,
        frame: &[u8],
        asked: MultipartRequest,
    ) -> Result<(), ErrorCode> {
        self.agent.turn.take_request();
        let has_more = asked.flags.contains(MultipartFlags::MORE);
        if let MultipartRequestBody::TableFeatures(_) = asked.body {
            let part = frame.get(BODY_AT..).unwrap_or_default();
            return self.handle_table_features_part(request, part, has_more);
        }
        // Every other request has a body of fixed size, which several messages together would exceed. In 1.0 the flag has no
        // meaning.
        if has_more && request.version == Version::Of13 {
            return Err(ErrorCode::BadRequestBadLen);
        }
        let reply = LongReply::begin(&self.shared.pipeline(), request, &asked.body)?;
        match (reply, self.agent.session_mut(request.connection)) {
            (None, _) => return self.answer(request, asked.body),
            (reply, Some(session)) => session.reply = reply,
            (_, None) => {}
        }
        self.continue_reply(request.connection, request.now);
        Ok(())
    }

    /// Writes the next part of the reply that a controller waits for, if its output has space.
    pub(crate) fn continue_reply(&mut self, connection: ConnectionId, now: Duration) {
        let pipeline = self.shared.pipeline();
        self.agent.continue_reply(connection, &pipeline, now);
    }

    fn handle_table_features_part(
        &mut self,
        request: Request,
        part: &[u8],
        has_more: bool,
    ) -> Result<(), ErrorCode> {
        let Some(session) = self.agent.session_mut(request.connection) else {
            return Ok(());
        };
        let Some(body) = session.partial_requests.add(request.xid, part, has_more)? else {
            return Ok(());
        };
        let asked = List::from_wire(Version::Of13, &body);
        let asked = asked.map_err(|error| error.code())?;
        self.handle_table_features(request, &asked)
    }

    fn answer(&mut self, request: Request, asked: MultipartRequestBody) -> Result<(), ErrorCode> {
        match asked {
            MultipartRequestBody::Desc => self.answer_desc(request),
            MultipartRequestBody::Table => self.answer_tables(request),
            MultipartRequestBody::PortStats(port) => self.answer_port_stats(request, port)?,
            MultipartRequestBody::Queue { port, queue_id } => {
                self.answer_queues(request, (port, queue_id))?;
            }
            MultipartRequestBody::GroupFeatures => {
                let features = self.shared.pipeline().group_features();
                let body = MultipartReplyBody::GroupFeatures(features);
                self.answer_whole(request, body);
            }
            MultipartRequestBody::MeterFeatures => {
                let features = self.shared.pipeline().meter_features();
                let body = MultipartReplyBody::MeterFeatures(features);
                self.answer_whole(request, body);
            }
            MultipartRequestBody::PortDesc => {
                let ports = self.port_descriptions(request.version);
                let empty = MultipartReplyBody::PortDesc(List::default());
                answer_rows(&mut self.agent, request, empty, ports);
            }
            MultipartRequestBody::Experimenter(asked) if TableForm::is_request(&asked) => {
                self.answer_table_forms(request);
            }
            MultipartRequestBody::Experimenter(_) => {
                return Err(ErrorCode::BadRequestBadExperimenter);
            }
            // Either assembled above, or a long reply.
            _ => return Err(ErrorCode::BadRequestBadMultipart),
        }
        Ok(())
    }

    /// Answers with a body that always fits into one message.
    fn answer_whole(&mut self, request: Request, body: MultipartReplyBody) {
        let reply = MultipartReply {
            flags: MultipartFlags::empty(),
            body,
        };
        self.reply(request, &Message::MultipartReply(reply));
    }

    fn answer_desc(&mut self, request: Request) {
        let Description {
            manufacturer,
            hardware,
            software,
            serial_number,
            datapath,
        } = &self.config.description;
        let texts = [manufacturer, hardware, software, datapath];
        let [manufacturer, hardware, software, datapath] =
            texts.map(|text| FixedName::truncated(text));
        let serial_number = FixedName::truncated(serial_number);
        let desc = Desc {
            mfr_desc: manufacturer.as_ref(),
            hw_desc: hardware.as_ref(),
            sw_desc: software.as_ref(),
            serial_num: serial_number.as_ref(),
            dp_desc: datapath.as_ref(),
        };
        self.answer_whole(request, MultipartReplyBody::Desc(desc));
    }

    fn answer_tables(&mut self, request: Request) {
        let pipeline = self.shared.pipeline();
        let max_entries = pipeline.config().max_entries;
        let tables = pipeline.table_stats();
        let rows = tables.map(|table| stats::table(request.version, table, max_entries));
        let empty = MultipartReplyBody::Table(List::default());
        answer_rows(&mut self.agent, request, empty, rows);
    }

    /// Answers Urtica's experimenter request, for the tables with entries.
    fn answer_table_forms(&mut self, request: Request) {
        let pipeline = self.shared.pipeline();
        let used = pipeline
            .table_stats()
            .filter(|table| table.active_count > 0);
        let rows = used.map(|table| TableForm {
            table_id: table.table_id,
            form: form_of(&pipeline, table.table_id).into(),
        });
        let empty = MultipartReplyBody::Experimenter(TableForm::REPLY);
        answer_rows(&mut self.agent, request, empty, rows);
    }

    fn answer_port_stats(&mut self, request: Request, wanted: PortNo) -> Result<(), ErrorCode> {
        let ports = &self.forwarder.ports;
        if wanted != PortNo::ANY && ports.get(wanted).is_none() {
            return Err(ErrorCode::BadRequestBadPort);
        }
        let rows = ports
            .iter()
            .filter(|port| wanted == PortNo::ANY || port.port_no == wanted)
            .map(|port| stats::port(request.version, port.stats(request.now)));
        let empty = MultipartReplyBody::PortStats(List::default());
        answer_rows(&mut self.agent, request, empty, rows);
        Ok(())
    }

    fn answer_queues(&mut self, request: Request, wanted: (PortNo, u32)) -> Result<(), ErrorCode> {
        let rows = self.wanted_queue_stats(request.version, wanted, request.now)?;
        let empty = MultipartReplyBody::Queue(List::default());
        answer_rows(&mut self.agent, request, empty, rows);
        Ok(())
    }
}

fn form_of(pipeline: &Pipeline, table_id: u8) -> String {
    let form = pipeline.brief_form(table_id);
    form.unwrap_or_else(|| "not compiled".to_owned())
}

/// Answers with rows, in as many messages as necessary. `empty` is the reply's body without rows.
pub(super) fn answer_rows<'a, T: Element<'a>>(
    agent: &mut Agent,
    request: Request,
    empty: MultipartReplyBody<'static>,
    rows: impl IntoIterator<Item = T>,
) {
    let Some(session) = agent.session_mut(request.connection) else {
        return;
    };
    let (version, xid) = (request.version, request.xid);
    if let Err(error) = reply::write_rows(version, xid, empty, rows, &mut session.output) {
        urtica_log::debug!(about: request.connection, %error, "cannot encode a multipart reply; not sending it");
    }
}
