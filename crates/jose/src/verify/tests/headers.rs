//! Attacks by the header: algorithms, keys that the token brings along, members that change the reading, `kid`.

use ring::hmac;

use crate::algorithm::Algorithm;
use crate::base64url;
use crate::fixture::{
    CLAIMS, good, header, jwks, key, keys, outcome, outcome_by, rules, token, unsigned,
};
use crate::key_set::KeySet;
use crate::refused::{Part, Refused};

#[test]
fn no_token_without_a_signature_is_good() {
    for alg in ["none", "None", "NONE", "nOnE", "none ", ""] {
        let header = format!(r#"{{"alg":"{alg}","kid":"rsa"}}"#);
        let unsigned = unsigned(&header, CLAIMS);
        assert_eq!(outcome(&format!("{unsigned}.")), Err(Refused::Algorithm));
        let signed = token(&header, CLAIMS, Algorithm::Rs256);
        assert_eq!(outcome(&signed), Err(Refused::Algorithm));
        assert_eq!(outcome(&unsigned), Err(Refused::NotCompact));
    }
    for algorithm in Algorithm::ALL {
        let unsigned = unsigned(&header(algorithm), CLAIMS);
        assert_eq!(outcome(&format!("{unsigned}.")), Err(Refused::Signature));
    }
}

#[test]
fn the_public_key_is_no_shared_secret() {
    let spki = crate::pem::block(key!("rsa.public")).unwrap().der;
    let secrets: [&[u8]; 4] = [key!("rsa.public"), &spki, jwks().as_bytes(), b""];
    let algorithms = [
        ("HS256", hmac::HMAC_SHA256),
        ("HS384", hmac::HMAC_SHA384),
        ("HS512", hmac::HMAC_SHA512),
    ];
    for (alg, algorithm) in algorithms {
        for secret in secrets {
            let signed = unsigned(&format!(r#"{{"alg":"{alg}","kid":"rsa"}}"#), CLAIMS);
            let tag = hmac::sign(&hmac::Key::new(algorithm, secret), signed.as_bytes());
            let token = format!("{signed}.{}", base64url::encode(tag.as_ref()));
            assert_eq!(outcome(&token), Err(Refused::Algorithm));
        }
    }
}

#[test]
fn the_header_cannot_change_the_algorithm() {
    for signed_with in Algorithm::ALL {
        for claimed in Algorithm::ALL {
            let kid = crate::fixture::kid(signed_with);
            let header = format!(r#"{{"alg":"{}","kid":"{kid}"}}"#, claimed.name());
            let found = outcome(&token(&header, CLAIMS, signed_with));
            if claimed == signed_with {
                assert!(found.is_ok(), "{claimed:?}: {found:?}");
            } else if kid == "rsa" && crate::fixture::kid(claimed) == "rsa" {
                // The key is for all six: the signature itself says which one it was.
                assert_eq!(
                    found,
                    Err(Refused::Signature),
                    "{signed_with:?} {claimed:?}"
                );
            } else {
                assert_eq!(found, Err(Refused::AlgorithmOfKey(claimed)));
            }
        }
    }
}

#[test]
fn a_key_that_names_its_algorithm_is_for_no_other() {
    let keys = jwks().replacen(r#""use": "sig""#, r#""alg": "RS256""#, 1);
    let keys = KeySet::parse(keys.as_bytes()).unwrap();
    for algorithm in [Algorithm::Rs384, Algorithm::Ps256, Algorithm::Ps512] {
        let found = outcome_by(&good(algorithm), &rules(), &keys);
        assert_eq!(found, Err(Refused::AlgorithmOfKey(algorithm)));
    }
    assert!(outcome_by(&good(Algorithm::Rs256), &rules(), &keys).is_ok());
}

#[test]
fn the_rules_say_which_algorithms_are_allowed() {
    let mut rules = rules();
    rules.algorithms = vec![Algorithm::Es256, Algorithm::EdDsa];
    for algorithm in Algorithm::ALL {
        let expected = match algorithm {
            Algorithm::Es256 | Algorithm::EdDsa => Ok(()),
            _ => Err(Refused::AlgorithmNotAllowed(algorithm)),
        };
        let found = outcome_by(&good(algorithm), &rules, &keys());
        assert_eq!(found.map(|_| ()), expected);
    }
}

#[test]
fn numbers_that_are_no_signature_are_none() {
    // r and s of 0, 1, the order of the curve less one, the order, and the largest number that fits.
    const P256: &str = "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551";
    const P384: &str = "ffffffffffffffffffffffffffffffffffffffffffffffffc7634d81f4372ddf581a0db248b0a77aecec196accc52973";
    const P521: &str = "01fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffa51868783bf2f966b7fcc0148f709a5d03bb5c9b8899c47aebb6fb71e91386409";
    let curves = [
        (Algorithm::Es256, P256),
        (Algorithm::Es384, P384),
        (Algorithm::Es512, P521),
    ];
    for (algorithm, order) in curves {
        let order = bytes(order);
        let mut less = order.clone();
        *less.last_mut().unwrap() -= 1;
        let mut one = vec![0; order.len()];
        *one.last_mut().unwrap() = 1;
        let numbers = [
            vec![0; order.len()],
            one,
            less,
            order.clone(),
            vec![0xff; order.len()],
        ];
        let signed = unsigned(&header(algorithm), CLAIMS);
        for r in &numbers {
            for s in &numbers {
                let signature = base64url::encode(&[r.as_slice(), s].concat());
                let found = outcome(&format!("{signed}.{signature}"));
                assert_eq!(found, Err(Refused::Signature), "{algorithm:?} {r:?} {s:?}");
            }
        }
    }
    for algorithm in Algorithm::ALL {
        for fill in [0, 1, 0xff] {
            for length in [1, 31, 63, 64, 65, 96, 131, 132, 133, 255, 256, 257, 512] {
                let signature = base64url::encode(&vec![fill; length]);
                let signed = unsigned(&header(algorithm), CLAIMS);
                let found = outcome(&format!("{signed}.{signature}"));
                assert_eq!(
                    found,
                    Err(Refused::Signature),
                    "{algorithm:?} {fill} {length}"
                );
            }
        }
    }
}

fn bytes(hex: &str) -> Vec<u8> {
    let pairs = hex.as_bytes().chunks(2);
    let byte = |pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    pairs.map(byte).collect()
}

#[test]
fn a_signature_has_one_length_and_one_form() {
    for algorithm in Algorithm::ALL {
        let signed = unsigned(&header(algorithm), CLAIMS);
        let good = crate::fixture::sign(algorithm, signed.as_bytes());
        let half = good.len() / 2;
        let in_der = |r: &[u8], s: &[u8]| {
            let number = |n: &[u8]| [&[2, n.len() as u8 + 1, 0], n].concat();
            let numbers = [number(r), number(s)].concat();
            [&[0x30, 0x81, numbers.len() as u8], numbers.as_slice()].concat()
        };
        let forms = [
            [good.as_slice(), &[0]].concat(),
            [&[0], good.as_slice()].concat(),
            [good.as_slice(), &good].concat(),
            good[1..].to_vec(),
            good[..good.len() - 1].to_vec(),
            in_der(&good[..half], &good[half..]),
        ];
        for form in forms {
            let token = format!("{signed}.{}", base64url::encode(&form));
            assert_eq!(outcome(&token), Err(Refused::Signature), "{algorithm:?}");
        }
    }
}

#[test]
fn keys_that_a_token_brings_along_are_not_used() {
    // Signed with the key `p256`, which the issuer does not have, and shown along in every way there is.
    let all: serde_json::Value = serde_json::from_str(jwks()).unwrap();
    let theirs = |kid: &str| {
        all["keys"]
            .as_array()
            .unwrap()
            .iter()
            .find(|key| key["kid"] == kid)
    };
    let jwk = theirs("p256").unwrap();
    let of_issuer = format!(r#"{{"keys":[{}]}}"#, theirs("ed25519").unwrap());
    let of_issuer = KeySet::parse(of_issuer.as_bytes()).unwrap();
    let brought = [
        format!(r#""jwk":{jwk}"#),
        r#""jku":"https://attacker.example/keys""#.to_owned(),
        r#""x5u":"https://attacker.example/certificate""#.to_owned(),
        r#""x5c":["MIIB"]"#.to_owned(),
        r#""x5t":"AAAA","x5t#S256":"AAAA""#.to_owned(),
    ];
    let named = [
        (r#""kid":"p256","#, Refused::UnknownKey),
        ("", Refused::NoKeyFits),
        (
            r#""kid":"ed25519","#,
            Refused::AlgorithmOfKey(Algorithm::Es256),
        ),
    ];
    for brought in brought {
        for (kid, expected) in named {
            let header = format!(r#"{{"alg":"ES256",{kid}{brought}}}"#);
            let found = outcome_by(
                &token(&header, CLAIMS, Algorithm::Es256),
                &rules(),
                &of_issuer,
            );
            assert_eq!(found, Err(expected), "{header}");
        }
        // Nor do they hurt a token that the issuer did sign.
        let header = format!(r#"{{"alg":"EdDSA","kid":"ed25519",{brought}}}"#);
        assert!(outcome(&token(&header, CLAIMS, Algorithm::EdDsa)).is_ok());
    }
}

#[test]
fn what_the_header_may_not_say() {
    let long = "k".repeat(257);
    let rows = [
        (
            r#""b64":false,"crit":["b64"]"#,
            Refused::HeaderMember("crit"),
        ),
        (r#""b64":false"#, Refused::HeaderMember("b64")),
        (r#""b64":true"#, Refused::HeaderMember("b64")),
        (r#""crit":["exp"],"exp":1"#, Refused::HeaderMember("crit")),
        (
            r#""crit":["x-unknown"],"x-unknown":1"#,
            Refused::HeaderMember("crit"),
        ),
        (r#""crit":[]"#, Refused::HeaderMember("crit")),
        (r#""crit":null"#, Refused::HeaderMember("crit")),
        (r#""typ":1"#, Refused::HeaderMistyped("typ")),
        (r#""typ":null"#, Refused::HeaderMistyped("typ")),
        (r#""kid":1"#, Refused::HeaderMistyped("kid")),
        (r#""kid":null"#, Refused::HeaderMistyped("kid")),
        (r#""kid":["ed25519"]"#, Refused::HeaderMistyped("kid")),
        (&format!(r#""kid":"{long}""#), Refused::KidTooLong),
        (r#""alg":"EdDSA""#, Refused::Duplicate(Part::Header)),
        (r#""\u0061lg":"EdDSA""#, Refused::Duplicate(Part::Header)),
        (
            r#""x":{"y":{"z":1,"z":2}}"#,
            Refused::Duplicate(Part::Header),
        ),
        (r#""x":[{"z":1,"z":2}]"#, Refused::Duplicate(Part::Header)),
    ];
    for (member, expected) in rows {
        let header = format!(r#"{{"alg":"EdDSA",{member}}}"#);
        let found = outcome(&token(&header, CLAIMS, Algorithm::EdDsa));
        assert_eq!(found, Err(expected), "{member}");
    }
    let rows = [
        (r#"{"kid":"ed25519"}"#, Refused::Algorithm),
        (r#"{"alg":null}"#, Refused::HeaderMistyped("alg")),
        (r#"{"alg":["EdDSA"]}"#, Refused::HeaderMistyped("alg")),
        (r#"{"alg":"eddsa"}"#, Refused::Algorithm),
        (r#"{"alg":"Ed448"}"#, Refused::Algorithm),
        (r#"{"alg":"ES256K"}"#, Refused::Algorithm),
        (r#"{"alg":"RSA1_5"}"#, Refused::Algorithm),
        (r#"["EdDSA"]"#, Refused::Json(Part::Header)),
        (r#""EdDSA""#, Refused::Json(Part::Header)),
        ("", Refused::Json(Part::Header)),
        ("null", Refused::Json(Part::Header)),
        (r#"{"alg":"EdDSA"}{}"#, Refused::Json(Part::Header)),
        (r#"{"alg":"EdDSA",}"#, Refused::Json(Part::Header)),
        ("{'alg':'EdDSA'}", Refused::Json(Part::Header)),
        ("\u{feff}{\"alg\":\"EdDSA\"}", Refused::Json(Part::Header)),
        ("{\"alg\":\"EdDSA\u{0}\"}", Refused::Json(Part::Header)),
    ];
    for (header, expected) in rows {
        let found = outcome(&token(header, CLAIMS, Algorithm::EdDsa));
        assert_eq!(found, Err(expected), "{header}");
    }
}

#[test]
fn a_kid_is_compared_and_nothing_else() {
    let kids = [
        "../../../../etc/passwd",
        "rsa/../ed25519",
        "' OR '1'='1",
        "ed25519'; DROP TABLE keys; --",
        "https://attacker.example/key",
        "ED25519",
        "ed25519 ",
        " ed25519",
        "ed2551",
        "ed25519\\u0000",
        "",
        "0",
        &"k".repeat(256),
    ];
    for kid in kids {
        let header = format!(r#"{{"alg":"EdDSA","kid":"{kid}"}}"#);
        let found = outcome(&token(&header, CLAIMS, Algorithm::EdDsa));
        assert_eq!(found, Err(Refused::UnknownKey), "{kid}");
    }
    let megabyte = format!(r#"{{"alg":"EdDSA","kid":"{}"}}"#, "k".repeat(1 << 20));
    let megabyte = token(&megabyte, CLAIMS, Algorithm::EdDsa);
    assert_eq!(outcome(&megabyte), Err(Refused::TooLong));
    // Another spelling of the same text in JSON is the same text.
    let header = r#"{"alg":"EdDSA","kid":"\u0065d25519"}"#;
    assert!(outcome(&token(header, CLAIMS, Algorithm::EdDsa)).is_ok());
}

#[test]
fn a_token_without_kid_needs_the_one_key_that_fits() {
    let unnamed = |algorithm: Algorithm| {
        let header = format!(r#"{{"alg":"{}"}}"#, algorithm.name());
        token(&header, CLAIMS, algorithm)
    };
    // Three RSA keys; of each curve, one.
    for algorithm in Algorithm::ALL {
        let expected = match crate::fixture::kid(algorithm) {
            "rsa" => Err(Refused::SeveralKeysFit),
            _ => Ok(()),
        };
        assert_eq!(outcome(&unnamed(algorithm)).map(|_| ()), expected);
    }
    let none = KeySet::parse(br#"{"keys":[]}"#).unwrap();
    let found = outcome_by(&unnamed(Algorithm::EdDsa), &rules(), &none);
    assert_eq!(found, Err(Refused::NoKeyFits));
}

#[test]
fn a_kid_of_two_issuers_is_two_keys() {
    // Another issuer, whose key has the kid of ours.
    let theirs = jwks()
        .replace(r#""kid": "p384""#, r#""kid": "other""#)
        .replace(r#""kid": "rsa""#, r#""kid": "p384""#);
    let theirs = KeySet::parse(theirs.as_bytes()).unwrap();
    let ours = good(Algorithm::Es384);
    assert!(outcome(&ours).is_ok());
    let found = outcome_by(&ours, &rules(), &theirs);
    assert_eq!(found, Err(Refused::AlgorithmOfKey(Algorithm::Es384)));
    let theirs = jwks()
        .replace(r#""kid": "rsa""#, r#""kid": "other""#)
        .replace(r#""kid": "rsa-3072""#, r#""kid": "rsa""#);
    let theirs = KeySet::parse(theirs.as_bytes()).unwrap();
    let found = outcome_by(&good(Algorithm::Rs256), &rules(), &theirs);
    assert_eq!(found, Err(Refused::Signature));
}

#[test]
fn a_key_in_pem_is_for_every_kid_and_for_its_own_algorithms() {
    let keys = KeySet::from_pem(key!("p256.public")).unwrap();
    for kid in [r#","kid":"p256""#, r#","kid":"whatever""#, ""] {
        let header = format!(r#"{{"alg":"ES256"{kid}}}"#);
        let found = outcome_by(&token(&header, CLAIMS, Algorithm::Es256), &rules(), &keys);
        assert!(found.is_ok(), "{header}");
    }
    let found = outcome_by(&good(Algorithm::EdDsa), &rules(), &keys);
    assert_eq!(found, Err(Refused::AlgorithmOfKey(Algorithm::EdDsa)));
    let other = KeySet::from_pem(key!("rsa.certificate")).unwrap();
    assert!(outcome_by(&good(Algorithm::Ps384), &rules(), &other).is_ok());
}
