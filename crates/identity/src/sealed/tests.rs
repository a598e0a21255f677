//! What opens, and that nothing else does.

use super::*;

const NONCE: [u8; NONCE_BYTES] = [7; NONCE_BYTES];

fn secret(byte: u8) -> Secret {
    Secret::new(vec![byte; SECRET_BYTES_MIN])
}

fn sealer(purpose: Purpose, scope: &str, byte: u8) -> Sealer {
    Sealer::new(purpose, scope, &secret(byte), None).expect("a sealer")
}

#[test]
fn what_was_sealed_opens_and_shows_nothing_until_then() {
    let ours = sealer(Purpose::Session, "data", 1);
    for text in [&b""[..], b"a", &[0xff; 1000]] {
        let sealed = ours.seal(text, NONCE).expect("it fits");
        assert_eq!(&*ours.open(sealed.as_bytes()).expect("it opens"), text);
    }
    let sealed = ours.seal(b"ada@example.com", NONCE).expect("it fits");
    let plain = URL_SAFE_NO_PAD.decode(&sealed).expect("base64url");
    assert!(!plain.windows(3).any(|bytes| bytes == b"ada"), "{sealed}");
    assert_eq!(format!("{ours:?}"), "Sealer { .. }");
}

#[test]
fn a_changed_byte_at_any_place_opens_nothing() {
    let ours = sealer(Purpose::Session, "data", 1);
    let sealed = ours.seal(b"whose it is", NONCE).expect("it fits");
    for at in 0..sealed.len() {
        for with in *b"AQgw_-09=.%\0\xff" {
            let mut changed = sealed.clone().into_bytes();
            if changed[at] == with {
                continue;
            }
            changed[at] = with;
            assert!(ours.open(&changed).is_err(), "byte {at} as {with}");
        }
        assert!(ours.open(&sealed.as_bytes()[..at]).is_err(), "cut at {at}");
    }
    for around in [" {}", "{} ", "{}=", "\"{}\"", "{}A", "A{}"] {
        let longer = around.replace("{}", &sealed);
        assert!(ours.open(longer.as_bytes()).is_err(), "{around}");
    }
}

#[test]
fn every_bit_of_it_counts() {
    let ours = sealer(Purpose::LoginState, "data", 1);
    let sealed = ours.seal(b"state", NONCE).expect("it fits");
    let bytes = URL_SAFE_NO_PAD.decode(&sealed).expect("base64url");
    for bit in 0..bytes.len() * 8 {
        let mut changed = bytes.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        let changed = URL_SAFE_NO_PAD.encode(changed);
        let why = ours.open(changed.as_bytes()).expect_err("changed");
        let expected = if bit < 8 {
            NotSealed::Version
        } else {
            NotSealed::Key
        };
        assert_eq!(why, expected, "bit {bit}");
    }
}

#[test]
fn what_is_for_one_purpose_scope_or_secret_opens_as_no_other() {
    let all = [
        sealer(Purpose::Session, "data", 1),
        sealer(Purpose::LoginState, "data", 1),
        sealer(Purpose::Session, "admin", 1),
        sealer(Purpose::LoginState, "admin", 1),
        sealer(Purpose::Session, "data", 2),
    ];
    for (one, maker) in all.iter().enumerate() {
        let sealed = maker.seal(b"text", NONCE).expect("it fits");
        for (other, opener) in all.iter().enumerate() {
            let opened = opener.open(sealed.as_bytes());
            assert_eq!(opened.is_ok(), one == other, "{one} as {other}");
        }
    }
}

#[test]
fn a_secret_is_replaced_without_an_end_of_what_it_sealed() {
    let before = sealer(Purpose::Session, "data", 1);
    let old = before.seal(b"old", NONCE).expect("it fits");
    let rotated = Sealer::new(Purpose::Session, "data", &secret(2), Some(&secret(1)));
    let rotated = rotated.expect("a sealer");
    assert_eq!(&*rotated.open(old.as_bytes()).expect("it opens"), b"old");
    let new = rotated.seal(b"new", NONCE).expect("it fits");
    assert!(
        before.open(new.as_bytes()).is_err(),
        "sealed by the new key"
    );
    let after = sealer(Purpose::Session, "data", 2);
    assert!(after.open(new.as_bytes()).is_ok());
    assert!(after.open(old.as_bytes()).is_err(), "the old key is gone");
}

#[test]
fn secrets_and_texts_have_bounds() {
    for length in [0, 1, 31] {
        let short = Sealer::new(Purpose::Session, "", &Secret::new(vec![1; length]), None);
        assert_eq!(short.err(), Some(ShortSecret(length)));
    }
    let previous = Sealer::new(
        Purpose::Session,
        "",
        &secret(1),
        Some(&Secret::new(vec![1])),
    );
    assert_eq!(previous.err(), Some(ShortSecret(1)));
    let ours = sealer(Purpose::Session, "data", 1);
    let most = SEALED_BYTES_MAX / 4 * 3 - (1 + NONCE_BYTES + TAG_BYTES);
    let sealed = ours.seal(&vec![b'a'; most], NONCE).expect("it fits");
    assert_eq!(sealed.len(), SEALED_BYTES_MAX);
    assert!(ours.open(sealed.as_bytes()).is_ok());
    let long = ours
        .seal(&vec![b'a'; most + 1], NONCE)
        .expect_err("too long");
    assert!(long.0 > SEALED_BYTES_MAX, "{long}");
    let huge = "A".repeat(1 << 20);
    assert_eq!(ours.open(huge.as_bytes()).err(), Some(NotSealed::Form));
}

/// As AES-256-GCM and HKDF-SHA256 of another implementation (Python's `cryptography`) have it.
#[test]
fn the_form_stays_what_it_is() {
    let ours = sealer(Purpose::Session, "scope", 1);
    let sealed = ours.seal(b"text", NONCE).expect("it fits");
    assert_eq!(sealed, "AQcHBwcHBwcHBwcHB9LjBkv0xoYQcI2Nm3Wk6rWrgwYF");
}
