//! Hosts and origins: who is answered.

use super::{Hosts, Origins, Sender, Web, sender};
use crate::fixture::request;

fn names(names: &[&str]) -> Vec<Box<str>> {
    names.iter().map(|name| Box::from(*name)).collect()
}

#[test]
fn on_loopback_a_request_names_a_loopback_host_or_one_that_is_listed() {
    let hosts = Hosts::Loopback(names(&["gate.internal"]));
    for host in [
        "127.0.0.1",
        "127.0.0.1:1975",
        "127.9.9.9:80",
        "localhost",
        "LocalHost:1975",
        "[::1]",
        "[::1]:1975",
        "[::ffff:127.0.0.1]:80",
        "gate.internal",
        "GATE.internal:443",
    ] {
        assert!(hosts.allows(Some(host.as_bytes())), "{host}");
    }
    for host in [
        "evil.example",
        "evil.example:1975",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "gate.internal.evil.example",
        "evil.gate.internal",
        "192.168.0.1",
        "0.0.0.0",
        "[::2]:1975",
        "127.1",
        "2130706433",
        "",
        "[::1",
        "[::1]evil.example",
        "[::1]]",
        "[::1]:80:evil",
        "[localhost]",
        "[127.0.0.1]",
        "::1",
        "127.0.0.1:80:evil",
        "127.0.0.1:evil",
        "localhost:80@evil.example",
        "localhost:123456",
    ] {
        assert!(!hosts.allows(Some(host.as_bytes())), "{host}");
    }
    assert!(hosts.allows(None), "HTTP/1.0 without a host");
}

#[test]
fn elsewhere_the_list_alone_counts_and_without_one_every_host_is_answered() {
    let hosts = Hosts::Only(names(&["gate.internal", "10.0.0.7", "::1"]));
    for host in ["gate.internal:8443", "10.0.0.7", "[::1]:80"] {
        assert!(hosts.allows(Some(host.as_bytes())), "{host}");
    }
    for host in ["localhost", "127.0.0.1", "10.0.0.70", "evil.example"] {
        assert!(!hosts.allows(Some(host.as_bytes())), "{host}");
    }
    assert!(Hosts::Any.allows(Some(b"evil.example")));
}

#[test]
fn a_name_with_a_star_stands_for_those_below_it() {
    for hosts in [Hosts::Only, Hosts::Loopback] {
        let hosts = hosts(names(&["*.corp.example"]));
        for host in ["a.corp.example", "A.b.Corp.example:8443"] {
            assert!(hosts.allows(Some(host.as_bytes())), "{host}");
        }
        for host in [
            "corp.example",
            ".corp.example",
            "acorp.example",
            "a.corp.example.evil",
        ] {
            assert!(!hosts.allows(Some(host.as_bytes())), "{host}");
        }
    }
}

/// What becomes of a request with these fields where these origins are allowed.
fn asked(method: &str, fields: &[(&str, &str)], origins: Origins) -> Result<String, &'static str> {
    let web = Web {
        hosts: Hosts::Loopback(Vec::new()),
        origins,
    };
    let head = request(method, "/v1/chat/completions", fields);
    let sender = sender(&head, &web, None).map_err(|refusal| refusal.reply().code)?;
    let text = |origin: &[u8]| String::from_utf8_lossy(origin).into_owned();
    Ok(match sender {
        Sender::Client => "client".to_owned(),
        Sender::Page(origin) => text(origin),
        Sender::Preflight(origin) => format!("preflight {}", text(origin)),
    })
}

const APP: &str = "https://app.example";
const REFUSED: Result<String, &str> = Err("origin_not_allowed");

fn app() -> Origins {
    Origins::Only(names(&[APP, "http://localhost:5173"]))
}

