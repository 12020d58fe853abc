//! Requests with a typed reply: counters, descriptions, roles. Each resolves within the [`Network`]'s deadline.
//!
//! [`Network::request`] sends other requests, such as for an experimenter's statistics.

use crate::{Network, Reply, RequestError};
use std::marker::PhantomData;
#[cfg(doc)]
use urtica_wire::ControllerRole;
use urtica_wire::{
    AggregateStats, DatapathId, Desc, FlowStats, FlowStatsRequest, GROUP_ALL, GroupDesc,
    GroupFeatures, GroupStats, List, METER_ALL, Message, MeterConfig, MeterFeatures, MeterStats,
    MultipartFlags, MultipartReplyBody, MultipartRequest, MultipartRequestBody, Port, PortNo,
    PortStats, QUEUE_ALL, QueueStats, Role, TableFeatures, TableForm, TableStats, Version,
};

/// The manufacturer and description of a switch (1.3.5 section 7.3.5.1).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Description {
    /// The manufacturer.
    pub manufacturer: String,
    /// The hardware.
    pub hardware: String,
    /// The software.
    pub software: String,
    /// The serial number.
    pub serial_number: String,
    /// A description of the datapath, for people.
    pub datapath: String,
}

impl From<Desc<'_>> for Description {
    fn from(desc: Desc<'_>) -> Self {
        Self {
            manufacturer: desc.mfr_desc.to_str_lossy().into_owned(),
            hardware: desc.hw_desc.to_str_lossy().into_owned(),
            software: desc.sw_desc.to_str_lossy().into_owned(),
            serial_number: desc.serial_num.to_str_lossy().into_owned(),
            datapath: desc.dp_desc.to_str_lossy().into_owned(),
        }
    }
}

/// The rows of a reply, decoded while iterating: a switch may report hundreds of thousands.
///
/// ```
/// # use urtica_controller::{Network, RequestError};
/// # use urtica_wire::{DatapathId, FlowStatsRequest};
/// async fn bytes_matched(network: &Network, id: DatapathId) -> Result<u64, RequestError> {
///     let entries = network.flow_stats(id, FlowStatsRequest::default()).await?;
///     Ok(entries.iter().map(|entry| entry.byte_count).sum())
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Rows<T> {
    reply: Reply,
    row: PhantomData<T>,
}

impl<T: Row> Rows<T> {
    /// Iterates over the rows, in the switch's order.
    pub fn iter(&self) -> impl Iterator<Item = T::Of<'_>> {
        self.parts().flatten().flatten()
    }

    /// Returns the rows of each part of the reply; `None` for a part of another type.
    fn parts(&self) -> impl Iterator<Item = Option<Vec<T::Of<'_>>>> {
        bodies(&self.reply).map(|body| body.and_then(T::rows))
    }

    /// Returns the number of rows. Decodes each row.
    pub fn count(&self) -> usize {
        self.iter().count()
    }
}

/// The type of a row in a multipart reply; `Self` stands for the type with any lifetime.
pub trait Row: 'static {
    /// The row, which borrows from the reply.
    type Of<'a>;

    /// The subject of such a reply, for errors.
    #[doc(hidden)]
    const WHAT: &'static str;

    /// Returns the rows of a part of a reply; `None` if it has another type.
    #[doc(hidden)]
    fn rows(body: MultipartReplyBody<'_>) -> Option<Vec<Self::Of<'_>>>;
}

/// Implements `Row` for a row, the kind of reply that contains it, and its subject.
macro_rules! row {
    ($row:ident, $kind:ident, $what:literal) => {
        impl Row for $row<'static> {
            type Of<'a> = $row<'a>;

            const WHAT: &'static str = $what;

            fn rows(body: MultipartReplyBody<'_>) -> Option<Vec<$row<'_>>> {
                match body {
                    MultipartReplyBody::$kind(rows) => Some(rows.iter().collect()),
                    _ => None,
                }
            }
        }
    };
}

