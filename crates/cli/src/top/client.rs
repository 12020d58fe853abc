//! A client of a controller's HTTP interface.

use super::exposition::{Metrics, parse};
use std::fmt;
use std::str::FromStr;
use std::time::{Duration, Instant};
use ureq::Agent;

/// The maximum time of a response: the controller queries its switches first.
const TIMEOUT: Duration = Duration::from_secs(15);

/// The maximum length of a response: thousands of switches, each with hundreds of ports.
const BODY_BYTES_MAX: u64 = 512 << 20;

/// The address of the HTTP server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpAddress(String);

impl FromStr for HttpAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = "expected HOST:PORT, a port, or http://HOST:PORT";
        if text.starts_with("https://") {
            return Err(format!(
                "{expected}; urtica top uses plain HTTP, and does not support a proxy with TLS"
            ));
        }
        let place = text.strip_prefix("http://").unwrap_or(text);
        let place = place.trim_end_matches('/');
        if place.parse::<u16>().is_ok() {
            return Ok(Self(format!("127.0.0.1:{place}")));
        }
        let parts = place.rsplit_once(':');
        let has_port = parts.is_some_and(|(host, port)| {
            let is_host = !host.is_empty() && !host.contains(['/', '@', '?', '#', ' ']);
            is_host && port.parse::<u16>().is_ok()
        });
        match has_port {
            true => Ok(Self(place.to_owned())),
            false => Err(expected.to_owned()),
        }
    }
}

impl fmt::Display for HttpAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}", self.0)
    }
}

/// An error of a query.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error(
        "cannot reach {place}: {error}; expected a controller that runs with --northbound, as in `urtica run l2 \
         --northbound`"
    )]
    Unreachable { place: String, error: String },
    #[error(
        "{0} requires a token; expected --token FILE with one from the controller's --northbound-tokens file"
    )]
    NoToken(String),
    #[error(
        "{place}{path} responds with status {status}; expected 200 from a controller that runs with --northbound"
    )]
    Status {
        place: String,
        path: &'static str,
        status: u16,
    },
    #[error(
        "{0}/metrics does not return metrics of urtica; expected a controller that runs with --northbound"
    )]
    NotOurs(String),
}

/// A client of a controller.
pub struct Client {
    agent: Agent,
    place: String,
    token: Option<String>,
}

/// A sample of a controller.
#[derive(Clone, Debug)]
pub struct Sample {
    pub at: Instant,
    pub place: String,
    pub metrics: Metrics,
    /// The names of running programs.
    pub programs: Vec<String>,
}

impl Client {
    pub fn new(place: &HttpAddress, token: Option<String>) -> Self {
        let config = Agent::config_builder()
            .timeout_global(Some(TIMEOUT))
            .http_status_as_error(false)
            .max_redirects(0)
            // The controller is the user's own, often on this machine.
            .proxy(None)
            .build();
        Self {
            agent: config.into(),
            place: place.to_string(),
            token,
        }
    }

    /// Requests all figures.
    pub fn sample(&self) -> Result<Sample, ClientError> {
        let text = self.get("/metrics")?;
        let metrics = parse(&text);
        if metrics.value("urtica_switches").is_none() {
            return Err(ClientError::NotOurs(self.place.clone()));
        }
        let programs = self.get("/api/v1/programs")?;
        Ok(Sample {
            at: Instant::now(),
            place: self.place.clone(),
            metrics,
            programs: serde_json::from_str(&programs).unwrap_or_default(),
        })
    }

    fn get(&self, path: &'static str) -> Result<String, ClientError> {
        let unreachable = |error: ureq::Error| ClientError::Unreachable {
            place: self.place.clone(),
            error: error.to_string(),
        };
        let mut request = self.agent.get(format!("{}{path}", self.place));
        if let Some(token) = &self.token {
            request = request.header("Authorization", format!("Bearer {token}"));
        }
        let mut response = request.call().map_err(unreachable)?;
        match response.status().as_u16() {
            200 => {}
            401 | 403 => return Err(ClientError::NoToken(self.place.clone())),
            status => {
                return Err(ClientError::Status {
                    place: self.place.clone(),
                    path,
                    status,
                });
            }
        }
        let body = response.body_mut().with_config().limit(BODY_BYTES_MAX);
        body.read_to_string().map_err(unreachable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpListener;

    #[test]
    fn places_have_several_forms() {
        let parsed = |text: &str| text.parse::<HttpAddress>().map(|place| place.to_string());
        for (text, place) in [
            ("8080", "http://127.0.0.1:8080"),
            ("ctl.example:80", "http://ctl.example:80"),
            ("http://[::1]:8080/", "http://[::1]:8080"),
        ] {
            assert_eq!(parsed(text).as_deref(), Ok(place));
        }
        for text in [
            "",
            "host",
            "70000",
            "a/b:80",
            "user@host:80",
            ":80",
            "https://h:1",
        ] {
            let refused = parsed(text).expect_err(text);
            assert!(refused.contains("HOST:PORT"), "{refused}");
        }
    }

    /// Returns the client's result for this response to every request, and the last request.
    fn asked(response: &'static str, token: Option<&str>) -> (Result<Sample, ClientError>, String) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
        let port = listener.local_addr().expect("an address").port();
        let place: HttpAddress = port.to_string().parse().expect("a port");
        let client = Client::new(&place, token.map(str::to_owned));
        std::thread::scope(|scope| {
            let server = scope.spawn(move || {
                let (mut stream, _) = listener.accept().expect("accepted");
                let mut request = vec![0; 4096];
                let length = stream.read(&mut request).expect("read");
                stream.write_all(response.as_bytes()).expect("written");
                String::from_utf8_lossy(&request[..length]).into_owned()
            });
            let sample = client.sample();
            (sample, server.join().expect("served"))
        })
    }

    #[test]
    fn errors_name_the_flag_that_fixes_them() {
        let refusal = |response| {
            let (sample, _) = asked(response, None);
            sample.expect_err("refused").to_string()
        };
        let told = refusal("HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n");
        assert!(told.contains("--token FILE"), "{told}");
        let told = refusal("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
        assert!(
            told.contains("status 404") && told.contains("--northbound"),
            "{told}"
        );
        let told = refusal("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nup ");
        assert!(told.contains("does not return metrics of urtica"), "{told}");
        let told = refusal("nonsense\r\n\r\n");
        assert!(told.contains("cannot reach"), "{told}");
        let free = TcpListener::bind("127.0.0.1:0").expect("bound");
        let port = free.local_addr().expect("an address").port();
        drop(free);
        let place: HttpAddress = port.to_string().parse().expect("a port");
        let told = Client::new(&place, None)
            .sample()
            .expect_err("refused")
            .to_string();
        assert!(told.contains("urtica run l2 --northbound"), "{told}");
    }

    #[test]
    fn the_token_is_sent_and_never_logged() {
        let response = "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n";
        let (sample, request) = asked(response, Some("0123456789abcdef"));
        assert!(
            request
                .to_lowercase()
                .contains("authorization: bearer 0123456789abcdef"),
            "{request}"
        );
        let told = sample.expect_err("refused").to_string();
        assert!(!told.contains("0123456789abcdef"), "{told}");
    }
}
