//! Every way in which providers say it.

use super::*;

/// 2026-11-22T00:00:00Z.
const NOW_MS: u64 = 1_795_305_600_000;

fn answer(status: u16, fields: &[(&str, &str)]) -> ResponseHead {
    let mut head = ResponseHead {
        status,
        ..ResponseHead::default()
    };
    for (name, value) in fields {
        head.fields
            .push(name.as_bytes(), value.as_bytes())
            .expect("few fields");
    }
    head
}

fn ms(status: u16, fields: &[(&str, &str)]) -> Option<u128> {
    asked(&answer(status, fields), NOW_MS).map(|wait| wait.as_millis())
}

#[test]
fn each_way_to_ask_for_time_is_understood() {
    assert_eq!(ms(503, &[("retry-after", "17")]), Some(17_000));
    assert_eq!(ms(429, &[("retry-after", "0.5")]), Some(500));
    assert_eq!(
        ms(429, &[("retry-after", "17"), ("retry-after-ms", "250")]),
        Some(250)
    );
    let at = "Sun, 22 Nov 2026 00:01:30 GMT";
    assert_eq!(ms(503, &[("retry-after", at)]), Some(90_000));
    let used_up = [
        ("x-ratelimit-remaining-requests", "0"),
        ("x-ratelimit-reset-requests", "1m2.5s"),
        ("x-ratelimit-remaining-tokens", "0"),
        ("x-ratelimit-reset-tokens", "20ms"),
    ];
    assert_eq!(ms(429, &used_up), Some(62_500));
}

#[test]
fn what_says_nothing_asks_for_nothing() {
    let none: [&[(&str, &str)]; 8] = [
        &[],
        &[("retry-after", "soon")],
        &[("retry-after", "-5")],
        &[("retry-after", "0")],
        &[("retry-after", "Sun, 22 Nov 2015 00:01:30 GMT")],
        &[("retry-after", "Sun, 99 Nov 2026 00:01:30 GMT")],
        &[("x-ratelimit-reset-requests", "10s")],
        &[
            ("x-ratelimit-remaining-requests", "3"),
            ("x-ratelimit-reset-requests", "10s"),
        ],
    ];
    for fields in none {
        assert_eq!(ms(429, fields), None, "{fields:?}");
    }
    let used_up = [
        ("x-ratelimit-remaining-tokens", "0"),
        ("x-ratelimit-reset-tokens", "10s"),
    ];
    assert_eq!(ms(503, &used_up), None, "a quota is a matter of 429");
}

#[test]
fn nobody_is_left_alone_for_longer_than_five_minutes() {
    let longest = Some(WAIT_MAX.as_millis());
    assert_eq!(ms(429, &[("retry-after", "86400")]), longest);
    assert_eq!(ms(429, &[("retry-after", "99999999999999999")]), longest);
    let far = "Sun, 22 Nov 2126 00:01:30 GMT";
    assert_eq!(ms(503, &[("retry-after", far)]), longest);
}

#[test]
fn a_quota_is_used_up_or_too_small_for_one_call_where_a_429_says_so() {
    let of = |fields: &[(&str, &str)]| quota(&answer(429, fields), 40_000);
    for fields in [
        &[("x-ratelimit-remaining-requests", "0")][..],
        &[("x-ratelimit-remaining-tokens", "0")],
        &[("anthropic-ratelimit-input-tokens-remaining", "0")],
        &[
            ("X-RateLimit-Limit-Tokens", "30000"),
            ("X-RateLimit-Remaining-Tokens", "0"),
        ],
    ] {
        assert_eq!(of(fields), Quota::UsedUp, "{fields:?}");
    }
    for fields in [
        &[
            ("x-ratelimit-limit-tokens", "30000"),
            ("x-ratelimit-remaining-tokens", "29998"),
        ][..],
        &[
            ("x-ratelimit-limit-tokens-minute", "10000"),
            ("retry-after", "60"),
        ],
    ] {
        assert_eq!(of(fields), Quota::TooSmall, "{fields:?}");
    }
    for fields in [
        &[][..],
        &[("retry-after", "6")],
        &[
            ("x-ratelimit-limit-requests", "500"),
            ("x-ratelimit-remaining-requests", "499"),
        ],
        &[
            ("x-ratelimit-limit-tokens", "50000"),
            ("x-ratelimit-remaining-tokens", "46760"),
        ],
        &[
            ("x-ratelimit-limit-tokens", "many"),
            ("x-ratelimit-reset-tokens", "7"),
        ],
        // A weight, a time and what was used are no limits.
        &[
            ("x-ratelimit-remaining-tokens-minute", "5000"),
            ("x-ratelimit-tokens-query-cost", "30"),
        ],
        &[("x-ratelimit-renewalperiod-tokens", "60")],
        &[("x-ratelimit-reset-tokens", "7")],
        &[("x-ratelimit-used-tokens", "7")],
        // What is in a cache is not counted, nor what is not generated.
        &[("anthropic-ratelimit-input-tokens-limit", "30000")],
        &[("anthropic-ratelimit-output-tokens-limit", "8000")],
        &[("anthropic-ratelimit-tokens-limit", "30000")],
    ] {
        assert_eq!(of(fields), Quota::Unsaid, "{fields:?}");
    }
}