row!(FlowStats, Flow, "flow entries");
row!(GroupStats, Group, "the counters of groups");
row!(GroupDesc, GroupDesc, "groups");
row!(MeterStats, Meter, "the counters of meters");
row!(MeterConfig, MeterConfig, "meters");
row!(TableFeatures, TableFeatures, "table features");

/// # Requests with a typed reply
///
/// Each waits until the switch accepts the request, like [`Network::ready`], and then for the reply, as long as
/// [`Network::with_deadline`] permits. Requests about groups and meters are for OpenFlow 1.3.
impl Network {
    /// Requests the counters of all ports.
    ///
    /// # Errors
    /// [`RequestError::UnknownSwitch`] and [`RequestError::Disconnected`] if the switch is not connected, or disconnects;
    /// [`RequestError::Timeout`] if it does not reply in time; [`RequestError::Refused`] if it does not support the request;
    /// [`RequestError::WrongReply`] if the reply does not match, [`RequestError::TooLong`] if the reply does not end;
    /// [`RequestError::InTransaction`].
    pub async fn port_stats(&self, switch: DatapathId) -> Result<Vec<PortStats>, RequestError> {
        let asked = MultipartRequestBody::PortStats(PortNo::ANY);
        self.list(switch, asked, "the counters of ports", |body| match body {
            MultipartReplyBody::PortStats(rows) => Some(rows.iter().collect()),
            _ => None,
        })
        .await
    }

    /// Requests the descriptions of all ports: names, speeds, and whether they are up. In 1.0, whose features reply contains
    /// them, returns the known ones ([`SwitchInfo::ports`](crate::SwitchInfo::ports)).
    ///
    /// # Errors
    /// Like [`Network::port_stats`].
    pub async fn port_descriptions(&self, switch: DatapathId) -> Result<Vec<Port>, RequestError> {
        let info = self
            .info(switch)
            .ok_or(RequestError::UnknownSwitch(switch))?;
        if info.version == Version::Of10 {
            return Ok(info.ports.iter().cloned().collect());
        }
        self.list(
            switch,
            MultipartRequestBody::PortDesc,
            "ports",
            |body| match body {
                MultipartReplyBody::PortDesc(rows) => Some(rows.iter().collect()),
                _ => None,
            },
        )
        .await
    }

