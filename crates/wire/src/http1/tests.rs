//! The vectors under `vectors/http1`, each whole and cut anywhere; and what a vector cannot say.

mod vectors;

use super::*;
use crate::head::{Known, RequestHead};
use vectors::{Vector, escape, read};

#[test]
fn request_vectors_hold_whole_and_cut() {
    check("request.txt", 90, cut_head, |_, input| {
        request(input).unwrap_or_else(|fault| format!("fault {} {}", fault.code(), fault.status()))
    });
}

#[test]
fn response_vectors_hold_whole_and_cut() {
    check("response.txt", 30, cut_head, |vector, input| {
        response(input, vector.to.as_deref().unwrap_or("GET"))
            .unwrap_or_else(|fault| format!("fault {}", fault.code()))
    });
}

#[test]
fn chunked_vectors_hold_whole_and_cut() {
    check("chunked.txt", 35, cut_chunked, |_, input| chunked([input]));
}

type Outcome = fn(&Vector, &[u8]) -> String;

fn check(file: &str, at_least: usize, cut: fn(&Vector, Outcome), outcome: Outcome) {
    let vectors = read(file);
    assert!(vectors.len() >= at_least, "{file} lost vectors");
    for vector in &vectors {
        assert_eq!(
            outcome(vector, &vector.bytes),
            vector.expect,
            "{file}: {}",
            vector.name
        );
        cut(vector, outcome);
    }
}

/// Every prefix is either partial or has the answer of the whole.
fn cut_head(vector: &Vector, outcome: Outcome) {
    let (answer, rest) = vector
        .expect
        .rsplit_once(" rest ")
        .unwrap_or((&vector.expect, "0"));
    let head_end = vector.bytes.len() - rest.parse::<usize>().expect("a count");
    for end in cuts(vector.bytes.len()) {
        let seen = outcome(vector, &vector.bytes[..end]);
        if seen == "partial" {
            assert!(
                end < vector.bytes.len() || vector.expect == "partial",
                "{} at {end}",
                vector.name
            );
            assert!(
                end < head_end || !answer.starts_with("ok"),
                "{} at {end}",
                vector.name
            );
        } else {
            assert_eq!(
                seen.rsplit_once(" rest ")
                    .map_or(seen.as_str(), |(answer, _)| answer),
                answer,
                "{} at {end}",
                vector.name
            );
            assert!(
                end >= head_end || answer.starts_with("fault"),
                "{} at {end}",
                vector.name
            );
        }
    }
}

fn cut_chunked(vector: &Vector, _: Outcome) {
    for end in cuts(vector.bytes.len()) {
        let (before, after) = vector.bytes.split_at(end);
        assert_eq!(
            chunked([before, after]),
            vector.expect,
            "{} at {end}",
            vector.name
        );
    }
    assert_eq!(
        chunked(vector.bytes.chunks(1)),
        vector.expect,
        "{} byte by byte",
        vector.name
    );
}

/// Every cut of a short input; of a long one the first and last and some between.
fn cuts(len: usize) -> impl Iterator<Item = usize> {
    (0..=len).filter(move |&end| end < 300 || len - end < 300 || end % 997 == 0)
}

fn request(input: &[u8]) -> Result<String, HeadFault> {
    let mut head = RequestHead::new();
    let Step::Done { consumed } = parse_request(input, &Limits::default(), &mut head)? else {
        return Ok("partial".into());
    };
    let framing = request_framing(&head)?;
    let expect = if framing.expect_continue {
        " continue"
    } else {
        ""
    };
    let rest = input.len() - consumed;
    Ok(format!(
        "ok {} {} {}{expect} rest {rest}",
        head.method_text(),
        head.target(),
        name(framing.framing, framing.keep_alive)
    ))
}

fn response(input: &[u8], method: &str) -> Result<String, HeadFault> {
    let mut head = ResponseHead::new();
    let Step::Done { consumed } = parse_response(input, &Limits::default(), &mut head)? else {
        return Ok("partial".into());
    };
    let (framing, keep_alive) =
        response_framing(&head, crate::head::Method::of(method.as_bytes()))?;
    Ok(format!(
        "ok {} {} rest {}",
        head.status,
        name(framing, keep_alive),
        input.len() - consumed
    ))
}

fn name(framing: Framing, keep_alive: bool) -> String {
    let framing = match framing {
        Framing::None => "none".into(),
        Framing::Length(length) => format!("length {length}"),
        Framing::Chunked => "chunked".into(),
        Framing::UntilClose => "until-close".into(),
    };
    framing + if keep_alive { " keep" } else { " close" }
}

