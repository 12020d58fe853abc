//! The page at `/`: access to it, and its policy for browsers.

use crate::lab::{Lab, Response, config};
use urtica_northbound::{Northbound, NorthboundConfig, Tokens};
use urtica_wire::Version;

const TOKEN: &str = "4f9ec7d0b6a1c5e2";

fn lab(config: NorthboundConfig) -> Lab {
    Lab::with("single,1", Version::Of13, &["hub"], config, |northbound| {
        northbound
    })
}

fn with_token() -> Lab {
    lab(NorthboundConfig {
        tokens: Tokens::new([TOKEN]),
        ..config()
    })
}

/// Returns `true` if the response has a header with this value.
fn has(response: &Response, name: &str, value: &str) -> bool {
    let line = format!("{name}: {value}");
    response.headers.lines().any(|given| given == line)
}

#[test]
fn the_page_runs_nothing_of_others_and_is_in_no_frame() {
    let page = lab(config()).get("/");
    assert_eq!(page.status, 200);
    assert!(page.body.contains("<title>Urtica</title>"), "{}", page.body);
    assert!(
        has(&page, "content-type", "text/html; charset=utf-8"),
        "{}",
        page.headers
    );
    for (name, value) in [
        ("x-frame-options", "DENY"),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-resource-policy", "same-origin"),
        ("cache-control", "no-cache"),
    ] {
        assert!(has(&page, name, value), "{name}: {}", page.headers);
    }
    let mut lines = page.headers.lines();
    let policy = lines.find_map(|line| line.strip_prefix("content-security-policy: "));
    let policy = policy.unwrap_or_default();
    for part in [
        "default-src 'none'",
        "script-src 'self'",
        "connect-src 'self'",
        "frame-ancestors 'none'",
    ] {
        assert!(policy.contains(part), "{policy}");
    }
    assert!(
        !policy.contains("unsafe") && !policy.contains("http"),
        "{policy}"
    );
    // The page contains nothing that the policy forbids.
    assert!(!page.body.contains(" style=") && !page.body.contains("<style"));
    assert!(!page.body.contains("http:") && !page.body.contains("https:"));
}

#[test]
fn the_page_needs_no_token_but_data_does() {
    let lab = with_token();
    for path in ["/", "/?a=b"] {
        assert_eq!(lab.get(path).status, 200, "{path}");
    }
    assert_eq!(lab.get("/assets/nothing.js").status, 404);
    for path in [
        "/api/v1/switches",
        "/api/v1/events",
        "/metrics",
        "/openapi.json",
        "//",
        "/assets",
        "/assets/../api/v1/switches",
        "/assets/%2e%2e/api/v1/switches",
        "/nothing",
    ] {
        let status = lab.get(path).status;
        let is_refused = status == 401 || path.starts_with("/assets/") && status == 404;
        assert!(is_refused, "{path}: {status}");
    }
    let header = format!("Authorization: Bearer {TOKEN}\r\n");
    let known = lab.send("GET", "/api/v1/switches", &header, "");
    assert_eq!(known.status, 200);
}

#[test]
fn the_page_is_for_this_machine_without_tokens() {
    let refused = lab(config()).send("GET", "/", "Host: evil.example\r\n", "");
    assert_eq!(refused.status, 403, "{}", refused.body);
}

/// The page reads the server's time from it.
#[test]
fn responses_have_their_date() {
    let response = lab(config()).get("/api/v1/switches");
    let mut lines = response.headers.lines();
    let date = lines.find_map(|line| line.strip_prefix("date: "));
    let date = date.unwrap_or_default();
    // Such as Sun, 06 Nov 1994 08:49:37 GMT (RFC 9110 section 5.6.7).
    let parts: Vec<&str> = date.split(' ').collect();
    let [_weekday, _day, _month, year, time, "GMT"] = parts[..] else {
        panic!("expected a date: {date}");
    };
    assert!(year.parse::<u16>().is_ok_and(|year| year > 2000), "{date}");
    assert_eq!(time.split(':').count(), 3, "{date}");
}

