//! Access and rate limits, which are checked before a request is handled.
//!
//! A page of another origin, in a browser that can reach the interface, must not change anything, and must not read anything
//! after the page's name was made to point to this address (DNS rebinding). So a request that may change something, or that
//! opens a WebSocket, is refused if its `Origin` is another one; and without tokens, `Host` must be a name of this machine.
//!
//! A token may only permit reading. Then requests that may change something are refused, and each response has the header
//! [`ACCESS`], so that clients can avoid requests that would be refused.

use crate::app::App;
use crate::config::{Access, Tokens};
use crate::error::ApiError;
use crate::{ryu, web};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// The address of the client that sent a request.
#[derive(Clone, Copy)]
pub(crate) struct Peer(pub SocketAddr);

/// The header of responses to requests whose token may only read; its value is `read-only`.
const ACCESS: HeaderName = HeaderName::from_static("urtica-access");

/// Lets a request pass, or refuses it.
pub(crate) async fn check(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let access = match app.admit(&request) {
        Ok(access) => access,
        Err(refused) => {
            app.count_refused();
            return refused.into_response();
        }
    };
    let mut response = match check_access(access, request.method(), request.uri()) {
        Ok(()) => {
            app.count_served();
            next.run(request).await
        }
        Err(refused) => {
            app.count_refused();
            refused.into_response()
        }
    };
    if access == Access::ReadOnly {
        let read_only = HeaderValue::from_static("read-only");
        response.headers_mut().insert(ACCESS, read_only);
    }
    response
}

impl App {
    /// Returns the access of a request, or refuses it.
    fn admit(&self, request: &Request) -> Result<Access, ApiError> {
        let peer = request.extensions().get().copied();
        if let Some(Peer(address)) = peer {
            self.rates
                .take(address.ip(), self.config.max_requests_per_second)?;
        }
        let headers = request.headers();
        check_origin(request.method(), headers)?;
        let tokens = self.live.tokens();
        match tokens.is_empty() {
            true => self.check_host(headers).map(|()| Access::Full),
            false if web::is_public(request.uri().path()) => Ok(Access::Full),
            false => check_token(&tokens, headers),
        }
    }

    /// Without tokens, refuses requests to names other than those of this machine.
    fn check_host(&self, headers: &HeaderMap) -> Result<(), ApiError> {
        let host = text(headers, header::HOST).unwrap_or_default();
        let name = host_name(host);
        let address = name.trim_matches(['[', ']']).parse::<IpAddr>();
        let is_ours = name.eq_ignore_ascii_case("localhost")
            || address
                .is_ok_and(|address| address.is_loopback() || address == self.config.address.ip());
        match is_ours {
            true => Ok(()),
            false => Err(
                ApiError::field("the header Host", host, "the name of this machine")
                    .example("Host: localhost:8080")
                    .with_status(StatusCode::FORBIDDEN),
            ),
        }
    }
}

fn check_token(tokens: &Tokens, headers: &HeaderMap) -> Result<Access, ApiError> {
    let given = text(headers, header::AUTHORIZATION);
    let token = given.and_then(|given| given.split_once(' '));
    let bearer = token.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
    let access = bearer.and_then(|(_, token)| tokens.access(token.trim()));
    access.ok_or_else(|| {
        ApiError::new(
            StatusCode::UNAUTHORIZED,
            "the request has no valid token: expected the header Authorization with a bearer token of this controller",
        )
        .example("Authorization: Bearer 4f9ec7d0b6a1c5e2")
    })
}

/// Refuses a request that may change something if its token may only read.
fn check_access(access: Access, method: &Method, uri: &Uri) -> Result<(), ApiError> {
    if access == Access::Full || is_safe(method) || ryu::ofctl::is_query(method, uri.path()) {
        return Ok(());
    }
    let refused = format!(
        "the token of the request may only read, and {method} {} may make changes: expected GET, or a token that is not \
         marked read-only in the controller's file of tokens",
        uri.path()
    );
    Err(ApiError::new(StatusCode::FORBIDDEN, refused))
}

