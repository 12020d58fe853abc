//! All messages of both versions.

mod coding;

use crate::{
    AsyncConfig, ErrorMessage, Experimenter, Features, FlowMod, FlowRemoved, GroupMod, Hello,
    MeterMod, MultipartReply, MultipartRequest, PacketIn, PacketOut, PortMod, PortNo, PortStatus,
    QueueConfig, Role, SwitchConfig, TableMod,
};

/// A message. Names are those of 1.3; 1.0's vendor is [`Message::Experimenter`], its stats are multipart messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// Opens a connection.
    Hello(Hello<'a>),
    /// An error.
    Error(ErrorMessage<'a>),
    /// Checks that the peer is alive. The peer sends the payload back.
    EchoRequest(&'a [u8]),
    /// The reply to an echo request, with its payload.
    EchoReply(&'a [u8]),
    /// An experimenter's message.
    Experimenter(Experimenter<'a>),
    /// Requests the datapath id and the switch's capabilities.
    FeaturesRequest,
    /// The datapath id and the switch's capabilities.
    FeaturesReply(Features<'a>),
    /// Requests the configuration.
    GetConfigRequest,
    /// The configuration.
    GetConfigReply(SwitchConfig),
    /// Sets the configuration.
    SetConfig(SwitchConfig),
    /// A packet for the controller.
    PacketIn(PacketIn<'a>),
    /// A flow entry was removed.
    FlowRemoved(FlowRemoved<'a>),
    /// A port was added, removed or changed.
    PortStatus(PortStatus),
    /// A packet from the controller.
    PacketOut(PacketOut<'a>),
    /// Changes flow entries.
    FlowMod(FlowMod<'a>),
    /// Changes groups. 1.3 only.
    GroupMod(GroupMod<'a>),
    /// Changes a port.
    PortMod(PortMod),
    /// Changes a table. 1.3 only.
    TableMod(TableMod),
    /// Requests statistics or other state.
    MultipartRequest(MultipartRequest<'a>),
    /// The statistics or other state.
    MultipartReply(MultipartReply<'a>),
    /// Requests that the switch process all earlier messages before any later one.
    BarrierRequest,
    /// Confirms that all messages before the barrier request have been processed.
    BarrierReply,
    /// Requests a port's queues.
    QueueGetConfigRequest(PortNo),
    /// A port's queues.
    QueueGetConfigReply(QueueConfig<'a>),
    /// Requests a role. 1.3 only.
    RoleRequest(Role),
    /// The role. 1.3 only.
    RoleReply(Role),
    /// Requests the asynchronous configuration. 1.3 only.
    GetAsyncRequest,
    /// The asynchronous configuration. 1.3 only.
    GetAsyncReply(AsyncConfig),
    /// Sets the asynchronous configuration. 1.3 only.
    SetAsync(AsyncConfig),
    /// Changes meters. 1.3 only.
    MeterMod(MeterMod<'a>),
}
