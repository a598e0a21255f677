//! Plain paths against `check_path`.

use super::*;
use crate::head::check_path;

#[test]
fn a_plain_path_is_a_good_path_up_to_the_space() {
    const TAIL: &[u8] = b" HTTP/1.1\r\nhost: gate.example\r\n\r\n";
    let pieces = [
        "/",
        "v1",
        "chat",
        "/completions",
        "-",
        "_x",
        ".",
        "%20",
        "?",
        "a",
        "\u{e9}",
    ];
    for seed in 0..100_000_usize {
        let mut rest = seed;
        let mut path = String::from("/");
        while rest > 0 {
            path += pieces[rest % pieces.len()];
            rest /= pieces.len();
        }
        let text = [path.as_bytes(), TAIL].concat();
        let is_plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'/' | b'-' | b'_');
        let expected = path.bytes().all(is_plain) && check_path(path.as_bytes()).is_ok();
        assert_eq!(
            plain_path(&text),
            expected.then_some(path.as_str()),
            "{path}"
        );
    }
}

#[test]
fn a_slash_at_the_end_of_a_block_and_one_at_the_start_of_the_next_are_two() {
    let path = |second: &str| {
        format!(
            "/{}{second}x HTTP/1.1\r\nhost: gate.example\r\n\r\n",
            "a".repeat(14)
        )
    };
    assert_eq!(plain_path(path("//").as_bytes()), None);
    assert_eq!(
        plain_path(path("/b").as_bytes()),
        Some("/aaaaaaaaaaaaaa/bx")
    );
    assert_eq!(plain_path(b"v1/chat HTTP/1.1\r\nhost: x\r\n\r\n"), None);
    assert_eq!(plain_path(b"/v1/chat"), None);
}
