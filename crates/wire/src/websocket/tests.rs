//! Frames as clients write them, whole and cut at every byte, and as nobody should.

use super::*;

const MASK: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];

/// A frame of a client's.
fn sent(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut unmasked = Vec::new();
    frame(first, payload, &mut unmasked);
    let head = unmasked.len() - payload.len();
    let mut made = unmasked[..head].to_vec();
    made[1] |= 0x80;
    made.extend(MASK);
    made.extend(payload.iter().zip(MASK.iter().cycle()).map(|(a, b)| a ^ b));
    made
}

fn read(bytes: &[u8], piece: usize) -> (Vec<Message>, Option<Fault>) {
    let (mut reader, mut told) = (Reader::new(1 << 17), Vec::new());
    for piece in bytes.chunks(piece) {
        reader.push(piece);
        loop {
            match reader.message() {
                Ok(Some(message)) => told.push(message),
                Ok(None) => break,
                Err(fault) => return (told, Some(fault)),
            }
        }
    }
    (told, None)
}

fn read_cut(bytes: &[u8]) -> (Vec<Message>, Option<Fault>) {
    let whole = read(bytes, usize::MAX);
    for piece in [1, 2, 3, 7, 100] {
        assert_eq!(read(bytes, piece), whole, "in pieces of {piece}");
    }
    whole
}

#[test]
fn messages_come_whole_in_one_frame_or_several_with_pings_between() {
    // The example of RFC 6455, 5.7.
    let hello = [
        0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58,
    ];
    assert_eq!(sent(0x81, b"Hello"), hello);
    let long = "ü".repeat(50_000);
    let medium = "x".repeat(126);
    let parts = [
        sent(0x81, b"Hello"),
        sent(0x01, "\u{fc}".as_bytes().get(..1).expect("half of one")),
        sent(0x89, b"there?"),
        sent(0x00, "\u{fc}".as_bytes().get(1..).expect("the other half")),
        sent(0x8a, b""),
        sent(0x80, b""),
        sent(0x81, medium.as_bytes()),
        sent(0x82, long.as_bytes()),
        sent(0x88, &[0x03, 0xe8, b'o', b'k']),
    ];
    let (told, fault) = read_cut(&parts.concat());
    assert_eq!(fault, None);
    assert_eq!(
        told,
        [
            Message::Text("Hello".into()),
            Message::Ping(b"there?".into()),
            Message::Pong,
            Message::Text("ü".into()),
            Message::Text(medium),
            Message::Binary(long.into_bytes()),
            Message::Close(Some(1000)),
        ]
    );
    assert_eq!(read_cut(&sent(0x88, b"")).0, [Message::Close(None)]);
}

#[test]
fn what_is_no_websocket_is_a_fault_by_its_code() {
    let mut unmasked = Vec::new();
    text(b"Hello", &mut unmasked);
    for (bytes, fault) in [
        (unmasked, Fault::Protocol),
        (sent(0xc1, b"compressed"), Fault::Protocol),
        (sent(0x83, b""), Fault::Protocol),
        (sent(0x80, b"goes on from nothing"), Fault::Protocol),
        (
            [sent(0x01, b"a"), sent(0x81, b"b")].concat(),
            Fault::Protocol,
        ),
        (sent(0x09, b"a ping in parts"), Fault::Protocol),
        (vec![0x89, 0xfe, 0, 126], Fault::Protocol),
        (vec![0x81, 0xfe, 0, 125, 0, 0, 0, 0], Fault::Protocol),
        (
            vec![0x81, 0xff, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0],
            Fault::Protocol,
        ),
        (
            vec![0x81, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            Fault::Protocol,
        ),
        (sent(0x81, b"\xff"), Fault::NoText),
        (sent(0x88, &[3]), Fault::Protocol),
        (sent(0x88, &1005_u16.to_be_bytes()), Fault::Protocol),
        (sent(0x88, &[3, 0xe8, 0xff]), Fault::NoText),
        (
            vec![0x81, 0xff, 0, 0, 0, 0, 0, 2, 0, 1, 0, 0, 0, 0],
            Fault::TooLong,
        ),
        (
            [sent(0x01, &[b'a'; 1 << 17]), sent(0x80, b"b")].concat(),
            Fault::TooLong,
        ),
    ] {
        let shown = bytes.get(..20.min(bytes.len())).expect("some").to_vec();
        assert_eq!(read_cut(&bytes).1, Some(fault), "{shown:x?}");
    }
    let mut reader = Reader::new(10);
    reader.push(&[0x83, 0x80, 0, 0, 0, 0]);
    assert_eq!(reader.message(), Err(Fault::Protocol));
    reader.push(&sent(0x81, b"Hello"));
    assert_eq!((reader.message(), reader.held()), (Err(Fault::Protocol), 0));
    assert_eq!(Fault::TooLong.code(), 1009);
}

#[test]
fn what_is_written_has_the_shortest_length_and_no_mask() {
    for (length, head) in [
        (0, &[0x81, 0][..]),
        (125, &[0x81, 125]),
        (126, &[0x81, 126, 0, 126]),
        (65_535, &[0x81, 126, 0xff, 0xff]),
        (65_536, &[0x81, 127, 0, 0, 0, 0, 0, 1, 0, 0]),
    ] {
        let mut out = Vec::new();
        text(&vec![b'a'; length], &mut out);
        assert!(out.starts_with(head), "{length}");
        assert_eq!(out.len(), head.len() + length);
    }
    let mut out = Vec::new();
    pong(&[1; 200], &mut out);
    close(1001, &mut out);
    assert_eq!(out.get(..2), Some(&[0x8a, 125][..]));
    assert!(out.ends_with(&[0x88, 2, 0x03, 0xe9]));
}

#[test]
fn what_a_client_says_is_read_by_a_server_and_what_a_server_says_by_a_client() {
    let mut masked = Vec::new();
    masked_text(b"Hello", MASK, &mut masked);
    assert_eq!(masked, sent(0x81, b"Hello"));
    let long = "\u{fc}".repeat(40_000);
    masked_text(long.as_bytes(), MASK, &mut masked);
    masked_pong(b"there", MASK, &mut masked);
    masked_close(1001, MASK, &mut masked);
    let told = [
        Message::Text("Hello".to_owned()),
        Message::Text(long.clone()),
        Message::Pong,
        Message::Close(Some(1001)),
    ];
    assert_eq!(read_cut(&masked), (told.to_vec(), None));
    let mut plain = Vec::new();
    text(b"Hello", &mut plain);
    text(long.as_bytes(), &mut plain);
    pong(b"there", &mut plain);
    close(1001, &mut plain);
    for piece in [1, 7, usize::MAX] {
        let (mut reader, mut read) = (Reader::of_server(1 << 17), Vec::new());
        for piece in plain.chunks(piece) {
            reader.push(piece);
            while let Ok(Some(message)) = reader.message() {
                read.push(message);
            }
        }
        assert_eq!(read, told);
    }
    // Each side takes only what the other one writes.
    let mut of_server = Reader::of_server(1 << 17);
    of_server.push(&masked);
    assert_eq!(of_server.message(), Err(Fault::Protocol));
    assert_eq!(read_cut(&plain).1, Some(Fault::Protocol));
}
