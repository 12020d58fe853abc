//! Requests that change entries, groups, meters, or the controller's role.

use super::list::needs_13;
use crate::app::App;
use crate::error::ApiError;
use crate::object::Object;
use crate::params::Params;
use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;
use std::sync::Arc;
use tokio::time::timeout;
use urtica_controller::{RequestError, Role, Stage};
use urtica_wire::text::ParseError;
use urtica_wire::{
    DatapathId, FlowMod, FlowModCommand, GroupMod, GroupModCommand, Message, MeterMod,
    MeterModCommand,
};
use utoipa::ToSchema;

/// A change of entries.
#[derive(Deserialize, ToSchema)]
#[expect(
    dead_code,
    reason = "it describes the body; errors name its fields themselves"
)]
pub(crate) struct FlowChange {
    /// `add`, `modify`, `modify_strict`, `delete` or `delete_strict`; the default is `add`.
    #[schema(
        default = "add",
        pattern = "^(add|modify|modify_strict|delete|delete_strict)$",
        example = "add"
    )]
    command: Option<String>,
    /// The entry, as `ovs-ofctl` writes it.
    #[schema(example = "priority=10,in_port=1,actions=output:2")]
    flow: String,
}

/// A change of a group.
#[derive(Deserialize, ToSchema)]
#[expect(
    dead_code,
    reason = "it describes the body; errors name its fields themselves"
)]
pub(crate) struct GroupChange {
    /// `add`, `modify` or `delete`; the default is `add`.
    #[schema(default = "add", pattern = "^(add|modify|delete)$", example = "add")]
    command: Option<String>,
    /// The group, as `ovs-ofctl` writes it.
    #[schema(example = "group_id=1,type=all,bucket=actions=output:1")]
    group: String,
}

/// A change of a meter.
#[derive(Deserialize, ToSchema)]
#[expect(
    dead_code,
    reason = "it describes the body; errors name its fields themselves"
)]
pub(crate) struct MeterChange {
    /// `add`, `modify` or `delete`; the default is `add`.
    #[schema(default = "add", pattern = "^(add|modify|delete)$", example = "add")]
    command: Option<String>,
    /// The meter, as `ovs-ofctl` writes it.
    #[schema(example = "meter=1 kbps band=type=drop rate=1000")]
    meter: String,
}

/// A change of the controller's role at a switch.
#[derive(Deserialize, ToSchema)]
#[expect(
    dead_code,
    reason = "it describes the body; errors name its fields themselves"
)]
pub(crate) struct RoleChange {
    /// `equal`, `primary` or `secondary`.
    #[schema(pattern = "^(equal|primary|secondary)$", example = "primary")]
    role: String,
}

pub(super) async fn flow(
    State(app): State<Arc<App>>,
    params: Params,
    body: Body,
) -> Result<StatusCode, ApiError> {
    let info = app.switch(params.switch()?)?;
    let value = app.value(body).await?;
    let body = Object::body(&value)?;
    let command = command(
        &body,
        &[
            ("add", FlowModCommand::Add),
            ("modify", FlowModCommand::Modify),
            ("modify_strict", FlowModCommand::ModifyStrict),
            ("delete", FlowModCommand::Delete),
            ("delete_strict", FlowModCommand::DeleteStrict),
        ],
    )?;
    let example = "priority=10,in_port=1,actions=output:2";
    let flow_mod = parsed(&body, "flow", example, |text| FlowMod::parse(command, text))?;
    confirm(&app, info.datapath_id, Message::FlowMod(flow_mod)).await
}

pub(super) async fn group(
    State(app): State<Arc<App>>,
    params: Params,
    body: Body,
) -> Result<StatusCode, ApiError> {
    let info = app.switch(params.switch()?)?;
    let value = app.value(body).await?;
    let body = Object::body(&value)?;
    let command = command(
        &body,
        &[
            ("add", GroupModCommand::Add),
            ("modify", GroupModCommand::Modify),
            ("delete", GroupModCommand::Delete),
        ],
    )?;
    let example = "group_id=1,type=all,bucket=actions=output:1";
    let group_mod = parsed(&body, "group", example, |text| {
        GroupMod::parse(command, text)
    })?;
    needs_13(&info, "groups")?;
    confirm(&app, info.datapath_id, Message::GroupMod(group_mod)).await
}

