//! Tokens with a byte changed, added or missing, and bytes that never were a token: none is good, none panics.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use testing::{Draw, number_of, seed};

use crate::algorithm::Algorithm;
use crate::fixture::{good, keys, outcome, rules};
use crate::key_set::KeySet;
use crate::refused::Refused;
use crate::token::Token;

fn found(token: &[u8], keys: &KeySet) -> Result<(), Refused> {
    let token = Token::read(token)?;
    crate::verify(&token, &rules(), keys, crate::fixture::NOW).map(|_| ())
}

#[test]
fn no_byte_of_a_token_can_be_another() {
    let mut draw = Draw::new(seed("no_byte_of_a_token_can_be_another"));
    let others = number_of("TOLLGATE_JOSE_CHANGES", 2);
    let keys = keys();
    for algorithm in Algorithm::ALL {
        let token = good(algorithm).into_bytes();
        assert_eq!(found(&token, &keys), Ok(()));
        for at in 0..token.len() {
            let mut damaged = token.clone();
            // A bit by itself, and some other values.
            let others = (0..others).map(|_| 1 + draw.next() % 255);
            for change in others.chain([1 << (at % 8)]) {
                let change = u8::try_from(change).unwrap();
                damaged[at] = token[at] ^ change;
                assert!(
                    found(&damaged, &keys).is_err(),
                    "{algorithm:?} {at} ^ {change}"
                );
            }
        }
    }
}

#[test]
fn no_part_of_a_token_is_one() {
    let keys = keys();
    for algorithm in Algorithm::ALL {
        let token = good(algorithm).into_bytes();
        for at in 0..token.len() {
            assert!(found(&token[..at], &keys).is_err());
            assert!(at == 0 || found(&token[at..], &keys).is_err());
            let mut damaged = token.clone();
            damaged.remove(at);
            // Where the next byte is the same, taking one of two leaves a shorter text, never the same.
            assert!(found(&damaged, &keys).is_err());
            for added in [b'A', b'.', b'=', b' ', b'\n', b'-', 0, 0xff] {
                let mut damaged = token.clone();
                damaged.insert(at, added);
                assert!(found(&damaged, &keys).is_err(), "{added} at {at}");
            }
        }
    }
}

#[test]
fn a_token_has_one_spelling() {
    let token = good(Algorithm::EdDsa);
    let parts: Vec<&str> = token.split('.').collect();
    let (header, claims, signature) = (parts[0], parts[1], parts[2]);
    let rows = [
        format!("{token}="),
        format!("{token}=="),
        format!("{token}\n"),
        format!(" {token}"),
        format!("Bearer {token}"),
        format!("\"{token}\""),
        format!("{header}=.{claims}.{signature}"),
        format!("{header}.{claims}=.{signature}"),
        format!("{header}\n.{claims}.{signature}"),
        format!("{header}.{claims}.{signature}."),
        format!(".{header}.{claims}.{signature}"),
        format!("{header}..{claims}.{signature}"),
        format!("{header}.{claims}.{signature}.."),
        format!("{header}.{claims}.{signature}.{signature}.{signature}"),
        format!(r#"{{"payload":"{claims}","protected":"{header}","signature":"{signature}"}}"#),
        "....".to_owned(),
        "..".to_owned(),
        ".".to_owned(),
        String::new(),
        ".".repeat(16 * 1024),
        "A".repeat(16 * 1024 + 1),
    ];
    for row in rows {
        assert!(outcome(&row).is_err(), "{row}");
    }
    let encrypted = [header, claims, signature, claims, signature].join(".");
    assert_eq!(outcome(&encrypted), Err(Refused::Encrypted));
    // The last letter of 64 bytes has four bits to spare: sixteen letters for the same byte, of which one is right.
    let last = signature.as_bytes()[signature.len() - 1];
    let alphabet = (b'A'..=b'Z')
        .chain(b'a'..=b'z')
        .chain(b'0'..=b'9')
        .chain(*b"-_");
    let spellings = alphabet.filter(|letter| {
        let mut spelt = token.clone().into_bytes();
        *spelt.last_mut().unwrap() = *letter;
        *letter != last && found(&spelt, &keys()).is_ok()
    });
    assert_eq!(spellings.count(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig {
        rng_seed: RngSeed::Fixed(testing::seed("no_bytes_panic")),
        ..ProptestConfig::default()
    })]

    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        prop_assert!(found(&bytes, &keys()).is_err());
        let _ = KeySet::parse(&bytes);
        let _ = KeySet::from_pem(&bytes);
    }

    #[test]
    fn no_parts_panic(
        header in proptest::collection::vec(any::<u8>(), 0..100),
        claims in "[\\[\\]{}\",:0-9a-e.+-]{0,60}",
        signature in proptest::collection::vec(any::<u8>(), 0..600),
    ) {
        let keys = keys();
        let signature = crate::base64url::encode(&signature);
        let random = crate::base64url::encode(&header);
        let claims = crate::base64url::encode(claims.as_bytes());
        let token = format!("{random}.{claims}.{signature}");
        prop_assert!(found(token.as_bytes(), &keys).is_err());
        for algorithm in Algorithm::ALL {
            let good = crate::fixture::unsigned(&crate::fixture::header(algorithm), crate::fixture::CLAIMS);
            let token = format!("{good}.{signature}");
            prop_assert!(found(token.as_bytes(), &keys).is_err());
        }
    }
}
