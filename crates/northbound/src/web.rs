//! The page: `/`, and the files that it loads from `/assets/`.
//!
//! **What.** With the feature `web`, the program contains the files that `make web` builds from the folder `web`. Without it,
//! `/` is a short page that explains how to get them.
//!
//! **Access.** The files contain no data, so they need no token: the page asks for one and sends it with each request for data.
//! The checks of a request's host, origin and rate also apply to the files.
//!
//! **Restrictions of the page.** It loads scripts and styles only from this server, connects to no other, and cannot be
//! embedded in a frame: see [`POLICY`].

use crate::app::App;
use axum::Router;
use axum::extract::Path;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use std::sync::Arc;
use tower::Layer;
use tower_http::services::ServeDir;
use tower_http::set_header::SetResponseHeaderLayer;

/// A file of the page.
struct File {
    /// The path that browsers request.
    path: &'static str,
    plain: &'static [u8],
    /// The content, compressed by gzip.
    compressed: &'static [u8],
}

#[cfg(feature = "web")]
const FILES: &[File] = include!(concat!(env!("OUT_DIR"), "/files.rs"));

#[cfg(not(feature = "web"))]
const FILES: &[File] = &[];

/// The path of the files whose names change with their content.
const ASSETS: &str = "/assets/";

/// The path of the files in the user's folder.
const STATIC: &str = "/static";

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The page of a program without the feature `web`.
const NO_PAGE: &str = "<!doctype html>
<html lang=\"en\">
<meta charset=\"utf-8\">
<meta name=\"viewport\" content=\"width=device-width\">
<title>Urtica</title>
<h1>Urtica</h1>
<p>The northbound interface runs. This program was built without its page. To build it with the page, which needs Node:
<pre>make web
cargo build --release --features web</pre>
<p>The interface is described in <a href=\"openapi.json\">openapi.json</a>; metrics are at <a href=\"metrics\">metrics</a>.
</html>
";

pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/", get(index))
        .route("/assets/{file}", get(asset))
}

/// Serves the files in the user's folder below [`STATIC`].
pub(crate) fn static_files(folder: Option<&std::path::Path>) -> Router<Arc<App>> {
    let Some(folder) = folder else {
        return Router::new();
    };
    let nosniff = SetResponseHeaderLayer::overriding(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    let files = nosniff.layer(ServeDir::new(folder));
    Router::new().nest_service(STATIC, files)
}

/// Returns `true` for the paths of the page and of the user's files, which need no token.
pub(crate) fn is_public(path: &str) -> bool {
    let is_static = path.strip_prefix(STATIC);
    path == "/" || path.starts_with(ASSETS) || is_static.is_some_and(|rest| rest.starts_with('/'))
}

async fn index(headers: HeaderMap) -> Response {
    match find("/") {
        Some(file) => serve(file, &headers),
        None => with_headers(
            "text/html; charset=utf-8",
            "no-cache",
            NO_PAGE.into_response(),
        ),
    }
}

async fn asset(Path(name): Path<String>, headers: HeaderMap) -> Response {
    match find(&format!("{ASSETS}{name}")) {
        Some(file) => serve(file, &headers),
        // An open page requests files of the previous server after the server was replaced.
        None => (
            StatusCode::NOT_FOUND,
            "the page has no such file: reload it\n",
        )
            .into_response(),
    }
}

fn find(path: &str) -> Option<&'static File> {
    FILES.iter().find(|file| file.path == path)
}

fn serve(file: &'static File, headers: &HeaderMap) -> Response {
    let caching = match file.path.starts_with(ASSETS) {
        true => "public, max-age=31536000, immutable",
        false => "no-cache",
    };
    let is_compressed = takes_gzip(headers);
    let bytes = if is_compressed {
        file.compressed
    } else {
        file.plain
    };
    let mut response = with_headers(content_type(file.path), caching, bytes.into_response());
    let vary = HeaderValue::from_name(header::ACCEPT_ENCODING);
    response.headers_mut().insert(header::VARY, vary);
    if is_compressed {
        let gzip = HeaderValue::from_static("gzip");
        response
            .headers_mut()
            .insert(header::CONTENT_ENCODING, gzip);
    }
    response
}

pub(crate) fn with_headers(
    kind: &'static str,
    caching: &'static str,
    mut response: Response,
) -> Response {
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_TYPE, kind),
        (header::CACHE_CONTROL, caching),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        ),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

fn content_type(path: &str) -> &'static str {
    match path.rsplit_once('.') {
        Some((_, "js")) => "text/javascript; charset=utf-8",
        Some((_, "css")) => "text/css; charset=utf-8",
        Some((_, "svg")) => "image/svg+xml",
        Some((_, "txt")) => "text/plain; charset=utf-8",
        _ => "text/html; charset=utf-8",
    }
}

/// Returns `true` if the client accepts gzip (RFC 9110 section 12.5.3).
fn takes_gzip(headers: &HeaderMap) -> bool {
    let accepted = headers.get(header::ACCEPT_ENCODING);
    let accepted = accepted.and_then(|accepted| accepted.to_str().ok());
    let mut codings = accepted.unwrap_or_default().split(',');
    codings.any(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, "q=1"));
        let weight = weight.trim().strip_prefix("q=").map(str::parse::<f32>);
        let is_taken = weight.is_none_or(|weight| weight.is_ok_and(|weight| weight > 0.0));
        name.trim().eq_ignore_ascii_case("gzip") && is_taken
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_is_only_for_clients_that_accept_it() {
        for (accepted, is_taken) in [
            ("", false),
            ("gzip", true),
            ("br, GZIP;q=0.5", true),
            ("gzip;q=0", false),
            ("identity, *", false),
        ] {
            let headers = [(header::ACCEPT_ENCODING, accepted.parse().unwrap())];
            assert_eq!(
                takes_gzip(&headers.into_iter().collect()),
                is_taken,
                "{accepted}"
            );
        }
    }

    #[test]
    fn files_have_their_types_and_compressed_forms() {
        for file in FILES {
            assert_eq!(file.compressed[..2], [0x1f, 0x8b], "{}", file.path);
            assert!(!file.plain.is_empty(), "{}", file.path);
            let is_page = content_type(file.path).starts_with("text/html");
            assert_eq!(is_page, file.path == "/", "{}", file.path);
        }
        for (path, kind) in [
            ("/assets/index-1a2b.js", "text/javascript; charset=utf-8"),
            ("/assets/index-1a2b.css", "text/css; charset=utf-8"),
            ("/assets/icon.svg", "image/svg+xml"),
        ] {
            assert_eq!(content_type(path), kind);
        }
    }
}