fn chunked<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let (mut reader, mut data, mut rest) = (Chunked::new(), Vec::new(), 0);
    for mut part in parts {
        if reader.is_end() {
            rest += part.len();
            continue;
        }
        loop {
            match reader.next(part) {
                Ok(ChunkStep::Data { skip, len }) => {
                    data.extend_from_slice(&part[skip..skip + len]);
                    part = &part[skip + len..];
                }
                Ok(ChunkStep::NeedMore { consumed }) => {
                    assert_eq!(consumed, part.len());
                    break;
                }
                Ok(ChunkStep::End { consumed }) => {
                    rest += part.len() - consumed;
                    break;
                }
                Err(fault) => return format!("fault {}", fault.code()),
            }
        }
    }
    let data = escape(&data);
    if reader.is_end() {
        format!("end {data} rest {rest}")
    } else {
        format!("more {data}")
    }
}

#[test]
fn limits_can_be_lowered_and_fields_never_exceed_the_cap() {
    let input = b"GET / HTTP/1.1\r\nHost: a\r\nA: b\r\n\r\n";
    let mut head = RequestHead::new();
    let exact = Limits {
        head_bytes: input.len(),
        fields: 2,
    };
    assert_eq!(
        parse_request(input, &exact, &mut head),
        Ok(Step::Done {
            consumed: input.len()
        })
    );
    let fewer = Limits { fields: 1, ..exact };
    assert_eq!(
        parse_request(input, &fewer, &mut head),
        Err(HeadFaultKind::TooManyFields.into())
    );
    let shorter = Limits {
        head_bytes: input.len() - 1,
        ..exact
    };
    assert_eq!(
        parse_request(input, &shorter, &mut head),
        Err(HeadFaultKind::HeadTooLarge.into())
    );

    let many = [
        &input[..input.len() - 2],
        "A: b\r\n".repeat(MAX_FIELDS).as_bytes(),
        b"\r\n",
    ]
    .concat();
    let unbounded = Limits {
        head_bytes: usize::MAX,
        fields: usize::MAX,
    };
    assert_eq!(
        parse_request(&many, &unbounded, &mut head),
        Err(HeadFaultKind::TooManyFields.into())
    );
}

#[test]
fn a_head_used_again_holds_nothing_of_the_last_one() {
    let mut head = RequestHead::new();
    let first = b"POST /a?b HTTP/1.0\r\nHost: a\r\nAuthorization: x\r\n\r\n";
    parse_request(first, &Limits::default(), &mut head).expect("a good head");
    assert_eq!(head.fields.get(Known::Authorization), Some(&b"x"[..]));
    parse_request(b"GE", &Limits::default(), &mut head).expect("a good start");
    assert!(head.fields.is_empty() && head.target().is_empty() && head.method_text().is_empty());
    assert_eq!((head.query(), head.path()), (None, ""));
}

#[test]
fn a_chunk_prefix_reads_back_as_its_length() {
    for len in [
        0,
        1,
        9,
        10,
        15,
        16,
        255,
        256,
        4096,
        65_535,
        1 << 32,
        1 << 53,
    ] {
        let mut buffer = [0; 18];
        let written = chunk_prefix(len, &mut buffer);
        assert_eq!(buffer[..written], *format!("{len:x}\r\n").as_bytes());
    }
    assert_eq!(chunk_prefix(usize::MAX, &mut [0; 18]), 18);
}

#[test]
fn written_heads_read_back() {
    let mut out = Vec::new();
    write_request_line(&mut out, "POST", &["/v1", "?x"]);
    write_field(&mut out, b"host", b"a");
    out.extend_from_slice(b"\r\n");
    let mut head = RequestHead::new();
    assert_eq!(
        parse_request(&out, &Limits::default(), &mut head),
        Ok(Step::Done {
            consumed: out.len()
        })
    );
    assert_eq!((head.method_text(), head.target()), ("POST", "/v1?x"));

    for (status, line) in [
        (200, "HTTP/1.1 200 OK\r\n"),
        (404, "HTTP/1.1 404 Not Found\r\n"),
        (529, "HTTP/1.1 529 \r\n"),
    ] {
        out.clear();
        write_status_line(&mut out, status);
        assert_eq!(String::from_utf8_lossy(&out), line);
    }
    out.clear();
    write_status_line(&mut out, 429);
    out.extend_from_slice(b"\r\n");
    let mut head = ResponseHead::new();
    assert_eq!(
        parse_response(&out, &Limits::default(), &mut head),
        Ok(Step::Done {
            consumed: out.len()
        })
    );
    assert_eq!(head.status, 429);
}