#[test]
fn without_a_word_about_origins_a_request_of_a_page_is_refused() {
    for origin in [
        APP,
        "null",
        "",
        "http://127.0.0.1:1975",
        "vscode-webview://x",
    ] {
        for method in ["GET", "POST", "OPTIONS", "DELETE"] {
            let got = asked(method, &[("origin", origin)], Origins::None);
            assert_eq!(got, REFUSED, "{method} {origin}");
        }
    }
    let preflight = [("origin", APP), ("access-control-request-method", "POST")];
    assert_eq!(asked("OPTIONS", &preflight, Origins::None), REFUSED);
    assert_eq!(asked("POST", &[], Origins::None), Ok("client".to_owned()));
    assert_eq!(asked("OPTIONS", &[], app()), Ok("client".to_owned()));
}

#[test]
fn a_listed_origin_is_compared_whole() {
    for origin in [APP, "http://localhost:5173"] {
        assert_eq!(
            asked("POST", &[("origin", origin)], app()),
            Ok(origin.to_owned())
        );
    }
    for origin in [
        "https://app.example:8443",
        "http://app.example",
        "https://evil.app.example",
        "https://app.example.evil",
        "https://APP.example",
        "null",
        "",
    ] {
        assert_eq!(
            asked("POST", &[("origin", origin)], app()),
            REFUSED,
            "{origin}"
        );
    }
    let twice = [("origin", APP), ("origin", APP)];
    assert_eq!(asked("POST", &twice, app()), REFUSED);
}

#[test]
fn every_origin_does_not_mean_null() {
    let any = |origin| asked("POST", &[("origin", origin)], Origins::Any);
    assert_eq!(
        any("https://anything.example"),
        Ok("https://anything.example".to_owned())
    );
    assert_eq!(any("null"), REFUSED);
}

#[test]
fn a_preflight_is_an_options_that_names_a_method() {
    let preflight = [("origin", APP), ("access-control-request-method", "POST")];
    assert_eq!(
        asked("OPTIONS", &preflight, app()),
        Ok(format!("preflight {APP}"))
    );
    assert_eq!(asked("POST", &preflight, app()), Ok(APP.to_owned()));
    assert_eq!(
        asked("OPTIONS", &[("origin", APP)], app()),
        Ok(APP.to_owned())
    );
}

#[test]
fn what_an_image_of_another_site_asks_for_is_refused() {
    for site in ["cross-site", "same-site"] {
        for method in ["GET", "HEAD"] {
            let got = asked(method, &[("sec-fetch-site", site)], Origins::Any);
            assert_eq!(got, REFUSED, "{method} {site}");
        }
    }
    for site in ["none", "same-origin"] {
        let got = asked("GET", &[("sec-fetch-site", site)], Origins::None);
        assert_eq!(got, Ok("client".to_owned()), "{site}");
    }
    let of_the_app = [("origin", APP), ("sec-fetch-site", "cross-site")];
    assert_eq!(asked("GET", &of_the_app, app()), Ok(APP.to_owned()));
}

#[test]
fn the_host_counts_before_the_origin() {
    let fields = [("host", "evil.example"), ("origin", APP)];
    assert_eq!(asked("POST", &fields, app()), Err("host_not_allowed"));
}

#[test]
fn a_page_of_the_very_host_and_port_that_it_asks_may_where_hosts_are_looked_at() {
    let asked = |hosts: Hosts, host: &str, origin: &str| {
        let web = Web {
            hosts,
            origins: Origins::None,
        };
        let fields = [("host", host), ("origin", origin)];
        let head = request("POST", "/v1/chat/completions", &fields);
        sender(&head, &web, None).is_ok()
    };
    let loopback = || Hosts::Loopback(Vec::new());
    assert!(asked(loopback(), "127.0.0.1:1975", "http://127.0.0.1:1975"));
    assert!(asked(
        Hosts::Only(names(&["gate.example"])),
        "gate.example",
        "https://gate.example"
    ));
    for (host, origin) in [
        ("127.0.0.1:1975", "http://127.0.0.1:1976"),
        ("127.0.0.1:1975", "http://localhost:1975"),
        ("127.0.0.1:1975", "ws://127.0.0.1:1975"),
        ("evil.example", "http://evil.example"),
    ] {
        assert!(!asked(loopback(), host, origin), "{host} {origin}");
    }
    // A name that was pointed here is the page's own, too.
    assert!(!asked(Hosts::Any, "evil.example", "http://evil.example"));
}
