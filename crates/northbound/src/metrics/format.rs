//! The formats of a page, and the choice of one that the client accepts.

use super::Page;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};

/// A text format for metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// Prometheus's own format, version 0.0.4, which all readers support.
    Prometheus,
    OpenMetrics,
}

impl Format {
    /// Returns OpenMetrics if the request accepts it and does not prefer plain text; otherwise the format of Prometheus.
    pub fn accepted(headers: &HeaderMap) -> Self {
        let open = weight(headers, "application/openmetrics-text");
        let plain = weight(headers, "text/plain");
        match open > 0.0 && open >= plain {
            true => Self::OpenMetrics,
            false => Self::Prometheus,
        }
    }

    /// Builds a response with the page in this format.
    pub fn respond(self, page: Page) -> Response {
        let (content_type, text) = match self {
            Self::Prometheus => (
                "text/plain; version=0.0.4; charset=utf-8",
                page.prometheus_text(),
            ),
            Self::OpenMetrics => (
                "application/openmetrics-text; version=1.0.0; charset=utf-8",
                page.text(),
            ),
        };
        let headers = [
            (header::CONTENT_TYPE, content_type),
            (header::VARY, "accept"),
        ];
        (headers, text).into_response()
    }
}

/// Returns the weight that `Accept` gives to a media type (RFC 9110 section 12.4.2); 0 if it is not listed.
fn weight(headers: &HeaderMap, media_type: &str) -> f32 {
    let values = headers.get_all(header::ACCEPT).into_iter();
    let ranges = values.flat_map(|value| value.to_str().unwrap_or_default().split(','));
    let weights = ranges.filter_map(|range| {
        let mut parts = range.split(';').map(str::trim);
        let named = parts.next()?;
        let q = parts.find_map(|part| part.strip_prefix("q="));
        let is_it = named.eq_ignore_ascii_case(media_type);
        is_it.then(|| q.map_or(1.0, |q| q.parse().unwrap_or(0.0)))
    });
    weights.fold(0.0, f32::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    #[test]
    fn a_client_gets_the_format_that_it_accepts() {
        for (accept, format) in [
            ("", Format::Prometheus),
            ("*/*", Format::Prometheus),
            ("text/plain", Format::Prometheus),
            ("text/html, */*;q=0.1", Format::Prometheus),
            ("application/openmetrics-text", Format::OpenMetrics),
            ("application/openmetrics-text;q=0", Format::Prometheus),
            (
                "application/openmetrics-text;q=0.5,text/plain;version=0.0.4;q=0.9",
                Format::Prometheus,
            ),
            // The headers of Prometheus 2 and 3.
            (
                "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,\
                 text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
                Format::OpenMetrics,
            ),
            (
                "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,text/plain;version=0.0.4;q=0.2,*/*;q=0.1",
                Format::OpenMetrics,
            ),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, HeaderValue::from_str(accept).unwrap());
            assert_eq!(Format::accepted(&headers), format, "{accept}");
        }
    }
}