pub(super) async fn meter(
    State(app): State<Arc<App>>,
    params: Params,
    body: Body,
) -> Result<StatusCode, ApiError> {
    let info = app.switch(params.switch()?)?;
    let value = app.value(body).await?;
    let body = Object::body(&value)?;
    let command = command(
        &body,
        &[
            ("add", MeterModCommand::Add),
            ("modify", MeterModCommand::Modify),
            ("delete", MeterModCommand::Delete),
        ],
    )?;
    let example = "meter=1 kbps band=type=drop rate=1000";
    let meter_mod = parsed(&body, "meter", example, |text| {
        MeterMod::parse(command, text)
    })?;
    needs_13(&info, "meters")?;
    confirm(&app, info.datapath_id, Message::MeterMod(meter_mod)).await
}

/// Requests a role at a switch, now and each time the switch connects.
pub(super) async fn role(
    State(app): State<Arc<App>>,
    params: Params,
    body: Body,
) -> Result<StatusCode, ApiError> {
    const EXPECTED: &str = "equal, primary or secondary";
    const EXAMPLE: &str = "\"role\": \"primary\"";
    let info = app.switch(params.switch()?)?;
    let value = app.value(body).await?;
    let body = Object::body(&value)?;
    let role = body.text("role", EXPECTED);
    let role = role.map_err(|error| error.example(EXAMPLE))?;
    let role: Role = role
        .parse()
        .map_err(|_| body.wrong("role", EXPECTED).example(EXAMPLE))?;
    let deadline = app.config.reply_timeout * 2;
    let given = timeout(deadline, app.network.set_role(info.datapath_id, role)?).await;
    given.unwrap_or(Err(RequestError::Timeout(deadline)))?;
    Ok(StatusCode::NO_CONTENT)
}

/// Returns the command in a body, or the first of `commands` if there is none.
fn command<C: Copy>(body: &Object, commands: &[(&str, C)]) -> Result<C, ApiError> {
    let (first, _) = commands[0];
    let name = body.text_or("command", first)?;
    let command = commands.iter().find(|(known, _)| *known == name);
    command.map(|(_, command)| *command).ok_or_else(|| {
        let names: Vec<_> = commands.iter().map(|(name, _)| *name).collect();
        let expected = format!("one of {}", names.join(", "));
        body.wrong("command", &expected)
            .example(format!("\"command\": \"{first}\""))
    })
}

fn parsed<T>(
    body: &Object,
    key: &str,
    example: &str,
    parse: impl FnOnce(&str) -> Result<T, ParseError>,
) -> Result<T, ApiError> {
    let example = format!("\"{key}\": \"{example}\"");
    let text = body.text(key, "text in the syntax of ovs-ofctl");
    let text = text.map_err(|error| error.example(&*example))?;
    parse(text).map_err(|error| ApiError::at(key, error.to_string()).example(example))
}

/// Sends a message, and waits until the switch has confirmed it.
async fn confirm(app: &App, id: DatapathId, message: Message<'_>) -> Result<StatusCode, ApiError> {
    let deadline = app.config.reply_timeout * 2;
    // The table numbers in a request are the switch's, even if a filter has its own table.
    let network = app.network.for_stage(Stage::Observe);
    let message = std::slice::from_ref(&message);
    let confirmed = async {
        network
            .when_ready(id, || network.confirm(id, message))
            .await?
            .await
    };
    let confirmed = timeout(deadline, confirmed).await;
    confirmed.unwrap_or(Err(RequestError::Timeout(deadline)))?;
    Ok(StatusCode::NO_CONTENT)
}
