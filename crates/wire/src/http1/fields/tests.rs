//! Fields read in 64 bytes at a time against a reading line by line, on either kind of processor.

use super::*;
use crate::head::trim_blanks;

/// Pieces of lines, good ones and those that must not be read as something else.
const PIECES: &[&[u8]] = &[
    b"\r\n",
    b"\r\n",
    b"\r\n",
    b": ",
    b": ",
    b":",
    b" ",
    b"\t",
    b"\r",
    b"\n",
    b"\x7f",
    b"\0",
    b"Host",
    b"content-length",
    b"Transfer-Encoding",
    b"X-Amz-Date",
    b"te",
    b"alt\rsvc",
    b"alt-svc",
    b"http\x12-settings",
    b"a",
    b"gate.example:80",
    b"caf\xc3\xa9",
    b"x-",
    b"_",
    b"\"",
    b"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
];

type Seen = Option<(usize, Vec<(Known, Vec<u8>, Vec<u8>)>)>;

/// What `fields` should see, by the rules alone.
fn plainly(input: &[u8], from: usize, most: usize) -> Seen {
    let (mut at, mut seen) = (from, Vec::new());
    loop {
        let line = &input[at..];
        let end = line.windows(2).position(|two| two == b"\r\n")?;
        let line = &line[..end];
        at += end + 2;
        if line.is_empty() {
            return Some((at, seen));
        }
        let colon = line.iter().position(|&byte| byte == b':')?;
        let (name, value) = (&line[..colon], trim_blanks(&line[colon + 1..]));
        let good = is_token_of(name, name.len())
            && value.iter().all(|&b| b == b'\t' || !b.is_ascii_control());
        if !good || seen.len() == most {
            return None;
        }
        seen.push((Known::of(name), name.to_ascii_lowercase(), value.to_vec()));
    }
}

fn collected(found: Option<usize>, head: &Head) -> Seen {
    let field =
        |field: crate::head::FieldRef<'_>| (field.known, field.name.to_vec(), field.value.to_vec());
    Some((found?, head.iter().map(field).collect()))
}

#[test]
fn fields_are_read_as_line_by_line_or_not_at_all() {
    let seed: u64 = 0x5eed;
    println!("seed {seed}");
    let mut state = seed;
    let mut next = |below: usize| {
        state = state
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(0x1405_7b7e_f767_814f);
        usize::try_from(state >> 33).expect("31 bits") % below
    };
    let mut read = 0;
    for _ in 0..60_000 {
        let mut input = b"POST /v1/chat/completions HTTP/1.1\r\n".to_vec();
        let from = input.len();
        for _ in 0..next(6) {
            // Most lines are well formed but for what the pieces hold.
            let is_line = next(8) > 0;
            input.extend_from_slice(
                PIECES[if is_line {
                    12 + next(9)
                } else {
                    next(PIECES.len())
                }],
            );
            input.extend_from_slice(if is_line {
                b": "
            } else {
                PIECES[next(PIECES.len())]
            });
            (0..next(4)).for_each(|_| input.extend_from_slice(PIECES[9 + next(PIECES.len() - 9)]));
            input.extend_from_slice(b"\r\n");
        }
        input.extend_from_slice(b"\r\n");
        input.extend((0..next(90)).map(|_| b'{'));
        let mut head = Head::new();
        let found = fields(&input, from, 4, &mut head);
        let seen = collected(found, &head);
        head.clear();
        let found = walk(&input, from, 4, &mut head, marks);
        assert_eq!(seen, collected(found, &head), "{}", input.escape_ascii());
        if seen.is_some() {
            assert_eq!(seen, plainly(&input, from, 4), "{}", input.escape_ascii());
            read += 1;
        }
    }
    assert!(read > 1_000, "{read} heads were read");
}

#[test]
fn lines_are_read_wherever_a_block_ends() {
    for name in 1..70 {
        for value in 0..150 {
            let line = |len: usize, byte: &str| byte.repeat(len);
            let input = format!(
                "HTTP/1.1 200 OK\r\n{}: {}\r\nserver: \tx\ty \r\n\r\n{}",
                line(name, "X"),
                line(value, "v"),
                line(value, ":"),
            );
            let mut head = Head::new();
            let found = fields(input.as_bytes(), 17, 8, &mut head);
            let seen = collected(found, &head);
            let expected = plainly(input.as_bytes(), 17, 8);
            let may_be_left = name > 60 || input.len() < MARKED_BYTES || value == 0;
            assert!(
                seen == expected || (seen.is_none() && may_be_left),
                "{name} {value}"
            );
        }
    }
}
