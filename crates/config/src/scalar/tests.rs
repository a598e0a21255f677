//! Tables of what is taken and what is refused.

use super::*;
use crate::decode::Written;

fn ok<T: Written, U>(text: &str, get: impl Fn(T) -> U) -> Option<U> {
    T::read(text).ok().map(get)
}

#[test]
fn durations_need_a_unit_and_are_neither_nothing_nor_endless() {
    let ms = |text| ok(text, |s: Span| s.0.as_millis());
    for (text, expected) in [
        ("250ms", Some(250)),
        ("30s", Some(30_000)),
        ("1m", Some(60_000)),
        ("2h", Some(7_200_000)),
        ("366d", Some(366 * 86_400_000)),
        ("367d", None),
        ("0s", None),
        ("30", None),
        ("", None),
        ("m", None),
        ("1 m", None),
        ("-1s", None),
        ("1.5h", None),
        ("1 fortnight", None),
        ("99999999999999999999s", None),
        ("18446744073709551615d", None),
        ("1M", None),
    ] {
        assert_eq!(ms(text), expected, "{text:?}");
    }
}

#[test]
fn what_is_kept_may_be_kept_for_decades() {
    let days = |text| ok(text, |a: Age| a.0.as_secs() / 86_400);
    assert_eq!(days("400d"), Some(400));
    assert_eq!(days("36600d"), Some(36_600));
    assert_eq!(days("36601d"), None);
    assert_eq!(days("400"), None);
}

#[test]
fn what_is_brief_lasts_an_hour_at_most() {
    let ms = |text| ok(text, |b: Brief| b.0.as_millis());
    assert_eq!(ms("1h"), Some(3_600_000));
    assert_eq!(ms("3601s"), None);
}

#[test]
fn money_has_nine_places() {
    for (text, expected) in [
        ("50000", Some(50_000_000_000_000)),
        ("0.5", Some(500_000_000)),
        ("0.000000001", Some(1)),
        ("2000000000", Some(2_000_000_000_000_000_000)),
        ("2000000000.000000001", None),
        ("99999999999999999999", None),
        ("0.0000000001", None),
        ("0", None),
        ("0.0", None),
        ("-1", None),
        ("10 USD", None),
        ("1.", None),
        (".5", None),
        ("", None),
    ] {
        assert_eq!(ok(text, |m: Money| m.0), expected, "{text:?}");
    }
}

#[test]
fn sizes_are_bytes_or_have_a_unit() {
    for (text, expected) in [
        ("1", Some(1)),
        ("65536", Some(65_536)),
        ("64KiB", Some(65_536)),
        ("32 MiB", Some(33_554_432)),
        ("1GB", Some(1_000_000_000)),
        ("0", None),
        ("0MiB", None),
        ("1.5MiB", None),
        ("MiB", None),
        ("-1", None),
        ("1mib", None),
        ("99999999999999999999", None),
        ("20000000000GiB", None),
    ] {
        assert_eq!(ok(text, |s: Size| s.0), expected, "{text:?}");
    }
    let two = |text| ok(text, |s: Size<2>| s.0);
    assert_eq!(two("2MiB"), Some(2 << 20));
    assert_eq!(two("2097153"), None);
}

#[test]
fn amounts_are_whole_and_at_least_one() {
    for (text, expected) in [
        ("2", Some(2)),
        ("100K", Some(100_000)),
        ("1M", Some(1_000_000)),
        ("0", None),
        ("0K", None),
        ("-1", None),
        ("1.5", None),
        ("1e3", None),
        ("0x10", None),
        ("1k", None),
        ("", None),
        ("1000000M", Some(1_000_000_000_000)),
        ("1000001M", None),
        ("99999999999999999999", None),
    ] {
        assert_eq!(ok(text, |a: Amount| a.0), expected, "{text:?}");
    }
}

#[test]
fn counts_stay_in_their_range() {
    for (text, expected) in [
        ("1", Some(1)),
        ("10", Some(10)),
        ("11", None),
        ("0", None),
        ("+1", None),
        ("1.0", None),
    ] {
        assert_eq!(ok(text, |c: Count<10>| c.0), expected, "{text:?}");
    }
}

#[test]
fn decimals_are_exact() {
    for (text, expected) in [
        ("0.10", Some((10, 2))),
        ("0", Some((0, 0))),
        ("12", Some((12, 0))),
        ("1.", None),
        (".5", None),
        ("-1", None),
        ("+1", None),
        ("1e-7", None),
        ("1_000", None),
        ("1234567890123", None),
        ("0.1234567890123456789", None),
        ("", None),
        ("nan", None),
        ("0.000000000000000001", Some((1, 18))),
    ] {
        assert_eq!(
            ok(text, |d: Decimal| (d.digits, d.places)),
            expected,
            "{text:?}"
        );
    }
}

#[test]
fn names_and_models_have_their_letters() {
    for (text, name, model) in [
        ("swe-rebench_ide.2", true, true),
        ("openai/gpt-oss-120b:free@eu", false, true),
        ("", false, false),
        ("a b", false, false),
        ("é", false, false),
        ("a\r\nx", false, false),
    ] {
        assert_eq!(Name::read(text).is_ok(), name, "{text:?}");
        assert_eq!(Model::read(text).is_ok(), model, "{text:?}");
    }
    assert!(Name::read(&"a".repeat(64)).is_ok() && Name::read(&"a".repeat(65)).is_err());
    assert!(Model::read(&"a".repeat(256)).is_ok() && Model::read(&"a".repeat(257)).is_err());
}

#[test]
fn a_pattern_has_its_star_at_the_end_only() {
    assert!(matches!(Pattern::read("gpt-4"), Ok(Pattern::Exact(_))));
    assert!(matches!(Pattern::read("gpt-*"), Ok(Pattern::Prefix(p)) if p == "gpt-"));
    assert!(matches!(Pattern::read("*"), Ok(Pattern::Prefix(p)) if p.is_empty()));
    for text in ["", "*gpt", "g*t", "gpt**", "**"] {
        assert!(Pattern::read(text).is_err(), "{text:?}");
    }
}

#[test]
fn headers_that_http_or_credentials_need_name_no_workload() {
    assert!(IdentityHeader::read("X-Team").is_ok_and(|h| h.0 == "x-team"));
    for text in [
        "",
        "a b",
        "x:y",
        "host",
        "Content-Length",
        "authorization",
        "cookie",
        "x\r\ny",
    ] {
        assert!(IdentityHeader::read(text).is_err(), "{text:?}");
    }
    assert!(CredentialHeader::read("x-api-key").is_ok() && CredentialHeader::read("host").is_err());
}

#[test]
fn a_log_target_that_looks_like_a_slip_is_no_file() {
    assert!(matches!(LogTarget::read("off"), Ok(LogTarget::Off)));
    assert!(matches!(LogTarget::read("./stdou"), Ok(LogTarget::File(_))));
    assert!(LogTarget::read("stdou").is_err_and(|p| p.hint.contains("did you mean stdout?")));
    assert!(LogTarget::read("none").is_err());
}

#[test]
fn a_key_in_place_of_a_variables_name_is_not_repeated() {
    assert!(Variable::read("sk-proj-abc").is_err());
    assert_eq!(Variable::shown("hunter2"), "this");
}
