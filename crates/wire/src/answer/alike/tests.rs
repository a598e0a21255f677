//! An event that is like an earlier one says what it says when it is read whole.

use testing::{Draw, seed};

use super::super::Reader;
use super::*;

/// Events with one text each, as engines write them; `T` is the text, `N` a number, `P` letters by chance.
const EVENTS: [&str; 10] = [
    r#"{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1767225600,"model":"m","choices":[{"index":0,"delta":{"content":"T"},"logprobs":null,"finish_reason":null,"token_ids":null}]}"#,
    r#"{"id":"chatcmpl-1","choices":[{"index":2,"delta":{"content":"T"},"finish_reason":null}],"obfuscation":"P"}"#,
    r#"{"choices":[{"index":0,"delta":{"reasoning_content":"T"},"finish_reason":null}]}"#,
    r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"function":{"arguments":"T"}}]}}]}"#,
    r#"{"id":"cmpl-1","choices":[{"index":0,"text":"T","logprobs":null,"finish_reason":null}]}"#,
    r#"{"type":"response.output_text.delta","sequence_number":N,"item_id":"msg_1","output_index":0,"delta":"T","logprobs":[],"obfuscation":"P"}"#,
    r#"{"content_index":0,"delta":"T","item_id":"msg_1","output_index":0,"sequence_number":N,"type":"response.output_text.delta"}"#,
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"T"}}"#,
    r#"{"type":"content_block_delta","index":0,"delta":{"text":"T","sequence_number":N}}"#,
    r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"T"}}"#,
];

/// What stands in place of a text, some of which is none.
const TEXTS: [&str; 12] = [
    " token",
    "",
    "日本語",
    r"a\nb",
    r#"say \"no\""#,
    r"\u00e9\ud83d\ude00",
    r"\ud83d",
    r"\x",
    "a\tb",
    r#"","content":"twice"#,
    r#""},"finish_reason":"length"#,
    "\\",
];

fn one_of<'a>(draw: &mut Draw, all: &[&'a str]) -> &'a str {
    all[draw.below(all.len())]
}

/// What a stream of these events says, and whether it can be read.
fn read(events: &[Vec<u8>]) -> (Vec<String>, bool) {
    let mut told = Vec::new();
    let mut reader = Reader::new(true, 1 << 20);
    for event in events {
        let stream = [b"data: ", event.as_slice(), b"\n\n"].concat();
        reader.push(&stream, |piece| told.push(format!("{piece:?}")));
    }
    let end = reader.finish(true, |piece| told.push(format!("{piece:?}")));
    (told, end.is_ok())
}

#[test]
fn an_event_says_the_same_whatever_was_read_before_it() {
    let mut draw = Draw::new(seed("an_event_says_the_same"));
    let mut like = 0;
    let long = &"9".repeat(400);
    for round in 0..10_000 {
        let shape = one_of(&mut draw, &EVENTS);
        let write = |draw: &mut Draw, text: &str| {
            let number = one_of(
                draw,
                &[
                    "0",
                    "7",
                    "12345678901234567890123",
                    "01",
                    "-1",
                    "1.5",
                    "1e5",
                    long,
                    "",
                ],
            );
            let letters = one_of(draw, &["", "aX9", "é", r"\n", "a\u{7f}"]);
            let event = shape.replace('N', number).replace('P', letters);
            event.replacen('T', text, 1).into_bytes()
        };
        let first = write(&mut draw, "a text");
        let mut second = {
            let text = one_of(&mut draw, &TEXTS);
            write(&mut draw, text)
        };
        if draw.below(4) == 0 {
            let at = draw.below(second.len());
            second[at] = [b'"', b'\\', b'{', b'1', 0x80, b' '][draw.below(6)];
        }
        let (before, is_good) = read(std::slice::from_ref(&first));
        let (alone, is_readable) = read(std::slice::from_ref(&second));
        let (both, are_readable) = read(&[first.clone(), second.clone()]);
        let what = format!("round {round}: {}", second.escape_ascii());
        if !is_good {
            assert!(!are_readable, "{what}");
            continue;
        }
        assert_eq!(are_readable, is_readable, "{what}");
        assert_eq!(both, [before, alone].concat(), "{what}");
        like += usize::from(is_taken(&first, &second));
    }
    assert!(like > 1_250, "only {like} were alike");
}

/// Whether the second is taken without reading it whole.
fn is_taken(first: &[u8], second: &[u8]) -> bool {
    let mut alike = Alike::new();
    super::super::event(first, &mut alike, &mut |_| ());
    alike.read(second, &mut |_| ()).is_some()
}

#[test]
fn the_next_token_is_not_read_whole() {
    for shape in EVENTS {
        let event = |text: &str, number: &str, letters: &str| {
            let event = shape.replacen('T', text, 1);
            event
                .replace('N', number)
                .replace('P', letters)
                .into_bytes()
        };
        let first = event("The", "9", "abc");
        assert!(is_taken(&first, &event(r#" \"end\""#, "10", "")), "{shape}");
        assert!(!is_taken(&first, &event("a", "10", "")[1..]), "{shape}");
    }
    let two = br#"{"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}"#;
    assert!(!is_taken(two, two), "it says that it ended as well");
}
