//! Ropes by example.

use bytes::Bytes;

use super::{GATHERED_BYTES, Rope, SHORT_BYTES};

#[test]
fn a_body_in_single_bytes_becomes_a_few_pieces_and_none_is_lost() {
    let body: Vec<u8> = (0..3 * GATHERED_BYTES).map(|n| (n % 251) as u8).collect();
    let mut rope = Rope::default();
    for byte in &body {
        rope.push(Bytes::copy_from_slice(&[*byte]));
    }
    let pieces = rope.into_pieces();
    assert!(pieces.len() <= 4, "{} pieces", pieces.len());
    assert_eq!(pieces.concat(), body);
}

#[test]
fn long_pieces_stay_as_they_came_and_in_their_place() {
    let long = Bytes::from(vec![1; SHORT_BYTES]);
    let short = Bytes::from_static(b"short");
    let mut rope = Rope::default();
    for piece in [&short, &short, &long, &short, &short, &long] {
        rope.push(piece.clone());
    }
    let pieces = rope.into_pieces();
    let lengths: Vec<usize> = pieces.iter().map(Bytes::len).collect();
    assert_eq!(lengths, [5, 5, SHORT_BYTES, 10, SHORT_BYTES]);
    assert_eq!(pieces[2].as_ptr(), long.as_ptr(), "no copy");
}
