//! The error response to a request: a status, and a message that says what input was expected.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use urtica_controller::RequestError;
use urtica_wire::{DatapathId, EncodeError};
use utoipa::ToSchema;

/// The reason why a request failed. Its JSON is the body of the response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema, thiserror::Error)]
#[error("{error}")]
pub struct ApiError {
    /// The status of the response.
    #[serde(skip)]
    #[schema(ignore)]
    pub(crate) status: StatusCode,
    /// The problem and the expected input.
    error: String,
    /// The part of the request that it is about, such as `match.eth_type`.
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<String>,
    /// A valid example.
    #[serde(skip_serializing_if = "Option::is_none")]
    example: Option<String>,
}

impl ApiError {
    /// Creates an error with this status and sentence.
    pub fn new(status: StatusCode, error: impl Into<String>) -> Self {
        Self {
            status,
            error: error.into(),
            field: None,
            example: None,
        }
    }

    /// Creates an error about a part of the request; `expected` continues the sentence after "expected".
    pub fn field(field: impl Into<String>, found: &str, expected: &str) -> Self {
        let field = field.into();
        Self {
            error: format!("{field} is {}: expected {expected}", shortened(found)),
            field: Some(field),
            ..Self::new(StatusCode::BAD_REQUEST, "")
        }
    }

    /// Creates an error about a missing part of the request.
    pub fn missing(field: impl Into<String>, expected: &str) -> Self {
        let field = field.into();
        Self {
            error: format!("{field} is missing: expected {expected}"),
            field: Some(field),
            ..Self::new(StatusCode::BAD_REQUEST, "")
        }
    }

    /// Creates an error about a part of the request; `error` is the whole sentence.
    pub fn at(field: &str, error: impl Into<String>) -> Self {
        Self {
            field: Some(field.to_owned()),
            ..Self::new(StatusCode::BAD_REQUEST, error)
        }
    }

    /// Adds an example of valid input.
    pub fn example(self, example: impl Into<String>) -> Self {
        Self {
            example: Some(example.into()),
            ..self
        }
    }

    /// Replaces the status.
    pub(crate) fn with_status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    /// Creates the error for a switch that is not connected.
    pub(crate) fn no_switch(id: DatapathId) -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            format!(
                "no switch with datapath id {id} is connected: expected one of GET /stats/switches"
            ),
        )
    }

    /// Creates an error for a feature that the switch's version lacks.
    pub(crate) fn not_in_version(error: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_IMPLEMENTED, error)
    }
}

/// Shortens received text so that it fits into a sentence.
fn shortened(found: &str) -> String {
    const MOST: usize = 60;
    let mut text: String = found.chars().take(MOST).collect();
    if text.len() < found.len() {
        text.push('…');
    }
    text
}

impl From<RequestError> for ApiError {
    fn from(error: RequestError) -> Self {
        let status = match error {
            RequestError::UnknownSwitch(id) => return Self::no_switch(id),
            RequestError::Encode(error) => return error.into(),
            RequestError::Busy(_) | RequestError::Disconnected => StatusCode::SERVICE_UNAVAILABLE,
            RequestError::Refused(_) | RequestError::Secondary(_) => StatusCode::CONFLICT,
            RequestError::Timeout(_) => StatusCode::GATEWAY_TIMEOUT,
            _ => StatusCode::BAD_GATEWAY,
        };
        Self::new(status, error.to_string())
    }
}

impl From<EncodeError> for ApiError {
    fn from(error: EncodeError) -> Self {
        Self::new(StatusCode::BAD_REQUEST, error.to_string())
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let status = self.status;
        let mut response = (status, Json(self)).into_response();
        let headers = response.headers_mut();
        match status {
            StatusCode::UNAUTHORIZED => {
                headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            StatusCode::TOO_MANY_REQUESTS => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
            }
            _ => {}
        }
        response
    }
}
