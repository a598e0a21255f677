//! Responses whole, cut anywhere, and broken.

use super::{Malformed, Parser, Progress};

const LENGTH: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 11\r\nx: y\r\n\r\nhello world";
const CHUNKED: &[u8] = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n\
    5\r\nhello\r\n6;ext=1\r\n world\r\n0\r\ntrailer: t\r\n\r\n";

/// Feeds the pieces; the body, and whether the response ended exactly at the last byte.
fn parse<'a>(
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> Result<(u16, Vec<u8>, bool), Malformed> {
    let (mut parser, mut body, mut ended) = (Parser::new(), Vec::new(), false);
    for piece in pieces {
        assert!(!ended, "bytes after the end");
        let progress = parser.feed(piece, &mut |bytes: &[u8]| body.extend_from_slice(bytes))?;
        if let Progress::Done { used } = progress {
            assert_eq!(used, piece.len());
            ended = true;
        }
    }
    Ok((parser.status(), body, ended))
}

#[test]
fn a_response_cut_at_any_two_places_is_the_same_response() {
    for whole in [LENGTH, CHUNKED] {
        for first in 0..=whole.len() {
            for second in first..=whole.len() {
                let pieces = [&whole[..first], &whole[first..second], &whole[second..]];
                let pieces = pieces.into_iter().filter(|piece| !piece.is_empty());
                assert_eq!(
                    parse(pieces),
                    Ok((200, b"hello world".to_vec(), true)),
                    "{first} {second}"
                );
            }
        }
    }
}

#[test]
fn a_response_fed_byte_by_byte_is_the_same_response() {
    for whole in [LENGTH, CHUNKED] {
        assert_eq!(
            parse(whole.chunks(1)),
            Ok((200, b"hello world".to_vec(), true))
        );
    }
}

#[test]
fn bytes_after_the_end_are_left_to_the_next_response() {
    let mut parser = Parser::new();
    let two = [LENGTH, CHUNKED].concat();
    let mut body = Vec::new();
    let progress = parser.feed(&two, &mut |bytes: &[u8]| body.extend_from_slice(bytes));
    assert_eq!(progress, Ok(Progress::Done { used: LENGTH.len() }));
    parser.reset();
    let progress = parser.feed(&two[LENGTH.len()..], &mut |bytes: &[u8]| {
        body.extend_from_slice(bytes)
    });
    assert_eq!(
        progress,
        Ok(Progress::Done {
            used: CHUNKED.len()
        })
    );
    assert_eq!(body, b"hello worldhello world");
}

#[test]
fn an_interim_response_is_skipped() {
    let whole = [b"HTTP/1.1 100 Continue\r\n\r\n", LENGTH].concat();
    assert_eq!(
        parse([whole.as_slice()]),
        Ok((200, b"hello world".to_vec(), true))
    );
}

#[test]
fn a_body_without_length_ends_at_close_and_a_short_one_does_not() {
    let mut parser = Parser::new();
    let head = b"HTTP/1.1 200 OK\r\n\r\nabc";
    assert_eq!(parser.feed(head, &mut |_: &[u8]| {}), Ok(Progress::More));
    assert!(parser.ends_at_close() && !parser.keep_alive());
    let mut parser = Parser::new();
    assert_eq!(
        parser.feed(&LENGTH[..LENGTH.len() - 1], &mut |_: &[u8]| {}),
        Ok(Progress::More)
    );
    assert!(!parser.ends_at_close() && parser.begun());
}

#[test]
fn connection_close_ends_the_use_of_the_connection() {
    let mut parser = Parser::new();
    let bytes = b"HTTP/1.1 429 Too Many Requests\r\nconnection: Close\r\ncontent-length: 0\r\n\r\n";
    assert_eq!(
        parser.feed(bytes, &mut |_: &[u8]| {}),
        Ok(Progress::Done { used: bytes.len() })
    );
    assert_eq!((parser.status(), parser.keep_alive()), (429, false));
}

#[test]
fn broken_bytes_are_refused() {
    let chunked = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    assert_eq!(
        parse([b"SSH-2.0-x\r\n\r\n".as_slice()]),
        Err(Malformed::Head)
    );
    assert_eq!(
        parse([b"HTTP/1.1 200 OK\r\ncontent-length: many\r\n\r\n".as_slice()]),
        Err(Malformed::Head)
    );
    assert_eq!(
        parse([chunked.as_slice(), b"xyz\r\n"]),
        Err(Malformed::Chunk)
    );
    assert_eq!(
        parse([chunked.as_slice(), b"1\r\nab\r\n"]),
        Err(Malformed::Chunk)
    );
    let long = vec![b'a'; 70 * 1024];
    assert_eq!(
        parse([b"HTTP/1.1 200 OK\r\nx: ".as_slice(), &long]),
        Err(Malformed::HeadTooLong)
    );
}