/// Returns a network whose interface serves a folder with these files, and the folder's parent, which contains a secret.
fn serving(files: &[(&str, &str)]) -> (Lab, tempfile::TempDir) {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("served");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(parent.path().join("secret"), "secret").unwrap();
    for (name, text) in files {
        std::fs::write(folder.join(name), text).unwrap();
    }
    let config = NorthboundConfig {
        tokens: Tokens::new([TOKEN]),
        static_files: Some(folder),
        ..config()
    };
    (lab(config), parent)
}

#[test]
fn files_of_a_folder_are_served_without_a_token() {
    let (lab, _parent) = serving(&[("index.html", "<p>mine"), ("app.js", "let a;")]);
    for (path, text) in [
        ("/static/", "<p>mine"),
        ("/static/index.html", "<p>mine"),
        ("/static/app.js", "let a;"),
    ] {
        let file = lab.get(path);
        assert_eq!((file.status, &*file.body), (200, text), "{path}");
    }
    let script = lab.get("/static/app.js");
    for (name, value) in [
        ("content-type", "text/javascript"),
        ("x-content-type-options", "nosniff"),
    ] {
        assert!(has(&script, name, value), "{}", script.headers);
    }
    assert_eq!(lab.post("/static/app.js", "{}").status, 405);
}

#[test]
fn nothing_outside_the_folder_is_served() {
    let (lab, _parent) = serving(&[]);
    for path in [
        "/static/../secret",
        "/static/%2e%2e/secret",
        "/static/..%2fsecret",
        "/static//etc/passwd",
        "/static/%00",
        "/static/nothing",
        "/static/",
    ] {
        let response = lab.get(path);
        assert!(
            matches!(response.status, 400 | 404),
            "{path}: {}",
            response.status
        );
        assert!(
            !response.body.contains("secret") && !response.body.contains("root"),
            "{path}"
        );
    }
    assert_eq!(lab.get("/static").status, 401);
    assert_eq!(lab.get("/statics/").status, 401);
}

#[test]
fn missing_folders_are_refused() {
    let config = NorthboundConfig {
        static_files: Some("/nothing/here".into()),
        ..config()
    };
    let error = Northbound::bind(config).err().unwrap().to_string();
    assert!(
        error.contains("expected a folder, not /nothing/here"),
        "{error}"
    );
}

#[test]
fn other_methods_get_no_page() {
    let lab = lab(config());
    assert_eq!(lab.post("/", "{}").status, 405);
    assert_eq!(lab.send("HEAD", "/", "", "").body, "");
}

#[cfg(not(feature = "web"))]
#[test]
fn a_program_without_the_page_says_how_to_get_it() {
    let page = lab(config()).get("/");
    assert!(page.body.contains("make web"), "{}", page.body);
    assert!(page.body.contains("--features web"), "{}", page.body);
}

#[cfg(feature = "web")]
#[test]
fn files_named_by_their_hash_are_cached_by_browsers() {
    let lab = lab(config());
    let page = lab.get("/");
    let paths: Vec<_> = page
        .body
        .split('"')
        .filter_map(|part| part.strip_prefix('.'))
        .filter(|path| path.starts_with("/assets/"))
        .collect();
    assert!(paths.iter().any(|path| path.ends_with(".js")), "{paths:?}");
    assert!(paths.iter().any(|path| path.ends_with(".css")), "{paths:?}");
    for path in paths {
        let file = lab.get(path);
        assert_eq!(file.status, 200, "{path}");
        assert!(
            has(
                &file,
                "cache-control",
                "public, max-age=31536000, immutable"
            ),
            "{}",
            file.headers
        );
        assert!(has(&file, "vary", "accept-encoding"), "{}", file.headers);
    }
}
