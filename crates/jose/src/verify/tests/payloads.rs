//! Attacks by the claims, all of them well signed: audience, issuer, type, times, members twice.

use crate::algorithm::Algorithm;
use crate::fixture::{CLAIMS, NOW, keys, outcome, outcome_by, rules, token};
use crate::refused::{Part, Refused};
use crate::token::Token;

fn with(claims: &str) -> Result<(), Refused> {
    let header = r#"{"alg":"EdDSA","kid":"ed25519"}"#;
    outcome(&token(header, claims, Algorithm::EdDsa)).map(|_| ())
}

/// The usual claims, one of them written otherwise. An empty text leaves it out.
fn replaced(name: &str, value: &str) -> String {
    let claims: serde_json::Map<String, serde_json::Value> = serde_json::from_str(CLAIMS).unwrap();
    let others = claims.into_iter().filter(|(other, _)| other != name);
    let mut members: Vec<String> = others
        .map(|(name, value)| format!("{name:?}:{value}"))
        .collect();
    if !value.is_empty() {
        members.push(format!("{name:?}:{value}"));
    }
    format!("{{{}}}", members.join(","))
}

#[test]
fn the_audience_is_one_of_ours() {
    let rows = [
        (r#""tollgate""#, Ok(())),
        (r#"["tollgate"]"#, Ok(())),
        (r#"["other","tollgate"]"#, Ok(())),
        ("", Err(Refused::Missing("aud"))),
        (r#""other""#, Err(Refused::Audience)),
        (r#""tollgate/""#, Err(Refused::Audience)),
        (r#""tollgat""#, Err(Refused::Audience)),
        (r#""tollgate-admin""#, Err(Refused::Audience)),
        (r#""Tollgate""#, Err(Refused::Audience)),
        (r#"" tollgate""#, Err(Refused::Audience)),
        (r#""tollgate other""#, Err(Refused::Audience)),
        (r#""""#, Err(Refused::Audience)),
        ("[]", Err(Refused::Audience)),
        (r#"["other"]"#, Err(Refused::Audience)),
        ("null", Err(Refused::Mistyped("aud"))),
        ("1", Err(Refused::Mistyped("aud"))),
        (r#"{"tollgate":true}"#, Err(Refused::Mistyped("aud"))),
        (r#"["tollgate",1]"#, Err(Refused::Mistyped("aud"))),
        (r#"[["tollgate"]]"#, Err(Refused::Mistyped("aud"))),
    ];
    for (aud, expected) in rows {
        assert_eq!(with(&replaced("aud", aud)), expected, "{aud}");
    }
}

#[test]
fn without_audiences_only_a_token_for_nobody_in_particular_is_good() {
    let mut rules = rules();
    rules.audiences.clear();
    let header = r#"{"alg":"EdDSA","kid":"ed25519"}"#;
    let found = |aud| {
        let token = token(header, &replaced("aud", aud), Algorithm::EdDsa);
        outcome_by(&token, &rules, &keys()).map(|_| ())
    };
    assert_eq!(found(""), Ok(()));
    for aud in [r#""tollgate""#, "[]", r#""""#] {
        assert_eq!(found(aud), Err(Refused::Audience));
    }
    assert_eq!(found("null"), Err(Refused::Mistyped("aud")));
}

#[test]
fn the_issuer_is_the_very_one() {
    let rows = [
        (r#""https://issuer.example/""#, Ok(())),
        (r#""https://issuer.example""#, Err(Refused::Issuer)),
        (r#""https://issuer.example//""#, Err(Refused::Issuer)),
        (r#""https://ISSUER.example/""#, Err(Refused::Issuer)),
        (r#""HTTPS://issuer.example/""#, Err(Refused::Issuer)),
        (r#""http://issuer.example/""#, Err(Refused::Issuer)),
        (r#""https://issuer.example:443/""#, Err(Refused::Issuer)),
        (r#""https://issuer.example/ ""#, Err(Refused::Issuer)),
        (r#""""#, Err(Refused::Issuer)),
        ("", Err(Refused::Missing("iss"))),
        ("null", Err(Refused::Mistyped("iss"))),
        (
            r#"["https://issuer.example/"]"#,
            Err(Refused::Mistyped("iss")),
        ),
    ];
    for (iss, expected) in rows {
        assert_eq!(with(&replaced("iss", iss)), expected, "{iss}");
    }
}

#[test]
fn the_type_is_one_that_is_allowed() {
    const NONE: &[&str] = &[];
    const ACCESS: &[&str] = &["at+jwt"];
    const LONG: &[&str] = &["application/AT+JWT"];
    let rows = [
        (NONE, "", true),
        (NONE, "JWT", true),
        (NONE, "jwt", true),
        (NONE, "at+jwt", true),
        (NONE, "application/at+jwt", true),
        (NONE, "Application/JWT", true),
        (NONE, "id+jwt", false),
        (NONE, "dpop+jwt", false),
        (NONE, "logout+jwt", false),
        (NONE, "secevent+jwt", false),
        (NONE, "text/jwt", false),
        (NONE, "application/", false),
        (NONE, "application/application/jwt", false),
        (NONE, " JWT", false),
        // An ID token says JWT, or nothing: where access tokens are asked for, it is none.
        (ACCESS, "", false),
        (ACCESS, "JWT", false),
        (ACCESS, "at+jwt", true),
        (ACCESS, "AT+JWT", true),
        (ACCESS, "application/at+jwt", true),
        (LONG, "at+jwt", true),
        (LONG, "application/at+jwt", true),
        (LONG, "text/at+jwt", false),
    ];
    for (types, typ, is_good) in rows {
        let mut rules = rules();
        rules.types = types.iter().map(|typ| Box::from(*typ)).collect();
        let member = match typ {
            "" => String::new(),
            typ => format!(r#","typ":"{typ}""#),
        };
        let header = format!(r#"{{"alg":"EdDSA","kid":"ed25519"{member}}}"#);
        let found = outcome_by(&token(&header, CLAIMS, Algorithm::EdDsa), &rules, &keys());
        let expected = if is_good { Ok(()) } else { Err(Refused::Type) };
        assert_eq!(found.map(|_| ()), expected, "{types:?} {typ}");
    }
}

#[test]
fn a_time_is_a_number_of_seconds_and_nothing_else() {
    let mistyped = [
        "null",
        "true",
        "\"1700003600\"",
        "\"\"",
        "[1700003600]",
        "{}",
        "-1",
        "-0.5",
        "-1e300",
        "1e300",
        "9007199254740992",
        "9007199254740993",
        "18446744073709551615",
        "18446744073709551616",
        "9007199254740992.0",
        "-9223372036854775808",
    ];
    for name in ["exp", "nbf", "iat"] {
        for value in mistyped {
            let found = with(&replaced(name, value));
            assert_eq!(found, Err(Refused::Mistyped(name)), "{name} {value}");
        }
        for value in [
            "1e400", "-1e400", "NaN", "Infinity", "0x10", "01", "1_0", "+1",
        ] {
            let found = with(&replaced(name, value));
            assert_eq!(found, Err(Refused::Json(Part::Claims)), "{name} {value}");
        }
    }
    for exp in [
        "1700003600.0",
        "1700003600.75",
        "1.7000036e9",
        "9007199254740991",
    ] {
        assert_eq!(with(&replaced("exp", exp)), Ok(()), "{exp}");
    }
    for name in ["nbf", "iat"] {
        for value in [
            "0",
            "-0",
            "-0.0",
            "0.5",
            "1700000000",
            "1700000000.9",
            "1.7e9",
            "",
        ] {
            assert_eq!(with(&replaced(name, value)), Ok(()), "{name} {value}");
        }
    }
    assert_eq!(with(&replaced("exp", "")), Err(Refused::Missing("exp")));
    assert_eq!(
        with(&replaced("exp", "0")),
        Err(Refused::Expired { ago_s: NOW })
    );
}

#[test]
fn times_hold_to_the_second() {
    let (leeway, at_most) = (30, 60);
    let expired = |ago_s| Err(Refused::Expired { ago_s });
    let not_yet = |in_s| Err(Refused::NotYetValid { in_s });
    let ahead = |ahead_s| Err(Refused::IssuedAhead { ahead_s });
    let rows = [
        ("exp", 0, 1, Ok(())),
        ("exp", 0, 0, expired(0)),
        ("exp", 0, -1, expired(1)),
        ("exp", leeway, -29, Ok(())),
        ("exp", leeway, -30, expired(30)),
        ("exp", at_most, -59, Ok(())),
        ("exp", at_most, -60, expired(60)),
        ("exp", 3600, -60, expired(60)),
        ("exp", u64::MAX, -60, expired(60)),
        ("exp", 0, -86_400, expired(86_400)),
        ("nbf", 0, 0, Ok(())),
        ("nbf", 0, 1, not_yet(1)),
        ("nbf", leeway, 30, Ok(())),
        ("nbf", leeway, 31, not_yet(31)),
        ("nbf", u64::MAX, 61, not_yet(61)),
        ("iat", 0, 0, Ok(())),
        ("iat", 0, 1, ahead(1)),
        ("iat", leeway, 30, Ok(())),
        ("iat", leeway, 31, ahead(31)),
        ("iat", u64::MAX, 61, ahead(61)),
    ];
    for (name, leeway_s, from_now, expected) in rows {
        let mut rules = rules();
        rules.leeway_s = leeway_s;
        let at = NOW.checked_add_signed(from_now).unwrap();
        for written in [at.to_string(), format!("{at}.0"), format!("{at}.5")] {
            let header = r#"{"alg":"EdDSA","kid":"ed25519"}"#;
            let token = token(header, &replaced(name, &written), Algorithm::EdDsa);
            let found = outcome_by(&token, &rules, &keys()).map(|_| ());
            assert_eq!(found, expected, "{name} {leeway_s} {written}");
        }
    }
}

#[test]
fn clocks_at_the_ends_of_time_break_nothing() {
    let token = token(
        r#"{"alg":"EdDSA","kid":"ed25519"}"#,
        CLAIMS,
        Algorithm::EdDsa,
    );
    let read = Token::read(token.as_bytes()).unwrap();
    let mut rules = rules();
    rules.leeway_s = 60;
    let at = |now| crate::verify(&read, &rules, &keys(), now).map(|_| ());
    assert_eq!(
        at(0),
        Err(Refused::IssuedAhead {
            ahead_s: 1_699_999_990
        })
    );
    let ago_s = u64::MAX - 1_700_003_600;
    assert_eq!(at(u64::MAX), Err(Refused::Expired { ago_s }));
}

#[test]
fn an_expiry_may_be_waived_but_not_mistaken() {
    let mut rules = rules();
    rules.requires_expiry = false;
    let header = r#"{"alg":"EdDSA","kid":"ed25519"}"#;
    let rows = [
        ("", Ok(None)),
        ("1700003600", Ok(Some(1_700_003_600))),
        ("1", Err(Refused::Expired { ago_s: NOW - 1 })),
        ("null", Err(Refused::Mistyped("exp"))),
        ("\"\"", Err(Refused::Mistyped("exp"))),
    ];
    for (exp, expected) in rows {
        let token = token(header, &replaced("exp", exp), Algorithm::EdDsa);
        let found = outcome_by(&token, &rules, &keys());
        assert_eq!(found.map(|claims| claims.expires()), expected, "{exp}");
    }
}

#[test]
fn no_claim_stands_twice() {
    let rows = [
        r#""exp":1700003601"#,
        r#""exp":1700003600"#,
        r#""aud":"other""#,
        r#""\u0065xp":1"#,
        r#""a":{"b":1,"b":1}"#,
        r#""a":[[{"b":{"c":1,"\u0063":1}}]]"#,
        r#""":1,"":2"#,
    ];
    for member in rows {
        let claims = CLAIMS.replacen('{', &format!("{{{member},"), 1);
        assert_eq!(
            with(&claims),
            Err(Refused::Duplicate(Part::Claims)),
            "{member}"
        );
    }
    // Names that differ are not the same: their case counts.
    let claims = CLAIMS.replacen('{', r#"{"EXP":1,"Aud":"other","#, 1);
    assert_eq!(with(&claims), Ok(()));
}

#[test]
fn claims_are_one_json_object() {
    let deep = format!("{}1{}", r#"{"a":"#.repeat(200), "}".repeat(200));
    let rows = [
        "",
        "null",
        "[]",
        "\"a\"",
        "1",
        "{",
        "{}x",
        "\u{feff}{}",
        "{\"a\":\"\\ud800\"}",
        &deep,
    ];
    for claims in rows {
        assert_eq!(with(claims), Err(Refused::Json(Part::Claims)), "{claims}");
    }
    let nested = token(
        r#"{"alg":"EdDSA","kid":"ed25519"}"#,
        CLAIMS,
        Algorithm::EdDsa,
    );
    assert_eq!(with(&nested), Err(Refused::Json(Part::Claims)));
}
