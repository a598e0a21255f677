//! Tables of what is taken and what is refused.

use super::*;

fn read(text: &str) -> Result<Target, String> {
    Target::read(text).map_err(|p| p.is)
}

#[test]
fn addresses_are_taken_apart() {
    for (text, tls, host, port, authority, base) in [
        (
            "http://127.0.0.1:8000/v1",
            false,
            "127.0.0.1",
            8000,
            "127.0.0.1:8000",
            "/v1",
        ),
        (
            "https://api.openai.com/v1/",
            true,
            "api.openai.com",
            443,
            "api.openai.com",
            "/v1",
        ),
        (
            "https://API.example:443",
            true,
            "api.example",
            443,
            "api.example",
            "",
        ),
        ("http://h:80/", false, "h", 80, "h", ""),
        (
            "https://h:80/v1beta/openai",
            true,
            "h",
            80,
            "h:80",
            "/v1beta/openai",
        ),
        (
            "http://[::1]:8000/v1",
            false,
            "::1",
            8000,
            "[::1]:8000",
            "/v1",
        ),
        (
            "http://vllm_0.ns.svc/v1",
            false,
            "vllm_0.ns.svc",
            80,
            "vllm_0.ns.svc",
            "/v1",
        ),
    ] {
        let target = read(text).unwrap();
        assert_eq!(
            (target.tls, target.host.as_str(), target.port),
            (tls, host, port),
            "{text}"
        );
        assert_eq!(
            (target.authority.as_str(), target.base_path.as_str()),
            (authority, base),
            "{text}"
        );
    }
}

#[test]
fn anything_that_another_reader_might_read_otherwise_is_refused() {
    for text in [
        "",
        "127.0.0.1:8000",
        "ftp://h/v1",
        "HTTP://h/v1",
        "http://",
        "http:///v1",
        "http://:80/v1",
        "http://h:/v1",
        "http://h:0/v1",
        "http://h:65536/v1",
        "http://h:+80/v1",
        "http://h:8 0/v1",
        "http://u@h/v1",
        "http://u:p@h/v1",
        "http://h/v1?x=1",
        "http://h/v1#x",
        "http://h?x",
        "http://h#x",
        "http://h//v1",
        "http://h/v1//",
        "http://h/../v1",
        "http://h/./v1",
        "http://h/%2e%2e/v1",
        "http://h/v 1",
        "http://h\\v1",
        "http://h/v1\r\nx: y",
        "http://127.1/v1",
        "http://0x7f.1/v1",
        "http://2130706433/v1",
        "http://[::1/v1",
        "http://[::g]/v1",
        "http://[::1]x/v1",
        "http://-h/v1",
        "http://h..x/v1",
        "http://h./v1",
        "http://é.example/v1",
        "http://h:1:2/v1",
    ] {
        assert!(read(text).is_err(), "{text:?} was taken");
    }
}

#[test]
fn what_may_hold_a_password_is_not_quoted() {
    for text in [
        "http://u:p@h/v1",
        "u:p@h",
        "https://h/v1?key=abc",
        "https://h/v1#abc",
    ] {
        assert!(Target::read(text).is_err_and(|p| !p.quotable), "{text}");
    }
}
