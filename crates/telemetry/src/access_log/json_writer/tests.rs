//! What is written is what was said, or nothing is.

use super::super::piece::Piece;
use super::JsonWriter;

/// What a pen writes into so much room.
fn written(room: usize, write: impl Fn(JsonWriter<'_>) -> JsonWriter<'_>) -> Option<String> {
    let mut room = vec![b'?'; room];
    let all = room.len();
    let left = write(JsonWriter::new(&mut room)).left()?;
    room.truncate(all - left);
    Some(String::from_utf8(room).unwrap())
}

fn decimal(value: u64) -> String {
    written(64, |out| out.decimal(value)).unwrap()
}

#[test]
fn every_number_of_up_to_five_digits() {
    for value in 0..100_000 {
        assert_eq!(decimal(value), value.to_string());
    }
}

#[test]
fn every_length_and_the_largest() {
    let mut power = 1_u64;
    loop {
        for value in [power - 1, power, power + 1, power.saturating_mul(7)] {
            assert_eq!(decimal(value), value.to_string());
        }
        let Some(next) = power.checked_mul(10) else {
            break;
        };
        power = next;
    }
    assert_eq!(decimal(u64::MAX), u64::MAX.to_string());
}

static KEY: Piece = Piece::new([",\"", "n", "\":"]);
static OPENING: Piece = Piece::new([",\"", "t", "\":\""]);

#[test]
fn a_member_without_a_value_is_left_out() {
    let text = written(128, |out| {
        out.number(&KEY, Some(1024))
            .number(&KEY, None)
            .text(&OPENING, None)
            .text(&OPENING, Some("a\"b"))
    });
    assert_eq!(text.unwrap(), r#","n":1024,"t":"a\"b""#);
}

#[test]
fn what_finds_no_room_is_never_taken_for_written() {
    fn write(out: JsonWriter<'_>) -> JsonWriter<'_> {
        out.fixed(b"{")
            .text(&OPENING, Some("a text of some length"))
            .number(&KEY, Some(12_345_678))
            .bytes(b"}\n")
    }
    let whole = written(256, write).unwrap();
    assert_eq!(whole, "{,\"t\":\"a text of some length\",\"n\":12345678}\n");
    for room in 0..256 {
        let got = written(room, write);
        assert!(
            got.is_none() || got.as_ref() == Some(&whole),
            "{room}: {got:?}"
        );
        assert!(got.is_none() || room > whole.len());
    }
}
