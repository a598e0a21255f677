//! Attacks on tokens, one a row: what is said in each, who signed it, and what becomes of it.

mod damaged;
mod headers;
mod others;
mod payloads;

use crate::algorithm::Algorithm;
use crate::fixture::{CLAIMS, NOW, good, header, keys, outcome, rules, token};
use crate::refused::Refused;
use crate::token::Token;

#[test]
fn a_token_of_each_algorithm_is_good() {
    for algorithm in Algorithm::ALL {
        let claims = outcome(&good(algorithm)).unwrap_or_else(|why| panic!("{algorithm:?}: {why}"));
        assert_eq!(claims.expires(), Some(1_700_003_600));
        assert_eq!(claims.all().len(), 6);
    }
}

#[test]
fn a_token_says_before_it_is_checked_whose_it_is_and_no_more() {
    let token = good(Algorithm::Rs256);
    let read = Token::read(token.as_bytes()).unwrap();
    assert_eq!(read.issuer(), Some("https://issuer.example/"));
    assert_eq!(format!("{read:?}"), "Token { algorithm: Rs256, .. }");
}

#[test]
fn what_is_verified_can_be_verified_again_with_newer_keys() {
    let token = good(Algorithm::Es256);
    let read = Token::read(token.as_bytes()).unwrap();
    let old = crate::KeySet::parse(br#"{"keys":[]}"#).unwrap();
    let refused = crate::verify(&read, &rules(), &old, NOW).unwrap_err();
    assert!(refused.asks_for_keys());
    assert!(crate::verify(&read, &rules(), &keys(), NOW).is_ok());
}

#[test]
fn the_signature_is_looked_at_before_the_claims() {
    // Expired, for others, and not signed at all: what counts is that nobody vouches for it.
    let claims = CLAIMS
        .replace("1700003600", "1")
        .replace("tollgate", "others");
    let mut forged = token(&header(Algorithm::EdDsa), &claims, Algorithm::EdDsa);
    forged.replace_range(forged.len() - 4.., "AAAA");
    assert_eq!(outcome(&forged), Err(Refused::Signature));
}
