//! Not here: a real ROUTER, which the end-to-end tests have.

use super::*;

/// What a ROUTER says first.
fn router(identity: &[u8]) -> Vec<u8> {
    opening("ROUTER", identity)
}

fn all(decoder: &mut Decoder) -> Result<Vec<PeerEvent>, ZmtpError> {
    let mut heard = Vec::new();
    while let Some(next) = decoder.next()? {
        heard.push(next);
    }
    Ok(heard)
}

#[test]
fn the_opening_of_a_dealer_is_these_bytes() {
    let mut golden = b"\xff\0\0\0\0\0\0\0\x01\x7f\x03\x00NULL".to_vec();
    golden.resize(64, 0);
    golden.extend_from_slice(
        b"\x04\x2c\x05READY\x0bSocket-Type\0\0\0\x06DEALER\x08Identity\0\0\0\x03w_1",
    );
    assert_eq!(opening("DEALER", b"w_1"), golden);
}

#[test]
fn a_handshake_and_messages_are_read_however_they_are_cut() {
    let long = vec![7; 300];
    let mut bytes = router(b"");
    put_message(b"short", &mut bytes);
    put_message(b"", &mut bytes);
    // A command in between, as a PING of a newer version, says nothing.
    put_frame(COMMAND, b"\x04PING\0\x0a", &mut bytes);
    put_message(&long, &mut bytes);
    let expected = vec![
        PeerEvent::Ready { identity: vec![] },
        PeerEvent::Message(b"short".to_vec()),
        PeerEvent::Message(vec![]),
        PeerEvent::Message(long),
    ];
    for step in [1, 2, 3, 7, 63, 64, 65, bytes.len()] {
        let mut decoder = Decoder::new("ROUTER");
        let mut heard = Vec::new();
        for piece in bytes.chunks(step) {
            decoder.push(piece);
            heard.extend(all(&mut decoder).expect("sound bytes"));
        }
        assert_eq!(heard, expected, "in pieces of {step}");
    }
}

#[test]
fn a_peer_that_is_no_router_is_told_at_its_first_bytes() {
    let of = |bytes: &[u8]| {
        let mut decoder = Decoder::new("ROUTER");
        decoder.push(bytes);
        all(&mut decoder).expect_err("an error")
    };
    assert_eq!(of(b"HTTP/1.1 400 Bad Request\r\n"), ZmtpError::Greeting);
    let version_two = [b"\xff\0\0\0\0\0\0\0\x01\x7f\x01".as_slice(), &[0; 53]].concat();
    assert_eq!(of(&version_two), ZmtpError::Greeting);
    let mut plain = router(b"");
    plain[12..17].copy_from_slice(b"PLAIN");
    assert_eq!(of(&plain), ZmtpError::Mechanism("PLAIN".into()));
    let publisher = opening("PUB", b"");
    assert_eq!(of(&publisher), ZmtpError::Socket("PUB".into(), "ROUTER"));
    let mut refusing = router(b"");
    refusing.truncate(64);
    put_frame(COMMAND, b"\x05ERROR\x04full", &mut refusing);
    assert_eq!(of(&refusing), ZmtpError::Refused("full".into()));
}

#[test]
fn a_frame_beyond_the_bound_is_refused_before_it_comes() {
    let mut decoder = Decoder::new("ROUTER");
    decoder.push(&router(b""));
    all(&mut decoder).expect("a handshake");
    decoder.push(b"\x02\x7f\xff\xff\xff\xff\xff\xff\xff");
    assert_eq!(all(&mut decoder), Err(ZmtpError::Frame(i64::MAX as u64)));
    let mut decoder = Decoder::new("ROUTER");
    decoder.push(&router(b""));
    all(&mut decoder).expect("a handshake");
    decoder.push(b"\x01\x01a");
    assert_eq!(
        all(&mut decoder),
        Err(ZmtpError::Flags(1)),
        "a message of several frames is not Locust's"
    );
}

#[test]
fn no_damage_of_any_byte_is_more_than_an_error() {
    let mut sound = router(b"master");
    put_message(b"\x93\xa4stop\xc0\xa3w_1", &mut sound);
    for at in 0..sound.len() {
        for value in [0, 1, 0x7f, 0x80, 0xff, sound[at] ^ 4] {
            let mut damaged = sound.clone();
            damaged[at] = value;
            let mut decoder = Decoder::new("ROUTER");
            decoder.push(&damaged);
            // Sound where nothing was said by that byte.
            drop(all(&mut decoder));
            let mut decoder = Decoder::new("ROUTER");
            decoder.push(&damaged[..at]);
            drop(all(&mut decoder));
        }
    }
}