    /// Requests the selected flow entries: [`FlowStatsRequest::default`] selects all.
    ///
    /// # Errors
    /// Like [`Network::port_stats`].
    pub async fn flow_stats(
        &self,
        switch: DatapathId,
        asked: FlowStatsRequest<'_>,
    ) -> Result<Rows<FlowStats<'static>>, RequestError> {
        self.rows(switch, MultipartRequestBody::Flow(asked)).await
    }

    /// Requests the number of the selected flow entries, and their total counters.
    ///
    /// # Errors
    /// Like [`Network::port_stats`].
    pub async fn aggregate_stats(
        &self,
        switch: DatapathId,
        asked: FlowStatsRequest<'_>,
    ) -> Result<AggregateStats, RequestError> {
        let asked = MultipartRequestBody::Aggregate(asked);
        self.one(switch, asked, "sums of flow entries", |body| match body {
            MultipartReplyBody::Aggregate(stats) => Some(stats),
            _ => None,
        })
        .await
    }

    /// Requests the number of entries and of look-ups of each table.
    ///
    /// # Errors
    /// Like [`Network::port_stats`].
    pub async fn table_stats(&self, switch: DatapathId) -> Result<Vec<TableStats>, RequestError> {
        self.list(
            switch,
            MultipartRequestBody::Table,
            "the counters of tables",
            |body| match body {
                MultipartReplyBody::Table(rows) => Some(rows.iter().collect()),
                _ => None,
            },
        )
        .await
    }

    /// Requests a text for each table with entries that describes its compiled form. Only Urtica's switch supports this.
    ///
    /// # Errors
    /// Like [`Network::port_stats`].
    pub async fn table_forms(
        &self,
        switch: DatapathId,
    ) -> Result<Vec<TableForm<'static>>, RequestError> {
        let version = self.info(switch).map(|info| info.version);
        let version = version.ok_or(RequestError::UnknownSwitch(switch))?;
        let asked = MultipartRequestBody::Experimenter(TableForm::REQUEST);
        self.list(switch, asked, "the forms of tables", |body| match body {
            MultipartReplyBody::Experimenter(reply) => {
                let rows = TableForm::rows(version, &reply).ok()??;
                Some(rows.iter().map(TableForm::into_owned).collect())
            }
            _ => None,
        })
        .await
    }

    /// Requests the features of each table. 1.3 only.
    ///
    /// # Errors
    /// Like [`Network::port_stats`], and [`RequestError::Encode`] if the switch speaks 1.0.
    pub async fn table_features(
        &self,
        switch: DatapathId,
    ) -> Result<Rows<TableFeatures<'static>>, RequestError> {
        let asked = MultipartRequestBody::TableFeatures(List::default());
        self.rows(switch, asked).await
    }

    /// Requests the counters of all queues of all ports.
    ///
    /// # Errors
    /// Like [`Network::port_stats`].
    pub async fn queue_stats(&self, switch: DatapathId) -> Result<Vec<QueueStats>, RequestError> {
        let version = self.info(switch).map(|info| info.version);
        // The versions have different numbers for all ports.
        let port = match version {
            Some(Version::Of10) => PortNo::ALL,
            _ => PortNo::ANY,
        };
        let asked = MultipartRequestBody::Queue {
            port,
            queue_id: QUEUE_ALL,
        };
        self.list(switch, asked, "the counters of queues", |body| match body {
            MultipartReplyBody::Queue(rows) => Some(rows.iter().collect()),
            _ => None,
        })
        .await
    }

    /// Requests the counters of all groups. 1.3 only.
    ///
    /// # Errors
    /// Like [`Network::port_stats`], and [`RequestError::Encode`] if the switch speaks 1.0.
    pub async fn group_stats(
        &self,
        switch: DatapathId,
    ) -> Result<Rows<GroupStats<'static>>, RequestError> {
        self.rows(switch, MultipartRequestBody::Group(GROUP_ALL))
            .await
    }

    /// Requests the types and buckets of all groups. 1.3 only.
    ///
    /// # Errors
    /// Like [`Network::port_stats`], and [`RequestError::Encode`] if the switch speaks 1.0.
    pub async fn groups(
        &self,
        switch: DatapathId,
    ) -> Result<Rows<GroupDesc<'static>>, RequestError> {
        self.rows(switch, MultipartRequestBody::GroupDesc).await
    }

    /// Requests the supported features of groups. 1.3 only.
    ///
    /// # Errors
    /// Like [`Network::port_stats`], and [`RequestError::Encode`] if the switch speaks 1.0.
    pub async fn group_features(&self, switch: DatapathId) -> Result<GroupFeatures, RequestError> {
        let asked = MultipartRequestBody::GroupFeatures;
        self.one(switch, asked, "group features", |body| match body {
            MultipartReplyBody::GroupFeatures(features) => Some(features),
            _ => None,
        })
        .await
    }

    /// Requests the counters of all meters. 1.3 only.
    ///
    /// # Errors
    /// Like [`Network::port_stats`], and [`RequestError::Encode`] if the switch speaks 1.0.
    pub async fn meter_stats(
        &self,
        switch: DatapathId,
    ) -> Result<Rows<MeterStats<'static>>, RequestError> {
        self.rows(switch, MultipartRequestBody::Meter(METER_ALL))
            .await
    }

    /// Requests the bands of all meters. 1.3 only.
    ///
    /// # Errors
    /// Like [`Network::port_stats`], and [`RequestError::Encode`] if the switch speaks 1.0.
    pub async fn meters(
        &self,
        switch: DatapathId,
    ) -> Result<Rows<MeterConfig<'static>>, RequestError> {
        self.rows(switch, MultipartRequestBody::MeterConfig(METER_ALL))
            .await
    }

    /// Requests the supported features of meters. 1.3 only.
    ///
    /// # Errors
    /// Like [`Network::port_stats`], and [`RequestError::Encode`] if the switch speaks 1.0.
    pub async fn meter_features(&self, switch: DatapathId) -> Result<MeterFeatures, RequestError> {
        let asked = MultipartRequestBody::MeterFeatures;
        self.one(switch, asked, "meter features", |body| match body {
            MultipartReplyBody::MeterFeatures(features) => Some(features),
            _ => None,
        })
        .await
    }

    /// Requests the manufacturer and description of the switch.
    ///
    /// # Errors
    /// Like [`Network::port_stats`].
    pub async fn description(&self, switch: DatapathId) -> Result<Description, RequestError> {
        let asked = MultipartRequestBody::Desc;
        self.one(switch, asked, "a description", |body| match body {
            MultipartReplyBody::Desc(desc) => Some(Description::from(desc)),
            _ => None,
        })
        .await
    }

    /// Requests a role for this controller, or with [`ControllerRole::NoChange`] queries the current one. Returns the role
    /// that the switch reports. 1.3 only.
    ///
    /// # Errors
    /// Like [`Network::port_stats`], and [`RequestError::Encode`] if the switch speaks 1.0.
    pub async fn role(&self, switch: DatapathId, role: Role) -> Result<Role, RequestError> {
        let reply = self.reply(switch, &Message::RoleRequest(role)).await?;
        let role = reply.messages().find_map(|message| match message {
            Message::RoleReply(role) => Some(role),
            _ => None,
        });
        role.ok_or(RequestError::WrongReply("a role"))
    }

    async fn rows<T: Row>(
        &self,
        switch: DatapathId,
        asked: MultipartRequestBody<'_>,
    ) -> Result<Rows<T>, RequestError> {
        let reply = self.reply(switch, &multipart_request(asked)).await?;
        let rows = Rows {
            reply,
            row: PhantomData,
        };
        let is_right = rows.parts().all(|part| part.is_some());
        is_right
            .then_some(rows)
            .ok_or(RequestError::WrongReply(T::WHAT))
    }

    async fn list<T>(
        &self,
        switch: DatapathId,
        asked: MultipartRequestBody<'_>,
        expected: &'static str,
        rows: impl Fn(MultipartReplyBody<'_>) -> Option<Vec<T>>,
    ) -> Result<Vec<T>, RequestError> {
        let reply = self.reply(switch, &multipart_request(asked)).await?;
        let parts = bodies(&reply).map(|body| body.and_then(&rows));
        let parts: Option<Vec<_>> = parts.collect();
        let parts = parts.ok_or(RequestError::WrongReply(expected))?;
        Ok(parts.into_iter().flatten().collect())
    }

    async fn one<T>(
        &self,
        switch: DatapathId,
        asked: MultipartRequestBody<'_>,
        expected: &'static str,
        one: impl Fn(MultipartReplyBody<'_>) -> Option<T>,
    ) -> Result<T, RequestError> {
        let reply = self.reply(switch, &multipart_request(asked)).await?;
        let found = bodies(&reply).flatten().find_map(one);
        found.ok_or(RequestError::WrongReply(expected))
    }

    async fn reply(&self, switch: DatapathId, asked: &Message<'_>) -> Result<Reply, RequestError> {
        let send = || self.request(switch, asked);
        self.when_ready(switch, send).await?.await
    }
}

fn multipart_request(body: MultipartRequestBody<'_>) -> Message<'_> {
    Message::MultipartRequest(MultipartRequest {
        flags: MultipartFlags::empty(),
        body,
    })
}

/// Returns the bodies of a multipart reply's parts; `None` for another message.
fn bodies(reply: &Reply) -> impl Iterator<Item = Option<MultipartReplyBody<'_>>> {
    reply.messages().map(|message| match message {
        Message::MultipartReply(part) => Some(part.body),
        _ => None,
    })
}