/// Returns `true` if requests with this method only read (RFC 9110 section 9.2.1).
fn is_safe(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

/// Refuses requests that come from a page of another origin and could change something.
fn check_origin(method: &Method, headers: &HeaderMap) -> Result<(), ApiError> {
    let is_harmless = is_safe(method) && !headers.contains_key(header::UPGRADE);
    let host = text(headers, header::HOST).unwrap_or_default();
    let is_same = |origin: &str| {
        let name = origin.split_once("://").map(|(_, name)| name);
        name.is_some_and(|name| name.eq_ignore_ascii_case(host))
    };
    let origin = headers.get(header::ORIGIN);
    let is_foreign = origin.is_some_and(|origin| !origin.to_str().is_ok_and(is_same));
    let site = text(headers, HeaderName::from_static("sec-fetch-site"));
    let is_cross_site = site.is_some_and(|site| !["same-origin", "none"].contains(&site));
    if is_harmless || !is_foreign && !is_cross_site {
        return Ok(());
    }
    let refused = "the request comes from a page of another origin: expected one of this server, or none (curl sends none)";
    Err(ApiError::new(StatusCode::FORBIDDEN, refused))
}

fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

/// Returns the host of `host`, without the port.
fn host_name(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &str)| {
            (
                HeaderName::from_static(name),
                HeaderValue::from_str(value).unwrap(),
            )
        };
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn only_pages_of_this_server_change_anything() {
        const HOST: (&str, &str) = ("host", "localhost:8080");
        for (method, given, may) in [
            (Method::POST, vec![HOST], true),
            (
                Method::POST,
                vec![HOST, ("origin", "http://localhost:8080")],
                true,
            ),
            (
                Method::POST,
                vec![HOST, ("origin", "http://localhost")],
                false,
            ),
            (
                Method::POST,
                vec![HOST, ("origin", "https://evil.example")],
                false,
            ),
            (Method::DELETE, vec![HOST, ("origin", "null")], false),
            (
                Method::POST,
                vec![HOST, ("sec-fetch-site", "cross-site")],
                false,
            ),
            (
                Method::POST,
                vec![HOST, ("sec-fetch-site", "same-origin")],
                true,
            ),
            (
                Method::GET,
                vec![HOST, ("origin", "https://evil.example")],
                true,
            ),
            (
                Method::GET,
                vec![
                    HOST,
                    ("origin", "https://evil.example"),
                    ("upgrade", "websocket"),
                ],
                false,
            ),
        ] {
            let checked = check_origin(&method, &headers(&given));
            assert_eq!(checked.is_ok(), may, "{method} {given:?}");
        }
    }

    #[test]
    fn read_only_tokens_permit_only_reading() {
        for (method, path, may) in [
            (Method::GET, "/stats/switches", true),
            (Method::HEAD, "/api/v1/switches", true),
            (Method::OPTIONS, "/api/v1/switches", true),
            (Method::POST, "/stats/flow/1", true),
            (Method::POST, "/stats/aggregateflow/1?a=/", true),
            (Method::POST, "/stats/flow/1/", false),
            (Method::PUT, "/stats/flow/1", false),
            (Method::POST, "/stats/flowentry/add", false),
            (Method::POST, "/stats/flow/../role", false),
            (Method::POST, "/api/v1/switches/1/flows", false),
            (Method::DELETE, "/stats/flowentry/clear/1", false),
            (Method::PATCH, "/", false),
            (Method::TRACE, "/", false),
        ] {
            let uri = path.parse().unwrap();
            let checked = check_access(Access::ReadOnly, &method, &uri);
            assert_eq!(checked.is_ok(), may, "{method} {path}");
            assert!(check_access(Access::Full, &method, &uri).is_ok());
        }
    }

    #[test]
    fn host_names_are_read_without_ports() {
        for (host, name) in [
            ("localhost:8080", "localhost"),
            ("localhost", "localhost"),
            ("[::1]:8080", "[::1]"),
            ("[::1]", "[::1]"),
            ("", ""),
        ] {
            assert_eq!(host_name(host), name);
        }
    }
}
