//! Appending together against appending one by one, with and without room.

use super::*;

#[test]
fn pieces_follow_one_another_whatever_room_there_was() {
    let text = [b'x'; 70];
    for capacity in 0..80 {
        for (a, b) in (0..70)
            .step_by(7)
            .flat_map(|a| (0..70).step_by(9).map(move |b| (a, b)))
        {
            let mut out = Vec::with_capacity(capacity);
            out.extend_from_slice(b"before");
            let mut expected = out.clone();
            let pieces = [&text[..a], b": ", b"", &text[..b], b"\r\n"];
            append(&mut out, pieces);
            pieces
                .iter()
                .for_each(|piece| expected.extend_from_slice(piece));
            assert_eq!(out, expected, "{capacity} {a} {b}");
        }
    }
}
